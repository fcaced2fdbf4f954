"""Regular expressions of all packages, on every Python that it supports."""

import re

from agrotools.packages import our_folders

SOURCES = sorted(path for folder in our_folders() for path in folder.rglob("*.py"))
REPEATED_GROUP = re.compile(r"[)}](?:[*+?]|\{[^{}]*\}|\{\{[^{}]*\}\})\+")
"""A group, or a pattern by its name, with a possessive quantifier."""


def test_no_group_has_a_possessive_quantifier():
    """Python 3.11.0 to 3.11.4 (3.11.2 in Debian 12) match these wrongly or raise SystemError: cpython #106052, #101955.

    ``(?>(?:...)*)`` means the same as ``(?:...)*+`` and is right on all of them.
    """
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if REPEATED_GROUP.search(line)
    ]
    assert found == []
    assert REPEATED_GROUP.search(r"(?:a|bc)*+")
    assert REPEATED_GROUP.search(r"{WORD}{{0,4}}+")
    assert not REPEATED_GROUP.search(r"[ab]*+\s++")
