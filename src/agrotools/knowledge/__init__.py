"""The agronomic knowledge base: entries with a source for every claim, their rules, and how they are found.

Entries ship in ``data/kb``; the user's own lie beside them (see :mod:`agrotools.knowledge.loading`). Search in any
corpus of text is apart from it: :mod:`agrotools.knowledge.corpus`.
"""

from agrotools.knowledge.checking import check_entry, check_files
from agrotools.knowledge.entry import Claim, Entry, Kind, Names, Section, Source, Taxonomy
from agrotools.knowledge.loading import Fault, Loaded, kb_files, load, read_entry, user_folders

__all__ = [
    "Claim",
    "Entry",
    "Fault",
    "Kind",
    "Loaded",
    "Names",
    "Section",
    "Source",
    "Taxonomy",
    "check_entry",
    "check_files",
    "kb_files",
    "load",
    "read_entry",
    "user_folders",
]
