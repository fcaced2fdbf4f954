"""How fast prediction files are scored, as published and corrected, and how far apart the two are.

    python performance/reference_scoring.py [--samples 10000] [--seed 0] [--embedder NAME] [--embedder-path DIR]
        [--json]
    python performance/reference_scoring.py --table [--samples 300]
    python performance/reference_scoring.py --write DIR [--samples 300]

Predictions are made up (``tests/support/made_predictions.py``): mostly near the gold, some wrong, failed, left out or
malformed as published files have them. First whole files are scored, as ``agrotools score --format`` does it: reading,
both scorers, counting of errors, intervals. Then as many trajectories one by one, each with a value somewhere in it
replaced by another one of JSON: either scorer gives figures or one typed error. The share of words that two texts have
in common stands in for the cosine of their embeddings; with ``--embedder`` (all-MiniLM-L6-v2 without a path) GTA's and
ThinkGeo's files are scored by that model as well, the second time with all texts embedded.

``--table``: both scorers' figures beside each other; ``--write``: the files, to be scored by ``agrotools score``.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from agrotools.core import BenchmarkError
from agrotools.report.predictions import metric_ids
from agrotools.scoring.embedders import Embedder, open_embedder
from agrotools.scoring.predictions import ScoredFile, compare_file, finite
from agrotools_benchmarks._dialogs import corrected_scorer as corrected_dialogues
from agrotools_benchmarks._dialogs import published_scorer as published_dialogues
from agrotools_benchmarks._dialogs.published_scorer import Dialogue
from agrotools_benchmarks._dialogs.record_dialogues import errors_of_dialogues
from agrotools_benchmarks.agent_x import published_scorer
from agrotools_benchmarks.agent_x import score as corrected_scorer
from agrotools_benchmarks.agent_x.predictions import errors_of_agent_x
from agrotools_benchmarks.gta.score import RULES as GTA
from agrotools_benchmarks.thinkgeo.score import RULES as THINKGEO
from support.gta_files import overlap  # pyright: ignore[reportMissingImports]
from support.made_predictions import made_files  # pyright: ignore[reportMissingImports]
from support.spoilt import spoilt  # pyright: ignore[reportMissingImports]

STAND_IN = Embedder("word overlap", overlap)
_ANYTHING: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    {"": None},
)


def scored(name: str, files: dict[str, Path], embedder: Embedder) -> ScoredFile:
    """The file called ``name`` by :func:`made_files`, as the command line scores it."""
    format_: str = next(known for known in ("gta", "thinkgeo", "agentx") if name.startswith(known))
    asked = files.get("judgements")
    return compare_file(
        format_, files["predictions"], data=files["data"], judgements=asked, embedder=embedder
    )


def timed(name: str, files: dict[str, Path], embedder: Embedder) -> dict[str, float]:
    """Seconds of scoring, with all intervals."""
    started, started_cpu = time.perf_counter(), time.process_time()
    compared = scored(name, files, embedder)
    for metric in compared.corrected.metrics:
        compared.corrected.estimate(metric)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - started_cpu,
    }


def one_by_one(name: str, files: dict[str, Path], seed: int) -> dict[str, int | float]:
    """Every trajectory of a file, spoilt and scored alone: how many had figures of each scorer, and the seconds."""
    rng = random.Random(seed)
    predictions = json.loads(files["predictions"].read_text("utf-8"))
    data = json.loads(files["data"].read_text("utf-8"))
    made = list(
        _of_agent_x(predictions, data, rng)
        if name.startswith("agentx")
        else _of_gta(predictions, data, rng)
    )
    counts = {"trajectories": len(made), "published": 0, "corrected": 0}
    started, started_cpu = time.perf_counter(), time.process_time()
    for item in made:
        for which, score in _scorers(name, item):
            try:
                score()
            except BenchmarkError:
                continue
            counts[which] += 1
    return {
        **counts,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - started_cpu,
    }


def _of_gta(predictions: Any, data: Any, rng: random.Random) -> Iterator[Any]:
    for key, entry in predictions.items():
        yield Dialogue(
            key,
            entry["gold"],
            spoilt(entry["prediction"], rng, rng.choice(_ANYTHING)),
            data[key]["gt_answer"],
        )


def _of_agent_x(predictions: Any, data: Any, rng: random.Random) -> Iterator[Any]:
    for item in predictions:
        ((key, entry),) = item.items()
        yield {key: spoilt(entry, rng, rng.choice(_ANYTHING))}, {key: data[key][0]}


def _scorers(name: str, item: Any) -> Iterator[tuple[str, Any]]:
    if name.startswith("agentx"):
        prediction, sample = item
        yield "published", lambda: published_scorer.tool_call_statistics([prediction])
        yield (
            "corrected",
            lambda: (
                corrected_scorer.score(None, [prediction], sample),
                errors_of_agent_x([prediction], sample),
            ),
        )
        return
    rules = GTA if name.startswith("gta") else THINKGEO
    steps = name.endswith("step-by-step")
    theirs = published_dialogues.score_steps if steps else published_dialogues.score_end
    ours = corrected_dialogues.score_steps if steps else corrected_dialogues.score_end
    yield "published", lambda: theirs([item], rules, overlap)
    yield "corrected", lambda: (ours([item], rules, overlap), errors_of_dialogues([item]))


def table(found: dict[str, dict[str, Path]]) -> Iterator[str]:
    """Rows in Markdown: published beside corrected figures of the same files."""
    yield "| file | metric | published | corrected |"
    yield "|---|---|---|---|"
    for name, files in found.items():
        compared = scored(name, files, STAND_IN)
        for metric in metric_ids(compared):
            theirs = compared.published.metrics.get(metric) if compared.published else None
            ours = compared.corrected.metrics.get(f"{metric}_corrected")
            shown = (
                "" if figure is None or (value := finite(figure.value)) is None else f"{value:.1f}"
                for figure in (theirs, ours)
            )
            yield f"| {name} | `{metric.split('.')[1]}` | {' | '.join(shown)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--embedder", help="also by this model")
    parser.add_argument("--embedder-path", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    count = given.samples or (300 if given.table or given.write else 10_000)
    with tempfile.TemporaryDirectory() as folder:
        found = made_files(given.write or Path(folder), count, given.seed)
        if given.write:
            print("\n".join(str(path) for files in found.values() for path in files.values()))
        elif given.table:
            print("\n".join(table(found)))
        else:
            measured(found, count, given)


def measured(found: dict[str, dict[str, Path]], count: int, given: argparse.Namespace) -> None:
    """Print the time that each file takes."""
    rows: list[dict[str, Any]] = []
    timed(*next(iter(found.items())), STAND_IN)  # so that nothing is imported later
    for name, files in found.items():
        rows.append(
            {
                "file": name,
                "how": "whole file",
                "trajectories": count,
                **timed(name, files, STAND_IN),
            }
        )
        rows.append(
            {"file": name, "how": "spoilt, one by one", **one_by_one(name, files, given.seed)}
        )
    if given.embedder or given.embedder_path:
        for name, files in list(found.items())[:-1]:
            embedder = open_embedder(given.embedder, given.embedder_path)
            row = {
                "file": name,
                "how": embedder.name,
                "trajectories": count,
                **timed(name, files, embedder),
            }
            rows.append(row)
            rows.append(row | {"how": "the same again", **timed(name, files, embedder)})
    if given.json:
        print(json.dumps(rows))
        return
    for row in rows:
        said = f"{row['trajectories']} trajectories in {row['seconds']:.2f} s ({row['cpu_seconds']:.2f} s of CPU)"
        said += f", {row['trajectories'] / row['seconds']:,.0f} per second"
        if "published" in row:
            said += f"; {row['published']} with published, {row['corrected']} with corrected figures, others an error"
        print(f"{row['file']:24} {row['how']:20} {said}")


if __name__ == "__main__":
    main()
