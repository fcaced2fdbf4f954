"""What a judge is asked about a record: one question for each part of an answer that a judge can grade."""

import hashlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agrotools.core import OpenTextSlot, Record, ReferenceTextSlot, Slot
from agrotools.scoring.judging.replies import read_grade

OPEN_ANSWER = "agrieval.judge"
OPEN_TEXT = "agrotools.ots_judge"
JUDGED_METRICS: dict[str, Callable[[Slot], bool]] = {
    OPEN_ANSWER: lambda slot: slot.type == "reference_text",
    OPEN_TEXT: lambda slot: slot.type == "open_text",
}
"""Metrics that a judge gives, and the slots each is the mean of."""

_PROMPTS = Path(__file__).with_name("prompts.toml")
_LONGEST_ANSWER = 12_000
_HAN = re.compile(r"[一-鿿]")
_HOLE = re.compile(r"\{(mark|question|reference|answer)\}")


@dataclass(frozen=True)
class JudgeQuestion:
    """A question to a judge. ``read`` finds the grade in a reply, 0 to ``most``; None where there is none.

    ``prompt`` is a hash of the words that are the same for all questions of the kind, ``asked`` one of this question.
    """

    metric: str
    slot: str
    system: str
    user: str
    prompt: str
    most: int = 2
    read: Callable[[str], int | None] = read_grade

    @property
    def asked(self) -> str:
        text = f"{self.system}\0{self.user}".encode(errors="surrogatepass")
        return hashlib.sha256(text).hexdigest()[:24]


def judge_questions(record: Record) -> list[JudgeQuestion]:
    """What there is to ask of ``record``; nothing where it holds no answer that a judge can grade."""
    answer = record.trajectory.answer if record.trajectory is not None and record.invalid is None else None
    if answer is None or not answer.strip():
        return []
    asked: list[JudgeQuestion] = []
    for slot in record.sample.answer:
        if isinstance(slot, ReferenceTextSlot):
            # Not the prompt: its examples and passages hold answers too, and differ between settings.
            question = str(record.sample.metadata.get("question") or record.sample.query)
            asked.append(open_question(OPEN_ANSWER, slot.name, question, slot.value, answer))
        elif isinstance(slot, OpenTextSlot):
            facts = "\n".join("- " + " / ".join(fact.phrases) for fact in slot.facts)
            asked.append(open_question(OPEN_TEXT, slot.name, record.sample.query, facts, answer))
    return asked


def open_question(metric: str, slot: str, question: str, reference: str, answer: str) -> JudgeQuestion:
    """A question on an answer that is compared with a reference text; in Chinese where the reference is."""
    if len(answer) > _LONGEST_ANSWER:
        answer = f"{answer[:_LONGEST_ANSWER]} [...]"
    language = "zh" if _HAN.search(reference) else "en"
    words = _words()["open_answer"][language]
    texts = "\0".join((question, reference, answer)).encode(errors="surrogatepass")
    values = {
        "mark": f"=== {hashlib.sha256(texts).hexdigest()[:12]} ===",
        "question": question,
        "reference": reference,
        "answer": answer,
    }
    system, user = (_HOLE.sub(lambda hole: values[hole[1]], words[part]).strip() for part in ("system", "user"))
    return JudgeQuestion(metric, slot, system, user, prompt=_hash(words["system"] + words["user"]))


@cache
def _words() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(_PROMPTS.read_text(encoding="utf-8"))


@cache
def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
