"""AgriEval's result files: its questions with what a model replied, as its run scripts write them.

A list of the entries of the data set, each with ``generated_answer`` where the model was asked (eval/choice_run.py,
eval/qa_run.py), or with ``response``, a text or a list of them (eval/run_multi_choice_base.py). Entries with options
are choices, others open questions; both hold the right answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import ValidationError

from agrotools.core import BenchmarkError, OptionsSlot, ReferenceTextSlot
from agrotools.scoring.loose import is_list, is_object, is_text
from agrotools.scoring.predictions.json_files import read_json
from agrotools.scoring.reference.agrieval import KINDS

_FORM = 'results look like [{"question": ..., "options": {...}, "answer": "A", "generated_answer": ...}, ...]'


@dataclass(frozen=True)
class Answered:
    """A question that can be scored. ``replies``: none where the model gave none, which is wrong."""

    key: str
    slot: OptionsSlot | ReferenceTextSlot
    replies: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """``choices`` and ``open_questions``: entries as they stand; ``answered``: those of both that can be scored."""

    choices: tuple[Mapping[str, Any], ...]
    open_questions: tuple[Mapping[str, Any], ...]
    answered: tuple[Answered, ...]
    malformed: tuple[str, ...]


def read_results(path: Path) -> Results:
    """Raises :class:`BenchmarkError` where the file cannot be read, or holds no question with its answer."""
    found = read_json(path)
    if not is_list(found):
        raise BenchmarkError(f"{path.name} is no list", hint=_FORM)
    entries: list[Mapping[str, Any]] = [entry for entry in found if is_object(entry)]
    answered: list[Answered] = []
    malformed: list[str] = []
    for position, entry in enumerate(found):
        where = f"{path.name}, entry {position}"
        slot = _slot(entry)
        if slot is None:
            malformed.append(f"{where} is no question with an answer")
            continue
        reply: Any = entry.get("generated_answer", entry.get("response"))
        replies: list[Any] = reply if is_list(reply) else [reply]
        texts = tuple(each if is_text(each) else "" for each in replies) if reply is not None else ()
        if reply is not None and not all(map(is_text, replies)):
            malformed.append(f"{where}: the reply is no text")
        answered.append(Answered(str(position), slot, texts))
    if not answered:
        raise BenchmarkError(f"{path.name} holds no question with an answer", hint=_FORM)
    choices = tuple(entry for entry in entries if "options" in entry)
    return Results(
        choices, tuple(entry for entry in entries if "options" not in entry), tuple(answered), tuple(malformed)
    )


def _slot(entry: Any) -> OptionsSlot | ReferenceTextSlot | None:
    """What is asked; None where that, or the right answer, cannot be told."""
    answer: Any = entry.get("answer") if is_object(entry) else None
    if not is_text(answer) or not answer.strip():
        return None
    try:
        if "options" in entry:
            return _options_slot(entry, answer)
        return ReferenceTextSlot(name="answer", label="the answer", value=answer)
    except ValidationError:  # half of a character, which JSON can spell
        return None


def _options_slot(entry: Mapping[str, Any], answer: str) -> OptionsSlot | None:
    given: Any = entry["options"]
    kind = KINDS.get(entry["question_type"]) if is_text(entry.get("question_type")) else None
    if kind is None or not is_object(given):
        return None
    options: dict[str, str] = {letter: text for letter, text in given.items() if is_text(text) and text.strip()}
    right = tuple(letter for letter in options if letter in answer)
    if len(options) < 2 or not right or set(right) != set(answer) or (kind != "multiple" and len(right) > 1):
        return None
    if not all(len(letter) == 1 and letter in ascii_uppercase for letter in options):
        return None
    return OptionsSlot(name="answer", label="the right options", kind=kind, value=right, options=options)
