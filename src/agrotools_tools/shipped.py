"""Data files of this package: nets, and what models of pixels have learned."""

from pathlib import Path


def shipped_file(name: str) -> Path:
    """Return the path of a data file of this package."""
    return Path(__file__).parent / "data" / name
