"""Selection of questions by task type (``--task-type``)."""

import io
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from agrotools.core import UsageError
from agrotools.core.files import MANIFEST_FILE
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader
from agrotools.formats.manifest import Limit, Manifest, TaskTypes, differences, merged
from agrotools.report.citing import citation
from agrotools.runner.build import RunPlan, default_folder, plan_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.gating import gate_runs
from agrotools.runner.rescore import compare_runs, score_runs
from agrotools.runner.store import read_manifest
from agrotools.runner.task_types import select_task_types
from support.plain_sample import plain_sample

N_OF_TYPE = {"pest_diagnosis": 12, "weed_identification": 14, "my_yield": 4}


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    """30 questions of three task types, one of them not of the taxonomy; one of each type is in the quick part."""
    samples = [
        plain_sample(f"{task_type}-{number}", task_type=task_type, toolset=())
        for task_type, count in N_OF_TYPE.items()
        for number in range(count)
    ]
    header = BenchmarkHeader(
        name="types",
        version="1",
        licence="CC0-1.0",
        toolset=(),
        modes=("no-tool",),
        quick=("pest_diagnosis-0", "my_yield-0"),
    )
    return Benchmark.of(header, samples)


def plan(benchmark: Benchmark, task_types: Sequence[str], **options: object) -> RunPlan:
    config = EvalConfig.of(
        model="baseline:constant", mode="no-tool", task_types=tuple(task_types), **options
    )
    return plan_run(config, benchmark)


def test_names_are_forgiving_and_the_manifest_holds_those_of_the_benchmark(benchmark: Benchmark):
    planned = plan(benchmark, ["Weed-Identification", "pest diagnosis"], epochs=3)
    assert planned.manifest.task_types == TaskTypes(
        names=("pest_diagnosis", "weed_identification"), n_questions=26, n_of=30
    )
    assert str(planned.manifest.task_types) == (
        "26 of 30 questions, only pest diagnosis and weed identification"
    )
    assert planned.manifest.n_questions == 30
    assert planned.manifest.planned == {"no-tool": 78}
    assert {item.sample.task_type for item in planned.items} == {
        "pest_diagnosis",
        "weed_identification",
    }
    assert set(planned.manifest.sample_ids) == set(planned.items.sample_ids())


def test_a_limit_and_the_quick_part_are_taken_of_the_task_type(benchmark: Benchmark):
    limited = plan(benchmark, ["pest_diagnosis"], limit=5, epochs=2)
    assert limited.manifest.planned == {"no-tool": 10}
    assert limited.manifest.limit == Limit(n_questions=5, n_of=12)
    more = plan(benchmark, ["pest_diagnosis"], limit=7).manifest
    assert merged(limited.manifest, more).limit == Limit(n_questions=7, n_of=12)
    every = plan(benchmark, ["pest_diagnosis"], limit=40).manifest
    assert merged(limited.manifest, every).limit is every.limit is None
    quick = plan(benchmark, ["my_yield"], quick=True)
    assert quick.manifest.task_types == TaskTypes(names=("my_yield",), n_questions=1, n_of=2)
    with pytest.raises(UsageError, match="the quick part of types has no question") as failure:
        plan(benchmark, ["weed_identification"], quick=True)
    assert "pest_diagnosis (1), my_yield (1)" in str(failure.value.hint)


def test_an_unknown_task_type_is_refused_with_the_nearest_and_all_of_the_benchmark(
    benchmark: Benchmark,
):
    with pytest.raises(
        UsageError, match="no question of the task type 'pest_diagnoses'"
    ) as failure:
        select_task_types(benchmark, ["pest_diagnoses"], quick=False)
    assert failure.value.hint == (
        "did you mean pest_diagnosis? task types (questions): pest_diagnosis (12), weed_identification (14), "
        "my_yield (4)"
    )


def test_a_selection_is_another_run_and_runs_without_one_keep_their_folder(benchmark: Benchmark):
    whole, part, same = (
        plan(benchmark, types).manifest for types in ([], ["my_yield"], ["My yield"])
    )
    assert default_folder(part) == default_folder(same) != default_folder(whole)
    assert differences(part, same) == []
    assert differences(whole, part) == [
        "task types: none there, 4 of 30 questions, only my yield in this command"
    ]
    assert "task_types" not in orjson.loads(whole.model_dump_json())
    assert Manifest.model_validate_json(part.model_dump_json()) == part


@pytest.fixture(scope="module")
def runs(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of all questions, and of one task type."""
    folder = tmp_path_factory.mktemp("runs")
    types = {"whole": (), "weeds": ("weed_identification",), "pests": ("pest_diagnosis",)}
    for name, chosen in types.items():
        config = EvalConfig.of(
            model="baseline:constant", mode="no-tool", task_types=chosen, out=folder / name
        )
        evaluate(config, io.StringIO(), benchmark=benchmark)
    return {name: folder / name for name in types}


def test_a_selection_and_a_whole_run_are_compared_on_their_common_questions(runs: dict[str, Path]):
    (comparison,) = compare_runs([runs["whole"], runs["weeds"]])
    assert comparison.task_types == ("weed_identification",)
    assert comparison.n_questions == 30
    assert comparison.modes["no-tool"][comparison.headline["no-tool"]].overall.n == 14
    with pytest.raises(UsageError, match="no scored sample in common"):
        compare_runs([runs["pests"], runs["weeds"]])


def test_the_gate_refuses_a_selection_against_a_whole_run(runs: dict[str, Path]):
    with pytest.raises(UsageError, match=r"different task types: 14 of 30 .* / all"):
        gate_runs(runs["weeds"], runs["whole"])


def test_summary_and_citation_say_that_it_is_a_selection(runs: dict[str, Path]):
    (scored,) = score_runs([runs["weeds"]])
    manifest = read_manifest(runs["weeds"])
    assert (runs["weeds"] / MANIFEST_FILE).is_file()
    assert scored.summary.task_types == manifest.task_types
    text = citation(runs["weeds"], manifest, scored.summary, {})
    assert "types, version 1, 14 of 30 questions, only weed identification" in text
