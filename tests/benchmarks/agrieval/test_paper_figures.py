"""Runs on AgriEval beside the figures of its paper: scripted results are found again, with intervals and notes."""

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import Record, Sample, Score
from agrotools.core.slot import ExactSlot
from agrotools.formats.manifest import Manifest
from agrotools.report.paper import RunParts, RunsBesidePaper
from agrotools.report.published import paper
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import parsed
from agrotools_benchmarks.agrieval.report import DOMAINS, REPORTING, TASKS, code_of
from support.command import run_command
from support.made_agrieval import write_agrieval
from support.shown import rendered

TYPES = ("single_choice", "multiple_choice", "true_false")
PLAN = {
    code: (10 + 2 * place, 3 + place)
    for place, code in enumerate(code for code in TASKS if code[0] != "G")
}
"""Items and right ones of each task of choice questions: no two tasks have the same share."""
COUNT = sum(n for n, _ in PLAN.values())
RIGHT = sum(right for _, right in PLAN.values())


def tables_of_agrieval() -> RunsBesidePaper:
    return RunsBesidePaper("agrieval", REPORTING.paper)


def add_run(
    tables: RunsBesidePaper,
    plan: dict[str, tuple[int, int]] = PLAN,
    *,
    model: str = "maker/model-a",
    epochs: Sequence[int] = (0,),
    options: dict[str, Any] | None = None,
    groups: tuple[str, ...] = ("task", "domain"),
) -> RunsBesidePaper:
    """A run whose first items of each task are right, in epoch ``e`` as many more as ``epochs[e]`` says.

    Item i of all has domain i mod 6, type i mod 3, and a cluster of its own.
    """
    manifest = Manifest.model_construct(
        benchmark="agrieval", model=model, benchmark_options=options or {}
    )
    run = RunParts(manifest)
    for epoch, more in enumerate(epochs):
        entries = [
            (code, at < right + more) for code, (n, right) in plan.items() for at in range(n)
        ]
        for number, (code, is_right) in enumerate(entries):
            domain = [*DOMAINS.values()][number % 6]
            labels = {"task": code, "domain": domain[1], "type": domain[-1]}
            kind, name = "short_answer" if code[0] == "G" else TYPES[number % 3], f"q{number}"
            slot, chosen = (
                ExactSlot(name="answer", label="answer", value="A"),
                {each: labels[each] for each in groups},
            )
            sample = Sample.model_construct(
                id=name, task_type=kind, cluster=name, groups=chosen, metadata={}, answer=(slot,)
            )
            metric = "agrieval.rouge_l" if code[0] == "G" else "agrieval.accuracy"
            score = Score(
                metric=metric, version="1", sample_id=sample.id, epoch=epoch, value=float(is_right)
            )
            record = Record.model_construct(sample=sample, epoch=epoch, mode="no-tool")
            tables.add_record(run, record, [score])
    tables.finish_run(run)
    return tables


def text_of(tables: RunsBesidePaper) -> str:
    return rendered(tables.tables(), 100)


def table(text: str, title: str) -> str:
    """All parts of a table."""
    return "\n".join(part for part in text.split("\nAgriEval. ") if part.startswith(title))


DOMAIN_TABLE = """\
Accuracy by domain
                             PP       Aqua         GS        TCH       Fore        AST    Overall
─────────────────────────────────────────────────────────────────────────────────────────────────
model-a                    42.9       42.9       38.1       28.6       47.6       42.9       40.5
zero-shot             28.4–58.7  28.4–58.7  24.3–54.1  16.6–44.6  32.6–63.1  28.4–58.7  34.5–46.7
                           n 42       n 42       n 42       n 42       n 42       n 42      n 252
"""


def test_results_are_found_again_in_their_columns_with_epochs_averaged():
    text = text_of(add_run(tables_of_agrieval()))
    assert table(text, "Accuracy by domain").startswith(DOMAIN_TABLE)
    by_task = table(text, "Accuracy by task")
    for n, right in PLAN.values():
        assert f" {100 * right / n:.1f}" in by_task
    assert f" {100 * RIGHT / COUNT:.1f}" in by_task
    assert re.findall(r"n (\d+)", by_task) == [str(n) for n, _ in PLAN.values()] + [str(COUNT)]
    assert re.findall(r"n (\d+)", table(text, "Accuracy by question format")) == [
        "84",
        "84",
        "84",
        "252",
    ]
    assert "Open questions" not in text
    assert (
        max(
            map(
                len,
                rendered(add_run(tables_of_agrieval()).tables(), 80).split("\n¹")[0].splitlines(),
            )
        )
        <= 100
    )
    once, thrice = (
        text_of(add_run(tables_of_agrieval(), epochs=epochs)) for epochs in ((0,), (0, 0, 0))
    )
    assert thrice == once
    half = table(text_of(add_run(tables_of_agrieval(), epochs=(0, 1))), "Accuracy by task")
    assert f" {100 * (PLAN['M-P'][1] + 0.5) / PLAN['M-P'][0]:.1f}" in half


