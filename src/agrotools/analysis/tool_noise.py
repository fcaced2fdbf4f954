"""Gain by a better tool: the score of the reference calls as a function of each tool's error.

The error of a call is the difference between its recorded result and its truth. Errors for a sample are those of
samples in other clusters (five parts of clusters by hash; a sample takes its errors from the other four), so that no
sample predicts itself. A draw picks, for each tool of the sample, a donor: one of the samples with calls of this tool
on the same kind of thing (same source and choices, else same choices, else any) whose true values are closest. Its
errors are applied to the truths of the sample, call by call, so that errors of calls on similar pictures stay
correlated: ratios of positive numbers, differences of others, wrong labels, failures. An error is scaled by a power (of
ratios), a factor (of differences) or a probability (of labels and failures). A call without a file (calculation, chart,
look-up) is computed from its arguments; regions that a tool finds count as the input that the next tool had. Results of
unanswerable questions are those recorded, because such a question is in a benchmark only if its tools show that it is.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from random import Random
from typing import cast

from pydantic import JsonValue

from agrotools.agents.baselines.simple import derived_values, live_arguments
from agrotools.core import AbstainSlot, Arguments, PlotSlot, PlotSpec, ReferenceStep, Sample, Slot, ToolError
from agrotools.core.base import Progress, no_progress
from agrotools.core.record import REF_PATTERN, literal_value
from agrotools.knowledge.same_thing import same_value
from agrotools.scoring.attribution import NoiseCurve, ToolNoise
from agrotools.scoring.metrics import counts_in_fas
from agrotools.scoring.plots import score_plot
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.expressions import shows_no_answer
from agrotools.tools import get_tool

SCALES = (0.0, 0.5, 1.0, 2.0)
"""Errors of a tool, relative to its own: none, half, as they are, double."""
FOLDS, DRAWS = 5, 20
_DONORS, _FEWEST = 15, 8
Values = dict[str, JsonValue]


@dataclass(frozen=True)
class Donor:
    """Calls of one tool in one sample: truth and result of each, and the size of what they measure."""

    fold: int
    source: str
    choices: str
    size: float
    calls: tuple[tuple[Values, Values | None], ...]


def tool_noise(
    samples: Sequence[Sample],
    others: Sequence[Sample] | None = None,
    *,
    scales: Sequence[float] = SCALES,
    draws: int = DRAWS,
    progress: Progress = no_progress,
) -> ToolNoise:
    """Return the predicted score of the reference calls on ``samples``, and its dependence on each tool's error.

    Args:
        samples: end-to-end samples; those whose answer does not follow from reference calls are left out.
        others: samples whose errors are used; by default ``samples``. Those of the same part of clusters never count.
        scales: errors of a tool relative to its own.
        draws: number of draws of errors for each sample.
    """
    folds = folds_of([*(others or ()), *samples])
    donors = _donors(others or samples, folds)
    ids = {each.id for each in samples}
    paired = [each for each in samples if each.answerable or each.twin in ids]
    usable = [each for each in paired if each.derivable and _counted(each)]
    tools = sorted({step.tool for each in usable for step in _steps(each) if not _is_computed(step)})
    totals = {(tool, scale): 0.0 for tool in tools for scale in scales}
    predicted = recorded = 0.0
    for done, sample in enumerate(usable):
        game = _NoisySample(sample, donors, folds[cluster_of(sample)])
        recorded += game.recorded_score()
        base = game.mean_score({}, draws)
        predicted += base
        for tool, scale in totals:
            totals[tool, scale] += (
                base if scale == 1 or tool not in game.tools else game.mean_score({tool: scale}, draws)
            )
        progress("samples", done + 1, len(usable))
    points = 100 / max(len(usable), 1)
    curves = {
        tool: NoiseCurve(
            n_calls=sum(step.tool == tool for each in usable for step in _steps(each)),
            scores={str(scale): points * totals[tool, scale] for scale in scales},
            gain=points * (totals[tool, 0.0] - predicted) if 0.0 in scales else 0.0,
        )
        for tool in tools
    }
    return ToolNoise(n=len(usable), draws=draws, predicted=points * predicted, recorded=points * recorded, tools=curves)


def folds_of(samples: Sequence[Sample]) -> dict[str, int]:
    """Return the part of each cluster: by hash, in turn within each source, so that every part has all sources."""
    clusters = {cluster_of(each): each.source for each in samples}
    ordered = sorted(clusters, key=lambda name: (clusters[name], sha256(name.encode()).hexdigest()))
    return {name: at % FOLDS for at, name in enumerate(ordered)}


def cluster_of(sample: Sample) -> str:
    """Return the name of a sample's cluster."""
    return sample.cluster or sample.id


