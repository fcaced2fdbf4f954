"""Where agrotools keeps what it makes."""

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


def artifact_path(folder: Path, sha256: str, suffix: str) -> Path:
    """Where a file that a tool made lies in a run folder or a benchmark folder, named by its content."""
    return folder / "artifacts" / f"{sha256}{suffix}"
