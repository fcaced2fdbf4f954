"""Result files of AG-VQA sets: rows with question, answer, and replies of models, with their published scores if any.

The map of the set says where replies and scores are. Published scores are those in the file; AgEval publishes
statistics over a file, which are computed here as its tables have them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agrotools.benchmarks.agvqa.field_map import FieldMap, Row, RowFault, read_map, read_question
from agrotools.benchmarks.agvqa.load import MAPS, OWN_MAP
from agrotools.benchmarks.agvqa.plugin import OWN, LetteredSlot
from agrotools.benchmarks.rows import read_rows
from agrotools.core import BenchmarkError, Slot
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import Figure, Part, SampleParts, ScoredFile, Scores, summed
from agrotools.scoring.slots import score_slot


def compare_replies(name: str, inputs: PredictionInput) -> ScoredFile:
    """Score the replies in a file with the readers of this package, beside the scores that the file has.

    Raises:
        BenchmarkError: the file has no replies where the map says.
    """
    fields = read_map(inputs.file.parent / OWN_MAP if name == OWN else MAPS / f"{name}.toml")
    if (places := fields.predictions) is None:
        raise BenchmarkError(f"the map {OWN_MAP} beside {inputs.file.name} has no table [predictions]")
    mine: dict[str, dict[str, Part]] = defaultdict(dict)
    theirs: dict[str, list[float]] = defaultdict(list)
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    agreement, left_out, different = Counter[str](), Counter[str](), list[str]()
    rows = 0
    for rows, data in enumerate(read_rows(inputs.file), 1):
        row = Row(data if isinstance(data, Mapping) else {}, inputs.file, rows)
        replies, scores = _all(row, places.reply), _all(row, places.published)
        for metric, judged in places.judged.items():
            for key, score in _all(row, judged.path).items():
                if isinstance(score, int | float):
                    theirs[_id(name, metric, key)].append(score / judged.out_of)
        if not replies:
            left_out["no reply"] += 1
            continue
        try:
            slots = read_question(row, fields, {}).slots
        except RowFault as fault:
            left_out[fault.reason] += 1
            continue
        for key, reply in replies.items():
            metric = _id(name, "accuracy", key)
            score = _score(slots, reply, fields)
            mine[metric][f"{rows}"] = Part(score, 1)
            pairs[key].append((str(row.get(fields.answer)), str(reply)))
            if isinstance(published := scores.get(key), int | float):
                theirs[metric].append(float(published))
                same = abs(published - score) < 1e-9
                agreement["same" if same else "different"] += 1
                different += [] if same else [f"row {rows}: {reply!r:.40} is {published:g} in the file"]
    if places.statistic:
        for key, replies_of in pairs.items():
            metric, value, n = _statistic(replies_of)
            theirs[_id(name, metric, key)] = [value] * n
    if not mine and not theirs:
        raise BenchmarkError(f"{inputs.file.name} has no reply or score at {places.reply}", hint="is this its format?")
    return _scored_file(name, rows, mine, theirs, agreement, left_out, different)


def _scored_file(
    name: str,
    rows: int,
    mine: Mapping[str, Mapping[str, Part]],
    theirs: Mapping[str, Sequence[float]],
    agreement: Counter[str],
    left_out: Counter[str],
    different: Sequence[str],
) -> ScoredFile:
    keys = dict.fromkeys(key for parts in mine.values() for key in parts)
    samples = tuple(
        SampleParts(key, {metric: parts[key] for metric, parts in mine.items() if key in parts}) for key in keys
    )
    published = {
        f"{metric}_published": Figure(100 * sum(values) / len(values), len(values)) for metric, values in theirs.items()
    }
    extra: dict[str, Mapping[str, int | None]] = {}
    if agreement:
        extra["scores of replies beside those in the file"] = {"same": 0, "different": 0, **agreement}
    if different:
        extra[f"different: {'; '.join(different[:5])}"] = {"in all": len(different)}
    if left_out:
        extra["rows that are not scored"] = dict(left_out)
    ours = Scores("", summed(samples, mine), {"rows": rows, "replies": sum(map(len, mine.values()))}, {}, samples)
    return ScoredFile(
        name, "replies to questions", rows, Scores("", published, {}) if published else None, ours, None, extra=extra
    )


def _all(row: Row, path: str) -> dict[str, Any]:
    """Return the values at the first of the alternative paths that has any, by model."""
    return next((found for each in path.split("|") if (found := row.all(each))), {})


def _id(name: str, metric: str, model: str) -> str:
    return f"{name}.{metric} ({model})" if model else f"{name}.{metric}"


def _score(slots: Sequence[Slot], reply: Any, fields: FieldMap) -> float:
    text = "" if reply is None else str(reply)
    first = slots[0]
    if isinstance(first, LetteredSlot) and isinstance(reply, int):
        place = reply - fields.index_base
        text = first.letters[place] if 0 <= place < len(first.letters) else ""
    return sum(score_slot(slot, slots, text).value for slot in slots) / len(slots)


def _statistic(replies: Sequence[tuple[str, str]]) -> tuple[str, float, int]:
    """Return AgEval's statistic over answers and replies as a share, and how many count: F1 weighted by class, or the
    mean absolute error divided by the range of the answers, without replies that are no number."""
    try:
        right = [float(answer) for answer, _ in replies]
    except ValueError:
        total = 0.0
        for label, count in Counter(answer for answer, _ in replies).items():
            hits = sum(answer == reply == label for answer, reply in replies)
            total += count * 2 * hits / (count + sum(reply == label for _, reply in replies))
        return "f1", total / len(replies), len(replies)
    errors: list[float] = []
    for answer, reply in replies:
        try:
            errors.append(abs(float(answer) - float(reply)))
        except ValueError:
            continue
    spread = max(right) - min(right)
    return "nmae", sum(errors) / len(errors) / spread if errors and spread else 0.0, len(errors)


_NOT_HERE = ("the result files of this set hold their answers", "give the file alone")


def _format(name: str) -> PredictionFormat:
    fields = Path(MAPS / f"{name}.toml")
    title = read_map(fields).title if name != OWN else "AG-VQA"
    return PredictionFormat(
        title,
        name,
        partial(compare_replies, name),
        published_suffix="_published",
        corrected_suffix="",
        refused=dict.fromkeys(("data", "judgements", "embedder"), _NOT_HERE),
    )


OWN_FILE, AGROBENCH, AGMMU, MIRAGE_MMST, AGEVAL = map(_format, (OWN, "agrobench", "agmmu", "mirage-mmst", "ageval"))
