"""Field map of a set: where its rows hold images, question, options and answer, and how these become slots."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from agrotools.core import (
    BenchmarkError,
    BooleanSlot,
    ExactSlot,
    FrozenModel,
    ReferenceTextsSlot,
    Slot,
    ToleranceSlot,
    first_error,
)
from agrotools.core.errors import NoFileError
from agrotools.core.files import read_text
from agrotools.loading.values import lettered, number_in, values_at, without_letter
from agrotools.text.loose_json import parsed
from agrotools.text.normalise import normalise
from agrotools_benchmarks.agvqa.plugin import MAPS, LetteredSlot, NumberListSlot

Kind = Literal["single", "several", "number", "yes_no", "numbers", "box", "parts", "name", "text"]
_NAME_WORDS = 8
"""Longest answer, in words, that is compared as a name; longer ones are compared as texts."""


class RowFault(ValueError):
    """Reason why a row cannot be used, the same for all rows with this fault, with the value found."""

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, str(detail)[:120]


class Judged(FrozenModel):
    """Score of a judge in a file of predictions."""

    path: str
    out_of: float = 1.0


class PredictionMap(FrozenModel):
    """Places of a model's reply and of its published score in a row of predictions; ``*`` stands for any model."""

    reply: str
    published: str = ""
    judged: dict[str, Judged] = {}


class FieldMap(FrozenModel):
    """Field map of a set.

    A path is a dotted name (``question.text``); of several joined by ``|`` the first that a row has counts. In a text
    with braces, each ``{path}`` is replaced: ``{file}`` by the name of the file, ``{}`` by the number of the row.
    """

    title: str = "AG-VQA"
    about: str = ""
    licence: str = "not stated in the map"
    url: str | None = None
    citation: str | None = None
    checked: str = ""
    """Real files that the map was run on, in words."""
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ("**/*.parquet", "**/*.jsonl", "**/*.json", "**/*.csv")
    """Patterns of files; those of the first pattern that matches are read."""
    download: str = ""
    """Address for ``agrotools benchmarks get``, and the folder that the files belong in."""
    download_into: str = ""
    questions: int | None = None
    """Published number of questions."""

    id: str = "id|{file}-{}"
    context: str = ""
    question: str = ""
    prompt: str = "{context}\n\n{question}"
    images: tuple[str, ...] = ()
    image_folders: tuple[str, ...] = ()
    """Folders, from that of the set, that paths of images may be relative to besides the folder of the file."""
    options: str | tuple[str, ...] = ""
    """Path of a list, an object of letters or a text, or one path for each option."""
    labels: dict[str, str] = {}
    """Text of the option for each label, if ``answer`` is a label of a fixed set."""
    answer: str
    answer_text: str = ""
    """Path of the correct option's text; it must agree with ``answer``."""
    answer_of: dict[str, str] = {}
    """Other paths of the answer, by kind."""
    other_names: tuple[str, ...] = ()
    """Paths of other names of the answer, for the kind ``name``."""
    kind_by: str = ""
    kinds: dict[str, Kind] = {}
    """Kind of the answer for each pattern of the value at ``kind_by``; else it follows from options and answer."""
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    unit: str | None = None
    cluster: str = ""
    """Path of what questions share that are not independent, e.g. a consultation; default: their images."""
    category: str = ""
    groups: dict[str, str] = {}
    ignored: tuple[str, ...] = ()
    """Patterns of fields that are known and not needed."""
    predictions: PredictionMap | None = None

    @cached_property
    def known_fields(self) -> tuple[str, ...]:
        """Patterns of all fields that the map reads or ignores, as dotted names."""
        parts: list[str] = [self.id, self.context, self.question, self.answer, self.answer_text]
        parts += [
            self.kind_by,
            self.cluster,
            self.category,
            *self.images,
            *self.other_names,
            *self.groups.values(),
        ]
        parts += [
            *self.answer_of.values(),
            *([self.options] if isinstance(self.options, str) else self.options),
        ]
        if self.predictions:
            judged = [each.path for each in self.predictions.judged.values()]
            parts += [self.predictions.reply, self.predictions.published, *judged]
        paths = [inner for part in parts for inner in _IN_BRACES.findall(part) or part.split("|")]
        return tuple(path for path in (*paths, *self.ignored) if path)


_IN_BRACES = re.compile(r"\{([^{}]*)\}")


