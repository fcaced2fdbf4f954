"""Reading of a reply: the JSON object in it, as the draft of a question, of a wording or of options."""

import json
import re
import unicodedata
from typing import Annotated, Any, TypeVar, cast

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from agrotools.core import Arguments, FrozenModel, first_error
from agrotools.text.json_kinds import is_object
from agrotools_build.composing import AnswerForm, AnswerPart, TraceStep
from agrotools_build.drafting.reasons import Dropped

MOST_STEPS, MOST_PARTS = 8, 4
"""Most steps and parts of an answer: the questions of builds have at most 12 and 3."""
LONGEST_REPLY = 40_000
"""Characters of a reply that are read and stored: several times what a draft needs."""
_PLAIN = StringConstraints(strip_whitespace=True, min_length=2, max_length=600)
_NO_WORDS = re.compile(r"[<>{}`\\|]|://|www\.|@\d")
"""Signs of markup, addresses and references, with which no person asks."""
_REF = re.compile(r"@(\d+)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
"""A value of an earlier result, as the prompt has it: ``@0.count``."""


class DraftedStep(FrozenModel):
    """A call as the model named it."""

    tool: Annotated[str, Field(max_length=80)]
    arguments: Arguments = {}


class DraftedPart(FrozenModel):
    """A part of the answer as the model named it."""

    name: Annotated[str, Field(max_length=80)]
    label: Annotated[str, _PLAIN]
    form: AnswerForm
    from_: Annotated[str, Field(alias="from", max_length=500)]


class DraftedQuestion(FrozenModel):
    """A question with calls and the places of its answer."""

    question: Annotated[str, _PLAIN]
    steps: Annotated[tuple[DraftedStep, ...], Field(max_length=MOST_STEPS)]
    answer: Annotated[tuple[DraftedPart, ...], Field(max_length=MOST_PARTS)]


class DraftedWording(FrozenModel):
    """A question in other words."""

    question: Annotated[str, _PLAIN]


class DraftedOptions(FrozenModel):
    """Wrong options."""

    options: Annotated[
        tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)], ...],
        Field(max_length=20),
    ]


Drafted = TypeVar("Drafted", DraftedQuestion, DraftedWording, DraftedOptions)


def read_reply(text: str, kind: type[Drafted]) -> Drafted:
    """Return the draft in a reply: its first JSON object that is one.

    Raises:
        Dropped: there is none.
    """
    why = "it holds no JSON object that can be read"
    for found in _objects(text[:LONGEST_REPLY]):
        known = {name: found[name] for name in found if name in _keys(kind)}
        if not known:
            continue  # an object within one that is broken
        try:
            # Strict fields: a number where a text is asked for is no text.
            return kind.model_validate(known)
        except ValidationError as error:
            why = first_error(error)
    if len(text) > LONGEST_REPLY:
        why = f"it is too long: of {len(text):,} characters, the first {LONGEST_REPLY:,} are read"
    raise Dropped("not_read", why)


def _keys(kind: type[FrozenModel]) -> set[str]:
    return {field.alias or name for name, field in kind.model_fields.items()}


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects in a text, in order."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found += [value] if is_object(value) else []
        at = text.find("{", end)
    return found


def check_plain(text: str) -> None:
    """Raise Dropped if a text of a model holds signs that no person asks with."""
    odd = _NO_WORDS.search(text)
    control = next((sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Co")), "")
    if odd or control:
        raise Dropped("not_plain", f"it holds {odd[0] if odd else control!r}")


def trace_of(steps: tuple[DraftedStep, ...]) -> list[TraceStep]:
    """Return the calls with references to earlier results in place of ``@0.field``."""
    return [
        TraceStep(tool=step.tool, arguments=cast(Arguments, _referring(dict(step.arguments))))
        for step in steps
    ]


def _referring(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _referring(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_referring(item) for item in value]
    match = _REF.fullmatch(value.strip()) if isinstance(value, str) else None
    return {"$ref": _written_out(match)} if match else value


def part_of(part: DraftedPart, place: int) -> AnswerPart:
    """Return a part of the answer with its references written out, and a name that the answer form can have."""
    plain = re.sub(r"[^a-z0-9]+", "_", part.name.casefold()).strip("_")[:40]
    name = plain if re.match("[a-z]", plain) else f"value_{place}"
    return AnswerPart.model_validate(
        {
            "name": name,
            "label": part.label,
            "form": part.form,
            "from": _REF.sub(_written_out, part.from_).strip() or "nothing",
        }
    )


def _written_out(match: re.Match[str]) -> str:
    return f"steps[{match[1]}].observation{match[2]}"
