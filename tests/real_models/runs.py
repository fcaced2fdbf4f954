"""Runs of real models, as data, and the table of their results.

    python tests/real_models/runs.py RUNS MODELS [--only PART] [--limit N]

Runs are ordinary run folders below RUNS, which stay: an interrupted command resumes. ``--only`` chooses runs whose
MODEL/NAME contains PART; ``--limit`` bounds the samples of each. The table is RUNS/results.md and RUNS/results.json.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agrotools.core import Record
from agrotools.runner.records import iter_records
from real_models.models import OTHER, RealModel, find_models
from support.made_agrieval import write_agrieval
from support.made_gta import write_gta

RESULTS = "results.json"
_UNREAD = frozenset({"unknown_tool", "invalid_argument"})
"""Errors of calls that are not valid."""


@dataclass(frozen=True)
class Run:
    """One run of a model."""

    name: str
    limit: int
    options: Sequence[str]


def _embedded(limit: int, protocols: Sequence[str] = ("react", "tool-calling")) -> tuple[Run, ...]:
    """Return runs on ``embedded`` in each protocol, with the tools of the reference calls and with all tools."""
    offered = (("needed", ""), ("all", "-all"))
    return tuple(
        Run(
            f"embedded-{protocol}{suffix}",
            limit,
            (*_END_TO_END, "--protocol", protocol, "--tools", tools),
        )
        for protocol in protocols
        for tools, suffix in offered
    )


_END_TO_END = ("embedded", "--mode", "end-to-end", "--max-steps", "6")
_WHOLE = Run("embedded-whole", 100_000, (*_END_TO_END, "--protocol", "react"))
_STEPS = Run("embedded-steps", 5, ("embedded", "--mode", "step-by-step", "--tools", "needed"))
_AGRIEVAL = Run("agrieval", 60, ("agrieval", "--data-root", "DATA/agrieval"))
_GTA = Run(
    "gta", 8, ("gta", "--data-root", "DATA/gta", "--backend", "recorded", "--mode", "end-to-end")
)
_SHARED = (_STEPS, _AGRIEVAL, _GTA)
RUNS: dict[str, tuple[Run, ...]] = {
    "coder-1.5b": (*_embedded(20), *_SHARED),
    "coder-0.5b": (*_embedded(40), *_SHARED, _WHOLE),
    "smollm2-135m": (*_embedded(20, ("react",)), *_SHARED),
    OTHER: (*_embedded(20), *_SHARED),
}
"""Runs by model. The published benchmarks are their small made-up data, in the shape of the published files."""


def runs_of(model: str) -> tuple[Run, ...]:
    """Return the runs of a model."""
    return RUNS.get(model, RUNS[OTHER])


def write_data(folder: Path) -> None:
    """Write the made-up data of the published benchmarks, unless it is there: runs resume on the same files."""
    if not (folder / "complete").exists():
        write_agrieval(folder / "agrieval", choices=80, questions=20)
        write_gta(folder / "gta")
        (folder / "complete").touch()


def execute(run: Run, file: Path, model: RealModel, out: Path, limit: int | None) -> int:
    """Execute or resume a run, and return the exit code of the command."""
    data = out.parents[1] / "data"
    options = [word.replace("DATA", str(data), 1) for word in run.options]
    words = [
        "eval",
        *options,
        "--model",
        file,
        "--serve",
        "llama",
        "--no-images",
        "--max-output-tokens",
        512,
    ]
    words += [
        "--serve-args",
        f"-c {model.context} -np 1 -t {os.cpu_count() or 1}",
        "--temperature",
        0,
    ]
    words += ["--limit", min(run.limit, limit or run.limit), "--out", out]
    command = [sys.executable, "-m", "agrotools", *map(str, words)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with (out.parent / f"{out.name}.log").open("wb") as log:
        return subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode


def result_of(model: str, run: Run, out: Path, code: int | None) -> dict[str, Any]:
    """Return the row of a run in the table."""
    records = list(iter_records(out)) if (out / "records.jsonl").exists() else []
    row: dict[str, Any] = {"model": model, "run": run.name, "code": code, "n": len(records)}
    if not (out / "scores.json").exists():
        return row
    row["planned"] = sum(json.loads((out / "manifest.json").read_bytes())["planned"].values())
    (part,) = json.loads((out / "scores.json").read_bytes())["summary"]["modes"].values()
    metrics, spent = part["metrics"], part["counts"]["spent"]
    names = {"fas": "fas", "tool_acc": "tool_acc"}
    row |= {
        label: metrics[name]["overall"]["value"] for label, name in names.items() if name in metrics
    }
    calls = [
        step
        for record in records
        for step in (record.trajectory.calls if record.trajectory else ())
    ]
    valid = [step for step in calls if step.observation and not _is_unread(step.observation.error)]
    row |= {
        "calls": len(calls),
        "calls_valid": len(valid),
        "invalid": sum(bool(each.invalid) for each in records),
    }
    row["terminations"] = dict(Counter(map(ending, records)).most_common())
    for label, name in {
        "in": "input_tokens",
        "out": "output_tokens",
        "cached": "cached_input_tokens",
    }.items():
        row[f"tokens_{label}"] = spent[name]["total"] if name in spent else None
    return row | {"seconds": sum(record.seconds for record in records)}


def ending(record: Record) -> str:
    """Return how a record ended."""
    if record.invalid:
        return "invalid"
    return record.trajectory.termination if record.trajectory else "all steps asked"


def _is_unread(error: Any) -> bool:
    return error is not None and error.kind in _UNREAD


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return results as a table in Markdown."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    lines = [
        names,
        ["---"] * len(names),
        *([_cell(row.get(name)) for name in names] for row in rows),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        total = sum(value.values())
        return ", ".join(f"{name} {n / total:.0%}" for name, n in value.items())
    if isinstance(value, float) and value < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value or "")


def chosen(models: Path, only: str = "") -> Iterator[tuple[str, Path, RealModel, Run]]:
    """Yield the runs of the models in a folder."""
    for name, (file, model) in find_models(models).items():
        yield from (
            (name, file, model, run) for run in runs_of(name) if only in f"{name}/{run.name}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    folder = given.runs.resolve()
    write_data(folder / "data")
    file = folder / RESULTS
    rows = {
        (row["model"], row["run"]): row
        for row in (json.loads(file.read_bytes()) if file.exists() else [])
    }
    for name, path, model, run in chosen(given.models, given.only):
        out = folder / name / run.name
        code = execute(run, path, model, out, given.limit)
        rows[name, run.name] = row = result_of(name, run, out, code)
        print(table([row]), flush=True)
        file.write_text(json.dumps([*rows.values()], indent=1) + "\n", encoding="utf-8")
        file.with_suffix(".md").write_text(table([*rows.values()]), encoding="utf-8")
    print(table([*rows.values()]))


if __name__ == "__main__":
    main()
