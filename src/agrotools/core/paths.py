"""Where agrotools keeps what it makes on this machine."""

import os
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """A folder inside the user's cache (``AGROTOOLS_CACHE`` if set). Not created here: the writer creates it."""
    override = os.environ.get("AGROTOOLS_CACHE")
    if override:
        root = Path(override).expanduser()
    else:
        from platformdirs import user_cache_path

        root = user_cache_path("agrotools")
    return root.joinpath(*parts)
