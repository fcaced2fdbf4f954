"""Entries of third-party JSON, read with a field map, and their answers, in the forms of data sets, as slots."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

import orjson
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from agrotools.calling.declared import chart_of
from agrotools.core import (
    FAMILIES,
    AgreementKind,
    AnswerType,
    Arguments,
    BenchmarkError,
    ExactSlot,
    FileKind,
    FrozenModel,
    ReferenceStep,
    Slot,
    ToleranceSlot,
    first_error,
)
from agrotools.core.files import read_text
from agrotools.knowledge.same_thing import plain_number, plain_yes
from agrotools.loading.values import NOTHING, lettered, list_in, number_in, read_rows, value_at
from agrotools.text.loose_json import parsed
from agrotools.text.normalise import normalise
from agrotools.text.quantities import Quantity, read_quantity
from agrotools.text.units import canonical_unit, unit_at

MAP_FILE = "agrotools-map.toml"
DEFAULT_MAP = Path(__file__).with_name("gta_map.toml")
AnswerKind = Literal[
    "exact", "tolerance", "open_text", "plot", "boolean", "choice_set", "rank", "abstain"
]
Paths = dict[str, str]
Plain = dict[str, Any]


class Defaults(FrozenModel):
    """Values of samples and answers that state none."""

    task_type: str
    family: str | None = None
    template: str = "imported"
    source: str = "imported"
    abs_tol: Annotated[float, Field(ge=0)] | None = None
    rel_tol: Annotated[float, Field(ge=0)] | None = None
    tol_kind: Literal["rel", "abs", "percent"] = "rel"
    percent: Literal["relative", "points"] | None = None
    """What a tolerance in percent is beside an answer in percent."""
    any: bool | None = None  # one item of a list of exact answers is enough


class FieldMap(FrozenModel):
    """Field map; ``gta_map.toml`` next to this module documents it and supplies what a map lacks."""

    data: str
    file: str
    entries: str
    unknown_tools: Literal["refuse", "keep", "declare"]
    benchmark: dict[str, Any]
    """Header fields of the benchmark; without a name, that of the folder counts."""
    sample: Paths
    defaults: Defaults
    files: Paths
    file_types: dict[str, FileKind]
    calls: Paths
    tools: dict[str, str]
    proposals: dict[str, str]
    arguments: dict[str, dict[str, str]]
    agreement: dict[str, AgreementKind]
    answer: Paths
    answer_types: dict[str, AnswerKind]
    answers: dict[str, Any]
    families: dict[str, str] = {name: family for family, name in FAMILIES.items()}
    task_types: dict[str, str]


TABLES = ("sample", "files", "calls", "answer")
"""Tables of paths."""


def read_map(path: Path = DEFAULT_MAP, base: Path = DEFAULT_MAP) -> FieldMap:
    """Read a field map, completed by the map ``base`` and the default map; BenchmarkError if one is not valid."""
    hint = f"{base} is an example with every key"
    try:
        default, *maps = (tomllib.loads(read_text(each)) for each in (DEFAULT_MAP, base, path))
        fields = FieldMap.model_validate_json(
            orjson.dumps(_merged(_merged(default, maps[0]), maps[1]))
        )
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"the field map {path} cannot be read: {error}", hint=hint) from error
    except ValidationError as error:
        raise BenchmarkError(f"the field map {path}: {first_error(error)}", hint=hint) from error
    unknown = [
        f"{name}.{key}"
        for name in TABLES
        for key in getattr(fields, name)
        if key not in default[name]
    ]
    if unknown:
        raise BenchmarkError(f"the field map {path}: {unknown[0]} is no key of a map", hint=hint)
    return fields


def _merged(base: Any, own: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    return {**base, **{key: _merged(base.get(key), value) for key, value in own.items()}}


def unread_fields(entries: Mapping[str, Any], fields: FieldMap) -> dict[str, int]:
    """Count the fields of entries, files, messages and answers that the map does not read."""
    counts = Counter(name for name, _ in unread_values(entries.values(), fields))
    return dict(counts.most_common())


def unread_values(entries: Iterable[Any], fields: FieldMap) -> Iterator[tuple[str, Any]]:
    """Yield the fields that the map does not read, as ``season``, ``files: url`` or ``answer: text``, with values."""
    paths = "|".join(path for table in TABLES for path in getattr(fields, table).values())
    known = {path.strip().split(".")[0] for path in re.split(r"[|+]", paths)} | _OF_WHITELIST
    for content in entries:
        messages = list_in(parsed(value_at(content, fields.calls["at"])))
        levels = [
            ("", [content]),
            ("calls: ", messages),
            ("answer: ", _answers_in(content, fields)),
        ]
        with suppress(BenchmarkError):  # reported with the entry
            levels.append(("files: ", files_of(content, fields)))
        for prefix, items in levels:
            objects = [item for item in items if isinstance(item, dict)]
            for item in cast(list[Plain], objects):
                yield from ((f"{prefix}{key}", item[key]) for key in item if key not in known)


_OF_WHITELIST = {"whitelist", "blacklist"}
"""Fields of GTA's form of an answer, which no map names."""


