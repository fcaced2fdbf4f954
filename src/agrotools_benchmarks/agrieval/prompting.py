"""Prompts of questions: order of the options, solved examples, and the texts of ``prompts.toml``."""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.core import UsageError
from agrotools.core.files import read_table
from agrotools_benchmarks.agrieval.items import Item, Order, QuestionSettings, question_key
from agrotools_benchmarks.agrieval.plugin import OptionKind

if TYPE_CHECKING:
    from agrotools.knowledge.corpus import Passage

LATER_SHARE = 0.585
"""Share of correct options in the later half with the order ``later``, as in AgriEval's own test (section 4.3)."""


class Ordered(NamedTuple):
    """Options in an order, the letters of the correct ones, and the original place (from 0) of each text."""

    options: dict[str, str]
    answer: tuple[str, ...]
    origin: tuple[int, ...]
    rotation: int | None = None


def orders_of(
    options: Mapping[str, str], answer: Sequence[str], order: Order, seed: str
) -> Iterator[Ordered]:
    """Yield the question's options in ``order``: once, or once for each rotation.

    ``shuffled`` is a random permutation; ``later`` is one with the correct options in the later half of the places with
    probability :data:`LATER_SHARE`. Both are drawn with ``seed``.
    """
    places = list(range(len(options)))
    if order == "rotated":
        for turn in places:
            yield _ordered(options, answer, places[turn:] + places[:turn])._replace(rotation=turn)
        return
    rng = random.Random(seed)
    if order == "shuffled":
        rng.shuffle(places)
    elif order == "later":
        places = _later(options, answer, rng)
    yield _ordered(options, answer, places)


def _later(options: Mapping[str, str], answer: Sequence[str], rng: random.Random) -> list[int]:
    """Return the places of the texts; correct ones are drawn into the later or earlier half while there is room."""
    letters = list(options)
    right = [place for place, letter in enumerate(letters) if letter in answer]
    wrong = [place for place, letter in enumerate(letters) if letter not in answer]
    rng.shuffle(right)
    rng.shuffle(wrong)
    middle = (len(letters) + 1) // 2
    early, late = list(range(middle)), list(range(middle, len(letters)))
    rng.shuffle(early)
    rng.shuffle(late)
    result = [-1] * len(letters)
    for origin in right:
        first, second = (late, early) if rng.random() < LATER_SHARE else (early, late)
        result[(first or second).pop()] = origin
    for place in sorted(early + late):
        result[place] = wrong.pop()
    return result


def _ordered(options: Mapping[str, str], answer: Sequence[str], origin: Sequence[int]) -> Ordered:
    letters, texts = list(options), list(options.values())
    moved = {letter: texts[place] for letter, place in zip(letters, origin, strict=True)}
    right = tuple(
        letter for letter, place in zip(letters, origin, strict=True) if letters[place] in answer
    )
    return Ordered(moved, right, tuple(origin))


