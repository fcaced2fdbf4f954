"""Scores of letters and of lists of numbers, and of result files of AG-VQA sets.

Rows of a result file have question, answer, and replies of models, with their published scores if any; the map of the
set says where. Published scores are those in the file.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from agrotools.core import BenchmarkError, Slot
from agrotools.loading.values import read_rows
from agrotools.scoring.choices import ChoiceReading, read_choices
from agrotools.scoring.contracts import Scoring
from agrotools.scoring.prediction_format import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import (
    Figure,
    PredictionScores,
    SampleParts,
    ScoredFile,
    ScoreSum,
    summed,
)
from agrotools.scoring.slots import SlotScore, score_slot
from agrotools.text.agreement_values import Box, box_iou
from agrotools_benchmarks.agvqa.field_map import Row, RowFault, read_map, read_question
from agrotools_benchmarks.agvqa.load import OWN_MAP
from agrotools_benchmarks.agvqa.plugin import (
    MAPS,
    OWN,
    LetteredSlot,
    NumberListSlot,
    attribute_of,
)

_LINE = re.compile(r"(?im)^[\s>#*_`-]*[\"']?answer[\"']?[*_`\s]*[:=][*_`\s]*(.+?)[\s*_`,}]*$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_OVERLAP = 0.5


def read_letters(answer: str, slot: LetteredSlot) -> ChoiceReading:
    """Return the options that an answer chooses."""
    kind = "multiple" if slot.several else "single"
    if lines := _LINE.findall(answer):
        reading = read_choices(lines[-1].strip("\"' "), slot.options, kind)
        if reading.letters:
            return reading
    letters = {label.strip("<>"): letter for label, letter in slot.labels.items()}
    names = "|".join(map(re.escape, letters))
    # A published name counts with its brackets anywhere, without them after the word "decision".
    if names and (named := re.findall(rf"<({names})>|(?i:\bdecision\W{{1,9}}({names})\b)", answer)):
        given = named[-1][0] or named[-1][1].capitalize()
        return ChoiceReading((letters[given],), "published name of the option", given)
    return read_choices(answer, slot.options, kind)


def score_letters(slot: Slot, _: Sequence[Slot], answer: str) -> SlotScore:
    """Score the chosen options: 1 for exactly the correct ones."""
    assert isinstance(slot, LetteredSlot)
    reading = read_letters(answer, slot)
    found = {"value": [*reading.letters], "rule": reading.rule, "text": reading.candidate[:120]}
    return SlotScore(float(set(reading.letters) == set(slot.value)), found)


def score_numbers(slot: Slot, _: Sequence[Slot], answer: str) -> SlotScore:
    """Score a list of numbers: as many as are asked for, the last ones of the answer or those of its form."""
    assert isinstance(slot, NumberListSlot)
    lines = _LINE.findall(answer)
    numbers = [float(number) for number in _NUMBER.findall(lines[-1] if lines else answer)]
    if len(numbers) < len(slot.value):
        return SlotScore(0.0, {"value": [*numbers], "rule": "too few numbers"})
    numbers = numbers[-len(slot.value) :]
    if slot.box:
        overlap = box_iou(cast("Box", numbers), cast("Box", slot.value))
        reading = {
            "value": [*numbers],
            "rule": "overlap of the boxes",
            "overlap": round(overlap, 4),
        }
        return SlotScore(float(overlap > _OVERLAP), reading)
    right = all(
        abs(one - other) <= slot.abs_tol + 1e-9
        for one, other in zip(numbers, slot.value, strict=True)
    )
    return SlotScore(
        float(right), {"value": [*numbers], "rule": "each number within the tolerance"}
    )


SCORING = Scoring(slot_scorers={"lettered": score_letters, "number_list": score_numbers})


def compare_replies(name: str, inputs: PredictionInput) -> ScoredFile:
    """Score a file's replies with our readers, beside its own scores; BenchmarkError if the map finds no replies."""
    fields = read_map(inputs.file.parent / OWN_MAP if name == OWN else MAPS / f"{name}.toml")
    if (places := fields.predictions) is None:
        raise BenchmarkError(
            f"the map {OWN_MAP} beside {inputs.file.name} has no table [predictions]"
        )
    entries = (each if isinstance(each, Mapping) else {} for each in read_rows(inputs.file))
    rows = [Row(each, inputs.file, number) for number, each in enumerate(entries, 1)]
    samples: list[SampleParts] = []
    theirs: dict[str, list[float]] = defaultdict(list)
    same, left_out, different = 0, Counter[str](), list[str]()
    for row in rows:
        for metric, judged in places.judged.items():
            for model, score in _all(row, judged.path).items():
                if isinstance(score, int | float):
                    theirs[_id(name, metric, model)].append(score / judged.out_of)
        replies, scores = _all(row, places.reply), _all(row, places.published)
        try:
            slots = read_question(row, fields, {}).slots if replies else ()
        except RowFault as fault:
            left_out[fault.reason] += 1
            continue
        if not replies:
            left_out["no reply"] += 1
        parts: dict[str, ScoreSum] = {}
        for model, reply in replies.items():
            metric = _id(name, "accuracy", model)
            parts[metric] = ScoreSum(_score(slots, reply), 1)
            if isinstance(published := scores.get(model), int | float):
                theirs[metric].append(float(published))
                if abs(published - parts[metric].total) < 1e-9:
                    same += 1
                else:
                    different.append(
                        f"row {row.number}: {reply!r:.40} has {published:g} in the file"
                    )
        if parts:
            samples.append(SampleParts(str(row.number), parts))
    if not samples and not theirs:
        fault = f"{inputs.file.name} has no reply or score at {places.reply}"
        raise BenchmarkError(fault, hint="check the format of the file")
    extra: dict[str, Mapping[str, int | None]] = {}
    if same or different:
        extra["scores of replies beside those in the file"] = {
            "same": same,
            "different": len(different),
        }
    if different:
        extra[f"different: {'; '.join(different[:5])}"] = {"in all": len(different)}
    if left_out:
        extra["rows that are not scored"] = dict(left_out)
    figures = {
        metric: Figure(100 * sum(values) / len(values), len(values))
        for metric, values in theirs.items()
    }
    published = {f"{metric}_published": figure for metric, figure in figures.items()}
    metrics = summed(
        samples, dict.fromkeys(metric for sample in samples for metric in sample.parts)
    )
    counts = {"rows": len(rows), "replies": sum(len(sample.parts) for sample in samples)}
    theirs_scored = PredictionScores("", published, {}) if published else None
    ours = PredictionScores("", metrics, counts, {}, tuple(samples))
    return ScoredFile(
        name, "replies to questions", len(rows), theirs_scored, ours, None, extra=extra
    )


