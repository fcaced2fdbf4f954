"""Runs of a page: their data, facts and differences, floor and ceiling, and what happened in a record.

Run folders come in; opened runs go out (:class:`PageRun`), whose records are read one at a time.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson

from agrotools.calling.contract import SERVED
from agrotools.core import AgrotoolsError, Mode, Record, Score
from agrotools.core.files import sha256_of_json
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import benchmark_title, count_text, number_text
from agrotools.formats.benchmark import MOST_MAKERS, Benchmark
from agrotools.formats.manifest import Manifest
from agrotools.loading import BENCHMARKS, Loading, load_benchmark
from agrotools.loading.benchmarks import load_as
from agrotools.models.metered import read_spend
from agrotools.report.html.pictures import FILE_SHARES, benchmark_roots
from agrotools.report.layout import fields_text, harmless, percent, shortened
from agrotools.report.screen import headline
from agrotools.report.trace import why_wrong
from agrotools.runner.policies import is_agent, is_agent_server, is_baseline
from agrotools.runner.records import RECORDS_FILE, Key, RecordIndex, last_record_at, record_index
from agrotools.runner.rescore import (
    Rescored,
    check_comparisons,
    judged_rows,
    summary_of,
    tally_of,
    twin_rows,
)
from agrotools.runner.store import read_manifest
from agrotools.runner.stored_scores import StoredScores
from agrotools.runner.yardsticks import Yardsticks, role_of, with_constant, yardsticks_of
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons as comparisons_of
from agrotools.scoring.comparisons import differences_between, side_by_side
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.judging.judgements import JudgedRows
from agrotools.scoring.lost_points import LostPoints, Shares
from agrotools.scoring.metrics import PREDICTIONS, is_invalid, scores_sample
from agrotools.scoring.summary import ModeSummary, RunComparison, RunDifference, Summary


def value_of(record: Record, scores: Sequence[Score]) -> float | None:
    """Return the score of a record for sorting and colouring; None if it is invalid or has no right answer to compare.

    It is the Final Answer Score; in step-by-step, the share of right steps."""
    if is_invalid(record):
        return None
    if record.actions is None:
        return next((row.value for row in scores if scores_sample(row.metric)), None)
    n_steps = len(record.actions)
    n_right = sum(step_is_right(record, at, scores) for at in range(n_steps))
    return n_right / n_steps


def step_is_right(record: Record, index: int, scores: Sequence[Score]) -> bool:
    """Return True if the predicted action of a step is the expected one, with right arguments or slots."""
    assert record.actions is not None
    steps = record.sample.reference.steps if record.sample.reference else ()
    expected = steps[index] if index < len(steps) else None
    rows = {row.metric: row for row in scores if row.step == index}
    return not why_wrong(record.actions[index], expected, rows)


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass
class PageRun:
    """Run of the page. ``name`` is derived from its folder; it is safe in links and unique on the page."""

    folder: Path
    name: str
    manifest: Manifest
    records: RecordIndex
    roots: list[Path]
    comparisons: TextComparisons
    """Additional comparisons of texts that the run is scored by."""
    judges: JudgedRows
    tally: RunAggregator | None = None
    """Collector of the scores of all records; None if the summary is known."""
    scored: Summary | None = None
    lost: LostPoints | None = None
    """Lost points of records that were scored before; None: ``tally`` has them."""
    replaceable: dict[Key, Record] = field(default_factory=dict[Key, Record])
    """Invalid records, which may be run again while the page is open; empty if it is written once."""
    leaves_files: bool = False
    """True if files of samples without an answer were never made, so that none of them is missing."""

    @property
    def summary(self) -> Summary:
        """Summary of the run, which is known once all its records are scored."""
        assert self.scored is not None
        return self.scored

    def scored_records(self) -> Iterator[tuple[Record, list[Score]]]:
        """Yield every record with its score rows: those that were stored just now, or else calculated ones."""
        if self.lost is None:
            for record in self.records:
                yield record, self.scores_of(record)
            return
        with StoredScores(self.folder) as stored:
            for record in self.records:
                yield record, stored.of(record)

    def scores_of(self, record: Record, *, live: bool = False) -> list[Score]:
        """Score a record, and count its scores in the summary."""
        scores = self.judges.joined(record, score_record(record, self.comparisons))
        self.replaceable.pop(record.key, None)
        if live and record.invalid is not None:
            self.replaceable[record.key] = record
        elif self.tally is not None:
            self.tally.add(record, scores)
        return [*scores, *twin_rows(record, scores, self.records)]

    def shares_of(self, record: Record, scores: Sequence[Score]) -> Shares:
        """Return the points that a record lost by part; ``scores``: its rows."""
        lost = self.lost or (self.tally.lost if self.tally else None)
        assert lost is not None, "a run was scored before, or is scored for the page"
        return lost.of_record(record, scores)


def opened_runs(
    folders: Sequence[Path],
    *,
    data_root: Path | None,
    summaries: Sequence[Summary] | None,
    tallies: Sequence[RunAggregator] = (),
    comparisons: TextComparisons = NO_COMPARISONS,
) -> list[PageRun]:
    """Open the runs; ``summaries``, ``tallies``: those of runs that were scored before, one for each run."""
    runs: list[PageRun] = []
    names = [name_of(folder) for folder in folders]
    for at, (folder, name) in enumerate(zip(folders, names, strict=True)):
        whole_manifest = read_manifest(folder)
        index = record_index(folder)
        if not len(index):
            raise index.without_samples
        # The ids of all samples, which the tally alone needs, are not held with the run.
        manifest = whole_manifest.model_copy(update={"sample_ids": ()})
        check_comparisons(manifest, comparisons)
        earlier = names[:at].count(name)
        run = PageRun(
            folder=folder,
            name=f"{name}-{earlier + 1}" if earlier else name,
            manifest=manifest,
            records=index,
            roots=benchmark_roots(manifest, folder, data_root),
            comparisons=comparisons,
            judges=judged_rows(folder),
        )
        if summaries and len(tallies) == len(folders):
            run.scored, run.lost = summaries[at], tallies[at].lost
        else:
            run.tally = tally_of(folder, whole_manifest)
        runs.append(run)
    return runs


def name_of(folder: Path) -> str:
    """Return the name of a run in the addresses of a page, from its folder; several of one name get numbers."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name) or "run"


