"""Key facts of open answers: what a good answer says, from the knowledge base.

A file of facts (``construct/templates/facts/*.toml``) holds, by entry and topic, facts with the phrasings that state
each; ``not`` are phrasings that contradict it::

    ["pest.soybean_aphid"]
    thresholds = [["250 aphids per plant", "每株250头"], { phrases = ["80 %"], not = ["20 %"] }]

Facts only repeat what the entry says on that topic, so that whoever reads the entry can state all of them.
"""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from agrotools.core import Fact


@cache
def _facts() -> dict[str, dict[str, tuple[Fact, ...]]]:
    found: dict[str, dict[str, tuple[Fact, ...]]] = {}
    folder = files("agrotools.construct.templates").joinpath("facts")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".toml"):
            continue
        for entry, topics in tomllib.loads(file.read_text("utf-8")).items():
            held = found.setdefault(entry, {})
            for topic, facts in topics.items():
                if topic in held:
                    raise ValueError(f"{file.name}: {topic} of {entry} stands in two files")
                held[topic] = tuple(map(_fact, facts))
    return found


def facts_about(entry: str, topic: str) -> tuple[Fact, ...]:
    """Key facts of an entry's topic; none where nobody has written them down."""
    return _facts().get(entry, {}).get(topic, ())


def topics_with_facts() -> tuple[tuple[str, str], ...]:
    """Every (entry, topic) that has key facts."""
    return tuple((entry, topic) for entry, topics in _facts().items() for topic in topics)


def _fact(written: Any) -> Fact:
    if isinstance(written, list):
        return Fact(phrases=tuple(written))
    return Fact.model_validate({"phrases": tuple(written["phrases"]), "not": tuple(written.get("not", ()))})
