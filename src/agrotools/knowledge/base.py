"""The knowledge base of this process: loaded and indexed once, again only after a file has changed."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.knowledge.loading import Loaded, kb_files, load
from agrotools.knowledge.retrieval import KnowledgeIndex

_Stamp = tuple[tuple[str, int, int], ...]
_known: dict[str, tuple[_Stamp, Loaded, KnowledgeIndex]] = {}


def knowledge_base() -> tuple[KnowledgeIndex, Loaded]:
    """The index over all entries of this machine, and what was loaded (with the faults of broken files)."""
    files = kb_files()
    stamp = _stamp(files)
    known = _known.get("kb")
    if known is None or known[0] != stamp:
        loaded = load(files)
        known = stamp, loaded, KnowledgeIndex(loaded.entries)
        _known["kb"] = known
    return known[2], known[1]


def _stamp(files: Sequence[Path]) -> _Stamp:
    found: list[tuple[str, int, int]] = []
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)
