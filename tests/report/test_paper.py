"""Runs beside the figures of papers: what corresponds is data, and what does not is left out with a note."""

import re

import pytest

from agrotools.report.paper import Comparison, RunsBesidePaper
from agrotools.report.published import benchmarks_with_figures, paper, rows_of_table
from agrotools.scoring.error_classes import CLASSES
from support.runs import manifest, record
from support.shown import rendered


@pytest.mark.parametrize("family", benchmarks_with_figures())
def test_every_comparison_names_printed_columns_and_known_classes(family: str):
    comparisons = [Comparison(**each) for each in paper(family).about["comparisons"]]
    assert comparisons
    for each in comparisons:
        assert {error for classes in each.errors.values() for error in classes} <= {*CLASSES}
        assert set(each.columns.values()) <= {*each.errors} or not each.errors
        for setting, tables in each.tables.items():
            rows = [row for table in tables for row in rows_of_table(family, table) if row.setting in (setting, "")]
            printed = {each.key(row) for row in rows if not each.metric or row.metric == f"{family}.{each.metric}"}
            assert set(each.columns.values()) <= printed


def tables_of(family: str, **values: object) -> str:
    tables = RunsBesidePaper(family)
    records = [record(f"s{at}", mode="end-to-end", seconds=2 + at % 2) for at in range(12)]
    tables.add_run(manifest(model="openai:gpt-4o", **values), [(each, []) for each in records])
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
