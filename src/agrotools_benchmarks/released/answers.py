"""Answers and tolerances in any usual form, written in the form that the reader of answers knows.

That form is an object with ``type``, ``value``, ``unit``, ``abs_tol``, ``rel_tol`` and ``aliases``, a list of these, or
GTA's object with a ``whitelist``.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, cast, get_args

from agrotools.calling.declared import chart_of
from agrotools.core import BenchmarkError
from agrotools.loading.values import list_in, number_in, value_at
from agrotools.text.normalise import normalise
from agrotools.text.quantities import read_quantity
from agrotools.text.units import unit_at
from agrotools_benchmarks.released.names import snake, with_plain_keys
from agrotools_build.export.gta_entries import AnswerKind

Plain = dict[str, Any]
ToleranceKind = Literal["abs", "rel", "percent"]
PercentSense = Literal["relative", "points"]
"""What ``5 %`` is, beside an answer that is in percent itself: 5 % of the answer, or 5 percentage points."""

# --- types ------------------------------------------------------------------------------------------------------------

_KIND_WORDS: dict[AnswerKind, str] = {
    "plot": "plot plotting chart figure graph visual visualization visualisation",
    "tolerance": "tolerance tol numeric numerical number count approx approximate float within error"
    " rel relative abs absolute",
    "open_text": "open free freeform rubric llm judge descriptive generative",
    "choice_set": "set multiselect",
    "boolean": "boolean bool yesno binary",
    "rank": "rank ranking ordering",
    "exact": "exact label choice mcq categorical classification closed string em",
    "abstain": "unanswerable refusal abstain",
}
"""Words of the name of an answer type, by our type; the first type with one of the words counts."""
UNDECIDED = (
    "text string str text-only text_only textual answer value multi_slot multi mixed parts composite"
).split()
"""Types that say no more than that the answer is text or has parts, which may be numbers with a tolerance."""


def kind_of(word: Any, known: Mapping[str, AnswerKind]) -> AnswerKind | None:
    """Return our type for the name of one: of the table ``known``, or by its words (``Tolerance-matched``)."""
    if not isinstance(word, str):
        return None
    plain = word.strip().lower()
    types: tuple[AnswerKind, ...] = get_args(AnswerKind)
    found: AnswerKind | None = known.get(word.strip()) or known.get(plain)
    found = found or next((each for each in types if each == plain), None)
    words = {*re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", word).lower())}
    if found:
        return found
    return next((kind for kind, names in _KIND_WORDS.items() if words & {*names.split()}), None)


def first_kind(words: Iterable[Any], known: Mapping[str, AnswerKind]) -> AnswerKind | None:
    """Return our type for the first of the words that is the name of one; None if none is."""
    for word in words:
        if kind := kind_of(word, known):
            return kind
    return None


# --- tolerances -------------------------------------------------------------------------------------------------------

_TOLERANCE_NAME = re.compile(
    r"(?:^|_)(?:tol|atol|rtol|tolerance|tolerances|margin|epsilon|eps|deviation|plus_minus)(?:_|$)"
    r"|(?:allowed|allowable|acceptable|permitted|max|abs|absolute|rel|relative)_(?:error|err|diff)"
    r"|error_(?:margin|range|bound|rate)|^threshold$"
)
_KIND_NAME = re.compile(r"(?:^|_)(?:type|kind|mode|unit|form)$")
_RANGE_NAME = re.compile(r"(?:^|_)(?:range|interval|bounds)$")
_IS_RIGHT = re.compile(r"accept|allow|valid|answer|gold|correct|tol|truth", re.IGNORECASE)
_LOWEST = "min|low|lower|lower_bound|minimum|lo"
_HIGHEST = "max|high|upper|upper_bound|maximum|hi"
_SIZE_KEYS = "value|val|amount|size|margin|tolerance|tol|threshold|delta"
_PLAIN_SHARE = 0.3
"""Largest bare tolerance that can only be a share of the value: one of 0.5 may be half of it, or half a unit."""


def is_tolerance_name(name: str) -> bool:
    """True for the name of a field with a tolerance, not with its kind."""
    return is_on_tolerance(name) and not _KIND_NAME.search(snake(name))


def is_on_tolerance(name: str) -> bool:
    """True for the name of a field with a tolerance, its kind or its range."""
    plain = snake(name)
    return bool(_TOLERANCE_NAME.search(plain) or _RANGE_NAME.search(plain))


def _kind_in(word: Any) -> ToleranceKind | None:
    """Return the kind of tolerance that a word or the name of a field states."""
    if not isinstance(word, str):
        return None
    if re.search(r"percentage[ _]points?|\bpp\b|百分点|绝对", word.lower()):
        return "abs"
    if "相对" in word:
        return "percent" if re.search("%|percent", word) else "rel"
    words = {
        *re.findall(r"[a-z]+|%|±", snake(word.replace("%", " percent ").replace("±", " abs ")))
    }
    if words & {"percent", "pct", "percentage", "per"}:
        return "percent"
    if words & {"rel", "rtol", "relative", "ratio", "fraction"}:
        return "rel"
    return "abs" if words & {"abs", "atol", "absolute", "plus", "epsilon", "eps"} else None


def _sense_in(text: Any) -> PercentSense | None:
    """Return what a text or the name of a field says on percent; None if it says no more than percent."""
    if isinstance(text, str) and re.search("相对|绝对|百分点", text):
        return "relative" if "相对" in text else "points"
    plain = snake(text).replace("_", " ") if isinstance(text, str) else ""
    words = {*plain.split()}
    if words & {"rel", "rtol", "relative", "ratio", "fraction"} or _OF_VALUE.search(plain):
        return "relative"
    return "points" if words & {"abs", "atol", "absolute", "points", "point", "pp"} else None


_OF_VALUE = re.compile(
    r"\bof (?:the |its )?(?:\w+ )?(?:value|answer|truth|gold|reference|number)\b"
)
"""Words after a tolerance by which it is a share: ``5 % of the true value``."""


Bare = Callable[[float], ToleranceKind]
"""Kind of a tolerance that is a number and states no kind."""


def bare_kind(size: float) -> ToleranceKind:
    """Return the kind of a bare tolerance: a share of the value below 1, else in its unit."""
    return "rel" if size < 1 else "abs"


class Tolerance(NamedTuple):
    """Tolerance as ``abs_tol`` or ``rel_tol``, or the ``low`` and ``high`` end of the right values.

    ``percent``: its size, if it is stated in percent; ``fields`` have it as a share of the answer. ``sense``: what that
    is beside an answer in percent, if it is stated.
    """

    fields: Plain
    ends: tuple[float, float] | None = None
    percent: float | None = None
    sense: PercentSense | None = None


def tolerance_in(
    scope: Any, bare: Bare, part: str = "", *, is_answer: bool = False
) -> Tolerance | None:
    """Return the tolerance that the fields of an object state; None if they state none.

    ``part``: name of the part of the answer, by which an object of tolerances may list them. ``is_answer``: the object
    is the answer, so its range is that of the right values.
    """
    if not isinstance(scope, dict):
        return None
    found = Tolerance({})
    stated = value_at(
        scope,
        "tolerance_type|tolerance_kind|tolerance_mode|tol_type|tol_kind|tol_mode|tolerance_unit",
    )
    kind = _kind_in(stated) or (_kind_in(scope.get("mode")) if "tolerance" in scope else None)
    sense = _sense_in(stated)
    for word in ("match", "match_type", "metric", "method", "type", "kind"):
        kind = kind or _kind_in(scope.get(word))
        sense = sense or _sense_in(scope.get(word))
    for name, value in cast(Plain, scope).items():
        if value in (None, "", [], {}) or _is_of_type(value):
            continue
        if is_tolerance_name(str(name)):
            if isinstance(value, dict) and part in value:
                value = value[part]
            of_name = _kind_in(str(name)) or kind
            one = read_tolerance(value, of_name, bare, _sense_in(str(name)) or sense)
            found = _joined(found, one)
        elif (is_answer or _IS_RIGHT.search(str(name))) and _RANGE_NAME.search(snake(str(name))):
            found = found._replace(ends=_pair(value) or found.ends)
    low, high = number_in(value_at(scope, _LOWEST)), number_in(value_at(scope, _HIGHEST))
    if is_answer and low is not None and high is not None and low <= high:
        found = found._replace(ends=(low, high))
    return found if found.fields or found.ends else None


def _joined(first: Tolerance, second: Tolerance) -> Tolerance:
    """Return a tolerance that is stated in two fields."""
    last = first if second.percent is None else second
    ends = second.ends or first.ends
    return Tolerance({**first.fields, **second.fields}, ends, last.percent, last.sense)


def _is_of_type(value: Any) -> bool:
    """True for an answer of type tolerance with its own tolerance, ``{"value": 40, "eps": 2}``."""
    return isinstance(value, dict) and "value" in value and any(map(is_tolerance_name, value))


def read_tolerance(
    value: Any, kind: ToleranceKind | None, bare: Bare, sense: PercentSense | None = None
) -> Tolerance:
    """Read ``0.05``, ``"5%"``, ``"±3"``, ``{"abs": 3}``, ``{"type": "relative", "value": 0.05}``, or ``[13, 15]``.

    ``kind`` and ``sense``: as the name of the field says, or another one beside it.

    Raises:
        BenchmarkError: it is no tolerance.
    """
    if isinstance(value, dict):
        return _of_object(cast(Plain, value), kind, bare, sense)
    if pair := _pair(value):
        offset = _offset(pair)
        return Tolerance({}, pair) if offset is None else Tolerance({"abs_tol": offset})
    text = normalise(str(value)).strip()
    number = re.search(r"\d+(?:[.,]\d+)?(?:e-?\d+)?", text.lower())
    size = float(number[0].replace(",", ".")) if number and not isinstance(value, bool) else None
    if text.lower() in ("none", "null", "n/a", "na", "-", "exact"):
        return Tolerance({})
    if number is None or size is None or not math.isfinite(size):
        raise BenchmarkError(f"its tolerance {value!r} is no number ([answer] tol)")
    own = _kind_in(re.sub(r"(?<=\d)\s*%", " percent", text))
    has_mark = bool(re.search(r"±|\+\s*/?\s*-|\+-", text)) or _has_unit(text, number)
    stated = own or kind or ("abs" if has_mark else None)
    kind = stated or bare(size)
    if kind == "percent":
        # Who says that all numbers without a kind are percent means percent of the answer.
        sense = _sense_in(text) or sense or (None if stated else "relative")
        return Tolerance({"rel_tol": size / 100}, None, size, sense)
    if kind == "rel" and size >= 1:
        raise BenchmarkError(
            f"its tolerance {value!r} is relative, 1 or more ([defaults] tol_kind: abs, percent)"
        )
    return Tolerance({f"{kind}_tol": size})


def _of_object(
    given: Plain, kind: ToleranceKind | None, bare: Bare, sense: PercentSense | None
) -> Tolerance:
    low, high = number_in(value_at(given, _LOWEST)), number_in(value_at(given, _HIGHEST))
    if low is not None and high is not None:
        return Tolerance({}, (low, high))
    size = value_at(given, _SIZE_KEYS)
    if size is not None:
        words = [given.get(name) for name in ("unit", "mode", "kind", "type")]
        for word in words:
            sense = _sense_in(word) or sense
        for word in words:
            own = _kind_in(word)
            if own == "percent":
                return read_tolerance(size, own, bare, sense)
            kind = own or kind
        return read_tolerance(size, kind, bare, sense)
    found = Tolerance({})
    for name, each in given.items():
        if each not in (None, "") and (own := _kind_in(name)):
            one = read_tolerance(each, own, bare, _sense_in(name) or sense)
            found = _joined(found, one._replace(ends=None))
    return found


def _has_unit(text: str, number: re.Match[str] | None) -> bool:
    return number is not None and unit_at(text, number.end()) is not None


def _pair(value: Any) -> tuple[float, float] | None:
    numbers = [number_in(each) for each in value] if isinstance(value, list) else []
    if len(numbers) != 2 or None in numbers:
        return None
    low, high = cast(list[float], numbers)
    return (low, high) if low < high else None


def _offset(pair: tuple[float, float]) -> float | None:
    """Return the tolerance that two ends around zero are, ``[-3, 3]``; None if they are right values."""
    return pair[1] if pair[0] == -pair[1] else None


def bare_sizes(scopes: Iterable[Plain]) -> list[float]:
    """Return the tolerances in objects that are numbers without a kind."""
    sizes: list[float] = []

    def note(size: float) -> ToleranceKind:
        sizes.append(size)
        return bare_kind(size)

    for scope in scopes:
        for part in ("", *_parts_of_tolerances(scope)):
            with suppress(BenchmarkError):  # reported with the entry
                tolerance_in(scope, note, part)
    return sizes


def bare_kinds(sizes: Sequence[float]) -> dict[str, ToleranceKind]:
    """Return the kind of ``small`` bare tolerances, below 1, and of ``large`` ones.

    Small ones beside large ones are in units, too, if one is too large for a share of the value.
    """
    are_units = any(size >= 1 for size in sizes) and any(_PLAIN_SHARE < size < 1 for size in sizes)
    return {"small": "abs" if are_units else bare_kind(0.0), "large": bare_kind(1.0)}


def _parts_of_tolerances(scope: Plain) -> Iterator[str]:
    """Yield the parts of the answer by which an object of tolerances lists them."""
    for name, value in scope.items():
        is_listed = is_tolerance_name(name) and isinstance(value, dict)
        if is_listed and value_at(value, f"{_SIZE_KEYS}|{_LOWEST}") is None:
            yield from (part for part in value if _kind_in(part) is None)


def other_kinds(sizes: Sequence[float]) -> list[ToleranceKind]:
    """Return the kinds that bare tolerances may have, the proposed one first; one if only one is sensible."""
    large = [size for size in sizes if size >= 1]
    small = [size for size in sizes if 0 < size < 1]
    if large and not small and all(size % 5 == 0 for size in large):
        return ["abs", "percent"]
    if small and not large and max(small) > _PLAIN_SHARE:
        return ["rel", "abs"] if min(small) <= _PLAIN_SHARE else ["abs", "rel"]
    return []


# --- answers ----------------------------------------------------------------------------------------------------------


class Stated(NamedTuple):
    """What an entry states on its answer beside it."""

    kind: AnswerKind | None = None
    unit: str = ""
    scopes: tuple[Any, ...] = ()
    """Objects that may hold its tolerance: the entry, and objects in it."""
    is_undecided: bool = False
    """True if the entry says no more than that the answer is text."""
    words: str = ""
    """Question, and answer in words, which may say that the answer is in percent."""
    is_one_of_several: bool = False
    """True for a part beside others: the type that the entry states may be that of the others."""


class AnswerForm(NamedTuple):
    """How answers are read: ``paths`` of the field map, ``[answer]``, its answer types, and bare tolerances.

    ``own``: paths of tolerances that a map of the user gives (``abs_tol``, ``rel_tol``, ``tol``, ``tol_kind``).
    ``sense``: returns what a tolerance in percent is beside an answer in percent; takes both.
    """

    paths: Mapping[str, str]
    types: Mapping[str, AnswerKind]
    bare: Bare
    own: Mapping[str, str]
    sense: Callable[[float, str], PercentSense]


_META = (
    "type answer_type kind unit units name key slot label aliases accept synonyms description note rubric key_points "
    "facts weight mode match format scoring source explanation rationale low high min max choices options eval"
).split()
"""Keys of an answer that are never its value."""
_LONG = 8
"""Longest answer without a type, in words, that is a name."""


def plain_answer(given: Any, stated: Stated, form: AnswerForm) -> Any:
    """Return an answer in the form that the reader of answers knows.

    Raises:
        BenchmarkError: its tolerance cannot be read.
    """
    kind = stated.kind
    if isinstance(given, dict) and "whitelist" in given:
        own = kind_of(value_at(given, form.paths["type"]), form.types) or kind
        return {
            **given,
            **({"type": own} if own else {}),
            **_of_answer(
                _margin(given, stated, form, ""), _texts_in(given["whitelist"]), stated, form
            ),
        }
    if isinstance(given, dict):
        chart = chart_of(given)  # its keys may be the categories of a figure
        given = cast(Plain, given) if chart else with_plain_keys(cast(Plain, given))
        if by_type := _of_one_type(given, form):
            kind, given = by_type
            return plain_answer(given, stated._replace(kind=kind, is_undecided=False), form)
        parts = list_in(value_at(given, form.paths["parts"]))
        own, _ = _own_kind(given, form)
        shared = {name: each for name, each in given.items() if is_on_tolerance(name)}
        of_parts = stated._replace(
            kind=own or kind, scopes=(shared, *stated.scopes), is_one_of_several=True
        )
        if parts and _are_objects(parts):
            return [_part(one, of_parts, form) for one in parts]
        are_parts = bool(given) and all(isinstance(each, dict) for each in given.values())
        if are_parts and not own and chart_of(given) is None:
            of_parts = stated._replace(is_one_of_several=len(given) > 1)
            return [_part({"name": name, **each}, of_parts, form) for name, each in given.items()]
        value = value_at(given, form.paths["value"])
        if isinstance(value, list) and value and _are_objects(value) and (own or kind) != "plot":
            return [_part(one, of_parts, form) for one in value]
        return _of_object_answer(given, stated, form)
    are_parts = isinstance(given, list) and bool(given) and _are_objects(given)
    if are_parts and (kind != "plot" or not any(map(chart_of, given))):
        of_parts = stated._replace(is_one_of_several=len(given) > 1)
        return [_part(one, of_parts, form) for one in given]
    if given in (None, [], "", {}):
        return {"type": "plot"} if kind == "plot" else given
    if isinstance(given, list):
        return given if kind is None else {"type": kind, "value": given}
    return _part({"value": given}, stated, form)


def _of_one_type(given: Plain, form: AnswerForm) -> tuple[AnswerKind, Any] | None:
    """Return type and answer of an object with a key for each type, of which one is filled; None if it is none."""
    filled = {name: value for name, value in given.items() if value not in (None, "", [], {})}
    kinds = [kind_of(name, form.types) for name in given]
    if len(filled) != 1 or len(given) < 2 or None in kinds:
        return None
    (name, value), *_ = filled.items()
    kind = kind_of(name, form.types)
    return (kind, value) if kind else None


def _of_object_answer(given: Plain, stated: Stated, form: AnswerForm) -> Any:
    """Return the answer of an object without parts: its value, its figure, or a part for each of its other keys."""
    own, _ = _own_kind(given, form)
    kind = own or stated.kind
    if kind == "plot" or (own is None and chart_of(given)):
        return _figure(given, stated, form)
    if kind == "abstain" or value_at(given, form.paths["value"]) is not None:
        return _part(given, stated, form)
    others = {
        name: value
        for name, value in given.items()
        if name not in _META and not is_tolerance_name(name) and not _KIND_NAME.search(snake(name))
    }
    if len(others) > 1:
        shared = {name: value for name, value in given.items() if is_tolerance_name(name)}
        of_answer = stated._replace(scopes=(shared, *stated.scopes), kind=kind)
        return [
            _part({"name": name, "value": value}, of_answer, form) for name, value in others.items()
        ]
    if others:
        (name, value), *_ = others.items()
        rest = {key: each for key, each in given.items() if key != name}
        return _part({"name": name, **rest, "value": value}, stated, form)
    alone = given.get("label", given.get("name"))
    return _part({**given, "value": alone}, stated, form) if alone is not None else given


def _figure(given: Plain, stated: Stated, form: AnswerForm) -> Plain:
    charts = (chart_of(each) for each in (given, *given.values()) if isinstance(each, dict))
    chart = next(filter(None, charts), None)
    margin = _margin(given, stated, form, "").fields
    margin.pop("abs_tol", None)
    value = {"value": chart.model_dump(mode="json")} if chart else {}
    return {"type": "plot", **value, **margin}


def _own_kind(given: Mapping[str, Any], form: AnswerForm) -> tuple[AnswerKind | None, bool]:
    """Return the type that an answer states, and whether it says no more than that it is text."""
    words = [value_at(given, path.strip()) for path in form.paths["type"].split("|")]
    words = [word for word in words if isinstance(word, str) and word.strip()]
    if any(word.strip().lower() in UNDECIDED for word in words):
        return None, True
    return first_kind(words, form.types), False


def _part(one: Any, stated: Stated, form: AnswerForm) -> Plain:
    """Return one part of an answer, which is an object."""
    paths, given = form.paths, cast(Plain, one)
    given = given if chart_of(given) else with_plain_keys(given)
    own, is_text = _own_kind(given, form)
    given = _with_value(given, paths)
    kind, value = own or stated.kind, value_at(given, paths["value"])
    if kind == "tolerance" and stated.is_one_of_several and own is None and _is_name(value):
        kind = "exact"
    if kind == "tolerance":
        value = _number_of(given, value)
    if kind == "plot":
        return {**_named(given, paths), **_figure(given, stated, form)}
    name = value_at(given, paths["name"])
    margin = _margin(given, stated, form, str(name or ""))
    number = read_quantity(normalise(str(value))) if isinstance(value, str | int | float) else None
    is_number = number is not None and not isinstance(value, bool)
    is_undecided = is_text or (stated.is_undecided and own is None) or kind is None
    if is_undecided and kind is None and is_number and (margin.fields or margin.ends):
        kind = "tolerance"
    if is_undecided and kind is None and is_text:
        kind = "exact" if len(str(value).split()) <= _LONG else "open_text"
    part: Plain = {**_named(given, paths), "value": value}
    for key in ("unit", "aliases", "points"):
        if (found := value_at(given, paths[key])) is not None:
            part[key] = _accepted(found) if key == "aliases" else found
    others = value_at(given, _OTHER_ANSWERS)
    if kind == "open_text" and others and isinstance(value, str):
        part["value"] = [value, *_accepted(others)]  # other words for the whole answer
        part.pop("aliases", None)
    if kind:
        part["type"] = kind
    if kind == "tolerance":
        if "unit" not in part and stated.unit:
            part["unit"] = stated.unit
        fields = _of_answer(margin, f"{value} {part.get('unit') or ''}".strip(), stated, form)
        part |= _centred(value, margin._replace(fields=fields))
    return part


_OTHER_ANSWERS = "also_ok|alternatives|alternative_answers"
"""Names of lists of answers each of which is right, rather than what one of them states."""


def _accepted(given: Any) -> list[Any]:
    """Return the answers in a list, or in a text that parts them by ``||``, or names by semicolons."""
    if not isinstance(given, str):
        return list_in(given)
    mark = "||" if "||" in given or len(given.split()) > _LONG else ";"
    return [each.strip() for each in given.split(mark) if each.strip()]


def _with_value(given: Plain, paths: Mapping[str, str]) -> Plain:
    """Return a part with its value, where it lists ``values`` of which any counts, or all are required."""
    listed = given.get("values", given.get("accepted_values"))
    if not isinstance(listed, list) or value_at(given, paths["value"]) is not None:
        return given
    words = {*snake(str(given.get("match", given.get("mode", "")))).split("_")}
    if "any" in words and len(listed) > 1:
        return {**given, "value": listed[0], "aliases": listed[1:]}
    return {**given, "value": listed[0] if len(listed) == 1 else listed} if listed else given


def _is_name(value: Any) -> bool:
    """True for a text without a number."""
    return isinstance(value, str) and not re.search(r"\d", value)


def flat(answer: Any) -> Any:
    """Return an answer in which each item of a list, in a part whose items are all required, is a part."""
    if not isinstance(answer, list):
        return answer
    parts: list[Any] = []
    for part in cast(list[Any], answer):
        items = list_in(part.get("value")) if isinstance(part, dict) else []
        if not items or part.get("type") not in (None, "exact") or _are_objects(items):
            parts.append(part)
            continue
        name = str(part.get("name") or "answer")
        parts += [
            {**part, "name": f"{name}_{at}", "type": "exact", "value": item}
            for at, item in enumerate(items, start=1)
        ]
    return parts


def _of_answer(margin: Tolerance, answer: str, stated: Stated, form: AnswerForm) -> Plain:
    """Return the fields of a tolerance for an ``answer``: one in percent is not always a share of it."""
    if margin.percent is None or not _is_in_percent(answer, stated.words):
        return margin.fields
    sense = margin.sense or form.sense(margin.percent, answer)
    if sense == "relative":
        return margin.fields
    others = {name: size for name, size in margin.fields.items() if name != "rel_tol"}
    return {**others, "abs_tol": margin.percent}


def _is_in_percent(answer: str, words: str) -> bool:
    """True if an answer is in percent, as its unit says, or without one the question or the answer in words."""
    number = _NUMBER.search(answer)
    if number is None:
        return False
    if rest := answer[number.end() :].strip():
        found = unit_at(rest, 0)
        return found is not None and found[0].symbol == "%"
    return bool(_ASKS_PERCENT.search(words)) or bool(
        re.search(rf"(?<![\w.]){re.escape(number[0])}\s*(?:%|per ?cent\b)", words)
    )


_ASKS_PERCENT = re.compile(
    r"\bin (?:%|per ?cent\b|percentage points)|\b(?:what|which) percent(?:age)?\b|\bhow many percent\b"
    r"|\b(?:what|which) (?:share|fraction|proportion)\b[^?]*\(%\)",
    re.IGNORECASE,
)
"""Words of a question whose answer is in percent."""


def _texts_in(value: Any) -> str:
    """Return the first text in lists of lists, as of GTA's ``whitelist``."""
    while isinstance(value, list) and value:
        value = cast(list[Any], value)[0]
    return value if isinstance(value, str) else ""