class Examples:
    """Drawing of examples from ``pool``, deterministic for an item and seed.

    Examples come from outside the item's group, which is the narrowest category in its file: field, domain or type. If
    all items of a kind are in one group, or have none, this is impossible; ``groups_kept_out`` records that. An item
    with the same question, up to punctuation and spaces, is never drawn, because it would reveal the answer.
    """

    def __init__(self, pool: Sequence[Item], seed: int) -> None:
        self._by_kind: dict[OptionKind | None, dict[str, tuple[str, Item]]] = defaultdict(dict)
        """Group and item of each question, by kind."""
        for item in pool:
            self._by_kind[item.kind].setdefault(question_key(item.question), (_group(item), item))
        self._seed = seed
        self._outside: dict[tuple[OptionKind | None, str | None], list[tuple[str, Item]]] = {}
        self.groups_kept_out = {
            kind: len({group for group, _ in items.values()}) > 1
            for kind, items in self._by_kind.items()
        }

    def for_item(self, item: Item, count: int) -> list[Item]:
        """Draw ``count`` examples of the kind of ``item`` outside its group; UsageError if there are too few."""
        others = self._others(item)
        rng = random.Random(f"{self._seed}/{item.kind}/{item.number}/{item.question}")
        item_key = question_key(item.question)
        # One more than needed, because the question itself may be among them.
        sampled = [
            other
            for key, other in rng.sample(others, min(count + 1, len(others)))
            if key != item_key
        ][:count]
        if len(sampled) < count:
            which = f"of the kind {item.kind or 'open'} outside the group of question {item.number}"
            hint = "ask for fewer shots, or give another file with --option examples=FILE"
            raise UsageError(f"there are not {count} examples {which}", hint=hint)
        return sampled

    def check(self, items: Iterable[Item], count: int) -> None:
        """Check that all ``items`` have enough examples; errors as in :meth:`for_item`."""
        for item in items:
            if (
                len(self._others(item)) <= count
            ):  # with more, there are enough even if one of them is the item itself
                self.for_item(item, count)

    def _others(self, item: Item) -> list[tuple[str, Item]]:
        """Return the possible examples for ``item`` with their question keys; they may contain ``item`` itself."""
        kind, group = item.kind, _group(item) if self.groups_kept_out.get(item.kind) else None
        if (kind, group) not in self._outside:
            items = self._by_kind.get(kind, {}).items()
            self._outside[kind, group] = [
                (key, item) for key, (item_group, item) in items if item_group != group
            ]
        return self._outside[kind, group]


def _group(item: Item) -> str:
    return next(
        (item.groups[name] for name in ("field", "domain", "type") if name in item.groups), ""
    )


_PROMPTS = Path(__file__).with_name("prompts.toml")
_NAME = re.compile(r"\{(\w+)\}")


def prompt_of(
    item: Item,
    options: Mapping[str, str],
    settings: QuestionSettings,
    examples: Sequence[Item] = (),
    passages: "Sequence[Passage]" = (),
) -> str:
    """Return the complete prompt of ``item`` with its options in the given order."""
    words = read_table(_PROMPTS)[settings.language]
    before = _passages(passages, words)
    if item.kind is None:
        template = words["question_cot" if settings.cot else "question"]
        return before + _fill_template(
            template, shots=_shots(examples, words, "question_"), question=item.question
        )
    return before + _fill_template(
        words["cot" if settings.cot else "choice"],
        kind=words["kinds"][item.kind],
        shots=_shots(examples, words, "cot_" if settings.cot else ""),
        question=item.question,
        options=_lines(options, words),
    )


@cache
def prompts_hash() -> str:
    """Return the SHA-256 of all prompt texts."""
    return hashlib.sha256(_PROMPTS.read_bytes()).hexdigest()


def _shots(examples: Sequence[Item], words: Mapping[str, Any], form: str) -> str:
    """Return the examples as part of the prompt; ``form``: prefix of the template names."""
    if not examples:
        return ""
    template = words.get(f"{form}example", words["example"])
    solved: list[str] = []
    for each in examples:
        options, answer = _lines(each.options, words), "".join(each.answer)
        solved.append(
            _fill_template(template, question=each.question, options=options, answer=answer)
        )
    count = words["counts"][str(len(examples))]
    return _fill_template(
        words[f"{form}shots"], count=count, examples=words[f"{form}between"].join(solved)
    )


def _lines(options: Mapping[str, str], words: Mapping[str, Any]) -> str:
    return "\n".join(
        _fill_template(words["option"], letter=letter, text=text)
        for letter, text in options.items()
    )


def _passages(passages: "Sequence[Passage]", words: Mapping[str, Any]) -> str:
    if not passages:
        return ""
    lines: list[str] = []
    for number, each in enumerate(passages, 1):
        title = _fill_template(words["title"], title=each.title) if each.title else ""
        lines.append(
            _fill_template(words["passage"], number=str(number), title=title, text=each.text)
        )
    return _fill_template(words["passages"], passages="\n".join(lines))


def _fill_template(template: str, **values: str) -> str:
    """Replace all ``{name}`` in ``template`` in one pass, so that braces in a question have no effect."""
    return _NAME.sub(lambda name: values[name[1]], template)
