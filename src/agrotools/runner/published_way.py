"""Runs on published benchmarks: differences from those of the papers, and prediction files for their scorers."""

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.benchmarks._dialogs.record_dialogues import dialogue_of, origin_prompts, prediction_entry
from agrotools.benchmarks._dialogs.samples import PUBLISHED_WAYS
from agrotools.core import Mode, UsageError
from agrotools.core.files import write_whole
from agrotools.runner.config import RECORDED
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.published_form import agent_x_prediction, in_file_order
from agrotools.scoring.sample_units import is_invalid

PUBLISHED_SAMPLES = {
    "gta": {"": 229},
    "thinkgeo": {"": 436, "optical": 436, "sar": 50, "all": 486},
    "agent-x": {"": 828},
}
"""Questions by benchmark and ``split``, as the papers count them."""


def departures(manifest: Manifest, mode: Mode) -> tuple[str, ...]:
    """What differs, each in a few words; empty where the run was made as published but for the tools themselves."""
    found: list[str] = []
    if manifest.privileged:
        found.append("this policy sees the gold")
    way = PUBLISHED_WAYS.get(manifest.benchmark)
    baseline = is_baseline(manifest.model)
    if baseline:
        found.append("a baseline, which is no model and has no protocol")
    elif way is not None and manifest.protocol != way.protocol:
        found.append(f"protocol {manifest.protocol}, not that of the paper")
    split = str(manifest.benchmark_options.get("split", ""))
    wanted = PUBLISHED_SAMPLES.get(manifest.benchmark, {}).get(split)
    if wanted is not None and len(manifest.sample_ids) != wanted:
        found.append(f"{len(manifest.sample_ids)} questions of {wanted}")
    if manifest.benchmark == "agent-x":
        return (*found, *_tools_of_agent_x(manifest, mode))
    if mode == "end-to-end":
        recorded, others = _tools(manifest)
        if recorded:
            found.append("recorded observations instead of tools" + (f" for {len(recorded)} of them" if others else ""))
        if others:
            found.append("tools of this package, not those of the paper")
        if way is not None and not baseline and manifest.max_steps != way.max_steps:
            found.append(f"at most {manifest.max_steps} turns, not {way.max_steps}")
    return tuple(found)


def _tools(manifest: Manifest) -> tuple[list[str], list[str]]:
    """The tools that were not run, but answered for from the reference, and the others."""
    recorded = sorted(tool for tool, backend in manifest.backends.items() if backend == RECORDED)
    return recorded, [tool for tool in manifest.toolset if tool not in recorded]


def _tools_of_agent_x(manifest: Manifest, mode: Mode) -> list[str]:
    """Agent-X runs no tool: the model makes up what they return."""
    if mode == "end-to-end":
        recorded, others = _tools(manifest)
        ran = "tools ran" if others else "recorded observations" if recorded else ""
        return [f"{ran}; in the paper the model makes up what tools return"] if ran else []
    prompted = manifest.protocol == PUBLISHED_WAYS["agent-x"].protocol and not is_baseline(manifest.model)
    return ["a prompt of ours, which offers the tools of the question alone"] if prompted else []


AGENT_X = "agent-x"


class Written(NamedTuple):
    """A prediction file: of which mode, and how many predictions it holds. ``invalid`` records have none.

    ``whole``: how many questions the data set has, where predictions are paired with them by place.
    """

    path: Path
    mode: Mode
    predictions: int
    invalid: int
    whole: int | None = None


def write_predictions(run: Path, folder: Path) -> list[Written]:
    """One file for each mode of the run, in the order of the published data set.

    GTA's and ThinkGeo's scorers pair predictions with questions by position: of a run on part of the questions, or
    with invalid records, their scorer needs that part of the data set.

    Raises:
        UsageError: a run on another benchmark, or one that holds nothing for such a file.
        RunStoreError: not a run folder, or its records cannot be read.
        OSError: a file cannot be written.
    """
    manifest = read_manifest(run)
    if manifest.benchmark not in PUBLISHED_SAMPLES:
        raise UsageError(
            f"{run} is a run on {manifest.benchmark}, which has no prediction files",
            hint=f"those of {', '.join(PUBLISHED_SAMPLES)} have; records.jsonl is JSON lines",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Written] = []
    for mode in manifest.modes:
        records = [record for record in iter_records(run) if record.mode == mode and record.epoch == 0]
        valid = in_file_order([record for record in records if not is_invalid(record)])
        if (
            not valid
            or (mode == "no-tool" and manifest.benchmark != AGENT_X)
            or (mode == "step-by-step" and manifest.benchmark == AGENT_X)
        ):
            continue
        content: Any
        if manifest.benchmark == AGENT_X:
            made = [agent_x_prediction(record) for record in valid]
            content = [{str(r.sample.metadata.get("entry", "")): each} for r, each in zip(valid, made, strict=True)]
        else:
            content = {
                str(at): prediction_entry(dialogue_of(record, manifest.protocol), origin_prompts(record))
                for at, record in enumerate(valid)
            }
        path = folder / f"{manifest.benchmark}_{mode}.json"
        write_whole(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        by_split = {} if manifest.benchmark == AGENT_X else PUBLISHED_SAMPLES[manifest.benchmark]
        whole = by_split.get(str(manifest.benchmark_options.get("split", "")))
        written.append(Written(path, mode, len(valid), len(records) - len(valid), whole))
    if not written:
        raise UsageError(f"{run} holds no finished sample for a prediction file", hint="run agrotools eval first")
    return written
