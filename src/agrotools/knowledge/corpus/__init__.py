"""Search in any corpus of text: read it, index it once on disk in limited memory, ask it often.

>>> index = build_index(Path("corpus"), Path("corpus-index"))  # doctest: +SKIP
>>> index.search("水稻纹枯病的病原是什么", k=3)  # doctest: +SKIP
"""

from agrotools.knowledge.corpus.building import build_index
from agrotools.knowledge.corpus.documents import Document, Tally, read_corpus
from agrotools.knowledge.corpus.index import CorpusIndex, Passage
from agrotools.knowledge.corpus.markup import plain_text
from agrotools.knowledge.corpus.passages import split
from agrotools.knowledge.corpus.store import IndexManifest, IndexSettings
from agrotools.knowledge.corpus.tokens import TokensName, known_tokens

__all__ = [
    "CorpusIndex",
    "Document",
    "IndexManifest",
    "IndexSettings",
    "Passage",
    "Tally",
    "TokensName",
    "build_index",
    "known_tokens",
    "plain_text",
    "read_corpus",
    "split",
]