def summarise(runs: Sequence[PageRun], *, allow_invalid: bool, finished: bool = True) -> None:
    """Set the summaries of runs whose records have all been scored.

    Unless a run is ``finished``, what needs its records again is left out: published metrics.
    """
    tallies: list[RunAggregator] = []
    for run in runs:
        if run.tally is None:
            continue
        tally = deepcopy(run.tally) if run.replaceable else run.tally
        for record in run.replaceable.values():
            tally.add(record, [])
        tallies.append(tally)
        run.scored = summary_of(
            run.folder,
            run.manifest,
            tally,
            run.judges,
            allow_invalid=allow_invalid,
            embedder=run.comparisons.embedder,
            published=finished,
        )
    together = side_by_side([run.summary for run in runs], tallies)
    for run, summary in zip(runs, together, strict=True):
        run.scored = summary


def differences(runs: Sequence[PageRun], tallies: Sequence[RunAggregator]) -> list[RunDifference]:
    """Return the differences of all pairs of runs, of quick parts and privileged ones, too, as ``compare`` does."""
    if len(tallies) != len(runs):
        return []
    pairs = [*combinations(range(len(runs)), 2)]
    summaries = [run.summary.model_copy(update={"quick": False}) for run in runs]
    return differences_between(summaries, tallies, pairs)


MOST_COMPARED = 4
"""Most runs of a page whose differences are also shown by task and by cause."""


def compared(
    runs: Sequence[PageRun], tallies: Sequence[RunAggregator]
) -> dict[tuple[int, int], RunComparison]:
    """Return the comparison of each pair of a few runs, by their numbers."""
    if len(tallies) != len(runs) or not 1 < len(runs) <= MOST_COMPARED:
        return {}
    found = comparisons_of(tallies, [run.name for run in runs])
    return dict(zip(combinations(range(len(runs)), 2), found, strict=True))


