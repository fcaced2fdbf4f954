r"""Search for the keywords of an objective task in an answer, replacing the word boundaries of the published rule.

``\b`` matches only between a word character and another character. The published rule therefore cannot find the alias
``-3`` or ``50%`` in most contexts, nor ``5`` before a Chinese letter, and it finds ``2`` in ``2.5`` and in ``-2``. Here
keywords are found as whole words (:mod:`agrotools.scoring.keywords`).
"""

from typing import Any

from agrotools.core import BenchmarkError
from agrotools.scoring.keywords import held_keywords, unwanted_keyword
from agrotools.text.loose_json import is_list, is_object, is_text


def is_scorable(reference: Any) -> bool:
    """Return True if the keyword lists of an objective task contain a keyword."""
    return any(_groups(reference, "whitelist")) or any(_groups(reference, "blacklist"))


def check(reference: Any, where: str) -> None:
    """Check the form of ``reference``, two lists of lists of texts; BenchmarkError if it has another one."""
    for name in ("whitelist", "blacklist"):
        groups: Any = reference.get(name) if is_object(reference) else 0
        if groups is None and name == "blacklist":
            continue
        lists: Any = groups if is_list(groups) else [None]
        if not all(is_list(group) and all(map(is_text, group)) for group in lists):
            raise BenchmarkError(
                f"{where}: the {name} of the answer is no list of lists of texts",
                hint='it looks like {"whitelist": [["2", "two"]], "blacklist": null}',
            )


def matches_keywords(answer: str, reference: Any) -> bool:
    """Return True if ``answer`` holds an alias of each group of the whitelist and none of the blacklist.

    ``reference`` must have passed :func:`check`. Empty groups and empty aliases are ignored.
    """
    whitelist, blacklist = _groups(reference, "whitelist"), _groups(reference, "blacklist")
    return all(held_keywords(answer, whitelist)) and not unwanted_keyword(answer, blacklist, whitelist)


def _groups(reference: Any, name: str) -> list[list[str]]:
    groups: list[list[str]] = reference.get(name) or []
    named_groups = [[alias for alias in group if alias.strip()] for group in groups]
    return [group for group in named_groups if group]
