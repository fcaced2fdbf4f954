"""Facts of each run beside its scores, and differences that make runs incomparable."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agrotools.report.cells import percent
from agrotools.report.layout import fields_text, shortened
from agrotools.runner.costs import read_spend
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.runner.records import RECORDS_FILE
from agrotools.scoring import ModeSummary, Summary

_HASH_DIGITS = 12
_COMPARED = {
    "benchmark_hash": "benchmark",
    "toolset_hash": "toolset",
    "tool_data": "data files of the tools",
    "backends": "back-ends of the tools",
}
"""Manifest fields that must be equal for two runs to be comparable, in words."""


@dataclass(frozen=True)
class RunFacts:
    """One run: who answered, what happened in each mode, and with what it was made."""

    name: str
    folder: str
    model: str
    privileged: bool
    benchmark: str
    synthetic: bool
    finished: str
    modes: list[tuple[str, str]]
    settings: list[tuple[str, str]]


def run_facts(name: str, folder: Path, manifest: Manifest, summary: Summary) -> RunFacts:
    """The facts of the run in ``folder``."""
    spend = read_spend(folder / "spend.jsonl")
    settings = {
        "cost": f"{spend.usd:.4f} USD for {spend.replies} replies" if spend.replies else "",
        "protocol": "" if is_baseline(manifest.model) else manifest.protocol,
        "images": "shown" if manifest.images else "not shown",
        "epochs": str(manifest.epochs),
        "step limit": str(manifest.max_steps),
        "seed": str(manifest.seed),
        "sampling": fields_text(manifest.settings) or "endpoint defaults",
        "endpoint": manifest.base_url or "none",
        "toolset": ", ".join(manifest.toolset),
        "toolset hash": manifest.toolset_hash[:_HASH_DIGITS],
        "back-ends": fields_text(dict(manifest.backends)) or "offline",
        "prompt hash": manifest.prompt_hash[:_HASH_DIGITS] or "no prompt",
        "benchmark hash": manifest.benchmark_hash[:_HASH_DIGITS],
        "agrotools": manifest.agrotools,
        "started with": f"scoring version {manifest.scoring}",
        "python": manifest.python,
        "libraries": fields_text(dict(manifest.libraries)),
    }
    return RunFacts(
        name=name,
        folder=str(folder),
        model=manifest.model,
        privileged=manifest.privileged,
        benchmark=f"{manifest.benchmark} {manifest.benchmark_version}",
        synthetic=manifest.synthetic,
        finished=_written(folder / RECORDS_FILE),
        modes=[(mode, _mode_text(part)) for mode, part in summary.modes.items()],
        settings=[(word, value) for word, value in settings.items() if value],
    )


def _mode_text(part: ModeSummary) -> str:
    invalid = f", {part.invalid.n} invalid ({percent(part.invalid.share)} %)" if part.invalid.n else ""
    n_drawn = part.schematic.n_samples if part.schematic is not None else 0
    drawn = f", {n_drawn} of them schematic drawings, excluded" if n_drawn else ""
    hidden = "" if part.headline or n_drawn == part.n_samples else ": too many to report scores"
    ended = ", ".join(f"{name} {n}" for name, n in part.counts.terminations.items())
    epochs = f" x {part.epochs} epochs" if part.epochs > 1 else ""
    return f"{part.n_samples} samples{epochs}{drawn}{invalid}{hidden}{f' ({ended})' if ended else ''}"


def _written(path: Path) -> str:
    try:
        return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC"
    except OSError:
        return "unknown"


def incomparable(manifests: Sequence[Manifest]) -> list[str]:
    """Differences that make the scores of runs incomparable; empty where there are none.

    Prompts are compared among the runs that have one (baselines have none).
    """
    found = [
        f"different {words}: {_differing([getattr(manifest, field) for manifest in manifests])}"
        for field, words in _COMPARED.items()
        if any(getattr(manifest, field) != getattr(manifests[0], field) for manifest in manifests[1:])
    ]
    prompts = [manifest.prompt_hash for manifest in manifests if manifest.prompt_hash]
    if len(set(prompts)) > 1:
        found.append(f"different prompts: {_differing(prompts)}")
    return found


def _differing(values: Sequence[object]) -> str:
    shown = [value[:_HASH_DIGITS] if isinstance(value, str) else fields_text(dict(value)) for value in values]  # type: ignore[call-overload]
    return shortened(" / ".join(dict.fromkeys(text or "none" for text in shown)))
