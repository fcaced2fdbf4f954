"""Plans of a trial, joined to zones, and the treatments of their plots."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from agrotools.core import ToolError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools_tools.zones.levels import levels_of
from agrotools_tools.zones.plan import Plan, join_plan
from agrotools_tools.zones.shapes import Zones
from agrotools_tools.zones.shown import decimals_of, named_with_unit, rounded_text
from agrotools_tools.zones.treatments import compare_treatments, design_of

shapely = pytest.importorskip("shapely", reason="needs the extra zones")


def zones(**fields: Sequence[Any]) -> Zones:
    count = len(next(iter(fields.values())))
    names = [f"feature {place + 1}" for place in range(count)]
    polygons = np.array([shapely.box(0, 0, 1, 1)] * count)
    return Zones(names, polygons, None, fields)


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def joined(path: Path, of: Zones, readings: Readings | None = None, **answers: str) -> Plan:
    readings = readings or Readings()
    plan = join_plan(path, of, answers, readings)
    readings.settle()
    return plan


def test_columns_that_name_a_plot_together_join_and_the_rest_is_said(tmp_path: Path) -> None:
    text = "Reihe;Spalte;Sorte;Ertrag\n1;1;A;7,5\n1;2;B;8\n2;1;B;8,25\n9;9;A;1\n"
    plots = zones(Spalte=[2, 1, 1, 2], Reihe=["01", "01", "02", "02"])
    readings = Readings()
    plan = joined(table(tmp_path / "plan.csv", text), plots, readings)
    assert plan.zones.fields["Sorte"] == ["B", "A", "B", None]
    assert plan.zones.fields["Ertrag"] == [8, 7.5, 8.25, None]
    assert any("3 of 4 rows joined by Reihe and Spalte" in line for line in readings.taken)
    (note,) = plan.notes
    assert "row 5: 9" in note
    assert "feature 4" in note


def test_columns_that_would_join_other_rows_are_a_question(tmp_path: Path) -> None:
    text = "Reihe,Spalte,Sorte\n1,1,A\n1,2,B\n2,1,C\n2,2,D\n"
    path = table(tmp_path / "plan.csv", text)
    plots = zones(row=[1, 1, 2, 2], column=[1, 2, 1, 2])
    with pytest.raises(UndecidedError) as caught:
        joined(path, plots)
    assert caught.value.answers == ("--set=plot=Reihe=row,Spalte=column",)
    turned = joined(path, plots, plot="Reihe=column,Spalte=row")
    assert turned.zones.fields["Sorte"] == ["A", "C", "B", "D"]


def test_a_treatment_may_be_called_none_and_a_missing_number_is_none(tmp_path: Path) -> None:
    path = table(
        tmp_path / "plan.csv", "Plot,Sprayed,Ertrag\n1,none,NA\n2,oil,7.5\n-,oil,1\n-,,2\n"
    )
    fields = joined(path, zones(plot=[1, 2])).zones.fields
    assert fields["Sprayed"] == ["none", "oil"]
    assert fields["Ertrag"] == [None, 7.5]


def test_a_running_number_does_not_join_in_silence_beside_rows_and_columns(tmp_path: Path) -> None:
    text = "Nr,Reihe,Spalte\n1,2,1\n2,2,2\n3,2,3\n4,1,1\n5,1,2\n6,1,3\n"
    plots = zones(fid=[1, 2, 3, 4, 5, 6], row=[1, 1, 1, 2, 2, 2], column=[1, 2, 3, 1, 2, 3])
    with pytest.raises(UndecidedError):
        joined(table(tmp_path / "plan.csv", text), plots)


def test_a_column_joins_by_the_names_of_zones_and_plots_of_a_site_by_three_columns(
    tmp_path: Path,
) -> None:
    by_name = zones(other=[None, None])
    path = table(tmp_path / "a.csv", "Plot,Treatment\nFeature 2,x\nFeature 1,y\n")
    assert joined(path, by_name).zones.fields["Treatment"] == ["y", "x"]
    plots = zones(site=["S", "S", "T", "T"], rep=[1, 2, 1, 1], plot=[1, 1, 1, 2])
    text = "Site,Rep,Plot,Treatment\nT,1,2,d\nT,1,1,c\nS,2,1,b\nS,1,1,a\n"
    assert joined(table(tmp_path / "b.csv", text), plots).zones.fields["Treatment"] == [*"abcd"]


def test_a_table_that_names_no_plot_and_answers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "plan.csv", "Plot,Sorte\n1,A\n1,B\n")
    plots = zones(plot=[1, 2])
    for answers in ({}, {"plot": "Plot"}, {"plot": "Sorte=plot"}, {"plot": "nothing"}):
        with pytest.raises(ToolError) as caught:
            joined(path, plots, **answers)
        assert caught.value.argument == "table"
        assert "Sorte" in (caught.value.hint or "")


def test_a_value_in_several_rows_or_zones_is_named_with_the_rows(tmp_path: Path) -> None:
    path = table(tmp_path / "plan.csv", "Sorte,Plot\nA,1\nB,2\nA,3\nB,1\n")
    with pytest.raises(ToolError, match="Plot 1 stands in rows 2, 5"):
        joined(path, zones(Plot=[1, 2, 3]))
    with pytest.raises(ToolError, match="Plot 1 stands in rows 2, 5"):
        joined(path, zones(Plot=[1, 2, 3]), plot="Plot")
    path = table(tmp_path / "other.csv", "Sorte,Plot\nA,1\nB,2\n")
    with pytest.raises(ToolError, match="Plot 2 stands in 2 zones"):
        joined(path, zones(Plot=[1, 2, 2]))
    path = table(tmp_path / "grid.csv", "row,column\n1,1\n1,2\n2,1\n1,2\n")
    with pytest.raises(ToolError, match="row 1, column 2 stands in rows 3, 5"):
        joined(path, zones(row=[1, 1, 2, 2], column=[1, 2, 1, 2]))


@pytest.mark.parametrize("text", ["k.A.", "fehlt", "ca. 4500", "5.030,5 *", "5.030,5 kg"])
def test_a_cell_that_is_no_number_is_named_and_the_others_are_compared(
    tmp_path: Path, text: str
) -> None:
    yields = ["4.000,5", "4.100,5", text, "4.300,5", "4.400,5", "4.500,5"]
    lines = [f"{place + 1};{'AB'[place % 2]};{cell}" for place, cell in enumerate(yields)]
    path = table(tmp_path / "plan.csv", "\n".join(["Plot;Sorte;Ertrag", *lines]))
    readings = Readings()
    plan = joined(path, zones(plot=[*range(1, 7)]), readings)
    design = design_of(plan, {}, readings)
    assert design is not None
    assert design.numbers["Ertrag"] == [4000.5, 4100.5, None, 4300.5, 4400.5, 4500.5]
    assert plan.zones.fields["Ertrag"][2] == text
    assert any(f"row 4 {text!r}" in line for line in readings.left)


@pytest.mark.parametrize(
    ("moisture", "more", "expected", "said"),
    [
        (["13,5", "14"], {}, [7140, 6985], 'decimal mark "," as in 13,5 of moisture'),
        (["13.5", "14"], {}, [7.14, 6.985], 'decimal mark "." as in 13.5 of moisture'),
        (["13", "14"], {}, [7.14, 6.985], "--set decimal=, reads 7140"),
        (["13,5", "14"], {"decimal": "."}, [7.14, 6.985], 'decimal mark ".";'),
    ],
)
def test_other_cells_of_the_file_tell_the_decimal_mark_and_a_line_says_what_is_taken(
    tmp_path: Path, moisture: list[str], more: dict[str, str], expected: list[float], said: str
) -> None:
    text = f"Plot;moisture;yield\n1;{moisture[0]};7.140\n2;{moisture[1]};6.985\n"
    readings = Readings()
    path = table(tmp_path / "plan.csv", text)
    fields = joined(path, zones(plot=[1, 2]), readings, **more).zones.fields
    assert fields["yield"] == expected
    (line,) = [line for line in readings.taken if line.startswith("7.140 of yield")]
    assert said in line


def test_a_mark_that_no_cell_tells_is_asked_for_and_said_where_yes_takes_it(tmp_path: Path) -> None:
    path = table(tmp_path / "plan.csv", "Plot;yield\n1;7.140\n2;6.980\n")
    with pytest.raises(UndecidedError) as caught:
        joined(path, zones(plot=[1, 2]))
    assert caught.value.answers == ("--set=decimal=.",)
    accepted = Readings(accept=True)
    joined(path, zones(plot=[1, 2]), accepted)
    assert any("7.140 of yield as 7.14 " in line for line in accepted.taken)


def test_spaces_do_not_tell_treatments_apart_unless_they_tell_numbers_apart() -> None:
    found = levels_of(["Azoto120", "Azoto 120", "Azoto 120", "1 20", "12 0", "60kg", "60 kg"])
    assert found.in_order == ["1 20", "12 0", "60kg", "Azoto 120"]
    assert found.joined == {"Azoto 120": ["Azoto120"], "60kg": ["60 kg"]}


def test_numbers_in_names_of_treatments_are_in_their_order() -> None:
    found = levels_of(["N120", "B", "N60", "n180", "a", "N 60+S", 120.0, 60.0])
    assert found.in_order == ["60", "120", "a", "B", "N60", "N 60+S", "N120", "n180"]


@pytest.mark.parametrize(
    ("names", "control"),
    [
        (("N120", "N60", "untreated control"), "untreated control"),
        (("Gärrest", "Kontrolle", "Stroh"), "Kontrolle"),
        (("A", "Témoin", "Z"), "Témoin"),
        (("A", "空白对照", "Z"), "空白对照"),
        (("N180", "N60", "uncontrolled"), "N60"),
    ],
)
def test_the_control_is_the_treatment_that_is_called_so_else_the_first(
    tmp_path: Path, names: Sequence[str], control: str
) -> None:
    lines = [f"{place + 1},{names[place % 3]}" for place in range(6)]
    path = table(tmp_path / "plan.csv", "\n".join(["Plot,Treatment", *lines]))
    readings = Readings()
    design = design_of(joined(path, zones(plot=[*range(1, 7)]), readings), {}, readings)
    assert design is not None
    assert design.levels[0] == control
    assert any(f"compared with {control}" in line for line in readings.taken)


@pytest.mark.parametrize(
    ("value", "spreads", "text"),
    [
        (39.8105, [2.95994, 3.4], "39.8"),
        (-0.04, [2.9], "0.0"),
        (6512.4, [310.0], "6512"),
        (0.71234, [0.031], "0.712"),
        (7.0625, [], "7.0625"),
        (100.0, [0.0, 0.0], "100"),
    ],
)
def test_means_have_the_decimals_that_their_spread_supports(
    value: float, spreads: Sequence[float], text: str
) -> None:
    assert rounded_text(value, decimals_of(spreads)) == text


def test_values_are_shown_in_words_with_their_unit() -> None:
    assert named_with_unit("veg_pct") == "plant cover, %"
    assert named_with_unit("change of veg_pct") == "change of plant cover, points"
    assert named_with_unit("Ertrag") == "Ertrag"


def test_two_treatments_that_are_called_control_are_a_question(tmp_path: Path) -> None:
    text = (
        "Plot,Treatment\n1,N60\n2,dry control\n3,wet control\n4,N60\n5,dry control\n6,wet control\n"
    )
    with pytest.raises(UndecidedError) as caught:
        trial(tmp_path / "plan.csv", text, [1.0] * 6)
    assert caught.value.answers == ("--set=control=dry control",)
    rows, _ = trial(tmp_path / "plan.csv", text, [1.0] * 6, control="wet control")
    assert rows["h", "N60"]["control"] == "wet control"


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["plot 01", "plot 02", "plot 10"], ["Plot 1", "Plot 2", "Plot 10"]),
        (["P5", "P06", "P 07"], ["P05", "P6", "P7"]),
        (["P04", "P05", "P 06"], ["P04", "P05", "P06"]),
    ],
)
@pytest.mark.parametrize("answers", [{}, {"plot": "Nr=plot"}])
def test_plots_join_by_names_without_spaces_and_leading_zeros_and_a_line_says_so(
    tmp_path: Path, cells: list[str], names: list[str], answers: dict[str, str]
) -> None:
    lines = [f"{cell},{place}.5" for place, cell in enumerate(cells)]
    path = table(tmp_path / "plan.csv", "\n".join(["Nr,yield", *lines]))
    readings = Readings()
    fields = joined(path, zones(plot=names), readings, **answers).zones.fields
    assert fields["yield"] == [0.5, 1.5, 2.5]
    assert any("without spaces and leading zeros" in line for line in readings.taken)


def test_plots_whose_names_differ_in_zeros_alone_stay_apart(tmp_path: Path) -> None:
    path = table(tmp_path / "plan.csv", "plot,yield\nP1,1\nP01,2\nP2,3\n")
    readings = Readings()
    fields = joined(path, zones(plot=["P01", "P1", "P02"]), readings).zones.fields
    assert fields["yield"] == [2, 1, None]
    assert not any("leading zeros" in line for line in readings.taken)
    path = table(tmp_path / "decimals.csv", "plot,yield\n1.5,1\n1.6,2\n")
    assert joined(path, zones(plot=["1.05", "1.5", "1.6"])).zones.fields["yield"] == [None, 1, 2]


def test_up_to_ten_rows_that_do_not_join_are_named(tmp_path: Path) -> None:
    lines = [f"p{place}" for place in range(12)]
    path = table(tmp_path / "plan.csv", "\n".join(["plot", "1", "2", *lines]))
    (note,) = joined(path, zones(plot=[1, 2]), plot="plot").notes
    assert "p9, ..." in note


def test_a_column_of_mostly_text_and_rates_with_a_control_are_no_yields(tmp_path: Path) -> None:
    lines = [
        f"{place + 1},{('control', 0, 60)[place % 3]},{('lodged', 'hail', 3)[place % 3]} {place}"
        for place in range(6)
    ]
    path = table(tmp_path / "plan.csv", "\n".join(["Plot,N,Remark", *lines]))
    readings = Readings()
    design = design_of(joined(path, zones(plot=[*range(1, 7)]), readings), {}, readings)
    assert design is not None
    assert design.treatment == "N"
    assert design.levels == ("control", "0", "60")
    assert not design.numbers
    assert not readings.left


def test_amounts_with_a_name_among_them_are_a_treatment_as_it_is_written(tmp_path: Path) -> None:
    lines = [f"{place + 1},{('control', '60 kg', '120 kg')[place % 3]}" for place in range(6)]
    path = table(tmp_path / "plan.csv", "\n".join(["Plot,N", *lines]))
    plan = joined(path, zones(plot=[*range(1, 7)]))
    design = design_of(plan, {"control": "control"}, Readings())
    assert plan.columns == ("N",)
    assert design is not None
    assert (design.treatment, {*design.levels}) == ("N", {"control", "60 kg", "120 kg"})


def test_yields_with_their_unit_are_numbers_and_so_are_those_with_the_unit_of_the_header(
    tmp_path: Path,
) -> None:
    text = (
        "Plot;Yield;Straw (kg/ha)\n1;5030 kg/ha;2000\n2;4800 kg/ha;2100 kg/ha\n3;5100 kg/ha;1900\n"
    )
    fields = joined(table(tmp_path / "plan.csv", text), zones(plot=[1, 2, 3])).zones.fields
    assert fields["Yield (kg/ha)"] == [5030, 4800, 5100]
    assert fields["Straw (kg/ha)"] == [2000, 2100, 1900]


def test_a_unit_in_the_name_of_a_column_is_not_added_again(tmp_path: Path) -> None:
    path = table(tmp_path / "plan.csv", "Plot;Feuchte %;Höhe\n1;14,5 %;80 cm\n2;15 %;85 cm\n")
    assert joined(path, zones(plot=[1, 2])).columns == ("Feuchte %", "Höhe (cm)")


def test_a_workbook_is_read_from_the_sheet_that_joins(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra build")
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["sown on 3 April"])
    plan = book.create_sheet("Plan")
    for row in (["Plot", "Yield"], [2, 7.25], [1, 6.5]):
        plan.append(row)
    book.save(tmp_path / "plan.xlsx")
    readings = Readings()
    found = joined(tmp_path / "plan.xlsx", zones(plot=[1, 2]), readings)
    assert found.zones.fields["Yield"] == [6.5, 7.25]
    assert any("Notes" in line for line in readings.left)


BLOCKED = "Plot,Sorte,Block,Ertrag\n" + "".join(
    f"{place + 1},{'ABC'[place % 3]},{place // 3 + 1},{5 + place % 3 + 0.3 * (place // 3)}\n"
    for place in range(12)
)


def trial(path: Path, text: str, values: Sequence[float | None], **answers: str) -> Any:
    """Return the rows of treatments by value and treatment, and the notes."""
    readings = Readings()
    plan = joined(table(path, text), zones(plot=[*range(1, len(values) + 1)]), readings, **answers)
    design = design_of(plan, answers, readings)
    readings.settle()
    assert design is not None
    rows: list[dict[str, Any]] = [
        {"raster": "a.tif", "date": "", "flags": "" if value is not None else "no_data", "h": value}
        for value in values
    ]
    found, notes = compare_treatments(rows, design, ["h"])
    return {(row["value"], row["treatment"]): row for row in found}, notes


def test_differences_are_paired_within_blocks(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    values = [*draw.normal(size=12)]
    rows, notes = trial(tmp_path / "plan.csv", BLOCKED, values)
    ours, control = np.array(values[1::3]), np.array(values[0::3])
    expected = stats.ttest_rel(ours, control).confidence_interval(0.95)
    row = rows["h", "B"]
    assert (row["n"], row["blocks"], row["control"]) == (4, 4, "A")
    assert (row["mean"], row["sd"]) == pytest.approx((ours.mean(), ours.std(ddof=1)))
    assert (row["lower_95"], row["upper_95"]) == pytest.approx((expected.low, expected.high))
    assert rows["Ertrag", "C"]["difference"] == pytest.approx(2)
    assert not notes


@pytest.mark.parametrize(("last", "is_far"), [(651.0, True), (8.1, True), (89.0, False)])
def test_a_yield_far_from_the_others_is_named_and_stays_in_the_mean(
    tmp_path: Path, last: float, is_far: bool
) -> None:
    yields = [*range(80, 91), last]
    cells = [f"{place + 1},{'ABC'[place % 3]},{value}" for place, value in enumerate(yields)]
    readings = Readings()
    text = "\n".join(["Plot,Sorte,Ertrag", *cells])
    plan = joined(table(tmp_path / "plan.csv", text), zones(plot=[*range(1, 13)]), readings)
    design = design_of(plan, {}, readings)
    assert design is not None
    lines = [line for line in readings.taken if "far from the others" in line]
    assert len(lines) == is_far
    assert all(f"row 13 {last:g}" in line for line in lines)
    assert last in design.numbers["Ertrag"]


def test_a_block_without_a_treatment_drops_out_of_its_pair_and_it_is_said(tmp_path: Path) -> None:
    values: list[float | None] = [*np.random.default_rng(0).normal(size=12)]
    values[4] = None
    rows, notes = trial(tmp_path / "plan.csv", BLOCKED, values)
    assert (rows["h", "B"]["n"], rows["h", "B"]["blocks"], rows["h", "C"]["blocks"]) == (3, 3, 4)
    pairs = [values[place + 1] - values[place] for place in (0, 6, 9)]  # pyright: ignore[reportOptionalOperand]
    assert rows["h", "B"]["difference"] == pytest.approx(np.mean(pairs))
    assert any("1 of 12 plots" in note for note in notes)
    assert any("fewer than 4 blocks" in note for note in notes)


def test_without_blocks_the_interval_is_that_of_welch(tmp_path: Path) -> None:
    values = [*np.random.default_rng(1).normal(size=12)]
    rows, _ = trial(tmp_path / "plan.csv", BLOCKED, values, block="none", control="C")
    ours, control = np.array(values[0::3]), np.array(values[2::3])
    expected = stats.ttest_ind(ours, control, equal_var=False).confidence_interval(0.95)
    row = rows["h", "A"]
    assert (row["control"], row["blocks"]) == ("C", None)
    assert (row["lower_95"], row["upper_95"]) == pytest.approx((expected.low, expected.high))


def test_one_plot_of_a_treatment_has_no_spread_and_no_interval(tmp_path: Path) -> None:
    text = "Plot,Sorte\n1,A\n2,A\n3,B\n4,B\n5,C\n"
    rows, _ = trial(tmp_path / "plan.csv", text, [1.0, 2.0, 3.0, 5.0, 4.0], treatment="Sorte")
    row = rows["h", "C"]
    assert (row["n"], row["sd"], row["lower_95"]) == (1, None, None)
    assert row["difference"] == pytest.approx(2.5)


def test_several_columns_that_may_be_the_treatment_are_a_question(tmp_path: Path) -> None:
    lines = [f"{n + 1},{'AB'[n % 2]},{60 * (n // 2 % 2)},{n}.5" for n in range(8)]
    text = "\n".join(["Plot,Sorte,N,Ertrag", *lines])
    with pytest.raises(UndecidedError) as caught:
        trial(tmp_path / "plan.csv", text, [1.0] * 8)
    assert caught.value.answers == ("--set=treatment=Sorte",)
    rows, _ = trial(tmp_path / "plan.csv", text, [1.0] * 8, treatment="N")
    assert {treatment for _, treatment in rows} == {"0", "60"}
    with pytest.raises(UsageError, match="nothing"):
        trial(tmp_path / "plan.csv", text, [1.0] * 8, treatment="nothing")
    with pytest.raises(ToolError, match="no such value"):
        trial(tmp_path / "plan.csv", text, [1.0] * 8, treatment="N", control="90")


def test_spellings_in_case_and_spaces_are_one_and_near_ones_are_named(tmp_path: Path) -> None:
    names = ["Hafer", "HAFER", "Hafer ", "Phacelia", "Phazelia", "Phacelia", "N 60", "N 80", "N 60"]
    blocks = ["I", " i", "II", "I", "II", "II", "I", "II", "ii"]
    lines = [
        f"{place + 1},{name},{block}"
        for place, (name, block) in enumerate(zip(names, blocks, strict=True))
    ]
    path = table(tmp_path / "plan.csv", "\n".join(["Plot,Sorte,Block", *lines]))
    readings = Readings()
    plan = joined(path, zones(plot=[*range(1, 10)]), readings)
    answers = {"treatment": "Sorte", "control": "hafer"}
    design = design_of(plan, answers, readings)
    assert design is not None
    assert design.levels == ("Hafer", "N 60", "N 80", "Phacelia", "Phazelia")
    assert {*(design.blocks or ())} == {"I", "II"}
    said = " ".join(readings.taken)
    assert "'HAFER' of Sorte as 'Hafer'" in said
    assert "'Phazelia' and 'Phacelia' of Sorte as two" in said
    assert "'N 80'" not in said


def test_equal_means_differ_by_0_and_not_by_an_error_of_rounding(tmp_path: Path) -> None:
    text = "Plot,Sorte\n1,A\n2,A\n3,A\n4,B\n5,B\n6,B\n"
    values = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    assert np.mean(values[3:]) != np.mean(values[:3])
    rows, _ = trial(tmp_path / "plan.csv", text, values)
    assert rows["h", "B"]["difference"] == 0


def test_equal_plots_have_no_interval_of_no_width(tmp_path: Path) -> None:
    rows, _ = trial(tmp_path / "plan.csv", BLOCKED, [1.0] * 12)
    assert rows["h", "B"]["difference"] == 0
    assert rows["h", "B"]["lower_95"] is None