def _answers_in(content: Any, fields: FieldMap) -> list[Any]:
    """Return the answers of an entry: a list, parts, parts by name, or one; without those that are data of a chart."""
    answer = parsed(value_at(content, fields.answer["at"]))
    parts = list_in(answer) or list_in(value_at(answer, fields.answer["parts"])) or [answer]
    if isinstance(answer, dict) and all(isinstance(part, dict) for part in answer.values()):
        parts = [*cast(Plain, answer).values()]
    return [part for part in parts if not isinstance(part, dict) or chart_of(part) is None]


class EntryCall(NamedTuple):
    """Call of an entry, with the names used in the entry, and its result (``NOTHING``: none is recorded)."""

    tool: str
    arguments: Arguments
    thought: str
    returned: Any


class Entry(NamedTuple):
    """Public fields of an entry. ``files``: paths in the folder that is read; ``words``: the final answer."""

    key: str
    query: str
    files: tuple[str, ...]
    calls: tuple[EntryCall, ...]
    words: str


def entries_in(folder: Path, fields: FieldMap) -> dict[str, Any]:
    """Return the entries of the file that the map names, by position."""
    rows = read_rows(folder / fields.file, fields.entries)
    return {str(number): row for number, row in enumerate(rows)}


def content_of(path: Path) -> Any:
    """Return the content of a text file or a JSON file; None if it cannot be read."""
    try:
        return read_text(path).strip() if path.suffix == ".txt" else orjson.loads(read_text(path))
    except (OSError, ValueError):
        return None


def files_of(content: Any, fields: FieldMap) -> list[Any]:
    """Return the files that an entry lists, at all places that the map joins by ``+``."""
    places = [
        parsed(value_at(content, each.strip(), NOTHING)) for each in fields.files["at"].split("+")
    ]
    if fields.unknown_tools == "declare" and {*map(id, places)} == {id(NOTHING)}:
        raise BenchmarkError(f"there are no files at {fields.files['at']!r} ([files] at)")
    lists = [
        [] if each in (None, NOTHING) else [each] if isinstance(each, str) else each
        for each in places
    ]
    if not all(isinstance(each, list) for each in lists):
        raise BenchmarkError(f"there is no list of files at {fields.files['at']!r} ([files] at)")
    return [item for each in lists for item in each]


def _text(value: Any) -> Any:
    """Return the text of a message, whose content may be a list of parts; any other value as it is."""
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return (
            "\n".join(part["text"] for part in value if isinstance(part.get("text"), str)) or value
        )
    return value


