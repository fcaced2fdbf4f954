"""Commands that ``agrotools eval`` suggests at its end: the user's own command with the options that change."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.cli.output import ARGUMENTS, count_text

if TYPE_CHECKING:
    from agrotools.cli.results import Evaluated
    from agrotools.scoring import Summary

MODEL_EXAMPLE = ("--model", "openai:gpt-4.1-mini", "--budget", "2")


def next_commands(summary: "Summary", runs: Sequence[Path], evaluated: "Evaluated") -> list[str]:
    """Return what to do after this evaluation, except looking at a sample."""
    config, benchmark = evaluated.config, evaluated.benchmark
    if evaluated.stops and config.budget is not None:
        budget = _larger_budget(config.budget, summary)
        return [f"{_changed('--budget', add=['--budget', f'{budget:g}'])}  (resumes; all finished samples are kept)"]
    if summary.model.startswith("baseline:"):
        add = ["--quick"] if config.quick and "--quick" not in ARGUMENTS else []
        add = [*([config.benchmark] if not ARGUMENTS else []), *add, *MODEL_EXAMPLE]
        return [_changed("--model", "-m", "--out", add=add)]
    if config.quick:
        has_mode = any(each.partition("=")[0] == "--mode" for each in ARGUMENTS)
        add = [] if has_mode else ["--mode", "end-to-end"]
        whole = f"the whole benchmark, {count_text(len(benchmark.samples), 'question')}; --dry-run shows its cost"
        file = ", without quick in the configuration file" if "--quick" not in ARGUMENTS else ""
        return [f"{_changed('--out', flags=['--quick'], add=add)}  ({whole}{file})"]
    return [shlex.join(["agrotools", "score", *map(str, runs), "--details"])]


def _larger_budget(budget: float, summary: "Summary") -> float:
    """Return a budget for all planned records at the cost of the finished ones, with two digits; at least twice."""
    finished = sum(part.n_records for part in summary.modes.values())
    share = finished / (finished + sum(summary.missing.values()))
    wanted = max(2 * budget, 1.2 * budget / share if share else 0.0)
    digits = 10 ** (math.floor(math.log10(wanted)) - 1)
    return math.ceil(wanted / digits) * digits


def _changed(*valued: str, flags: Sequence[str] = (), add: Sequence[str] = ()) -> str:
    """Return the user's command without the options ``valued`` (with their values) and ``flags``, and with ``add``."""
    kept: list[str] = []
    is_value = False
    for each in ARGUMENTS:
        name = each.partition("=")[0]
        short = each[:2] if each[:2] in valued and not each.startswith("--") else ""
        if is_value:
            is_value = False
        elif name in valued or short:
            is_value = each in valued
        elif each not in flags:
            kept.append(each)
    return shlex.join(["agrotools", "eval", *kept, *add])
