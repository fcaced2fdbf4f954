"""Questions to a judge about a record, one for each part of an answer that it can grade, and grades in its replies.

Labelled answers, whose right grades are known, come from the package or from a file of the user.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from agrotools.core import FrozenModel, OpenTextSlot, Record, UsageError, first_error
from agrotools.core.files import read_table, read_text
from agrotools.core.installed import WithPlugins, plugin_of, plugins
from agrotools.scoring.judging.contracts import JudgedMetric, Judging, judging_of
from agrotools.scoring.metrics import OPEN_TEXT, is_judged_text
from agrotools.scoring.open_text import FactRead, scored_facts
from agrotools.scoring.slots import submitted_text
from agrotools.text.loose_json import parsed_values
from agrotools.text.normalise import normalise

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_HIGHEST_GRADE = 2
"""Grade of an answer that is right in full; 1 is for one that is right in part."""
_KEYS = ("grade", "score", "rating", "points", "评分", "分数", "得分", "等级")
_SCORE_IN_WORDS = re.compile(
    r"(?:grade|score|rating|points|评分|分数|得分|等级)[\"'*_ ]*+(?>(?:(?:(?<=\s)|\s)(?:is|of)\s|[:=为是])?)[\"'*_ ]*+"
    r"(?P<grade>-?\d++(?>(?:\.\d++)?))(?![a-zA-Z\d_]|\.\d)(?:\s*(?:/|out of)\s*(?P<of>\d+))?"
    r"(?!\s*(?:[,、]\s*\d\s*)?(?:[-~–]|or\b|to\b|或者?|还是|[到至])\s*\d)",
    re.IGNORECASE,
)
_OBJECT_ALONE = re.compile(r"(?:```\w*\s*)?\{.*\}\s*(?:```)?", re.DOTALL)
_ALONE = re.compile(
    r"[\s*_\"'(]*+(?P<grade>-?\d++(?>(?:\.\d++)?))\s*+(?:/\s*+(?P<of>\d++))?\s*+分?[\s*_\"'.。)]*+"
)


def read_grade(reply: str, shown: str = "") -> int | None:
    """Return the grade in ``reply``: 0, 1 or 2; None if :func:`read_score` returns none."""
    score = read_score(reply, _HIGHEST_GRADE, shown)
    return int(score) if score is not None and score.is_integer() else None


def read_score(reply: str, most: int = 1, shown: str = "") -> float | None:
    """Return the score in ``reply``, a number from 0 to ``most``.

    It is read from JSON (in a fence, with Python's quotes or within prose; an object that stands in ``shown``, which
    the judge may quote, only if it is the whole reply), else from words (``Grade: 1``, ``评分：2``), else from a reply
    that is a number. None if the reply has no such score, if it names several, or if the score is not on the scale,
    because a guess would not be the judge's grade.
    """
    text = unicodedata.normalize("NFKC", _THOUGHT.sub("", reply)).strip()
    found = [
        (value, score) for value in parsed_values(text) for score in _keyed_scores(value, most)
    ]
    if found:
        alone = len(found) == 1 and _OBJECT_ALONE.fullmatch(text)
        quoted = [] if alone else [*parsed_values(unicodedata.normalize("NFKC", shown))]
        scores = {score for value, score in found if value not in quoted}
        return scores.pop() if len(scores) == 1 else None
    scores = {_of_match(match, most) for match in _SCORE_IN_WORDS.finditer(text)}
    if scores:
        return scores.pop() if len(scores) == 1 else None
    alone = _ALONE.fullmatch(text)
    return _of_match(alone, most) if alone else None


def _keyed_scores(value: JsonValue, most: int) -> list[float | None]:
    keyed = (
        {key.strip().lower(): content for key, content in value.items()}
        if isinstance(value, dict)
        else {}
    )
    return [_on_scale(keyed[key], most) for key in _KEYS if key in keyed][:1]


_YES_NO = re.compile(r"\W*(?:(?P<yes>yes|是|对)|(?P<no>no|否|不是|不对))\b", re.IGNORECASE)


def read_yes_no(reply: str) -> float | None:
    """Return 1 if ``reply`` begins with yes, 0 if it begins with no, else None."""
    match = _YES_NO.match(_THOUGHT.sub("", reply))
    return float(match["yes"] is not None) if match else None


def read_published_yes(reply: str) -> float:
    """Return 1 if ``reply`` is exactly ``yes``, as in ThinkGeo's evaluation (``Yes.`` gives 0)."""
    return float(reply.strip().lower() == "yes")


