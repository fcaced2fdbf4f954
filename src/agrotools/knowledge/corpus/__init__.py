"""Search in any corpus of text, with an index on disk that is built once in limited memory."""

from agrotools.knowledge.corpus.index import CorpusIndex, Passage, build_index

__all__ = ["CorpusIndex", "Passage", "build_index"]