def floor_and_ceiling(
    runs: Sequence[PageRun], data_root: Path | None, progress: Progress = no_progress
) -> Yardsticks:
    """Return the scores of baselines on the samples of the first model, in the mode that the page headlines.

    Without a headline there are none. Those that the page has runs of are left out, and all but the constants if the
    benchmark cannot be loaded.
    """
    measure = headline([run.summary for run in runs])
    if measure is None:
        return Yardsticks()
    mode = measure[0].mode
    in_mode = [run for run in runs if mode in run.summary.modes]
    if not in_mode:
        return Yardsticks()
    run = next((run for run in in_mode if not is_baseline(run.manifest.model)), in_mode[0])
    roles = {role_of(each.summary, mode) for each in in_mode}
    yardsticks = Yardsticks()
    if not {"floor", "ceiling"} <= roles:
        yardsticks = stored_yardsticks(run.folder, mode, data_root, progress)
    return with_constant(yardsticks, Rescored(run.summary), mode)


def stored_yardsticks(
    run: Path, mode: Mode, data_root: Path | None = None, progress: Progress = no_progress
) -> Yardsticks:
    """Return the baselines on the samples of a run, whose benchmark is loaded; none if it cannot be, or has changed.

    Args:
        run: a run folder.
        mode: mode of the samples.
        data_root: folder of the benchmark, if it has moved since the run.
        progress: callback for the baselines run.
    """
    manifest = read_manifest(run)
    with suppress(AgrotoolsError, OSError, IndexError):
        benchmark = _benchmark_of(run, manifest, data_root)
        if benchmark.content_hash == manifest.benchmark_hash:
            return yardsticks_of(run, benchmark, data_root, progress, mode)
    return Yardsticks()


def make_files(
    runs: Sequence[PageRun], data_root: Path | None, progress: Progress = no_progress
) -> None:
    """Make the files of answered samples that nothing needed before: imported answers are scored without them.

    Samples of a benchmark that cannot be loaded stay without files, which the page says in place of each.
    """
    for run in runs:
        if run.manifest.protocol != PREDICTIONS:
            continue
        with suppress(AgrotoolsError, OSError, IndexError):
            benchmark = _benchmark_of(run.folder, run.manifest, data_root)
            if benchmark.make_files is None:
                continue
            answered = {each.sample.id: each.sample for each in run.records if not each.invalid}
            with ThreadPoolExecutor(MOST_MAKERS) as makers:
                made = makers.map(benchmark.make_files, answered.values())
                for done, _ in enumerate(made, start=1):
                    progress("files", done, len(answered))
            run.roots = benchmark_roots(run.manifest, run.folder, data_root)
            run.leaves_files = True


def _benchmark_of(run: Path, manifest: Manifest, data_root: Path | None) -> Benchmark:
    """Load the benchmark of a run: by its name, or from the folder that the run was given."""
    if manifest.benchmark_path not in BENCHMARKS:
        return load_benchmark(benchmark_roots(manifest, run, data_root)[0])
    place = data_root or manifest.data_root
    loading = Loading(
        Path(place) if place else None,
        manifest.benchmark_options,
        quick=manifest.quick,
        files_later=True,
    )
    return load_as(manifest.benchmark_path, loading)


def count_shares(runs: Sequence[PageRun]) -> int:
    """Return an upper bound of the shares of the pictures in all records, whose lines are only scanned."""
    files, made = set[object](), set[object]()
    for run in runs:
        with (run.folder / RECORDS_FILE).open("rb") as lines:
            for line in lines:
                if b'"sha256"' not in line:
                    continue  # neither a file nor an artifact
                with suppress(ValueError, LookupError, TypeError):
                    record = orjson.loads(line)
                    for file in record["sample"]["files"]:
                        files.add(file.get("sha256") or file["path"])
                    made.update(_artifacts_of(record))
    return FILE_SHARES * len(files) + len(made)


def _artifacts_of(record: dict[str, Any]) -> Iterator[object]:
    """Yield the hashes of the files that tools made for a record, given as JSON."""
    sample, trajectory = record["sample"], record.get("trajectory")
    steps = trajectory["steps"] if trajectory else ()
    if record.get("actions") is not None and sample.get("reference"):
        steps = sample["reference"]["steps"]
    for step in steps:
        observation = step.get("observation") or {}
        for artifact in observation.get("artifacts", ()):
            yield artifact.get("sha256")