def read_map(path: Path) -> FieldMap:
    """Read a field map.

    Raises:
        NoFileError: there is no such file.
        BenchmarkError: it is not TOML, or has unknown or missing fields.
    """
    if not path.is_file():
        raise NoFileError(
            f"there is no field map {path}", hint="--option map=FILE gives one, in TOML"
        )
    try:
        return FieldMap.model_validate(tomllib.loads(read_text(path)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        hint = f"the fields are those of the maps in {MAPS}"
        raise BenchmarkError(f"{path}: {first_error(error)}", hint=hint) from error


class Row(NamedTuple):
    """Row of a file, with the name of the file and its number in the file (from 1)."""

    data: Mapping[str, Any]
    file: Path
    number: int

    def get(self, path: str) -> Any:
        """Return the value at ``path``; None if there is none. A ``*`` in a path gives the first match."""
        for alternative in path.split("|"):
            values = (
                [self._filled(alternative)]
                if "{" in alternative
                else [*self.all(alternative).values()]
            )
            if values and values[0] is not None and values[0] != "":
                return values[0]
        return None

    def all(self, path: str) -> dict[str, Any]:
        """Return the values at a path with ``*``, by the part of the names that it stands for."""
        return values_at(self.data, path) if path else {}

    def _filled(self, text: str) -> str | None:
        known = {"file": self.file.name.partition(".")[0], "": self.number}
        values = {
            name: known[name] if name in known else self.get(name)
            for name in _IN_BRACES.findall(text)
        }
        if any(value is None for value in values.values()):
            return None
        return _IN_BRACES.sub(lambda match: str(values[match[1]]), text)

    def unread(self, fields: FieldMap) -> Iterator[str]:
        """Yield the names of the fields that the map neither reads nor ignores."""
        for name, value in self.data.items():
            rest = [
                tail for path in fields.known_fields if (tail := _rest(path, str(name))) is not None
            ]
            if not rest or (all(rest) and not isinstance(value, Mapping)):
                yield str(name)
            elif all(rest):
                yield from (
                    f"{name}.{key}"
                    for key in value
                    if all(_rest(path, str(key)) is None for path in rest)
                )


def _rest(path: str, name: str) -> str | None:
    """Return what remains of a path after ``name``, empty for the whole path; None if it does not begin with it."""
    first, _, tail = path.partition(".")
    return "" if fnmatchcase(name, path) else tail if fnmatchcase(name, first) else None


class Question(NamedTuple):
    """Text of a question with its options (images are still values of the row) and the slots of its answer."""

    text: str
    options: Mapping[str, str]
    slots: tuple[Slot, ...]
    kind: Kind


def read_question(row: Row, fields: FieldMap, option_images: Mapping[str, str]) -> Question:
    """Return the question of a row. ``option_images``: names of the images that are options, by letter.

    Raises:
        RowFault: the row has no question, or its answer cannot be used.
    """
    question = row.get(fields.question) if fields.question else ""
    if fields.question and (not isinstance(question, str) or not question.strip()):
        raise RowFault("no question")
    text = (
        str(question).replace("<image>\n", "").replace("<image>", "")
    )  # places of images in chat files
    options = {**read_options(row, fields), **option_images}
    context = str(row.get(fields.context) or "") if fields.context else ""
    texts = {"context": context.strip(), "question": text.strip()}
    prompt = _IN_BRACES.sub(lambda match: texts.get(match[1], match[0]), fields.prompt).strip()
    lines = [f"{letter}. {option}" for letter, option in options.items()]
    kind = _kind(row, fields, options)
    return Question("\n".join([prompt, *lines]), options, _slots(row, fields, options, kind), kind)


def read_options(row: Row, fields: FieldMap) -> dict[str, str]:
    """Return the options of a row by letter; empty if it has none."""
    if fields.labels:
        return dict(zip(ascii_uppercase, fields.labels.values(), strict=False))
    if isinstance(fields.options, tuple):
        value: Any = {
            letter: row.get(path)
            for letter, path in zip(ascii_uppercase, fields.options, strict=False)
        }
    else:
        value = row.get(fields.options) if fields.options else None
    return lettered(value)


def _kind(row: Row, fields: FieldMap, options: Mapping[str, str]) -> Kind:
    value = str(row.get(fields.kind_by)) if fields.kind_by else ""
    for pattern, kind in fields.kinds.items():
        if fields.kind_by and fnmatchcase(value, pattern):
            return kind
    answer = row.get(fields.answer)
    if options:
        return "several" if isinstance(answer, list) else "single"
    if isinstance(answer, bool) or str(answer).strip().lower() in ("yes", "no"):
        return "yes_no"
    if isinstance(answer, list):
        return "numbers"
    if number_in(answer) is not None:
        return "number"
    return "name" if len(str(answer).split()) <= _NAME_WORDS else "text"


_AT: Any = {"name": "answer", "label": "the answer"}


def _slots(row: Row, fields: FieldMap, options: Mapping[str, str], kind: Kind) -> tuple[Slot, ...]:
    answer = row.get(fields.answer_of.get(kind, fields.answer))
    if answer is None or answer == []:
        raise RowFault("no answer")
    match kind:
        case "single" | "several":
            letters = right_letters(answer, options, fields)
            if kind == "single" and len(letters) > 1:
                raise RowFault("several correct options where one is asked for", answer)
            text = row.get(fields.answer_text)
            if text is not None and letters != right_letters(text, options, fields):
                raise RowFault(
                    "the answer and its text name different options", f"{answer} and {text}"
                )
            labels, several = dict(zip(fields.labels, options, strict=False)), kind == "several"
            return (
                LetteredSlot(
                    **_AT, value=letters, options=dict(options), several=several, labels=labels
                ),
            )
        case "yes_no":
            word = str(answer).strip().lower()
            if word not in ("yes", "no", "true", "false"):
                raise RowFault("the answer is neither yes nor no", answer)
            return (BooleanSlot(**_AT, value=word in ("yes", "true")),)
        case "numbers" | "box":
            listed = parsed(answer) if isinstance(answer, str) else answer
            values = [number_in(each) for each in listed] if isinstance(listed, list) else []
            numbers = tuple(each for each in values if each is not None)
            if not numbers or len(numbers) < len(values) or (kind == "box" and len(numbers) != 4):
                raise RowFault("the answer is no list of numbers", answer)
            return (
                NumberListSlot(**_AT, value=numbers, box=kind == "box", abs_tol=fields.abs_tol),
            )
        case "number":
            return (_number_slot(_AT, answer, fields),)
        case "parts":
            parts = [part.strip() for part in str(answer).split(",") if part.strip()]
            slots: list[Slot] = []
            for n, part in enumerate(parts, 1):
                name: Any = (
                    {"name": f"part_{n}", "label": f"part {n} of the answer"}
                    if len(parts) > 1
                    else _AT
                )
                is_text = number_in(part) is None
                slots.append(
                    ExactSlot(**name, value=part) if is_text else _number_slot(name, part, fields)
                )
            return tuple(slots)
        case "text":
            return (ReferenceTextsSlot(**_AT, values=(str(answer),)),)
        case "name":
            others = [row.get(path) for path in fields.other_names]
            known = [
                name
                for each in others
                for name in (each if isinstance(each, list) else [each])
                if name
            ]
            aliases = tuple(dict.fromkeys(str(name) for name in known if str(name) != str(answer)))
            right = str(answer).strip()
            return (ExactSlot(**_AT, value=right, aliases={right: aliases} if aliases else {}),)


def _number_slot(name: dict[str, str], answer: Any, fields: FieldMap) -> Slot:
    if (value := number_in(answer)) is None:
        raise RowFault("the answer is no number", answer)
    tolerance = {"unit": fields.unit, "abs_tol": fields.abs_tol, "rel_tol": fields.rel_tol}
    return ToleranceSlot.model_validate({**name, "value": value, **tolerance})


def right_letters(answer: Any, options: Mapping[str, str], fields: FieldMap) -> tuple[str, ...]:
    """Return the letters of the options that ``answer`` names: by letter, text, label, number, or a list of these.

    Raises:
        RowFault: it names none, or more than one.
    """
    if not options:
        raise RowFault("no options")
    if len(set(options.values())) < 2:
        raise RowFault("fewer than two different options", list(options.values()))
    answers = answer if isinstance(answer, list) else [answer]
    letters = {letter for each in answers for letter in _right_letters(each, options, fields)}
    return tuple(letter for letter in options if letter in letters)


def _right_letters(answer: Any, options: Mapping[str, str], fields: FieldMap) -> Sequence[str]:
    letters = list(options)
    text = fields.labels.get(str(answer), str(answer)).strip()
    if exact := [letter for letter, option in options.items() if option.strip() == text]:
        return exact
    bare = re.sub(r"[\s,;().:、．]", "", text)
    if (
        bare
        and len(text) <= 3 * len(options)
        and bare == bare.upper()
        and set(bare) <= set(letters)
    ):
        return list(bare)
    number = None if isinstance(answer, bool) else number_in(answer)
    if number is not None and number.is_integer():
        if 0 <= number < len(letters):
            return [letters[int(number)]]
        raise RowFault("the answer is a number beyond the options", answer)
    plain = normalise(without_letter(text)).strip(" .")
    near = [letter for letter, option in options.items() if normalise(option).strip(" .") == plain]
    if len(near) == 1:
        return near
    if match := re.fullmatch(r"\(?([A-Z])[).:]?", text.upper()):
        if match[1] in options:
            return [match[1]]
        raise RowFault("the answer is a letter of no option", answer)
    raise RowFault(
        "the answer is the text of several options" if near else "the answer is no option", answer
    )


def map_files(names: Sequence[str], root: Path) -> list[Path]:
    """Return the files of the first pattern that matches any in ``root``, without hidden ones."""
    for pattern in names:
        there = [
            path for path in root.glob(pattern) if path.is_file() and not path.name.startswith(".")
        ]
        if there := [path for path in there if path.name not in _NOT_ROWS]:
            return sorted(there)
    return []


_NOT_ROWS = ("dataset_info.json", "dataset_infos.json", "conversion_stats.json", "croissant.json")