def _steps(sample: Sample) -> Sequence[ReferenceStep]:
    return sample.reference.steps if sample.reference else ()


def _counted(sample: Sample) -> list[Slot]:
    return [slot for slot in sample.answer if counts_in_fas(slot) and (not slot.made_by_tools or slot.type == "plot")]


def _is_computed(step: ReferenceStep) -> bool:
    """True if a call reads no file, so that its result follows from its arguments."""
    agreement = _agreement(step.tool)
    return not any(agreement.get(name) == "file" for name in step.arguments)


@cache
def _agreement(tool: str) -> Mapping[str, str]:
    return dict(get_tool(tool).spec.agreement)


def _donors(samples: Sequence[Sample], folds: Mapping[str, int]) -> dict[str, list[Donor]]:
    donors: dict[str, list[Donor]] = {}
    for sample in samples:
        calls: dict[str, list[int]] = {}
        for at, step in enumerate(_steps(sample)):
            if step.truth is not None and step.observation is not None and not _is_computed(step):
                calls.setdefault(step.tool, []).append(at)
        for tool, places in calls.items():
            steps = [_steps(sample)[at] for at in places]
            pairs = tuple((step.truth or {}, step.observation.result if step.observation else None) for step in steps)
            size = _size(sample, places[0])
            donors.setdefault(tool, []).append(
                Donor(folds[cluster_of(sample)], sample.source, _choices(steps[0]), size, pairs)
            )
    return donors


def _choices(step: ReferenceStep) -> str:
    """Return the arguments of a call that choose what it looks for."""
    agreement = _agreement(step.tool)
    chosen = {name: literal_value(value) for name, value in step.arguments.items() if agreement.get(name) == "choice"}
    return repr(sorted(chosen.items()))


def _size(sample: Sample, at: int) -> float:
    """Return the first true number of a call that the sample uses; 0 if it uses none."""
    texts = [slot.from_ or "" for slot in sample.answer] + [repr(step.arguments) for step in _steps(sample)]
    truth = _steps(sample)[at].truth or {}
    for match in (match for text in texts for match in REF_PATTERN.finditer(text) if int(match["step"]) == at):
        value = truth.get(match["path"].removeprefix(".").partition(".")[0].partition("[")[0])
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return 0.0


class _NoisySample:
    """Reference calls of one sample whose results are the truth with errors of donors."""

    def __init__(self, sample: Sample, donors: Mapping[str, Sequence[Donor]], fold: int) -> None:
        self.sample, self.steps = sample, _steps(sample)
        self.slots = _counted(sample)
        self._donors: dict[str, list[Donor]] = {}
        self._scores: dict[str, float] = {}
        for at, step in enumerate(self.steps):
            if (
                sample.answerable
                and step.tool not in self._donors
                and step.truth is not None
                and not _is_computed(step)
            ):
                allowed = [each for each in donors.get(step.tool, ()) if each.fold != fold]
                self._donors[step.tool] = _closest(allowed, sample.source, _choices(step), _size(sample, at))
        self.tools = self._donors.keys()

    def recorded_score(self) -> float:
        """Return the score of an answer that follows the recorded results."""
        return self._score([step.observation.result if step.observation else None for step in self.steps])

    def mean_score(self, scales: Mapping[str, float], draws: int) -> float:
        """Return the mean score over draws of errors, those of some tools scaled; the draws do not depend on it."""
        return sum(self._score(self._results(scales, draw)) for draw in range(draws)) / draws

    def _results(self, scales: Mapping[str, float], draw: int) -> list[Values | None]:
        rng = {tool: Random(f"{self.sample.id}/{draw}/{tool}") for tool in self._donors}
        donor = {tool: rng[tool].choice(each) if each else None for tool, each in self._donors.items()}
        n_calls = dict.fromkeys(self._donors, 0)
        results: list[Values | None] = []
        for step in self.steps:
            truth, giver = step.truth, donor.get(step.tool)
            if truth is None or not self.sample.answerable:
                results.append(step.observation.result if step.observation else None)
            elif _is_computed(step):
                results.append(_computed(step, truth, results))
            elif giver is None:
                results.append(truth)
            elif live_arguments(step, results) is None and any(each is None for each in results):
                results.append(None)
            else:
                true, seen = giver.calls[n_calls[step.tool] % len(giver.calls)]
                n_calls[step.tool] += 1
                scale, draws = scales.get(step.tool, 1.0), rng[step.tool]
                if seen is not None:
                    results.append(cast("Values", _value_with_error(truth, true, seen, scale, draws)))
                else:
                    results.append(None if draws.random() < scale else truth)
        return results

    def _score(self, results: Sequence[Values | None]) -> float:
        values = [slot.weight * self._slot_score(slot, results) for slot in self.slots]
        return sum(values) / sum(slot.weight for slot in self.slots)

    def _slot_score(self, slot: Slot, results: Sequence[Values | None]) -> float:
        if isinstance(slot, PlotSlot):
            last = next((at for at, step in reversed([*enumerate(self.steps)]) if step.tool == "plot"), None)
            drawn = results[last] if last is not None else None
            spec = PlotSpec.model_validate(drawn["spec"]) if drawn else None
            tolerances = slot.rel_tol, slot.abs_tol
            return self._known(
                f"{slot.name} {spec!r}", lambda: score_plot(PlotSpec.model_validate(slot.value), spec, *tolerances)[0]
            )
        if isinstance(slot, AbstainSlot):
            text = UNKNOWN if shows_no_answer(slot, results) else "1"
        else:
            text = format_answer([slot], derived_values([slot], results))
        return self._known(f"{slot.name} {text}", lambda: score_slot(slot, [slot], text).value if text else 0.0)

    def _known(self, key: str, score: Callable[[], float]) -> float:
        if key not in self._scores:
            self._scores[key] = score()
        return self._scores[key]