def _number_of(given: Plain, value: Any) -> Any:
    """Return the number of an answer of type tolerance: its value, another field, or the only number in its words."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is not None and (number_in(value) is not None or read_quantity(normalise(str(value)))):
        return value
    fields = (
        each
        for name, each in given.items()
        if name not in _META and not is_on_tolerance(name) and number_in(each) is not None
    )
    found = next((each for each in fields if not isinstance(each, bool)), None)
    if found is not None or not isinstance(value, str):
        return value if found is None else found
    numbers = list(_NUMBER.finditer(value))
    if len({number[0] for number in numbers}) != 1:
        return value
    unit = unit_at(value, numbers[0].end())
    return f"{numbers[0][0]} {unit[0].symbol}" if unit else numbers[0][0]


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w]|\.\d)")


def _named(given: Mapping[str, Any], paths: Mapping[str, str]) -> Plain:
    found = {key: value_at(given, paths[key]) for key in ("name", "label")}
    return {key: value for key, value in found.items() if isinstance(value, str) and value}


def _margin(given: Any, stated: Stated, form: AnswerForm, part: str) -> Tolerance:
    """Return the tolerance of a part: its own, else that of the entry."""
    inner = [each for each in given.values() if isinstance(each, dict)]
    own = (given, *map(with_plain_keys, inner))
    for scope in (*own, *stated.scopes):
        found = _of_map(scope, form) or tolerance_in(scope, form.bare, part, is_answer=scope in own)
        if found and (found.fields or found.ends):
            return found
    return Tolerance({})


def _of_map(scope: Any, form: AnswerForm) -> Tolerance | None:
    """Return the tolerance at the paths of a map of the user; None if it gives none."""
    word = value_at(scope, form.own.get("tol_kind"))
    kind = _kind_in(word)
    kinds: dict[str, ToleranceKind | None] = {"abs_tol": "abs", "rel_tol": "rel", "tol": kind}
    for key, of_key in kinds.items():
        if key in form.own and (value := value_at(scope, form.own[key])) not in (None, ""):
            sense = _sense_in(word) if key == "tol" else _sense_in(key)
            return read_tolerance(value, of_key, form.bare, sense)
    return None


def _centred(value: Any, margin: Tolerance) -> Plain:
    """Return the tolerance of a number, whose right values lie between two ends if the tolerance says so."""
    if margin.ends is None:
        return margin.fields
    low, high = margin.ends
    number = number_in(value)
    if number is not None and low <= number <= high and math.isclose(high - number, number - low):
        return {"abs_tol": high - number}
    if number is None or low <= number <= high:
        return {"value": (low + high) / 2, "abs_tol": (high - low) / 2}
    return margin.fields


def _are_objects(values: Sequence[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)
