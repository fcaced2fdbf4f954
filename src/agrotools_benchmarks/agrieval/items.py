"""Reader of question files: those of AgriEval, of CMMLU's agronomy part, and of other sets in either format.

AgriEval (arXiv 2507.21773) publishes UTF-8 JSON lists.
A choice item has ``id``, ``type``, ``question_type`` (单选, 多选, 判断), ``question``, ``options`` and ``answer``;
an open question has ``answer`` as text, ``domain`` and ``class``.
CMMLU (arXiv 2306.09212) publishes one table per subject with the columns Question, A, B, C, D and Answer.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, Literal

from pydantic import Field

from agrotools.core import BenchmarkError, FrozenModel
from agrotools.scoring.predictions import read_csv, read_json
from agrotools.text.json_kinds import is_list, is_object
from agrotools_benchmarks.agrieval.plugin import KINDS, OptionKind, OptionsSlot, ReferenceTextSlot

Order = Literal["given", "shuffled", "later", "rotated"]


class QuestionSettings(FrozenModel):
    """Options of ``agrotools eval agrieval`` and of other question sets (``--option NAME=VALUE``)."""

    part: Literal["all", "choice", "question"] = "all"
    """Multiple-choice questions, open questions, or both."""
    files: str = ""
    """Names of files in the folder, separated by commas; empty for the main files."""
    shots: Annotated[int, Field(ge=0, le=5)] = 0
    """Number of solved examples of the same kind before each question."""
    examples: Path | None = None
    """File from which examples are drawn; None for the questions of other groups."""
    cot: bool = False
    """True to ask for reasoning before the answer."""
    retrieval: Path | None = None
    """Index of a corpus (``agrotools tools kb index``) whose retrieved passages precede the question."""
    passages: Annotated[int, Field(ge=1, le=20)] = 3
    order: Order = "given"
    """Options as in the file, shuffled, with correct ones moved to later places, or once in every rotation."""
    seed: int = 0
    language: Literal["zh", "en"] = "zh"
    """Language of the prompts."""

    @property
    def label(self) -> str:
        """Name of this setting in reports: ``zero-shot``, ``5-shot``, ``cot``, ``retrieval, shuffled``..."""
        settings = {f"{self.shots}-shot": self.shots, "cot": self.cot, "retrieval": self.retrieval}
        words = [word for word, chosen in settings.items() if chosen] or ["zero-shot"]
        return ", ".join([*words, *([self.order] if self.order != "given" else [])])


_MOST_CHARACTERS = 20_000
_KINDS: Mapping[str, OptionKind] = {
    **KINDS,
    **{f"{name}题": kind for name, kind in KINDS.items()},
    **{kind: kind for kind in KINDS.values()},
}
_SEPARATORS = re.compile(r"[\s,，、;；/]+")
_MARKS = re.compile(r"[\W_]+")
_LETTER = re.compile(r"[A-Z]")
_PLAIN = frozenset("ABCDEFG")


@dataclass(frozen=True, slots=True)
class Item:
    """Question of a file. ``options`` are empty if the answer is a text; ``groups`` are its categories."""

    number: str
    """``id`` in the file, with a suffix if it occurs again."""
    kind: OptionKind | None
    question: str
    answer: tuple[str, ...]
    """Letters of the correct options, or the answer text alone."""
    options: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


def question_key(question: str) -> str:
    """Return a question without case, spaces and punctuation, for detecting duplicates."""
    return _MARKS.sub("", unicodedata.normalize("NFKC", question)).casefold()


@dataclass(frozen=True)
class ItemFile:
    """Items of a file, and the number of unusable entries by reason."""

    path: Path
    items: Sequence[Item]
    left_out: Mapping[str, int]


def read_items(path: Path) -> ItemFile:
    """Read the items of a JSON list in the format of AgriEval or CMMLU, or of a CSV table in that of CMMLU.

    Entries that cannot be asked or scored are left out and counted: those without a question or an answer, with options
    without letters, or with an answer outside the options.

    Raises:
        BenchmarkError: the file cannot be read, is not UTF-8 or JSON, or contains no item.
    """
    entries = _entries(path)
    items: list[Item] = []
    left_out = Counter[str]()
    seen = Counter[str]()
    for entry in entries:
        try:
            item = read_item(entry)
        except UnusableEntry as reason:
            left_out[str(reason)] += 1
            continue
        seen[item.number] += 1
        n = seen[item.number]
        items.append(replace(item, number=f"{item.number}.{n}") if n > 1 else item)
    if not items:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it is empty"
        raise BenchmarkError(f"{path} contains no question that can be asked: {why}", hint=_SHAPE)
    return ItemFile(path, items, dict(left_out))


_SHAPE = "a JSON list of objects with question, options (letter to text) and answer, or question and answer"


class UnusableEntry(Exception):
    """Reason why an entry cannot be used."""


def _entries(path: Path) -> list[Mapping[str, Any]]:
    if path.suffix.lower() == ".csv":
        return [*read_csv(path)]
    data = read_json(path)
    if not is_list(data):
        raise BenchmarkError(f"{path} contains no list", hint=_SHAPE)
    return [entry if is_object(entry) else {} for entry in data]


def read_item(entry: Mapping[str, Any]) -> Item:
    """Read one question. Raises :class:`UnusableEntry` if it cannot be asked or scored."""
    question = _first_text(entry, "question", "Question")
    if not question:
        raise UnusableEntry("without a question")
    answer = _first_text(entry, "answer", "Answer")
    if not answer:
        raise UnusableEntry("without an answer")
    number = re.sub(r"[^A-Za-z0-9_.-]", "", _first_text(entry, "id", "", "Unnamed: 0"))[:60] or "x"
    groups = _groups(entry)
    options = _options(entry)
    kind = _KINDS.get(_first_text(entry, "question_type"))
    if options is None:
        if kind is not None:
            raise UnusableEntry("with fewer than two options")
        return Item(number, None, question, (answer,), {}, groups)
    letters = _letters(answer, options)
    if kind is None:
        kind = "multiple" if len(letters) > 1 else "true_false" if len(options) == 2 else "single"
    if kind != "multiple" and len(letters) > 1:
        raise UnusableEntry("with several answers where one is asked for")
    return Item(number, kind, question, letters, options, groups)


def _first_text(entry: Mapping[str, Any], *names: str) -> str:
    """Return the first non-empty field as text; only strings and numbers count."""
    for name in names:
        value = entry.get(name)
        if type(value) is str or type(value) in (int, float):
            text = str(value).strip()
            if len(text) > _MOST_CHARACTERS:
                raise UnusableEntry(f"with over {_MOST_CHARACTERS} characters in a field")
            try:
                text.encode()
            except (
                UnicodeEncodeError
            ) as error:  # JSON can contain lone surrogates, requests and records cannot
                raise UnusableEntry("with half of a character") from error
            if text:
                return text
    return ""


def _options(entry: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the text of each non-empty option by letter; None if the entry has no options."""
    entry_options = entry.get("options")
    if entry_options is None:
        entry_options = {letter: entry[letter] for letter in "ABCDEFG" if letter in entry} or None
    if entry_options is None:
        return None
    if is_list(entry_options):
        entry_options = dict(zip(ascii_uppercase, entry_options, strict=False))
    if not is_object(entry_options):
        raise UnusableEntry("with options of another form")
    options: dict[str, str] = {}
    for key in entry_options:
        letter = key if key in _PLAIN else str(key).strip().upper()
        if letter in options or (letter not in _PLAIN and not _LETTER.fullmatch(letter)):
            raise UnusableEntry("with options that lack letters of their own")
        if text := _first_text(entry_options, key):
            options[letter] = text
    if len(options) < 2:
        raise UnusableEntry("with fewer than two options")
    return options


