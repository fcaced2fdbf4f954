"""Search in any text corpus, with an index on disk that is built once in limited memory.

>>> index = build_index(Path("corpus"), Path("corpus-index"))  # doctest: +SKIP
>>> index.search("水稻纹枯病的病原是什么", k=3)  # doctest: +SKIP
"""

from agrotools.knowledge.corpus.building import build_index
from agrotools.knowledge.corpus.index import CorpusIndex, Passage

__all__ = ["CorpusIndex", "Passage", "build_index"]
