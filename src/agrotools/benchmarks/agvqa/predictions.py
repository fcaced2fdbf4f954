"""Result files of AG-VQA sets: rows with question, answer, and replies of models, with their published scores if any.

The map of the set says where replies and scores are. Published scores are those in the file.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agrotools.benchmarks.agvqa.field_map import Row, RowFault, read_map, read_question
from agrotools.benchmarks.agvqa.load import MAPS, OWN_MAP
from agrotools.benchmarks.agvqa.plugin import OWN, LetteredSlot
from agrotools.benchmarks.rows import read_rows
from agrotools.core import BenchmarkError, Slot
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import Figure, Part, SampleParts, ScoredFile, Scores, summed
from agrotools.scoring.slots import score_slot


def compare_replies(name: str, inputs: PredictionInput) -> ScoredFile:
    """Score a file's replies with our readers, beside its own scores; BenchmarkError if the map finds no replies."""
    fields = read_map(inputs.file.parent / OWN_MAP if name == OWN else MAPS / f"{name}.toml")
    if (places := fields.predictions) is None:
        raise BenchmarkError(f"the map {OWN_MAP} beside {inputs.file.name} has no table [predictions]")
    rows = [
        Row(each if isinstance(each, Mapping) else {}, inputs.file, at)
        for at, each in enumerate(read_rows(inputs.file), 1)
    ]
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
        left_out["no reply"] += not replies
        parts: dict[str, Part] = {}
        for model, reply in replies.items():
            metric = _id(name, "accuracy", model)
            parts[metric] = Part(_score(slots, reply), 1)
            if isinstance(published := scores.get(model), int | float):
                theirs[metric].append(float(published))
                if abs(published - parts[metric].total) < 1e-9:
                    same += 1
                else:
                    different.append(f"row {row.number}: {reply!r:.40} has {published:g} in the file")
        if parts:
            samples.append(SampleParts(str(row.number), parts))
    if not samples and not theirs:
        raise BenchmarkError(
            f"{inputs.file.name} has no reply or score at {places.reply}", hint="check the format of the file"
        )
    extra: dict[str, Mapping[str, int | None]] = {}
    if same or different:
        extra["scores of replies beside those in the file"] = {"same": same, "different": len(different)}
    if different:
        extra[f"different: {'; '.join(different[:5])}"] = {"in all": len(different)}
    if reasons := +left_out:
        extra["rows that are not scored"] = dict(reasons)
    published = {
        f"{metric}_published": Figure(100 * sum(values) / len(values), len(values)) for metric, values in theirs.items()
    }
    metrics = summed(samples, dict.fromkeys(metric for sample in samples for metric in sample.parts))
    counts = {"rows": len(rows), "replies": sum(len(sample.parts) for sample in samples)}
    return ScoredFile(
        name,
        "replies to questions",
        len(rows),
        Scores("", published, {}) if published else None,
        Scores("", metrics, counts, {}, tuple(samples)),
        None,
        extra=extra,
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
    refused: Mapping[str, tuple[str, str]] = dict.fromkeys(("data", "judgements", "embedder"), _NOT_HERE)
    compare = partial(compare_replies, name)
    return PredictionFormat(title, name, compare, published_suffix="_published", corrected_suffix="", refused=refused)


OWN_FILE, AGROBENCH, AGMMU, MIRAGE_MMST = map(_format, (OWN, "agrobench", "agmmu", "mirage-mmst"))