def _letters(answer: str, options: Mapping[str, str]) -> tuple[str, ...]:
    compact_answer = _SEPARATORS.sub("", answer).upper()
    letters = tuple(letter for letter in options if letter in compact_answer)
    if (
        not compact_answer
        or set(compact_answer) - set(options)
        or len(compact_answer) != len(letters)
    ):
        raise UnusableEntry("with an answer outside the options")
    return letters


def _groups(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return domain, field, cognitive level and task if the file has them, otherwise its single label."""
    groups: dict[str, str] = {}
    places = {
        "domain": ("domain", "type"),
        "field": ("domain", "subtype"),
        "level": ("class", "class"),
    }
    for name, (outer, inner) in {**places, "task": ("class", "task")}.items():
        group: Any = entry.get(outer)
        if is_object(group) and (text := _first_text(group, inner)):
            groups[name] = text
    if "domain" not in groups and (text := _first_text(entry, "type")):
        groups["type"] = text
    return groups


def slot_of(
    item: Item, options: Mapping[str, str], answer: tuple[str, ...]
) -> OptionsSlot | ReferenceTextSlot:
    """Return the slot of a question with its ``options`` in the order in which they are asked."""
    if item.kind is None:
        return ReferenceTextSlot(name="answer", label="the answer", value=answer[0])
    return OptionsSlot(
        name="answer",
        label="the right options",
        kind=item.kind,
        value=answer,
        options=dict(options),
    )