def read_entry(key: str, content: Any, fields: FieldMap) -> Entry:
    """Read question, files and calls of an entry; BenchmarkError names the part that cannot be read."""
    if not isinstance(content, dict):
        raise BenchmarkError("it is not an object")
    query, at = _text(value_at(content, fields.sample["query"])), fields.files["path"]
    if not isinstance(query, str) or not query.strip():
        raise BenchmarkError(f"there is no question at {fields.sample['query']!r} ([sample] query)")
    paths = [
        item if isinstance(item, str) else value_at(item, at) for item in files_of(content, fields)
    ]
    if not all(isinstance(path, str) and path for path in paths):
        raise BenchmarkError(f"a file has no path at {at!r} ([files] path)")
    calls, folder = _calls(content, fields), fields.files["folder"]
    places = tuple(folder + path.strip().replace("\\", "/") for path in paths)
    ends = [call for call in calls if call.tool in fields.calls["end"].split("|")]
    words = [
        _text(value_at(content, fields.calls["final"])),
        *(it for end in ends for it in end.arguments.values()),
    ]
    last = next((each for each in reversed(words) if isinstance(each, str)), "")
    query = _IMAGE_MARKS.sub("", query).strip()
    return Entry(key, query, places, tuple(call for call in calls if call not in ends), last)


def _calls(content: Any, fields: FieldMap) -> list[EntryCall]:
    """Return the calls of a list of steps, or of messages that hold calls and results, by id or in their order."""
    paths, found, waiting = fields.calls, list[EntryCall](), list[tuple[Any, int]]()
    messages, roles = parsed(value_at(content, paths["at"])), paths["reply_role"].split("|")
    if not isinstance(messages, list):
        raise BenchmarkError(f"there is no list of calls at {paths['at']!r} ([calls] at)")
    for message in cast(list[Any], messages):
        for item in _items_of(message, paths, roles):
            is_reply = value_at(item, paths["role"]) in roles
            if is_reply and value_at(item, f"function.name|{paths['arguments']}") is None:
                number = _call_replied_to(item, waiting, paths)
                reply = _text(value_at(item, paths["reply"], NOTHING))
                found[number] = found[number]._replace(returned=reply)
            elif (call := _call_in(item, message, paths)) is not None:
                waiting.append((value_at(item, paths["id"]), len(found)))
                found.append(call)
    return found


def _items_of(message: Any, paths: Paths, roles: Sequence[str]) -> list[Any]:
    """Return the calls that a message lists, the only one that it holds, or the message itself."""
    if value_at(message, paths["role"]) in roles:
        return [message]
    inside = parsed(value_at(message, paths["each"]))
    if isinstance(inside, list):
        return cast(list[Any], inside)
    return [inside if isinstance(inside, dict) else message]


def _call_replied_to(item: Any, waiting: list[tuple[Any, int]], paths: Paths) -> int:
    """Return the number of the call that a result belongs to, which waits for none any more."""
    key = value_at(item, paths["reply_id"])
    place = next((each for each in waiting if None in (key, each[0]) or each[0] == key), None)
    if place is None:
        raise BenchmarkError(
            f"there is a result without a call, {key or 'no id'} ([calls] at, each, id)"
        )
    waiting.remove(place)
    return place[1]


def _call_in(item: Any, message: Any, paths: Paths) -> EntryCall | None:
    """Return the call that an item is; None for a message without a call."""
    tool, arguments = value_at(item, paths["tool"]), value_at(item, paths["arguments"], NOTHING)
    is_message = not isinstance(tool, str) or value_at(item, paths["role"]) is not None
    if arguments is NOTHING and is_message:
        return None
    if not isinstance(tool, str):
        raise BenchmarkError(f"a call has no tool at {paths['tool']!r} ([calls] tool)")
    given = parsed({} if arguments in (NOTHING, None, "") else arguments)
    if not isinstance(given, dict):
        fault = f"not JSON: {given[:60]!r}" if isinstance(given, str) else "not an object"
        raise BenchmarkError(f"the arguments of {tool} are {fault} ([calls] arguments)")
    thought = str(value_at(message, paths["thought"]) or "")
    returned = value_at(item, paths["observation"], NOTHING) if paths["observation"] else NOTHING
    return EntryCall(tool.strip(), given, thought, returned)


_IMAGE_MARKS = re.compile(r"^(\s*<image>)+|(<image>\s*)+$")


# --- answers ----------------------------------------------------------------------------------------------------------