def _closest(donors: Sequence[Donor], source: str, choices: str, size: float) -> list[Donor]:
    """Return the donors of the same kind, if there are enough, that measure things of the closest size."""
    alike = [each for each in donors if each.choices == choices] or [*donors]
    same = [each for each in alike if each.source == source]
    pool = same if len(same) >= _FEWEST else alike
    return sorted(pool, key=lambda each: abs(math.log1p(abs(each.size)) - math.log1p(abs(size))))[:_DONORS]


def _computed(step: ReferenceStep, truth: Values, results: Sequence[Values | None]) -> Values | None:
    """Return the result of a call without a file, from its arguments over ``results``."""
    arguments = live_arguments(step, results)
    if arguments is None:
        return None
    if step.tool == "plot":
        spec = cast("Values", truth.get("spec") or {})
        return {"spec": {**spec, "series": _drawn(arguments, spec)}}
    tool = get_tool(step.tool)
    try:
        return cast("Values", tool(**tool.validate(arguments)).model_dump(mode="json"))
    except ToolError:
        return None


def _drawn(arguments: Arguments, spec: Values) -> JsonValue:
    series = cast("list[Values]", spec.get("series") or [])
    given = cast("list[Values]", arguments.get("series") or [])
    if len(series) != len(given):
        return cast(JsonValue, series)
    return [{**old, **{name: new[name] for name in ("x", "y") if new.get(name) is not None}}
            for old, new in zip(series, given, strict=True)]  # fmt: skip


def _value_with_error(value: JsonValue, true: JsonValue, seen: JsonValue, scale: float, rng: Random) -> JsonValue:
    if isinstance(value, dict) and isinstance(true, dict) and isinstance(seen, dict):
        return {
            name: _value_with_error(item, true[name], seen[name], scale, rng) if name in true and name in seen else item
            for name, item in value.items()
        }
    if isinstance(value, list) and isinstance(true, list) and isinstance(seen, list) and true:
        kept = value[: max(1, round(len(value) * len(seen) / len(true)))] if scale and len(seen) < len(true) else value
        pairs = [*zip(true, seen, strict=False)]
        return [
            _value_with_error(item, *pairs[at % len(pairs)], scale, rng) if pairs else item
            for at, item in enumerate(kept)
        ]
    if isinstance(value, bool | str) or isinstance(true, bool | str):
        if same_value(seen, true) or rng.random() >= scale:
            return value
        return not value if isinstance(value, bool) else seen if seen != value else true
    return _number_with_error(value, true, seen, scale, rng)


def _number_with_error(value: JsonValue, true: JsonValue, seen: JsonValue, scale: float, rng: Random) -> JsonValue:
    if value is None or seen is None or not isinstance(true, int | float) or not isinstance(seen, int | float):
        return value if seen is not None or rng.random() >= scale else None
    assert isinstance(value, int | float)
    positive = value > 0 and true > 0 and seen > 0
    noisy = value * (seen / true) ** scale if positive else value + scale * (seen - true)
    return round(noisy) if isinstance(value, int) else noisy
