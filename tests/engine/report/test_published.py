"""The published figures: all parse, add up as they should, and stand beside runs; some are compared with the papers."""

import re
import tomllib
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files

import pytest

from agrotools.core import UsageError
from agrotools.report.paper import PaperComparison, RunParts, RunsBesidePaper
from agrotools.report.published import (
    IN_TEXT,
    benchmarks_with_figures,
    paper,
    published_rows,
    published_set,
    rows_of_model,
    rows_of_table,
    same_model,
)
from agrotools.scoring.error_classes import CLASSES
from support.runs import manifest, record
from support.shown import rendered

ROWS = {"thinkgeo": 240, "gta": 432, "agentx": 507, "agrieval": 4309}


@pytest.mark.parametrize("benchmark", ROWS)
def test_every_row_parses_and_every_note_is_about_some_row(benchmark):
    rows = published_rows(benchmark)
    assert len(rows) == ROWS[benchmark]
    tables = paper(benchmark).tables
    for row in rows:
        assert row.metric.startswith(f"{benchmark}.")
        assert row.table in tables
        assert row.arrow in ("", "up", "down")
        assert row.access in ("", "open", "api", "people")
        assert row.number >= 0
        assert row.n is None or row.n > 0
        if row.unit in ("count", "s/query"):
            assert (row.fraction, row.percent) == (None, None)
        else:
            assert 0 <= row.fraction <= 1
            assert row.percent.replace(".", "", 1).isdecimal()
            assert Decimal(row.percent) == pytest.approx(Decimal(100) * Decimal(str(row.fraction)))
    assert {row.table for row in rows} == set(tables)
    assert published_rows(benchmark) is rows
    about = tomllib.loads(_file(benchmark, "paper.toml").read_text("utf-8"))
    for one in about.get("notes", []):
        assert any(one["text"] in row.notes for row in rows), one
    for one in about.get("doubts", []):
        assert any(one["text"] in row.doubts for row in rows), one
    models = {row.model for row in rows}
    listed = Counter(model for names in about["access"].values() for model in names)
    assert set(listed) <= models
    assert max(listed.values()) == 1


def _file(benchmark, name):
    folder = benchmarks_with_figures()[benchmark]
    return files(folder.package) / folder.folder / name


def test_a_benchmark_is_known_by_its_own_name_and_by_the_prefix_of_its_figures():
    rows = published_rows("agent-x")
    assert rows is published_rows("agentx")
    assert len(rows) == ROWS["agentx"]
    assert paper("agent-x").arxiv == "2505.24876"
    assert published_set("agent-x") == published_set("agentx")
    (goal,) = (
        row
        for row in rows_of_table("agent-x", "4")
        if row.model == "GPT-4o" and row.metric == "agentx.goal_acc"
    )
    assert goal.value == "0.37"
    assert rows_of_model("agent-x", "GPT-4o") == rows_of_model("agentx", "GPT-4o")


def test_unknown_names_are_errors_that_name_the_known_ones():
    with pytest.raises(UsageError, match="agrieval"):
        published_rows("mmlu")
    with pytest.raises(UsageError, match="tables: 4, 5, 2025-03, 2026-02"):
        rows_of_table("gta", "6")
    with pytest.raises(UsageError, match="no published results of 'agrotools'"):
        paper("agrotools")


