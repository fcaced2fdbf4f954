"""Questions as prompts. The words are in ``prompts.toml``, which says whose they are."""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from agrotools.benchmarks.agrieval.items import Item
from agrotools.benchmarks.agrieval.settings import QuestionSettings

_PROMPTS = Path(__file__).with_name("prompts.toml")


class Passage(Protocol):
    """What retrieval found: a piece of text, and the title of where it stands (may be empty)."""

    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str: ...


def prompt_of(
    item: Item,
    options: Mapping[str, str],
    settings: QuestionSettings,
    examples: Sequence[Item] = (),
    passages: Sequence[Passage] = (),
) -> str:
    """The whole prompt of ``item`` with its options in that order."""
    words = _words(settings.language)
    before = _passages(passages, words)
    if item.kind is None:
        template = words["question_cot" if settings.cot else "question"]
        return before + _filled(template, shots=_shots(examples, words, "question_"), question=item.question)
    return before + _filled(
        words["cot" if settings.cot else "choice"],
        kind=words["kinds"][item.kind],
        shots=_shots(examples, words, "cot_" if settings.cot else ""),
        question=item.question,
        options=_lines(options, words),
    )


@cache
def prompts_hash() -> str:
    """SHA-256 of the words of all prompts."""
    return hashlib.sha256(_PROMPTS.read_bytes()).hexdigest()


@cache
def _words(language: str) -> dict[str, Any]:
    return tomllib.loads(_PROMPTS.read_text(encoding="utf-8"))[language]


def _shots(examples: Sequence[Item], words: Mapping[str, Any], form: str) -> str:
    """The examples as a piece of the prompt; ``form`` begins the names of what a form of prompt has of its own."""
    if not examples:
        return ""
    template = words.get(f"{form}example", words["example"])
    solved = [
        _filled(
            template,
            question=each.question,
            options=_lines(each.options, words),
            answer="".join(each.answer),
        )
        for each in examples
    ]
    count = words["counts"][str(len(examples))]
    return _filled(words[f"{form}shots"], count=count, examples=words[f"{form}between"].join(solved))


def _lines(options: Mapping[str, str], words: Mapping[str, Any]) -> str:
    return "\n".join(_filled(words["option"], letter=letter, text=text) for letter, text in options.items())


def _passages(passages: Sequence[Passage], words: Mapping[str, Any]) -> str:
    if not passages:
        return ""
    lines = (
        _filled(
            words["passage"],
            number=str(number),
            title=_filled(words["title"], title=each.title) if each.title else "",
            text=each.text,
        )
        for number, each in enumerate(passages, 1)
    )
    return _filled(words["passages"], passages="\n".join(lines))


def _filled(template: str, **values: str) -> str:
    """``template`` with each ``{name}`` replaced at once, so that braces in a question are only text."""
    first, pieces = _pieces(template)
    return first + "".join([values[name] + rest for name, rest in pieces])


@cache
def _pieces(template: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What stands before the first name, and each name with what follows it."""
    first, *pieces = template.split("{")
    parted = (piece.partition("}") for piece in pieces)
    return first, tuple((name, rest) for name, _, rest in parted)