_SLOT: TypeAdapter[Slot] = TypeAdapter(Slot)
_LEADING: Mapping[str, AnswerType] = {
    "plot": "plot",
    "image_calls": "image",
    "tolerance": "tolerance",
    "open_text": "open_text",
}
"""Answer types of a sample by the types of its slots, the first that one has; of others it is ``exact``."""
SHORT_WORDS = 8
"""Longest answer without a type, in words, that is a name; a longer one is open text."""
_MARGIN = re.compile(r"±\s?(\d+(?:\.\d+)?)")
_FIGURE = """its answer is a figure, but no call of plot has its data and the last call made no picture: \
give its data under [answers], \
ID = { type = "plot", kind = "bar", x = ["a", "b"], series = { NAME = [1, 2] } }"""


@dataclass(frozen=True)
class AnswerReader:
    """Reader of the answer of one entry. ``files``: the sample's files by spelling; ``words``: the answer in words."""

    entry: Any
    fields: FieldMap
    steps: Sequence[ReferenceStep]
    files: Mapping[str, str]
    query: str
    words: str

    def slots(self, given: Any) -> tuple[AnswerType, tuple[Slot, ...]]:
        """Return type and slots of a ``gt_answer``, an answer, a list, or parts; BenchmarkError if something is
        lacking.
        """
        if given is NOTHING:
            raise BenchmarkError(
                f"there is no answer at {self.fields.answer['at']!r} ([answer] at)"
            )
        plain = self._plain(parsed(given))
        if len({slot["name"] for slot in plain}) < len(plain):
            raise BenchmarkError("two of its answers have one name ([answer] name)")
        figures = [slot["type"] == "plot" for slot in plain]
        if 0 < sum(figures) < len(plain):  # they share half of the score
            plain = [
                {**slot, "weight": 1 / figures.count(is_one)}
                for slot, is_one in zip(plain, figures, strict=True)
            ]
        try:
            slots = tuple(_SLOT.validate_json(orjson.dumps(slot)) for slot in plain)
        except ValidationError as error:
            raise BenchmarkError(f"its answer: {first_error(error)}") from error
        types = {slot.type for slot in slots}
        leading: list[AnswerType] = [own for kind, own in _LEADING.items() if kind in types]
        return (leading or ["exact"])[0], slots

    def _at(self, key: str, scope: Any) -> Any:
        return value_at(scope, self.fields.answer[key]) if isinstance(scope, dict) else None

    def _plain(self, given: Any) -> list[Plain]:
        kind = self._kind(given)
        if kind == "abstain" or self._at("answerable", self.entry) is False:
            return [_unknown("answer")]
        if isinstance(given, dict) and "whitelist" in given:
            return self._of_whitelist(cast(Plain, given), kind)
        if given in (None, [], {}):
            return [self._figure({}, _named("figure"))]
        if isinstance(given, dict) and all(isinstance(one, dict) for one in given.values()):
            given = [{"name": name, **one} for name, one in cast(Plain, given).items()]
        parts, value = (
            list_in(given) or list_in(self._at("parts", given)),
            list_in(self._at("value", given)),
        )
        parts = parts or (value if all(isinstance(one, dict) for one in value) else [])
        plain = {" ".join(str(word).split()).casefold(): word for word in reversed(parts or value)}
        words = [*reversed(plain.values())] if kind == "exact" else []
        if words and not any(isinstance(word, dict | list) for word in words):
            if self.fields.defaults.any or len(words) == 1:
                others = map(str, [*words[1:], *list_in(self._at("aliases", given))])
                return [_named("answer") | self._label(words[0], [*others])]
            parts = words
        if isinstance(given, list) and (
            kind in ("choice_set", "rank", "open_text")
            or (kind is None and {*map(type, parts)} == {str})
        ):
            parts = []
        slots = (
            [self._part(given, None, 1)]
            if not parts or (kind == "plot" and parts is not given)
            else []
        )
        return slots + [self._part(one, given, number) for number, one in enumerate(parts, 1)]

    def _kind(self, answer: Any, whole: Any = None) -> str | None:
        """Return the type that a part of the answer, or the answer, or the entry states; None if none of them does."""
        types, odd = self.fields.answer_types, ""
        for scope in (answer, whole, self.entry):
            words = [
                value_at(scope, path)
                for path in self.fields.answer["type"].split("|")
                if isinstance(scope, dict)
            ]
            words = [word.strip() for word in words if isinstance(word, str) and word.strip()]
            known = [types.get(word) or types.get(word.lower(), word) for word in words]
            kind = next((each for each in known if each in get_args(AnswerKind)), None)
            if kind and (not odd or kind == "plot"):  # the kind of a chart is no type
                return kind
            odd = odd or "".join(words[:1])
        if odd:
            raise BenchmarkError(f"its answer is of the type {odd!r}: add it under [answer_types]")
        return None

    def _of_whitelist(self, given: Plain, kind: str | None) -> list[Plain]:
        groups, wrong = given["whitelist"], given.get("blacklist")
        if (
            not isinstance(groups, list)
            or not groups
            or not all(isinstance(group, list) and group for group in groups)
        ):
            raise BenchmarkError("its whitelist is not a list of lists of spellings")
        spellings = [[*map(str, group)] for group in cast(list[list[Any]], groups)]
        are_words = all({_truth(group), *map(number_in, group)} == {None} for group in spellings)
        if len(spellings) > 1 and are_words and kind != "tolerance":
            # As published: in any order, anywhere in the answer, beside no word of the blacklist.
            unwanted = [
                str(word)
                for group in list_in(wrong)
                for word in (group if isinstance(group, list) else [group])
            ]
            return [
                {
                    "type": "keywords",
                    **_named("answer"),
                    "whitelist": spellings,
                    "blacklist": [unwanted] if unwanted else [],
                }
            ]
        # One value is compared whole, so that it holds no word of the blacklist. As choices of the form these words
        # would tell a model that the answer is one of a few.
        plain: list[Plain] = []
        is_number = kind == "tolerance"
        for number, group in enumerate(spellings, start=1):
            at = _named("answer" if len(spellings) == 1 else f"answer_{number}")
            own = (
                self._number_of(group)
                if is_number
                else self._exact(group[0], group[1:], self.entry)
            )
            plain.append(at | own)
        return plain

    def _number_of(self, spellings: Sequence[str]) -> Plain:
        """Return the fields of the number that spellings write; words such as ``fourteen metres`` may stand beside it.

        BenchmarkError: no spelling is a number, or one is a number outside the tolerance of the first.
        """
        written = [text for text in spellings if read_quantity(normalise(text)) is not None]
        first, *others = written or spellings
        number = self._number(first, {})
        sizes = {key: size for key, size in number.items() if key != "unit"}  # it is checked later
        margin = ToleranceSlot.model_validate({"name": "answer", "label": "", **sizes}).margin
        for other in others:
            if abs(self._number(other, {})["value"] - number["value"]) > margin:
                raise BenchmarkError(
                    f"its spellings {first!r} and {other!r} differ by more than its tolerance ([answers])"
                )
        return number

    def _part(self, one: Any, whole: Any, number: int) -> Plain:
        """Return the slot of a part of the answer, which is an object or a plain value; ``whole``: what it is in."""
        kind, scope = self._kind(one, whole), one if isinstance(one, dict) else self.entry
        own = cast(Plain, one) if isinstance(one, dict) else {}
        value = self._at("value", own) if own else one
        value = parsed(value.strip()) if isinstance(value, str) else value
        name = self._at("name", own) or (
            "figure" if kind == "plot" else "answer" if whole is None else ""
        )
        at = _named(str(name or f"answer_{number}"), self._at("label", own), f"answer_{number}")
        if kind == "plot":
            margin = self._margin(own) or self._margin(self.entry) or {}
            if margin.pop("abs_tol", 0):
                raise BenchmarkError(
                    "its figure has an absolute tolerance; a figure can only have rel_tol ([answers])"
                )
            return self._figure(value if isinstance(value, dict) else own, at) | margin
        if kind == "abstain":
            return _unknown(at["name"])
        if value is None:
            raise BenchmarkError(
                f"its answer has no value at {self.fields.answer['value']!r} ([answer] value)"
            )
        return at | self._content(kind, value, scope)

    def _content(self, kind: str | None, value: Any, scope: Any) -> Plain:
        """Return the fields of the slot that hold the value of a part of the answer, found in ``scope``."""
        aliases = [str(each).strip() for each in list_in(self._at("aliases", scope))]
        is_list, is_long = (
            isinstance(value, list),
            not aliases and len(str(value).split()) > SHORT_WORDS,
        )
        members = [
            str(each).strip() for each in (value if is_list else re.split("[>,]", str(value)))
        ]
        if kind == "tolerance":
            return self._number(value, scope)
        if kind == "open_text" or (kind is None and (is_list or is_long)):
            facts = [[str(point)] for point in list_in(self._at("points", scope))]
            facts = facts or [[*map(str, cast(list[Any], value))] if is_list else [str(value)]]
            return {"type": "open_text", "facts": [{"phrases": phrases} for phrases in facts]}
        if kind == "choice_set":
            return self._set(members)
        if kind == "rank":
            label = "the order, written as first > second > third"
            return {"type": "exact", "label": label, "value": " > ".join(members)}
        if kind == "boolean" and _truth([str(value)]) is None:
            raise BenchmarkError(f"its answer {value!r} is neither yes nor no")
        return self._exact(value, aliases, scope)

    def _exact(self, value: Any, aliases: Sequence[str], scope: Any) -> Plain:
        """Return the fields of a slot whose answer is one value: a number with its unit in ``scope``, or a label."""
        unit = self._at("unit", scope) if plain_number(value) is not None else None
        return self._label(value, aliases) | ({"unit": unit} if unit else {})

    def _label(self, value: Any, aliases: Sequence[str]) -> Plain:
        if (truth := _truth([str(value), *aliases])) is not None:
            return {"type": "boolean", "value": truth}
        if isinstance(value, str) and not aliases and value in self.files:
            return {
                "type": "file",
                "value": self.files[value],
                "choices": [*dict.fromkeys(self.files.values())],
            }
        options, keys = (
            self._options(),
            {text.casefold().strip(" .") for text in (str(value), *aliases)},
        )
        if right := [
            key
            for key, text in options.items()
            if {key.casefold(), text.casefold().strip(" .")} & keys
        ]:
            forms = ("{1}", "({0})", "{0}. {1}", "({0}) {1}")
            names = {
                letter: [form.format(letter, text) for form in forms]
                for letter, text in options.items()
            }
            return {"type": "exact", "value": right[0], "choices": [*options], "aliases": names}
        number = _only_number([value, *aliases]) if isinstance(value, str) else None
        if number is not None:
            # As a label, "50 %" and "14 trees" would be other names than "50" and "14".
            return {"type": "exact", "value": number}
        names = {str(value): aliases} if aliases else {}
        return {"type": "exact", "value": value, "aliases": names}

    def _options(self) -> dict[str, str]:
        return lettered(self._at("options", self.entry)) or lettered(self.query)

    def _set(self, members: Sequence[str]) -> Plain:
        options, names = self._options(), [*dict.fromkeys(self.files.values())]
        choices = [*options] if {*members} <= {*options} else [*options.values()]
        if {*members} <= {*self.files}:
            members, choices = [self.files[member] for member in members], names
        elif all(member.isdecimal() for member in members):
            choices = [
                str(number) for number in range(1, max([len(names), *map(int, members)]) + 1)
            ]
        if not {*members} <= {*choices}:
            raise BenchmarkError(
                "its answer is a set, and nothing lists its choices ([answer] options)"
            )
        return {"type": "choice_set", "value": [*members], "choices": choices}

    def _number(self, value: Any, scope: Any) -> Plain:
        """Return the fields of a number and its tolerance, in the unit that the files state, else in its own."""
        text, defaults = normalise(str(value)), self.fields.defaults
        found = None if isinstance(value, bool) else read_quantity(text)
        if found is None:
            raise BenchmarkError(
                f"its answer {value!r} is of type tolerance and no number ([answer] value, [answers])"
            )
        unit = self._at("unit", scope) or self._at("unit", self.entry)
        unit = unit or (found.unit.symbol if found.unit else self._unit_in_words(text))
        low, high = _ends(found, unit)
        number = {"type": "tolerance", "value": (low + high) / 2, "unit": unit}
        if stated := _MARGIN.search(text):
            zero, size = _ends(found._replace(low=0.0, high=float(stated[1])), unit)
            return number | {"abs_tol": size - zero}
        if high > low:
            return number | {"abs_tol": (high - low) / 2}
        margin = self._margin(scope, unit) or self._margin(self.entry, unit)
        if margin is None and defaults.abs_tol is None and defaults.rel_tol is None:
            raise BenchmarkError(
                "its answer is of type tolerance and has none: set [defaults] rel_tol in the map"
            )
        return number | (
            margin or {"abs_tol": defaults.abs_tol or 0.0, "rel_tol": defaults.rel_tol or 0.0}
        )

    def _unit_in_words(self, written: str) -> str | None:
        """Return the unit that follows the number in the answer in words; None if no known one does."""
        words = normalise(self.words)
        number = re.search(rf"(?<![\d.]){re.escape(written)}(?!\.?\d)", words)
        found = unit_at(words, number.end()) if number else None
        return found[0].symbol if found else None

    def _margin(self, given: Any, unit: Any = None) -> Plain | None:
        """Return the tolerance that an object states: in two fields, as ``{"rel": 0.1}``, or as a size of a kind.

        ``unit``: that of the answer. BenchmarkError: the tolerance cannot be read, or is in percent as the answer is,
        and nothing says whether it is a share of the answer or percentage points.
        """
        default, sizes = self.fields.defaults.tol_kind, Plain()
        stated = {
            kind: size
            for kind in ("abs", "rel")
            if (size := self._at(f"{kind}_tol", given)) is not None
        }
        is_said = True  # abs or rel, by the name of a field or by a word beside it
        if not stated:
            kind, tol = (
                str(self._at("tol_kind", given) or "").lower()[:3],
                parsed(self._at("tol", given)),
            )
            is_said = kind in ("abs", "rel") or isinstance(tol, dict)
            kind = kind if kind in ("abs", "rel", "per") else "abs" if "±" in str(tol) else default
            stated = tol if isinstance(tol, dict) else {kind: tol}
        for key, tol in stated.items():
            kind, text = str(key)[:3], str(tol).strip().lstrip("±+-/ ")
            if tol in (None, ""):
                continue
            if "%" in text or kind == "per" or (kind == "rel" and default == "percent"):
                is_bare = "%" not in text and kind == "rel"
                said = kind if is_bare or (is_said and kind != "per") else ""
                kind = self._kind_of_percent(tol, said, unit)
                text = text.removesuffix("%")
            size = number_in(text) if kind in ("abs", "rel", "percent") else None
            if size is None or (kind == "rel" and size >= 1):
                fault = (
                    "no number"
                    if size is None
                    else "relative, 1 or more ([defaults] tol_kind: abs, percent)"
                )
                raise BenchmarkError(f"its tolerance {tol!r} is {fault} ([answer] tol)")
            sizes |= {"rel_tol": size / 100} if kind == "percent" else {f"{kind}_tol": size}
        return sizes or None

    def _kind_of_percent(self, tol: Any, said: str, unit: Any) -> str:
        """Return the kind of a tolerance in percent: ``percent`` (of the answer), or ``abs`` (percentage points).

        ``said``: ``abs`` or ``rel``, if the entry says so; ``unit``: that of the answer.
        """
        is_in_percent = isinstance(unit, str) and canonical_unit(unit) == "%"
        of_word = {"rel": "relative", "abs": "points"}
        sense = of_word[said] if said else self.fields.defaults.percent
        if is_in_percent and sense is None:
            raise BenchmarkError(
                f"its tolerance {tol!r} and its answer are in percent: it may be that share of the answer, or that "
                "many points ([defaults] percent: relative, points)"
            )
        return "abs" if is_in_percent and sense == "points" else "percent"

    def _figure(self, given: Mapping[str, Any], at: Plain) -> Plain:
        """Return the slot of a figure: what the answer describes, or the last call that drew one."""
        charts = [chart_of(given)]
        for step in reversed(self.steps):
            spec = ((step.observation.result if step.observation else None) or {}).get("spec")
            charts += [chart_of(spec if isinstance(spec, dict) else {}), chart_of(step.arguments)]
        chart = next((each for each in charts if each), None)
        if chart is None:
            return self._picture()
        source = "ground_truth" if charts[0] else "tool"
        return {"type": "plot", **at, "value": chart.model_dump(mode="json"), "value_from": source}

    def _picture(self) -> Plain:
        """Return the slot of a figure without data, which is the picture that the last call made, as by code."""
        last = self.steps[-1] if self.steps else None
        result = (last.observation.result if last and last.observation else None) or {}
        if last is None or not any(map(_is_picture, result.values())):
            raise BenchmarkError(_FIGURE)
        return {"type": "image_calls", **_named("image", "the image"), "tools": [last.tool]}


