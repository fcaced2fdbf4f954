"""Search in any text corpus, with an index on disk that is built once in limited memory.

>>> index = build_index(Path("corpus"), Path("corpus-index"))  # doctest: +SKIP
>>> index.search("水稻纹枯病的病原是什么", k=3)  # doctest: +SKIP
"""

from agrotools.knowledge.corpus.building import build_index
from agrotools.knowledge.corpus.documents import Document, ReadingCounts, read_corpus
from agrotools.knowledge.corpus.index import CorpusIndex, IndexManifest, IndexSettings, Passage
from agrotools.knowledge.corpus.terms import split
from agrotools.knowledge.corpus.wikipedia import plain_text

__all__ = [
    "CorpusIndex",
    "Document",
    "IndexManifest",
    "IndexSettings",
    "Passage",
    "ReadingCounts",
    "build_index",
    "plain_text",
    "read_corpus",
    "split",
]
