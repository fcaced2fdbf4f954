"""Correlations over the models of GTA's and ThinkGeo's printed tables, and of runs beside them."""

import pytest

from agrotools.report.layout import Notes
from agrotools.scoring.summary import ModeSummary, PublishedFigures, Summary
from agrotools_benchmarks._dialogs.plugin_parts import table_layouts
from agrotools_benchmarks._dialogs.report import printed_correlations, published_tables
from agrotools_benchmarks.gta.plugin import FACTS as GTA
from agrotools_benchmarks.thinkgeo.plugin import FACTS as THINKGEO
from support.shown import cells_of, table_of

TITLE = "GTA: correlation of steps with Ans over models, as its scorer has both"


@pytest.mark.parametrize(
    ("family", "facts", "models", "expected", "highest"),
    [
        # Figure 5 of both papers has bars without numbers; their text says which one is the highest.
        ("gta", GTA, 16, [0.8691, 0.8975, 0.9783, 0.6643], "gta.arg_acc"),
        ("thinkgeo", THINKGEO, 11, [0.3976, 0.4346, 0.4220, 0.3285], "thinkgeo.tool_acc"),
    ],
)
def test_the_printed_tables_have_the_correlations_that_their_papers_tell_of(
    family, facts, models, expected, highest
):
    found = printed_correlations(family, table_layouts(facts)["step-by-step"])
    assert [each.r for each in found] == pytest.approx(expected, abs=5e-5)
    assert {each.n for each in found} == {models}
    assert max(found, key=lambda each: each.r).step == highest


def run(model: str, arg_acc: float, ans_acc: float | None) -> Summary:
    def mode(**values: float | None) -> ModeSummary:
        figures = PublishedFigures(
            family="gta", reference={f"gta.{name}": value for name, value in values.items()}
        )
        return ModeSummary(n_records=1, n_samples=1, n_clusters=1, epochs=1, published=figures)

    modes = {"step-by-step": mode(arg_acc=arg_acc), "end-to-end": mode(ans_acc=ans_acc)}
    return Summary.model_validate({"model": model, "benchmark": "gta", "modes": modes})


def tables(*runs: Summary):
    return published_tables("gta", table_layouts(GTA), runs, Notes())


def test_three_runs_stand_above_the_printed_models():
    runs = [run("a", 0.1, 0.1), run("b", 0.2, 0.1), run("c", 0.6, 0.4), run("baseline:guess", 0, 0)]
    rows = cells_of(table_of(tables(*runs), TITLE))
    assert rows["3 models"]["Arg"].lines[0] == "0.98"
    assert rows["3 models"]["Tool"].lines == ("—",)
    assert rows["printed: 16 models"]["Arg"].lines == ("0.98", "0.93–0.99")
    assert all(part.title != TITLE for part in tables(*runs[1:]))