def _is_picture(value: JsonValue) -> bool:
    """True for the path of a picture, which a tool returns that made one."""
    return isinstance(value, str) and bool(_PICTURE.fullmatch(value.strip()))


_PICTURE = re.compile(r"[^\n]+\.(?:png|jpe?g|webp|gif|bmp|tiff?|svg)", re.IGNORECASE)


def _named(name: str, label: Any = None, otherwise: str = "answer") -> Plain:
    """Return name and label of a part; a name in another script than ours is the label of ``otherwise``."""
    plain = re.sub(r"\W+", "_", name.lower()).strip("_")
    plain = plain if re.fullmatch(r"[a-z][a-z0-9_]*", plain) else otherwise
    label = label or (_ONLY_ANSWER if name == "answer" else name.strip())
    return {"name": plain, "label": str(label).replace("_", " ")}


_ONLY_ANSWER = "the answer to the question"
"""Label of an answer without a name, because the form would say that answer is answer."""


def _unknown(name: str) -> Plain:
    at = _named(name)
    return {
        "type": "abstain",
        **at,
        "reason": "no_data",
        "asks": [{"type": "exact", **at, "value": "unknown"}],
    }


def _truth(texts: Sequence[str]) -> bool | None:
    truths = {plain_yes(text) for text in texts}
    return truths.pop() if len(truths) == 1 else None


