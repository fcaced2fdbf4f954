"""ThinkGeo's judge: its questions about an answer, the log of its replies, and metrics that its replies give.

The two prompts are the words of opencompass/datasets/ThinkGeo_bench.py (github.com/mbzuai-oryx/ThinkGeo, commit
95086de5bcb6f008851615f4651ae85ee6a8ed1a, Apache-2.0), which asks gpt-4o-mini with temperature 0 and at most 3 tokens.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.benchmarks.thinkgeo.plugin import has_questions
from agrotools.core import BenchmarkError, KeywordsSlot, Record
from agrotools.plugin import JudgedMetric, Judging
from agrotools.scoring.judging import Rubrics
from agrotools.scoring.judging.questions import JudgeQuestion, prompt_hash, read_published_yes, read_yes_no
from agrotools.scoring.predictions import read_json
from agrotools.text.loose_json import is_list, is_object, is_text

LLM_SCORE = "thinkgeo.llm_score"
LLM_SCORE_CORRECTED = "thinkgeo.llm_score_corrected"

JUDGE_SYSTEM = "Only respond with 'Yes' or 'No'."
JUDGE_USER = (
    "Response: {answer}\nGiven the above response, answer the following question in Yes or No.\nQuestion: {question}?"
)


def judge_prompt(answer: str, question: str) -> tuple[str, str]:
    """The system's and the user's message for one question about an answer."""
    return JUDGE_SYSTEM, JUDGE_USER.format(answer=answer, question=question.strip().rstrip("?"))


def _questions(record: Record, _: Rubrics | None) -> list[JudgeQuestion]:
    answer = record.trajectory.answer if record.trajectory is not None and record.invalid is None else None
    if answer is None or not answer.strip():
        return []
    slots = [slot for slot in record.sample.answer if isinstance(slot, KeywordsSlot)]
    return [question for slot in slots for question in yes_no_questions(slot, answer)]


def yes_no_questions(slot: KeywordsSlot, answer: str) -> list[JudgeQuestion]:
    """ThinkGeo's questions about an answer, in its own words: a right answer has yes to each.

    Each stands twice: as ThinkGeo reads the reply (nothing but ``yes`` counts), and so that ``Yes.`` is yes and what is
    neither yes nor no has no grade.
    """
    prompt = prompt_hash(JUDGE_SYSTEM + JUDGE_USER)
    questions: list[JudgeQuestion] = []
    for number, question in enumerate(slot.questions, start=1):
        system, user = judge_prompt(answer, question)
        for metric, read in ((LLM_SCORE, read_published_yes), (LLM_SCORE_CORRECTED, read_yes_no)):
            questions.append(JudgeQuestion(metric, f"{slot.name} {number}", system, user, prompt, 1, read, 3))
    return questions


JUDGING = Judging(
    metrics={
        LLM_SCORE: JudgedMetric(has_questions, min),
        LLM_SCORE_CORRECTED: JudgedMetric(has_questions, min, asked_as=LLM_SCORE),
    },
    questions=_questions,
)


@dataclass(frozen=True)
class Judgement:
    """Replies of the judge on one answer. ``position``: of the sample in the file, from 0."""

    position: int
    replies: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if every reply is yes, and nothing but that."""
        return all(reply == "yes" for reply in self.replies)


_FORM = 'a log looks like [{"id": 0, "scores": ["yes", "no"]}, ...]'


def read_log(path: Path) -> tuple[list[Judgement], list[str]]:
    """The judgements of a log, and what is malformed in it: a sample whose entry is malformed was not judged, a reply
    that is no text says nothing. Of two entries for a sample the first counts.

    Raises:
        BenchmarkError: the file cannot be read, or holds no list of judgements.
    """
    data = read_json(path)
    if not is_list(data):
        raise BenchmarkError(f"{path.name} is no list of judgements", hint=_FORM)
    judgements: dict[int, Judgement] = {}
    malformed: list[str] = []
    for index, entry in enumerate(data):
        position: Any = entry.get("id") if is_object(entry) else None
        replies: Any = entry.get("scores") if is_object(entry) else None
        if type(position) is not int or not is_list(replies):
            malformed.append(f"{path.name}, entry {index} is no judgement")
        elif position in judgements:
            malformed.append(f"{path.name}, entry {index}: sample {position} is judged twice")
        else:
            if not all(map(is_text, replies)):
                malformed.append(f"{path.name}, entry {index}: a reply is no text")
            judgements[position] = Judgement(position, tuple(r if is_text(r) else "" for r in replies))
    if data and not judgements:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return list(judgements.values()), malformed
