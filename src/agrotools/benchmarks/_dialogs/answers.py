"""Gold answers as slots: GTA's three forms, which ThinkGeo shares."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import JsonValue

from agrotools.benchmarks._dialogs.findings import shown
from agrotools.core import AnswerType, BenchmarkError, ImageCallsSlot, KeywordsSlot, ReferenceTextsSlot, Slot

AnswerKind = Literal["objective", "subjective", "image", "workflow"]
ANSWER_TYPES: dict[AnswerKind, AnswerType] = {
    "objective": "exact",
    "subjective": "open_text",
    "image": "image",
    "workflow": "open_text",
}
"""The answer type of samples of each kind."""

MISSING = object()
"""Stands for an entry without the field."""


class Gold(NamedTuple):
    """The slot of an answer, what kind of answer it is, and what to say of it."""

    kind: AnswerKind
    slot: Slot
    notes: tuple[str, ...] = ()


def gold_of(
    answer: object, questions: Sequence[str], image_tools: Iterable[str], called: Sequence[str], final_text: str
) -> Gold:
    """The gold of an entry from its ``gt_answer``.

    An object with ``whitelist`` is objective, a list of texts subjective, and null, ``[]`` or ``{}`` an image. Where
    nothing is given and no tool of ``called`` makes an image, the final text of the dialog is the answer.

    Raises:
        BenchmarkError: it has none of these forms; the message says what it is.
    """
    if answer is MISSING:
        raise BenchmarkError("it has no gt_answer")
    if answer is None or answer in ([], {}, ""):
        return _image(image_tools, called, final_text)
    if isinstance(answer, dict):
        return Gold("objective", _keywords(answer, questions))
    if isinstance(answer, str | int | float) and not isinstance(answer, bool):
        texts = [str(answer)]
        note = ("gt_answer is one value, not a list of texts",)
        return Gold("subjective", _texts(texts), note)
    if isinstance(answer, list) and all(isinstance(text, str | int | float) for text in answer):
        texts = [str(text) for text in answer if str(text).strip()]
        if texts:
            return Gold("subjective", _texts(texts))
        raise BenchmarkError("the texts of its gt_answer are all empty")
    raise BenchmarkError(f"its gt_answer has an unknown form: {shown(answer)}")  # pyright: ignore[reportArgumentType]


def _texts(texts: Sequence[str]) -> ReferenceTextsSlot:
    return ReferenceTextsSlot(name="answer", label="the answer", values=tuple(texts))


def _keywords(answer: dict[str, JsonValue], questions: Sequence[str]) -> KeywordsSlot:
    if "whitelist" not in answer:
        raise BenchmarkError(f"its gt_answer has no whitelist: {shown(list(answer))}")
    return KeywordsSlot(
        name="answer",
        label="the answer",
        whitelist=_groups(answer["whitelist"], "whitelist"),
        blacklist=_groups(answer.get("blacklist"), "blacklist"),
        questions=tuple(questions),
    )


def _groups(given: JsonValue, which: str) -> tuple[tuple[str, ...], ...]:
    """Groups of aliases as they were written; numbers become text."""
    if given is None and which == "blacklist":
        return ()
    if not isinstance(given, list) or not all(isinstance(group, list) for group in given):
        raise BenchmarkError(f"its {which} is no list of lists: {shown(given)}")
    groups: list[tuple[str, ...]] = []
    for group in given:
        assert isinstance(group, list)
        if not all(isinstance(alias, str | int | float) for alias in group):
            raise BenchmarkError(f"its {which} holds something else than texts: {shown(group)}")
        groups.append(tuple(str(alias) for alias in group))
    return tuple(groups)


def _image(image_tools: Iterable[str], called: Sequence[str], final_text: str) -> Gold:
    tools = set(image_tools)
    used = tuple(dict.fromkeys(tool for tool in called if tool in tools))
    if used:
        return Gold("image", ImageCallsSlot(name="image", label="the image", tools=used))
    if final_text.strip():
        note = "it has no gt_answer, and no call makes an image: the final text of the dialog is its answer"
        return Gold("subjective", _texts([final_text]), (note,))
    raise BenchmarkError("it has no gt_answer, no call makes an image, and the dialog ends without a text")