def _of_match(match: re.Match[str], most: int) -> float | None:
    if match["of"] is not None and match["of"] != str(most):
        return None
    return _on_scale(match["grade"], most)


def _on_scale(value: object, most: int) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        alone = _ALONE.fullmatch(value)
        if alone is None or alone["of"] not in (None, str(most)):
            return None
        value = alone["grade"]
    try:
        number = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= most else None


@cache
def prompt_hash(words: str) -> str:
    """Return the hash of the wording of one kind of question."""
    return _hash(words)[:16]


def mark_of(texts: Iterable[str]) -> str:
    """Return the delimiter line around ``texts``. It is a hash of them, so that no text can contain it."""
    return f"=== {_hash(chr(0).join(texts))[:12]} ==="


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True)
class JudgeQuestion:
    """Question to a judge. ``read`` returns the grade in a reply, 0 to ``most``; None if the reply has no grade.

    ``prompt`` is a hash of the wording shared by all questions of the kind, ``asked`` a hash of this question.
    """

    metric: str
    slot: str
    system: str
    user: str
    prompt: str
    most: int = 2
    read: Callable[[str], float | None] = field(default=read_grade, compare=False)
    longest_reply: int = 2048
    """Maximum length of a reply in tokens."""
    harmful: Callable[[str], tuple[str, ...]] = field(default=lambda _reply: (), compare=False)
    """Function that returns the harmful claims that a reply finds in the answer."""

    @property
    def asked(self) -> str:
        return _hash(f"{self.system}\0{self.user}")[:24]


SHIPPED_RUBRICS = "built-in rubrics"


@dataclass(frozen=True)
class Rubrics:
    """Instructions to a judge. ``criteria`` maps names to the rubric and the texts that a judge is shown.

    ``name`` and ``digest`` (first twelve digits of the SHA-256) identify the user's file; both are empty for the
    shipped rubrics.
    """

    system: str
    parts: Mapping[str, str]
    criteria: Mapping[str, tuple[str, tuple[str, ...]]]
    name: str = ""
    digest: str = ""
    content: bytes = b""

    @property
    def label(self) -> str:
        """Source of the rubrics, as shown with the scores."""
        return f"rubrics of {self.name} ({self.digest})" if self.digest else SHIPPED_RUBRICS


def read_rubrics(path: Path, benchmark: str, name: str = "") -> Rubrics:
    """Read the user's rubrics for a benchmark. ``name`` is the file name in reports, by default that of ``path``.

    Raises:
        UsageError: the file cannot be read or has another format, or the benchmark is not judged by rubrics.
    """
    plugin = plugin_of(benchmark)
    judging = judging_of(plugin.targets.judging) if plugin else None
    if judging is None or judging.read_rubrics is None:
        raise UsageError(f"{benchmark} is not judged by rubrics", hint="leave out judge_rubrics")
    return judging.read_rubrics(path, name or path.name)


def plugin_judgings() -> list[Judging]:
    """Return the questions of all benchmark plug-ins to judges."""
    return [judging for plugin in plugins() if (judging := judging_of(plugin.targets.judging))]


def _judged_metrics(target: str) -> Mapping[str, JudgedMetric]:
    judging = judging_of(target)
    return judging.metrics if judging else {}


def has_rubrics(metric: str) -> bool:
    """Return True if the metric is a criterion that is graded by rubrics."""
    return any(each.read_rubrics and metric in each.metrics for each in plugin_judgings())