@pytest.mark.parametrize(
    ("benchmark", "table", "setting", "variant", "model", "metric", "group", "value"),
    [
        # Read in the papers' text line by line; each is a different column or table.
        ("thinkgeo", "3", "end-to-end", "optical", "GPT-4o", "ans_i", "", "20.40"),
        ("thinkgeo", "A1", "step-by-step", "SAR", "GPT-4o", "arg_acc", "", "55.33"),
        ("thinkgeo", "A1", "end-to-end", "SAR", "GPT-4o", "ans_acc", "", "5.56"),
        ("thinkgeo", "A2", "", "", "Claude-Sonnet", "err_final_ans_single_step", "format", "29.13"),
        ("thinkgeo", "A4", "end-to-end", "", "GPT-4o", "runtime", "", "12.01"),
        ("gta", "4", "step-by-step", "", "gpt-4-1106-preview", "tool_acc", "", "61.4"),
        ("gta", "4", "end-to-end", "", "gpt-3.5-turbo", "c_f1", "", "97.3"),
        ("gta", "2025-03", "end-to-end", "", "qwen-max-2.5", "ans_acc_imggen", "", "45.91"),
        ("gta", "2026-02", "end-to-end", "", "gpt-5", "ans_acc", "", "45.07"),
        ("gta", "2026-02", "step-by-step", "", "claude-sonnet-4.5", "tool_acc", "", "35.01"),
        ("gta", "5", "", "tool calls", "claude3-opus", "err_arg_format", "", "82.86"),
        ("agentx", "5", "", "errors", "GPT-4o", "err_multi_tool_calls.share", "formatting", "13.2"),
        (
            "agentx",
            "10",
            "",
            "errors",
            "Qwen2.5-VL-7B",
            "err_invalid_json.count",
            "formatting",
            "317",
        ),
        ("agrieval", "2", "zero-shot", "", "KwooLa", "acc", "overall", "44.48"),
        ("agrieval", "4", "cot", "", "GPT-3.5-Turbo", "acc", "I-N", "49.69"),
        ("agrieval", "4", "few-shot", "5 examples", "Qwen2.5-14B-Instruct", "acc", "M-T", "53.03"),
        (
            "agrieval",
            "12",
            "cot",
            "",
            "GPT-4o-mini",
            "acc",
            "TCH",
            "40.31",
        ),  # the second column, headed Aqua
        ("agrieval", "13", "zero-shot", "", "Qwen-Turbo", "rouge_l", "G-PS", "0.3293"),
        ("agrieval", "14", "cot", "", "Llama2-13B-Chat", "acc", "multiple", "19.28"),
        ("agrieval", IN_TEXT, "", "expert set", "three experts", "acc", "overall", "70.62"),
    ],
)
def test_figures_are_those_of_the_papers(
    benchmark, table, setting, variant, model, metric, group, value
):
    (row,) = [
        row
        for row in rows_of_table(benchmark, table)
        if (row.setting, row.variant, row.model) == (setting, variant, model)
        and (row.metric, row.group_checked) == (f"{benchmark}.{metric}", group)
    ]
    assert row.value == value


def cells(table, setting=None):
    """Model (as one spells it in lower case) to column to row, of a table of AgriEval."""
    found = {}
    for row in rows_of_table("agrieval", table):
        if setting in (None, row.setting):
            found.setdefault(row.model.casefold(), {})[row.group_checked] = row
    return found


def fits(value, n):
    """Whether a printed percentage is a whole number out of ``n``, to its last digit."""
    half = Fraction(1, 2 * 10 ** len(value.partition(".")[2]))
    share = Fraction(value)
    nearest = round(share * n / 100)
    return abs(Fraction(100 * nearest, n) - share) <= half


@pytest.mark.parametrize("table", ["8", "10", "12"])
def test_overall_is_the_mean_of_the_domains_weighted_by_the_implied_questions(table):
    for columns in cells(table).values():
        parts = [row for name, row in columns.items() if name != "overall"]
        mean = sum(row.number * row.n_implied for row in parts) / sum(
            row.n_implied for row in parts
        )
        assert abs(mean - columns["overall"].number) < Decimal("0.01")
        assert sum(row.n_implied for row in parts) == columns["overall"].n_implied == 14_490


