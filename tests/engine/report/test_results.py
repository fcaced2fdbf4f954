"""Results of runs as files that others can take, their page, and the words to cite a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agrotools.core import UsageError
from agrotools.formats.manifest import Limit, ServerUse
from agrotools.report.html.page import build_report
from agrotools.report.results import (
    Result,
    cite,
    is_results_folder,
    read_result,
    read_results,
    results_tables,
    write_page,
    write_result,
)
from support.made_runs import ATTACK, end_to_end, made_sample, right, write_run
from support.runs import invalid

N = 12


def write(folder: Path, n_right: int, **changes: Any) -> Path:
    """A run of 12 samples, of which ``n_right`` are answered rightly."""
    records = [
        right(made_sample(f"s{at:02}"))
        if at < n_right
        else end_to_end(made_sample(f"s{at:02}"), answer="rows: 9")
        for at in range(N)
    ]
    about = {"base_url": "http://10.0.0.7:8000/v1", "benchmark_hash": "aa" * 32}
    return write_run(folder, records, **{**about, **changes})


def test_a_result_tells_what_was_measured_and_no_address_or_path(tmp_path: Path):
    run = write(tmp_path / "run", 9, model="qwen", settings={"temperature": 0.2}, epochs=1)
    path = write_result(run, tmp_path / "results")
    result = read_result(path)
    score = result.scores["end-to-end"]
    assert (score.metric, score.score, score.n, score.clusters) == ("fas", 0.75, N, N)
    assert score.interval is not None
    assert score.interval.lower < 0.75 < score.interval.upper
    assert (result.model, result.settings["temperature"], result.benchmark) == ("qwen", 0.2, "b")
    text = path.read_text()
    assert "10.0.0.7" not in text
    assert str(tmp_path) not in text
    Draft202012Validator(Result.model_json_schema()).validate(json.loads(text))
    again = write(tmp_path / "other", 3, model=f"{tmp_path}/models/qwen-3b.gguf")
    other = read_result(write_result(again, tmp_path / "results"))
    assert other.model == "qwen-3b"
    assert other.questions_hash == result.questions_hash, "the same questions"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"score": 0.75', '"score": 0.95', "was changed after it was written"),
        ('"score": 0.75', '"score": 75', "is not a result: scores"),
        ('"model"', '"modell"', "is not a result"),
        ("{", "", "is not a result"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_by_name(
    tmp_path: Path, before: str, after: str, message: str
):
    path = write_result(write(tmp_path / "run", 9), tmp_path / "results")
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(UsageError) as failure:
        read_results(tmp_path / "results")
    assert f"{path} {message}" in failure.value.message
    assert "agrotools export RUN --format result" in str(failure.value.hint)


def test_a_run_whose_score_may_not_be_shown_has_no_result(tmp_path: Path):
    records = [right(made_sample(f"s{at:02}")) for at in range(N)]
    lost = [invalid(f"t{at}", mode="end-to-end") for at in range(N)]
    run = write_run(tmp_path / "run", [*records, *lost])
    with pytest.raises(UsageError, match="has no score to publish: more than 1 %"):
        write_result(run, tmp_path)


def test_the_page_has_a_table_for_each_benchmark_with_the_best_model_first(tmp_path: Path):
    folder = tmp_path / "results"
    for name, n_right in (("poor", 3), ("good", 9)):
        write_result(write(tmp_path / name, n_right, model=name), folder)
    yardstick = write(tmp_path / "sees", N, model="baseline:oracle", privileged=True)
    write_result(yardstick, folder)
    write_result(write(tmp_path / "hostile", 2, model=ATTACK), folder)
    write_result(write(tmp_path / "z-changed", 9, model="m", benchmark_hash="bb" * 32), folder)
    first, second = results_tables(read_results(folder))
    assert [row.cells[0].text.split("¹")[0] for row in first.rows][:3] == [
        "baseline:oracle", "good", "poor"
    ]  # fmt: skip
    assert any("privileged" in note for note in first.notes)
    assert any("Final Answer Score" in note for note in first.notes)
    assert first.title != second.title, "benchmarks of one name are told apart by their hash"

    assert is_results_folder(folder)
    assert not is_results_folder(yardstick)
    page = write_page(folder).read_text()
    assert "75.0" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "src=" not in page.replace(ATTACK, "").replace("&lt;", "<").split("<main")[0]


def test_a_limit_and_tool_servers_are_named(tmp_path: Path):
    server = ServerUse(name="weather", address="a", version="4.2", schemas="s", sealed=True)
    limit = Limit(n_questions=N, n_of=60)
    about = {"model": "qwen", "quick": True, "limit": limit, "tool_servers": (server,)}
    run = write(tmp_path / "run", 9, **about)
    paragraph = cite(run)
    assert paragraph.startswith("qwen on a random 12 of 60 questions of the quick part of b")
    assert "tool server weather 4.2" in paragraph
    result = read_result(write_result(run, tmp_path / "results"))
    assert (result.limit, result.settings["tool_servers"]) == (limit, ["weather"])
    (table,) = results_tables([result])
    assert [column.heading[0] for column in table.columns[1:5]] == [
        "score",
        "n",
        "floor",
        "ceiling",
    ]
    assert table.rows[0].cells[2].text == str(N)
    assert any("a random 12 of 60 questions" in note for note in table.notes)


def test_a_paragraph_and_an_entry_cite_a_run_also_on_its_page(tmp_path: Path):
    run = write(tmp_path / "run", 9, model="qwen", benchmark_version="7")
    paragraph, _, entry = cite(run).partition("\n\n")
    assert paragraph.startswith("qwen on b, version 7. End to end: FAS 75.0 of 100, 95 % interval ")
    assert "12 questions in 12 clusters" in paragraph
    assert "benchmark aaaaaaaaaaaa, tools t, prompts p." in paragraph
    assert entry.startswith("@software{agrotools,")
    page = build_report([run], tmp_path / "page.html").path.read_text()
    assert entry.splitlines()[1] in page
    assert "qwen on b, version 7. End to end: FAS 75.0 of 100" in page