JUDGED_METRICS = WithPlugins(
    "judged metric",
    {OPEN_TEXT: JudgedMetric(is_judged_text)},
    lambda plugin: _judged_metrics(plugin.targets.judging),
)
"""All metrics from judges: first those of the engine, then those of benchmark plug-ins."""

_PROMPTS = Path(__file__).with_name("prompts.toml")
_LONGEST_ANSWER = 12_000
_HAN = re.compile(r"[一-鿿]")
_HOLE = re.compile(r"\{(mark|question|reference|answer)\}")


def judge_questions(record: Record, rubrics: Rubrics | None = None) -> list[JudgeQuestion]:
    """Return the questions to a judge about ``record``; none if it holds no answer that a judge can grade.

    ``rubrics`` are those of the user's file, None for the shipped ones.
    """
    questions = [
        each for judging in plugin_judgings() for each in judging.questions(record, rubrics)
    ]
    if record.trajectory is None or record.invalid is not None:
        return questions
    sample, answer = record.sample, record.trajectory.answer or ""
    if answer.strip():
        for slot in sample.answer:
            if isinstance(slot, OpenTextSlot) and is_judged_text(slot):
                questions.append(
                    rubric_question(slot, sample.query, submitted_text(slot, sample.answer, answer))
                )
    return questions


def open_question(
    metric: str, slot: str, question: str, reference: str, answer: str
) -> JudgeQuestion:
    """Return a question about an answer that is compared with a reference text, in the language of the reference."""
    if len(answer) > _LONGEST_ANSWER:
        answer = f"{answer[:_LONGEST_ANSWER]} [...]"
    words = read_table(_PROMPTS)["open_answer"]["zh" if _HAN.search(reference) else "en"]
    system, user, prompt = _filled(words, question, reference, answer)
    return JudgeQuestion(metric, slot, system, user, prompt, read=partial(read_grade, shown=user))


def _filled(
    words: Mapping[str, str], question: str, reference: str, answer: str
) -> tuple[str, str, str]:
    """Return the two messages of a question, with the texts between marks, and the hash of their wording."""
    values = {"question": question, "reference": reference, "answer": answer}
    values["mark"] = mark_of(values.values())
    system, user = (
        _HOLE.sub(lambda hole: values[hole[1]], words[part]).strip() for part in ("system", "user")
    )
    return system, user, prompt_hash(words["system"] + words["user"])


def rubric_question(slot: OpenTextSlot, question: str, answer: str) -> JudgeQuestion:
    """Return a question about an answer that asks for a verdict with a quotation on each numbered statement.

    The statements are the facts of the slot, those of branches that do not apply, and the harmful claims.
    """
    facts = [*slot.facts, *(fact for branch in slot.excluded for fact in branch.facts)]
    contrary = (
        f" (contradicted by: {' / '.join(fact.not_)})" if fact.not_ else "" for fact in facts
    )
    statements = [
        " / ".join(fact.phrases) + each for fact, each in zip(facts, contrary, strict=True)
    ]
    statements += [f"advice: {harm.claim}" for harm in slot.harmful]
    rubric = "\n".join(f"{number}. {each}" for number, each in enumerate(statements, 1))
    system, user, prompt = _filled(
        read_table(_PROMPTS)["rubric"]["en"], question, rubric, answer[:_LONGEST_ANSWER]
    )
    read = partial(read_rubric, slot, answer[:_LONGEST_ANSWER], shown=user)
    return JudgeQuestion(
        OPEN_TEXT,
        slot.name,
        system,
        user,
        prompt,
        most=1,
        read=lambda reply: read(reply).score,
        harmful=lambda reply: read(reply).harmful,
    )


class RubricRead(NamedTuple):
    """Score of open text by the verdicts of a judge, None if the reply lacks one, and the harmful claims it found."""

    score: float | None
    harmful: tuple[str, ...] = ()


