"""Agronomic knowledge base: entries with a source for every claim, rules for entries, and their retrieval.

Entries ship in ``data/kb``; users can add their own (see :mod:`agrotools.knowledge.entries`). Search in arbitrary text
corpora is separate: :mod:`agrotools.knowledge.corpus`.
"""
