"""From files and options to a benchmark: which files, which samples, what is said of them."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from agrotools.core import BenchmarkError, UsageError
from agrotools.loading import Benchmark, load_benchmark
from agrotools_benchmarks.agrieval.plugin import OptionsSlot
from support.made_agrieval import write_agrieval


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agrieval(tmp_path_factory.mktemp("made") / "agrieval", 300, 40)


def load(folder: Path, name: str = "agrieval", **options: Any) -> Benchmark:
    return load_benchmark(name, data_root=folder, options=options)


@pytest.mark.data
def test_the_published_files_are_found_and_what_they_lack_is_said(field_data: Path):
    benchmark = load(field_data)
    assert len(benchmark.samples) == 1074 + 2167
    notes = benchmark.header.metadata["notes"]
    assert notes == [
        "the multiple-choice questions tell no field, cognitive level or task, only a type"
    ]
    files = ["simple_merged_choice_v6_5(rag).json", "simple_merged_question_v4_2(main).json"]
    assert benchmark.header.metadata["files"] == files
    assert "non-commercial" in benchmark.licence
    for shots in (1, 5):
        samples = load(field_data, shots=shots).samples
        assert {len(cast("list[str]", sample.metadata["examples"])) for sample in samples} == {
            shots
        }
    cmmlu = load(field_data / "agri_text", "cmmlu-agronomy")
    assert {sample.task_type for sample in cmmlu.samples} == {"single_choice"}


@pytest.mark.parametrize(
    "folder", ["agrieval", "AgriEval", "AGRIEVAL/dataset", "agrieval/Dataset", "dataset"]
)
def test_files_are_found_in_folders_and_under_names_of_any_case(tmp_path: Path, folder: str):
    write_agrieval(tmp_path / folder, 6, 2)
    for path in (tmp_path / folder).iterdir():
        path.rename(path.with_name(path.name.upper()))
    assert len(load(tmp_path).samples) == 8
    (name,) = [path.name for path in (tmp_path / folder).iterdir() if "CHOICE" in path.name]
    assert len(load(tmp_path, files=name.lower()).samples) == 6


def test_a_sample_is_a_prompt_and_its_gold_stays_behind(made: Path):
    benchmark = load(made)
    sample = benchmark.sample("choice-00003")
    view = benchmark.view(sample, "no-tool")
    assert view.bare
    assert (view.answer_form, view.query) == ("", sample.query)
    assert str(sample.metadata["question"]) in sample.query
    assert isinstance(sample.answer[0], OptionsSlot)
    assert (sample.files, sample.toolset) == ((), ())
    assert benchmark.samples[3] is benchmark.samples[3], "made once while it is in use"


def test_part_order_and_shots_change_the_samples_and_the_hash(made: Path):
    plain = load(made)
    assert load(made).content_hash == plain.content_hash
    hashes = {plain.content_hash}
    changes: list[dict[str, Any]] = [
        {"part": "choice"}, {"shots": 3}, {"cot": True}, {"order": "shuffled"}, {"order": "later"},
    ]  # fmt: skip
    for options in changes:
        other = load(made, **options)
        assert other.content_hash not in hashes
        hashes.add(other.content_hash)
        assert (
            other.sample("choice-00000").metadata["question"]
            == plain.sample("choice-00000").metadata["question"]
        )
    assert {sample.task_type for sample in load(made, part="question").samples} == {"short_answer"}
    shot = load(made, shots="5").sample("choice-00000")
    assert len(shot.metadata["examples"]) == 5  # pyright: ignore[reportArgumentType]
    assert load(made, shots=5, cot=True).header.metadata["setting"] == "5-shot, cot"


def test_the_same_question_in_both_files_is_one_cluster_and_two_samples(tmp_path: Path):
    entry = {
        "id": 1,
        "question": "问？",
        "options": {"A": "甲", "B": "乙"},
        "answer": "A",
        "question_type": "单选",
    }
    for name in ("a_choice.json", "b_choice.json"):
        (tmp_path / name).write_text(json.dumps([entry]), encoding="utf-8")
    benchmark = load(tmp_path, files="a_choice.json,b_choice.json")
    assert [sample.id for sample in benchmark.samples] == ["choice-00001", "choice-00001x"]
    assert {sample.cluster for sample in benchmark.samples} == {"choice-00001"}


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"shot": 5}, "no option 'shot'", "did you mean shots"),
        ({"order": "random"}, "order=random", ""),
        ({"files": "none.json"}, "there is no file", "names in the folder"),
    ],
)
def test_an_option_that_cannot_be_is_said(
    made: Path, options: dict[str, Any], message: str, hint: str
):
    with pytest.raises(UsageError, match=message) as raised:
        load(made, **options)
    assert hint in (raised.value.hint or "")


@pytest.mark.process
def test_files_that_are_not_there_and_folders_that_take_no_options_are_said(
    tmp_path: Path, small_benchmark: Path
):
    for name in ("embedded", str(small_benchmark)):
        with pytest.raises(UsageError, match="no option"):
            load_benchmark(name, options={"shots": 5})
    for folder, message in (
        (tmp_path, "contains no file of agrieval"),
        (tmp_path / "none", "is no folder"),
    ):
        with pytest.raises(BenchmarkError, match=message) as missing:
            load(folder)
        assert "github.com/YanPioneer/AgriEval" in (missing.value.hint or "")