def _all(row: Row, path: str) -> dict[str, Any]:
    """Return the values at the first of the alternative paths that has any, by model."""
    return next((found for each in path.split("|") if (found := row.all(each))), {})


def _id(name: str, metric: str, model: str) -> str:
    return f"{name}.{metric} ({model})" if model else f"{name}.{metric}"


def _score(slots: Sequence[Slot], reply: Any) -> float:
    text = "" if reply is None else str(reply)
    first = slots[0]
    if isinstance(first, LetteredSlot) and isinstance(reply, int):
        text = first.letters[reply] if 0 <= reply < len(first.letters) else ""
    return sum(score_slot(slot, slots, text).value for slot in slots) / len(slots)


_NOT_HERE = ("the result files of this set hold their answers", "give the file alone")


def _format(name: str) -> PredictionFormat:
    title = read_map(MAPS / f"{name}.toml").title if name != OWN else "AG-VQA"
    refused: Mapping[str, tuple[str, str]] = dict.fromkeys(
        ("data", "judgements", "embedder"), _NOT_HERE
    )
    compare = partial(compare_replies, name)
    return PredictionFormat(
        title, name, compare, published_suffix="_published", corrected_suffix="", refused=refused
    )


OWN_FILE = _format(OWN)
FORMATS = SimpleNamespace(
    **{attribute_of(path.stem): _format(path.stem) for path in sorted(MAPS.glob("*.toml"))}
)
"""Formats of the result files of the sets; the maps of some say where their replies are."""
