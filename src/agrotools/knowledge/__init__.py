"""The agronomic knowledge base: entries with a source for every claim, their rules, and how they are found.

Entries ship in ``data/kb``; the user's own lie beside them (see :mod:`agrotools.knowledge.entries`). Search in any
corpus of text is apart from it: :mod:`agrotools.knowledge.corpus`.
"""
