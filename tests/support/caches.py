"""Caches of one test: empty, but for what is dear to make and the same for all."""

import os
from pathlib import Path

import pytest


def separate_cache(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Make ``folder`` the cache: nothing in it but the results of tools and the fonts that the session's cache holds."""
    session = Path(os.environ["AGROTOOLS_CACHE"])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tool-results", "matplotlib"):
        (session / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(session / name)
    patch.setenv("AGROTOOLS_CACHE", str(folder))
    return folder
