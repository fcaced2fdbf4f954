"""Writing a file whole or not at all."""

from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in place of what is there; if it fails, what is there stays."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