def test_notes_and_doubts_stand_with_their_rows_and_models_are_found_by_any_name():
    rows = [
        row
        for name in ("thinkgeo", "gta")
        for row in published_rows(name)
        if row.n_implied is not None
    ]
    assert len(rows) == 3 * (11 + 8 + 16 + 24)  # the last are those of two boards
    assert all(fits(f"{row.number:.2f}", row.n_implied) for row in rows)
    (row,) = rows_of_model("agrieval", "Three Experts")
    assert (row.n, row.access) == (1500, "people")
    assert any("65.78" in doubt for doubt in row.doubts)
    assert ROWS.keys() == benchmarks_with_figures().keys()
    (kwoola, *_) = rows_of_model("agrieval", "kwoola")
    assert any("Table 2 alone" in doubt for doubt in kwoola.doubts)
    assert kwoola.access == ""
    chance = "draws lots"
    for row in published_rows("agrieval"):
        about_choice = row.metric == "agrieval.acc" and row.table != IN_TEXT
        assert any(chance in doubt for doubt in row.doubts) == about_choice
    sizes = [
        row for row in published_rows("agrieval") if any("fit 61" in doubt for doubt in row.doubts)
    ]
    assert {row.group_checked for row in sizes} == {"M-R", "M-T", "I-N"}
    assert same_model("openai:gpt-4o", "GPT-4o")
    assert same_model("siliconflow:Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct")
    assert not same_model("qwen2.5:14b", "14b")
    assert same_model("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct")
    assert not same_model("Qwen2.5-7B", "Qwen2.5-72B")
    assert {row.table for row in rows_of_model("agrieval", "THUDM/chatglm3-6B")} >= {
        "2",
        "3",
        "7",
        "13",
    }


def test_sizes_of_the_data_sets():
    figures = {(one.table, one.item, one.quantity): one for one in published_set("agrieval")}
    for number, parts in (("1", 15), ("5", 29)):
        counts = [
            one.number or 0
            for one in figures.values()
            if (one.table, one.quantity) == (number, "questions")
        ]
        assert (len(counts), sum(counts)) == (parts, 14_697 + 2_167)
    assert figures["text", "all", "choice questions"].number == 14_697
    assert figures["text", "answers of open questions", "mean tokens"].value == "467.30"
    thinkgeo = {(one.item, one.quantity): one for one in published_set("thinkgeo")}
    assert (
        thinkgeo["all", "steps"].number,
        thinkgeo["DOTA (optical)", "metres per pixel"].number,
    ) == (1778, None)
    easy = [
        one
        for one in published_set("thinkgeo")
        if one.table == "A3" and one.item.endswith(", easy")
    ]
    assert sum(one.number or 0 for one in easy) == 2 * 281
    gta = {(one.item, one.quantity): one.number for one in published_set("gta")}
    assert (
        gta["all", "questions"]
        == gta["with an answer in text", "questions"] + gta["that make an image", "questions"]
    )
    agentx = {(one.item, one.quantity): one for one in published_set("agentx")}
    assert agentx["annotation, checking by one person", "hours"].number is None
    assert agentx["all", "tool calls"].number == 2807


@pytest.mark.parametrize("family", benchmarks_with_figures())
def test_every_comparison_names_printed_columns_and_known_classes(family: str):
    comparisons = [PaperComparison(**each) for each in paper(family).about["comparisons"]]
    assert comparisons
    for each in comparisons:
        assert {error for classes in each.errors.values() for error in classes} <= {*CLASSES}
        assert set(each.columns.values()) <= {*each.errors} or not each.errors
        for setting, tables in each.tables.items():
            rows = [
                row
                for table in tables
                for row in rows_of_table(family, table)
                if row.setting in (setting, "")
            ]
            printed = {
                each.key(row)
                for row in rows
                if not each.metric or row.metric == f"{family}.{each.metric}"
            }
            assert set(each.columns.values()) <= printed


def tables_of(family: str, **values: object) -> str:
    tables = RunsBesidePaper(family)
    records = [record(f"s{at}", mode="end-to-end", seconds=2 + at % 2) for at in range(12)]
    run = RunParts(manifest(model="openai:gpt-4o", **values))
    for each in records:
        tables.add_record(run, each, [])
    tables.finish_run(run)
    return rendered(tables.tables(), 100)


def test_seconds_have_an_interval_above_the_rows_of_the_model_and_the_best():
    text = tables_of("thinkgeo")
    assert " 2.50" in text
    assert "n 12" in text
    assert re.search(r"GPT-4o +12\.01\n", text)
    assert "InternLM3-8b-Instruct" in text, "the best open model"
    assert "Qwen2.5" not in text


def test_another_subset_has_no_printed_rows_and_a_note():
    text = tables_of("thinkgeo", benchmark_options={"split": "sar"})
    assert "no figures are printed of split sar" in " ".join(text.split())
    assert "InternLM3-8b-Instruct" not in text