def _ends(quantity: Quantity, unit: Any) -> tuple[float, float]:
    """Return both ends of a quantity in the unit of the answer; BenchmarkError if its own does not convert to it."""
    ends = quantity.ends_in(str(unit) if unit else None)
    if ends is None:
        own = quantity.unit.symbol if quantity.unit else "none"
        raise BenchmarkError(f"its answer is in {own}, and its unit is {unit!r} ([answer] unit)")
    return ends


def _only_number(spellings: Sequence[str]) -> int | float | None:
    """Return the number that the first spelling writes; None if it is none, or if others write another one."""
    first, *others = map(plain_number, spellings)
    if first is None or any(other not in (None, first) for other in others):
        return None
    number = float(first)
    return int(number) if number.is_integer() else number


def with_from(slot: Slot, steps: Sequence[ReferenceStep]) -> Slot:
    """Return ``slot`` with a reference to the field of the last observation that has its value, if exactly one has."""
    for number in reversed(range(len(steps) if slot.from_ is None else 0)):
        observation = steps[number].observation
        result = observation.result if observation and observation.result else {}
        fields = [
            name for name, value in result.items() if name.isidentifier() and _holds(slot, value)
        ]
        if found := slot.name if slot.name in fields else fields[0] if len(fields) == 1 else None:
            return slot.model_copy(update={"from_": f"steps[{number}].observation.{found}"})
    return slot


def _holds(slot: Slot, value: JsonValue) -> bool:
    if isinstance(slot, ToleranceSlot):
        number = None if isinstance(value, bool) else plain_number(value)
        return number is not None and abs(number - slot.value) <= slot.margin
    if isinstance(slot, ExactSlot):
        return not isinstance(value, bool) and str(value).strip().casefold() in {
            each.casefold() for each in slot.names
        }
    return type(value) is type(getattr(slot, "value", None)) and value == getattr(
        slot, "value", None
    )
