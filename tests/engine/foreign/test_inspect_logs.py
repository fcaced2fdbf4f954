"""Logs of our own tasks of Inspect become the runs that they are; what cannot be a run is refused."""

import json
from pathlib import Path

import pytest

import agrotools as at
from agrotools.core import UsageError
from agrotools.core.readings import Readings
from agrotools.foreign.inspect_logs import MANIFEST, RECORD
from agrotools.foreign.prediction_columns import ColumnAnswers
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import compare_runs
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process
COUNT = 4


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    return load_benchmark(write_sums(tmp_path_factory.mktemp("benchmark") / "sums", COUNT))


@pytest.fixture(scope="module")
def run(sums, tmp_path_factory):
    """The run that the log tells of."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return at.evaluate(sums, "baseline:oracle", mode="end-to-end", out=str(out))


def log_of(run, failed=()):
    """A log as ``inspect log convert --to json`` writes it, in which each sample has the cluster of the first one."""
    samples = []
    for record in iter_records(run.path):
        stored = record.model_dump(mode="json", by_alias=True)
        sample = {
            "id": record.sample.id,
            "epoch": record.epoch + 1,
            "metadata": {"cluster": run.manifest.sample_ids[0]},
            "output": {"completion": "Done.", "choices": []},
            "scores": {"final_answer_score": {"value": 1.0, "metadata": {RECORD: stored}}},
        }
        if record.sample.id in failed:
            sample["scores"] = {}
            sample["error"] = {"message": "ConnectionError"}
        samples.append(sample)
    ids = list(run.manifest.sample_ids)
    task = {
        "task": "agrotools/sums",
        "model": "openai/gpt",
        "dataset": {"sample_ids": ids},
        "metadata": {MANIFEST: run.manifest.model_dump(mode="json")},
    }
    return {"status": "success", "eval": task, "samples": samples}


def imported(folder: Path, log, sums, **options):
    file = folder / "log.json"
    file.write_text(json.dumps(log))
    readings = Readings()
    path, counts = import_predictions(
        file, sums, "sums", out=folder / "run", readings=readings, **options
    )
    return at.read_run(path), counts, readings


def test_a_log_of_our_task_is_the_run_with_its_calls(tmp_path, sums, run):
    made, counts, readings = imported(tmp_path, log_of(run), sums)
    assert [*iter_records(made.path)] == [*iter_records(run.path)]
    assert made.scores["fas"].value == run.scores["fas"].value
    assert (made.manifest.model, made.manifest.protocol) == ("openai/gpt", run.manifest.protocol)
    assert counts.by == {"record": COUNT}
    assert not counts.problems
    assert readings.taken == ["records of agrotools in a log of Inspect, with their calls"]
    (compared,) = compare_runs([run.path, made.path])
    assert compared.same_records


def test_a_failed_sample_is_invalid_for_its_own_reason(tmp_path, sums, run):
    log = log_of(run, failed=[run.manifest.sample_ids[1]])
    made, counts, _ = imported(tmp_path, log, sums)
    invalid = [record.invalid for record in iter_records(made.path) if record.invalid]
    assert invalid == ["ConnectionError"]
    assert [*counts.problems.values()] == [[run.manifest.sample_ids[1]]]


def test_what_is_no_run_is_refused_with_the_way_that_works(tmp_path, sums, run):
    unscored = log_of(run, failed=run.manifest.sample_ids)
    with pytest.raises(UsageError, match="holds no score of agrotools") as raised:
        imported(tmp_path, unscored, sums)
    assert "--protocol tool-calling" in raised.value.hint
    older = log_of(run)
    del older["eval"]["metadata"]
    with pytest.raises(UsageError, match="written by another version"):
        imported(tmp_path, older, sums)
    changed = log_of(run)
    changed["eval"]["metadata"][MANIFEST]["benchmark_hash"] = "0" * 64
    with pytest.raises(UsageError, match="with other content than"):
        imported(tmp_path, changed, sums)
    with pytest.raises(UsageError, match="records are taken as they are"):
        imported(tmp_path, log_of(run), sums, chosen=ColumnAnswers("output"))


def test_the_cluster_of_another_task_names_no_sample(tmp_path, sums, run):
    log = log_of(run)
    log["eval"] = {"task": "mine"}
    for sample in log["samples"]:
        sample["output"] = {"completion": "mean: 3 t/ha"}
    made, counts, _ = imported(tmp_path, log, sums)
    assert counts.by == {"id": COUNT}
    assert made.manifest.modes == ("no-tool",)