def test_the_printed_rows_are_those_of_the_models_that_were_run_and_the_best_two():
    text = text_of(add_run(tables_of_agrieval(), model="siliconflow:org/yi-1.5-9b-chat"))
    by_domain = table(text, "Accuracy by domain")
    printed = set(re.findall(r"^  (\S+) +\d", by_domain, re.MULTILINE))
    assert printed == {"Yi-1.5-9B-Chat", "Qwen2-72B-Instruct", "Qwen-Plus"}
    assert re.search(r"n \(implied\) +11402 +520 +130 +387 +509 +1542 +14490", by_domain)
    assert "draws lots" in " ".join(text.split())


def test_printed_figures_have_the_digits_of_the_paper_and_their_doubts():
    tables = add_run(tables_of_agrieval(), model="GPT-4o-mini", options={"cot": True})
    add_run(tables, {"G-QA": (40, 10)}, model="GPT-4o-mini")
    add_run(tables, model="GPT-4o", options={"shots": 5})
    text = text_of(tables)
    assert re.search(r"GPT-4o-mini +17\.19\S* +21\.22", table(text, "Open questions"))
    formats = table(text, "Accuracy by question format")
    assert re.search(r"GPT-4o-mini +41\.63↓\S* +41\.63↑\S* +54\.52↑\S* +43\.37↓", formats)
    number = re.search(r"^(\S+) † The arrow points down", text, re.MULTILINE)
    assert number
    assert f"52.64↓{number[1]}" in text
    words = " ".join(text.split())
    assert f"arXiv {paper('agrieval').arxiv}" in words
    assert "reading of answers are not those of the runs" in words
    assert "three experts, expert set: 70.62 % (n 1,500)" in words


def test_groups_that_the_files_do_not_tell_have_no_table():
    text = rendered(add_run(tables_of_agrieval(), groups=("type",)).tables(), 400)
    assert "do not tell the task of any question" in text
    assert "Accuracy by domain" in text
    assert "older label type" in text
    assert "Accuracy by task" not in text


@pytest.mark.data
def test_names_of_tasks_and_domains_are_found_in_every_language_and_mean_one_thing(
    field_data: Path,
):
    file = field_data / "agrieval" / "simple_merged_question_v4_2(main).json"
    for entry in json.loads(file.read_text("utf-8")) if file.is_file() else ():
        assert code_of(entry["domain"]["type"], DOMAINS)
        assert code_of(entry["class"]["task"], TASKS)[0] == "G"
    for names in (TASKS, DOMAINS):
        every = [name.casefold() for code, others in names.items() for name in (code, *others)]
        assert len(every) == len(set(every))
    assert {code_of(name, DOMAINS) for name in ("forestry", "Forestry", "FORE", "林学类")} == {
        "Fore"
    }
    assert {code_of(name, TASKS) for name in ("Causal  Analysis", "g-ca", "归因分析")} == {"G-CA"}
    assert code_of("", TASKS) == code_of("history", TASKS) == ""


@pytest.mark.process
def test_the_command_prints_the_tables_of_runs_and_says_where_none_has_any(
    tmp_path: Path, small_benchmark: Path
):
    made = write_agrieval(tmp_path / "made", 60, 5)
    rotated = EvalConfig.of(
        benchmark="agrieval",
        data_root=made,
        model="baseline:random",
        out=tmp_path / "a",
        options={"order": "rotated"},
    )
    other = EvalConfig.of(
        benchmark=str(small_benchmark), model="baseline:random", out=tmp_path / "other"
    )
    for config, has_tables in ((rotated, True), (other, False)):
        folder = evaluate(config, io.StringIO()).run
        done = run_command("score", folder, "--paper")
        assert done.returncode == 0, done.stderr
        assert ("none of these runs" in done.stderr) == (not has_tables)
        assert ("AgriEval. Accuracy by task" in done.stdout) == has_tables
        if has_tables:
            assert "n 60" in done.stdout, "the rotations of a question are one item"


@pytest.mark.process
def test_the_command_reads_each_record_once_for_all_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = write_agrieval(tmp_path / "made", 20, 2)
    config = EvalConfig.of(
        benchmark="agrieval", data_root=made, model="baseline:random", out=tmp_path / "run"
    )
    run = evaluate(config, io.StringIO()).run
    read: list[bytes] = []

    def noted(line: bytes) -> Record:
        read.append(line)
        return parsed(line)

    monkeypatch.setattr("agrotools.runner.records.parsed", noted)
    done = run_command("score", run, "--paper")
    assert "AgriEval. Accuracy by task" in done.stdout
    assert sorted(read) == sorted((run / "records.jsonl").read_bytes().splitlines(keepends=True))