def read_rubric(slot: OpenTextSlot, answer: str, reply: str, *, shown: str = "") -> RubricRead:
    """Return the score by the verdicts in ``reply``: a JSON object with one for each statement of the rubric.

    A verdict whose quotation does not occur in the answer counts as absent. An object that stands in ``shown`` counts
    only if it is the whole reply.
    """
    counts = [len(slot.facts), *(len(branch.facts) for branch in slot.excluded), len(slot.harmful)]
    text = unicodedata.normalize("NFKC", _THOUGHT.sub("", reply)).strip()
    found = [
        value
        for value in parsed_values(text)
        if isinstance(value, dict) and _verdicts(value, sum(counts))
    ]
    quoted = (
        []
        if _OBJECT_ALONE.fullmatch(text)
        else [*parsed_values(unicodedata.normalize("NFKC", shown))]
    )
    own = [value for value in found if value not in quoted]
    if not own or any(value != own[0] for value in own):
        return RubricRead(None)
    plain = _one_line(answer)
    read = [_fact_read(verdict, plain) for verdict in _verdicts(own[0], sum(counts))]
    parts = [[read.pop(0) for _ in range(count)] for count in counts]
    harmful = [harm.claim for harm, one in zip(slot.harmful, parts[-1], strict=True) if one.said]
    return RubricRead(scored_facts(slot, parts[0], parts[1:-1], answer)[0], tuple(harmful))


def _verdicts(value: Mapping[str, JsonValue], count: int) -> list[dict[str, JsonValue]]:
    """Return the verdicts on statements 1 to ``count``; empty if one is missing."""
    verdicts = [value.get(str(number)) for number in range(1, count + 1)]
    known = [
        each for each in verdicts if isinstance(each, dict) and each.get("verdict") in _VERDICTS
    ]
    return known if len(known) == count else []


_VERDICTS = ("stated", "contradicted", "absent")


def _fact_read(verdict: Mapping[str, JsonValue], answer: str) -> FactRead:
    quote = _one_line(str(verdict.get("quote") or ""))
    if not quote or quote not in answer or verdict["verdict"] == "absent":
        return FactRead()
    return FactRead(said=quote) if verdict["verdict"] == "stated" else FactRead(denied=quote)


def _one_line(text: str) -> str:
    return " ".join(normalise(text).split())


SHIPPED = "shipped"


class _Labelled(FrozenModel):
    question: Annotated[str, Field(min_length=1)]
    reference: Annotated[str, Field(min_length=1)]
    answer: Annotated[str, Field(min_length=1)]
    grade: Annotated[int, Field(ge=0, le=2)]
    why: str = ""


def labelled_questions(source: str) -> dict[JudgeQuestion, int]:
    """Read questions to a judge with their right grades.

    ``source`` is ``shipped`` (30 answers written for this package) or a JSONL file with ``question``, ``reference``,
    ``answer`` and ``grade`` (0 to 2) in every line.

    Raises:
        UsageError: the file cannot be read, has a line with other fields, or holds no answers.
    """
    try:
        if source == SHIPPED:
            text = (
                files("agrotools")
                .joinpath("data", "judging", "open_answers.jsonl")
                .read_text(encoding="utf-8")
            )
        else:
            text = read_text(Path(source).expanduser())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the answers with known grades cannot be read from {source}: {error}",
            hint=f"give a file, or {SHIPPED}",
        ) from error
    known = [judging.calibrated for judging in plugin_judgings() if judging.calibrated]
    if not known:
        raise UsageError(
            "no installed benchmark has answers that are graded against a reference text"
        )
    labels: dict[JudgeQuestion, int] = {}
    for number, line in enumerate(
        text.split("\n"), start=1
    ):  # splitlines would also split at separators within texts
        if line.strip():
            try:
                item = _Labelled.model_validate_json(line)
            except ValidationError as error:
                hint = "every line holds question, reference, answer and grade (0, 1 or 2)"
                raise UsageError(
                    f"{source}, line {number}: {first_error(error)}", hint=hint
                ) from error
            labels[
                open_question(known[0], "answer", item.question, item.reference, item.answer)
            ] = item.grade
    if not labels:
        raise UsageError(f"{source} contains no answers with grades")
    return labels
