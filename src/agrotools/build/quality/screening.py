"""Screening of a benchmark: samples that blind baselines solve, and tolerances that a naive guess meets.

Samples are flagged, never dropped: half of all yes/no questions are guessed right by chance. The relevant question is
whether a kind of question is guessed more often than chance explains.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from agrotools.agents import run_no_tool
from agrotools.agents.baselines.prior import PriorTable
from agrotools.agents.baselines.simple import NUMBER_RANGE
from agrotools.benchmarks import Benchmark, load_folder
from agrotools.build.quality.checks import Finding, check_quality, write_findings
from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, Record, Sample, Slot, ToleranceSlot
from agrotools.core.base import Progress, no_progress
from agrotools.models import Endpoint
from agrotools.runner.policies import PolicySource, policy_source
from agrotools.scoring import scores_sample
from agrotools.scoring.metrics import FAS_TEXT
from agrotools.scoring.slots import outcome_scores

BLIND = ("echo", "prior", "random")
"""Baselines that use no pictures and no tools."""
_EASY = 0.2
"""Chance of solving a sample above which a baseline's success is not suspicious."""
_SIGNIFICANT = 0.05


def screen_folder(folder: Path, progress: Progress = no_progress) -> list[Finding]:
    """Run every check on the benchmark in ``folder`` and write the findings to its ``quality.jsonl``.

    BenchmarkError if it is none, or not writable.
    """
    benchmark = load_folder(folder)
    samples = list(benchmark.samples)
    findings = check_quality(samples, benchmark.root, progress)
    findings += [*solved_blind(benchmark, samples), *guessable_tolerances(samples)]
    order = {sample.id: position for position, sample in enumerate(samples)}
    findings.sort(key=lambda finding: order[finding.id])
    write_findings(benchmark.root, findings)
    return findings


def solved_blind(benchmark: Benchmark, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Check ``solved_blind``: samples in which ``echo``, ``prior`` or ``random`` answers every slot correctly."""
    for name in BLIND:
        source = policy_source(Endpoint(f"baseline:{name}"), samples)
        for sample, is_solved in zip(samples, asyncio.run(_solved(source, benchmark, samples)), strict=True):
            if is_solved:
                chance = math.prod(chance_of(slot) for slot in sample.answer)
                severity = "info" if name != "echo" and chance >= _EASY else "warning"
                message = f"baseline:{name} answers it correctly (blind chance {100 * chance:.0f} %)"
                yield Finding(id=sample.id, check="solved_blind", severity=severity, message=message)


async def _solved(source: PolicySource, benchmark: Benchmark, samples: Sequence[Sample]) -> list[bool]:
    solved: list[bool] = []
    for sample in samples:
        trajectory = await run_no_tool(source.make(sample, "no-tool", 0), benchmark.view(sample, "no-tool"))
        rows = outcome_scores(Record(sample=sample, mode="no-tool", trajectory=trajectory))
        solved.append(any(row.value >= 1.0 for row in rows if row.metric == FAS_TEXT or scores_sample(row.metric)))
    return solved


def chance_of(slot: Slot) -> float:
    """Return the chance of a blind guess: of the choices, or of a number, log-uniform in its unit's range; else 0."""
    if isinstance(slot, BooleanSlot):
        return 0.5
    if isinstance(slot, FileSlot):
        return 1 / max(1, len(slot.choices))
    if isinstance(slot, ChoiceSetSlot):
        return 1 / max(1, 2 ** len(slot.choices) - 1)
    if slot.letters:
        return 1 / (2 ** len(slot.letters) - 1) if slot.takes_several else 1 / len(slot.letters)
    if isinstance(slot, ToleranceSlot):
        low, high = NUMBER_RANGE.get(slot.unit, NUMBER_RANGE[None])
        first = min(max(slot.value - slot.margin, low), high)
        last = min(max(slot.value + slot.margin, low), high)
        return math.log(last / first) / math.log(high / low)
    if isinstance(slot, ExactSlot) and slot.choices:
        return 1 / len(slot.choices)
    return 0.0


def guessable_tolerances(samples: Sequence[Sample]) -> Iterator[Finding]:
    """Check ``guessable_tolerance``: numbers within tolerance of the median of other clusters' answers to the template.

    For each numeric slot of a template, guesses inside the tolerance are counted. The slot is flagged if chance
    (:func:`chance_of`) would give so many hits in fewer than one of twenty benchmarks. Only samples whose own guess is
    inside are reported.
    """
    table = PriorTable(samples)
    guesses: dict[tuple[str, str], list[tuple[Sample, ToleranceSlot, bool]]] = defaultdict(list)
    for sample in samples:
        for slot in sample.answer:
            if isinstance(slot, ToleranceSlot):
                guess = table.guess(sample, slot)
                inside = isinstance(guess, int | float) and abs(guess - slot.value) <= slot.margin
                guesses[sample.template, slot.name].append((sample, slot, inside))
    for (template, name), rows in guesses.items():
        hits = sum(inside for _, _, inside in rows)
        chance = sum(chance_of(slot) for _, slot, _ in rows) / len(rows)
        if hits < 2 or at_least(hits, len(rows), chance) >= _SIGNIFICANT:
            continue
        for sample, slot, inside in rows:
            if inside:
                message = (
                    f"the median of other answers is inside the tolerance of {name!r} ({slot.value:g}"
                    f" +- {slot.margin:.3g}); so it is in {hits} of {len(rows)} samples of {template}, where blind"
                    f" chance gives {100 * chance:.0f} %"
                )
                yield Finding(id=sample.id, check="guessable_tolerance", severity="warning", message=message)


def at_least(hits: int, trials: int, chance: float) -> float:
    """Return the probability of at least ``hits`` successes in ``trials`` of a binomial variable."""
    return sum(math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))