_HASH_DIGITS = 12
_COMPARED = {
    "degrade": "degradation",
    "faults": "faults in tool calls",
    "toolset_hash": "toolset",
    "backends": "back-ends of the tools",
}
"""Manifest fields that must be equal for two runs to be comparable, and their names in messages."""


def run_facts(name: str, folder: Path, manifest: Manifest, summary: Summary) -> dict[str, Any]:
    """Return facts about the run in ``folder`` for the page: model, outcome of each mode, and settings."""
    finished = last_record_at(folder)
    settings = _settings_text(folder, manifest)
    return {
        "name": name,
        "folder": harmless(str(folder)),
        "model": manifest.shown_model,
        "privileged": manifest.privileged,
        "unsealed": manifest.sealed is False,
        "benchmark": benchmark_title(manifest.benchmark, manifest.benchmark_version),
        "task_types": str(manifest.task_types or ""),
        "synthetic": manifest.synthetic,
        "finished": f"{finished:%Y-%m-%d %H:%M} UTC",
        "modes": [(mode, _mode_text(part)) for mode, part in summary.modes.items()],
        "settings": [(word, value) for word, value in settings.items() if value],
    }


def _settings_text(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Return the settings of a run in words; those that do not apply are empty."""
    sampling = fields_text(manifest.settings)
    if not sampling and manifest.base_url:
        sampling = "endpoint defaults"
    degraded = ""
    if manifest.degrade:
        degraded = f"{manifest.degrade} (this page shows the original pictures)"
    offered = ""
    if manifest.tools != "all":
        offered = f"{manifest.tools} (of each sample; --tools)"
    protocol = images = ""
    if not is_baseline(manifest.model):
        protocol = manifest.protocol
        images = "shown" if manifest.images else "not shown"
    return {
        "address" if is_agent_server(manifest.model) else "model": (
            manifest.model if manifest.model != manifest.shown_model else ""
        ),
        "cost": _cost_text(folder, manifest),
        "protocol": protocol,
        "images": images,
        "degraded": degraded,
        "faults in tool calls": manifest.faults,
        "epochs": str(manifest.epochs),
        "step limit": str(manifest.max_steps),
        "seed": str(manifest.seed),
        "sampling": sampling,
        "endpoint": manifest.base_url or "",
        "toolset": ", ".join(manifest.toolset),
        "tools offered": offered,
        "toolset hash": manifest.toolset_hash[:_HASH_DIGITS],
        "back-ends": fields_text(dict(manifest.backends)) or "offline",
        "prompt hash": manifest.prompt_hash[:_HASH_DIGITS] or "no prompt",
        "benchmark hash": manifest.benchmark_hash[:_HASH_DIGITS],
        "agrotools": manifest.agrotools,
        "scoring version at the start": str(manifest.scoring),
        "python": manifest.python,
        "libraries": fields_text(dict(manifest.libraries)),
    }


def _cost_text(folder: Path, manifest: Manifest) -> str:
    """Return what a run cost, or that its agent does not say; empty if it asked no model."""
    spend = read_spend(folder / "spend.jsonl")
    if spend.replies:
        return f"{number_text(spend.usd, 4)} USD for {spend.replies} replies"
    if is_agent(manifest.model) or manifest.sealed is False:
        return "not reported by the agent"
    return ""


def _mode_text(part: ModeSummary) -> str:
    """Return how many samples of a mode were run, how many records are invalid, and how the others ended."""
    text = count_text(part.n_samples, "sample")
    if part.epochs > 1:
        text += f" x {part.epochs} epochs"
    if part.invalid.n:
        text += f", {part.invalid.n} invalid ({percent(part.invalid.share)} %)"
    if not part.headline:
        text += f"; no score: {part.withheld}"
    if part.counts.terminations:
        ended = [f"{name} {n}" for name, n in part.counts.terminations.items()]
        text += f" ({', '.join(ended)})"
    return text


def incomparable(manifests: Sequence[Manifest]) -> list[str]:
    """Return the differences that make the scores of runs incomparable; empty if there are none.

    Prompts are compared only among runs that have one (baselines have none).
    """
    benchmarks = [manifest.clean_hash or manifest.benchmark_hash for manifest in manifests]
    differences: list[str] = []
    if len(set(benchmarks)) > 1:
        differences.append(f"different benchmark: {_differing(benchmarks)}")
    if len({manifest.quick for manifest in manifests}) > 1:
        differences.append(
            "some ran only the quick part of the benchmark, whose samples are too few to rank models"
        )
    if len({str(manifest.task_types) for manifest in manifests}) > 1:
        differences.append(
            "different task types: two runs are compared on the questions that both asked"
        )
    if servers := _differing_servers(manifests):
        differences.append(f"different tool servers: {servers}")
        manifests = [_without_servers(manifest, manifests) for manifest in manifests]
    for name, words in _COMPARED.items():
        values = [getattr(manifest, name) for manifest in manifests]
        if any(value != values[0] for value in values):
            differences.append(f"different {words}: {_differing(values)}")
    differences += _differing_data(manifests)
    prompts = [manifest.prompt_hash for manifest in manifests if manifest.prompt_hash]
    if len(set(prompts)) > 1:
        differences.append(f"different prompts: {_differing(prompts)}")
    return differences


def _differing_servers(manifests: Sequence[Manifest]) -> str:
    """Return the tool servers and bindings of runs, if they differ; with hashes where names do not tell them apart."""
    whole = [_servers_text(manifest, _HASH_DIGITS) for manifest in manifests]
    named = [_servers_text(manifest, 0) for manifest in manifests]
    texts = dict.fromkeys(named if len({*named}) == len({*whole}) else whole)
    return " / ".join(text or "none" for text in texts) if len(texts) > 1 else ""


def _servers_text(manifest: Manifest, n_digits: int) -> str:
    """Return the tool servers of a run, and the bindings that run tools of ours on them; empty if it has none."""
    parts: list[str] = []
    for use in manifest.tool_servers:
        parts.append(f"{use.name} {use.version} {use.schemas[:n_digits]}".strip())
    for tool, backend in sorted(manifest.backends.items()):
        if backend.startswith(SERVED):
            file = Path(backend.removeprefix(SERVED)).name
            digest = manifest.tool_data.get(tool, "")[:n_digits]
            parts.append(f"binding {file} {digest}".strip())
    return ", ".join(dict.fromkeys(parts))


def _without_servers(manifest: Manifest, manifests: Sequence[Manifest]) -> Manifest:
    """Return the manifest of a run without what its tool servers alone change, for a comparison of the rest.

    Tools that not all runs offer are those of servers; tools of ours that any run binds have no back-end nor data.
    """
    common = set[str].intersection(*(set(each.toolset) for each in manifests))
    bound = {
        tool
        for each in manifests
        for tool, backend in each.backends.items()
        if backend.startswith(SERVED)
    }
    toolset = {tool: version for tool, version in manifest.toolset.items() if tool in common}
    backends = {tool: each for tool, each in manifest.backends.items() if tool not in bound}
    data = {tool: digest for tool, digest in manifest.tool_data.items() if tool not in bound}
    return manifest.model_copy(
        update={
            "toolset": toolset,
            "toolset_hash": sha256_of_json(toolset),
            "backends": backends,
            "tool_data": data,
        }
    )


def _differing_data(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each tool whose data files are not the same in all runs that offered it."""
    for tool in dict.fromkeys(tool for manifest in manifests for tool in manifest.tool_data):
        digests = {manifest.tool_data[tool] for manifest in manifests if tool in manifest.tool_data}
        if len(digests) < 2:
            continue
        # A run that had no data files of a tool has an empty digest.
        where = "that changed between the runs"
        if "" in digests:
            where = "that only some of the runs had"
        yield f"{tool} has data files (e.g. trained heads) {where}"


def _differing(values: Sequence[object]) -> str:
    """Return the different values: hashes by their first digits, fields in words."""
    value_texts = [
        value[:_HASH_DIGITS] if isinstance(value, str) else fields_text(dict(value))  # type: ignore[call-overload]
        for value in values
    ]
    return shortened(" / ".join(dict.fromkeys(text or "none" for text in value_texts)))
