"""Cache of a single test: empty but for what is expensive to make and the same for all."""

import os
from pathlib import Path

import pytest


def separate_cache(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Make ``folder`` the cache: it holds nothing but the results of tools and the font list of the session's cache."""
    session = Path(os.environ["AGROTOOLS_CACHE"])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tool-results", "matplotlib"):
        (session / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(session / name)
    patch.setenv("AGROTOOLS_CACHE", str(folder))
    return folder
