"""Passages for questions: searched for once, by several threads, and kept for the next time."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import orjson

from agrotools.benchmarks.agrieval.items import Item
from agrotools.core.base import Progress
from agrotools.core.files import cache_dir
from agrotools.knowledge.corpus import CorpusIndex, Passage

_THREADS = 8
_TOLD_EVERY = 50


class PassageLookup(NamedTuple):
    """Lookup of the passages of an item, and a note on the index (may be empty)."""

    of_item: Callable[[Item], Sequence[Passage]]
    note: str = ""


def passages_for(items: Sequence[Item], index: Path, count: int, progress: Progress) -> PassageLookup:
    """Passages for each of ``items``: the ``count`` best ones of the index for question and options.

    Raises:
        CorpusError: the folder holds no whole index.
    """
    corpus = CorpusIndex.open(index)
    queries = list(dict.fromkeys(map(_query_of, items)))
    cache = _PassageCache(corpus, count)
    passages_by_query = {query: passages for query in queries if (passages := cache.get(query)) is not None}
    missing = [query for query in queries if query not in passages_by_query]
    with cache, ThreadPoolExecutor(_THREADS) as pool:
        results = pool.map(lambda query: corpus.search(query, count), missing)
        for n_done, (query, passages) in enumerate(zip(missing, results, strict=True)):
            passages_by_query[query] = passages
            cache.add(query, passages)
            if n_done % _TOLD_EVERY == 0:
                progress("passages", n_done, len(missing))
    if missing:
        progress("passages", len(missing), len(missing))
    return PassageLookup(lambda item: passages_by_query[_query_of(item)], corpus.stale or "")


def _query_of(item: Item) -> str:
    """The question with its options, whatever their order is."""
    return "\n".join([item.question, *sorted(item.options.values())])


class _PassageCache:
    """Results of earlier searches of the same index, on disk. What cannot be kept is searched for again."""

    def __init__(self, corpus: CorpusIndex, count: int) -> None:
        name = hashlib.sha256(orjson.dumps([corpus.identity(), count], option=orjson.OPT_SORT_KEYS)).hexdigest()
        self._path = cache_dir("passages", f"{name}.jsonl")
        self._lines: dict[str, list[Passage]] = {}
        self._new: list[bytes] = []
        with suppress(OSError):
            for line in self._path.read_bytes().splitlines():
                with suppress(ValueError, TypeError):
                    query, passages = orjson.loads(line)
                    self._lines[query] = [Passage(*each) for each in passages]

    def get(self, query: str) -> list[Passage] | None:
        return self._lines.get(query)

    def add(self, query: str, passages: Sequence[Passage]) -> None:
        self._new.append(orjson.dumps([query, [astuple(each) for each in passages]]) + b"\n")
        if len(self._new) >= _TOLD_EVERY:
            self._write()

    def __enter__(self) -> "_PassageCache":
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def _write(self) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(b"".join(self._new))
        self._new.clear()
