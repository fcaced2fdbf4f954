"""The tables of the AgriEval paper: a scripted result with known accuracy in each part is found again, with its n."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks.agrieval.paper_layout import (
    COMPLETE,
    PAPER_TABLES,
    ItemColumns,
    SettingResult,
    setting_of,
)
from agrotools.benchmarks.agrieval.paper_tables import agrieval_tables, epoch_spreads
from agrotools.benchmarks.agrieval.taxonomy import DOMAINS, TASKS, task_of
from agrotools.core import UsageError
from agrotools.report.published import paper, rows_of_table
from agrotools.scoring import estimate_difference, estimate_mean
from support.agrieval_results import KINDS, PLAN, result, without

COUNT = sum(n for n, _ in PLAN.values())
RIGHT = sum(right for _, right in PLAN.values())
FLAGS = [float(at < right) for n, right in PLAN.values() for at in range(n)]
"""Scores of the scripted items in their order."""


def table(number, results, **options):
    (made,) = agrieval_tables(results, numbers=[number], **options)
    return made


def shown(made, row=0):
    """Code of a column to value and n of a row."""
    return {
        column.code: (round(cell.estimate.value, 9), cell.estimate.n)
        for column, cell in zip(made.columns, made.rows[row].cells, strict=True)
        if cell is not None
    }


def test_the_paper_s_tables_have_its_columns_in_its_order():
    assert [one.number for one in PAPER_TABLES] == ["2", "3", "4", *map(str, range(7, 15))]
    assert ("4", *map(str, range(7, 15))) == COMPLETE
    codes = {one.number: [column.code for column in one.columns] for one in PAPER_TABLES}
    cognitive = "M-P M-R M-E M-T U-I U-S U-V I-D I-N I-P I-S I-G Overall".split()
    assert all(codes[number] == cognitive for number in ("2", "4", "7", "9", "11"))
    assert all(codes[number] == "PP Aqua GS TCH Fore AST Overall".split() for number in ("3", "8", "10", "12"))
    assert codes["13"] == ["G-QA", "G-PS", "G-CA", "Overall"]
    assert codes["14"] == ["SA", "MA", "T/F", "Overall"]
    assert "5" not in codes


@pytest.mark.parametrize("layout", PAPER_TABLES, ids=lambda layout: layout.number)
def test_every_published_figure_of_a_table_has_its_place(layout):
    assert layout.number in paper("agrieval").tables
    rows = rows_of_table("agrieval", layout.number)
    assert {row.group_checked for row in rows} == {column.group for column in layout.columns}
    assert {row.setting for row in rows} == set(layout.settings)
    if layout.number not in ("4", "9", "10", "12", "13"):
        # Where the printed header is right it is in our order.
        first = [row.group for row in rows[: len(layout.columns)]]
        assert [group.lower() for group in first] == [column.code.lower() for column in layout.columns]


def test_accuracy_by_task_is_found_again():
    made = table("7", [result()])
    expected = {code: (round(right / n, 9), n) for code, (n, right) in PLAN.items()}
    assert shown(made) == {**expected, "Overall": (round(RIGHT / COUNT, 9), COUNT)}
    assert len(set(expected.values())) == 12
    assert made.left_out == ()
    assert made.notes == ()


def test_accuracy_by_domain_and_format_is_found_again():
    by_domain = shown(table("8", [result()]))
    for place, domain in enumerate(DOMAINS):
        own = FLAGS[place::6]
        assert by_domain[domain.code] == (round(sum(own) / len(own), 9), len(own))
    by_kind = shown(table("14", [result()]))
    for place, code in enumerate(("SA", "MA", "T/F")):
        own = FLAGS[place::3]
        assert by_kind[code] == (round(sum(own) / len(own), 9), len(own))


def test_accuracy_by_level_is_that_of_its_tasks_where_the_file_has_no_levels():
    by_level = shown(table("levels", [result()]))
    for level in ("Memorization", "Understanding", "Inference"):
        plans = [PLAN[task.code] for task in TASKS if task.level == level.lower()]
        n, right = (sum(column) for column in zip(*plans, strict=True))
        assert by_level[level] == (round(right / n, 9), n)


def test_rouge_of_open_questions_has_a_table_of_its_own():
    plan = {**PLAN, "G-QA": (40, 10), "G-PS": (20, 10), "G-CA": (30, 24)}
    made = table("13", [result(plan)])
    assert shown(made) == {"G-QA": (0.25, 40), "G-PS": (0.5, 20), "G-CA": (0.8, 30), "Overall": (round(44 / 90, 9), 90)}
    assert shown(table("7", [result(plan)]))["Overall"] == (round(RIGHT / COUNT, 9), COUNT)
    assert not agrieval_tables([result()], numbers=["13"])


def test_cells_are_estimates_over_clusters():
    pairs = [number // 2 for number in range(COUNT)]
    made = table("7", [without(result(), cluster=pairs)])
    (overall,) = [
        cell.estimate for column, cell in zip(made.columns, made.rows[0].cells, strict=True) if column.code == "Overall"
    ]
    assert overall == estimate_mean(FLAGS, pairs)
    assert overall.n_clusters == COUNT // 2 + COUNT % 2
    assert overall.interval is not None


def test_epochs_are_averaged_per_item_before_the_interval():
    once, thrice = (table("7", [result(shift=shift)]) for shift in ((0,), (0, 0, 0)))
    assert shown(thrice) == shown(once)
    assert [cell.estimate for cell in thrice.rows[0].cells] == [cell.estimate for cell in once.rows[0].cells]
    assert (once.rows[0].n_epochs, thrice.rows[0].n_epochs) == (1, 3)
    one_more = shown(table("7", [result(shift=(0, 1))]))
    assert one_more["M-P"][0] == pytest.approx((PLAN["M-P"][1] + 0.5) / PLAN["M-P"][0])


def test_spread_over_epochs_is_that_of_the_means_of_shared_items():
    (spread,) = epoch_spreads([result(shift=(0, 1, 2))])
    means = [(RIGHT + 12 * more) / COUNT for more in (0, 1, 2)]
    assert spread.epochs == pytest.approx(means)
    assert spread.mean == pytest.approx(means[1])
    assert spread.deviation == pytest.approx(12 / COUNT)
    assert spread.n_items == COUNT
    made = result(shift=(0, 1))
    fewer = ItemColumns(**{name: column[:-1] for name, column in vars(made.items).items()})
    (spread,) = epoch_spreads([SettingResult("m", "cot", fewer)])
    assert spread.n_items == COUNT - 1
    (single,) = epoch_spreads([result()])
    assert single.deviation is None


def test_changes_are_against_the_same_model_s_zero_shot_on_the_items_of_both():
    results = [
        result(),
        result(model="other", setting="zero-shot", shift=(5,)),
        result(setting="cot", shift=(2,)),
        result(setting="5-shot", shift=(1,)),
    ]
    made = table("4", results)
    assert [(row.model, row.setting) for row in made.rows] == [
        ("maker/model-a", "zero-shot"),
        ("maker/model-a", "cot"),
        ("maker/model-a", "few-shot"),
    ]
    zero, cot, few = made.rows
    assert all(cell.change is None for cell in zero.cells)
    for row, more in ((cot, 2), (few, 1)):
        for column, cell in zip(made.columns, row.cells, strict=True):
            n = PLAN[column.code][0] if column.code in PLAN else COUNT / 12
            assert cell.change.value == pytest.approx(more / n)
            assert cell.change.n == cell.estimate.n
    overall = cot.cells[-1].change
    shifted = [float(at < right + 2) for n, right in PLAN.values() for at in range(n)]
    alone = estimate_difference(shifted, FLAGS, list(range(COUNT)))
    assert overall.model_copy(update={"p_adjusted": None}) == alone
    assert overall.p_adjusted > alone.p


def test_a_setting_on_part_of_the_items_is_compared_on_that_part():
    made = result()
    part = ItemColumns(**{name: list(column)[::2] for name, column in vars(made.items).items()})
    rag = SettingResult("maker/model-a", "retrieval", ItemColumns(**{**vars(part), "score": [1.0] * len(part.item)}))
    laid = table("settings", [made, rag])
    assert [row.setting for row in laid.rows] == ["rag"]
    overall = laid.rows[0].cells[-1]
    assert overall.estimate.n == overall.change.n == len(FLAGS[::2])
    assert overall.change.value == pytest.approx(1 - sum(FLAGS[::2]) / len(FLAGS[::2]))
    assert [row.value for row in laid.in_text] == ["4.0"]
    alone = table("settings", [rag])
    assert alone.rows[0].cells[-1].change is None


def test_choice_and_open_questions_may_come_as_results_of_their_own():
    open_questions = result({"G-QA": (20, 5)})
    results = [open_questions, result(), result(setting="cot", shift=(2,))]
    assert table("11", results).rows[0].cells[-1].change.value == pytest.approx(24 / COUNT)
    assert shown(table("13", results)) == {"G-QA": (0.25, 20), "Overall": (0.25, 20)}
    assert len(table("7", results).rows) == 1


def test_settings_without_results_have_no_tables():
    numbers = [made.layout.number for made in agrieval_tables([result()])]
    assert numbers == ["2", "3", "7", "8", "14", "levels"]
    assert agrieval_tables([]) == []
    both = [made.layout.number for made in agrieval_tables([result(), result(setting="cot")])]
    assert both == ["2", "3", "4", "7", "8", "11", "12", "14", "levels"]


def test_parts_that_no_item_has_are_left_out_and_said_so():
    some = {code: PLAN[code] for code in ("M-P", "I-N", "U-V")}
    made = table("7", [result(some)])
    assert [column.code for column in made.columns] == ["M-P", "U-V", "I-N", "Overall"]
    assert "M-R, M-E, M-T, U-I, U-S, I-D, I-P, I-S, I-G" in made.notes[0]
    assert all(len(line.cells) == 4 for line in made.published)


def test_a_file_that_has_no_tasks_shows_overall_alone_and_says_so():
    made = table("7", [without(result(), task="")])
    assert [column.code for column in made.columns] == ["Overall"]
    assert made.notes == ("The files do not say the task of any item: all columns but Overall are left out.",)
    assert not agrieval_tables([without(result(), task="")], numbers=["levels", "fields"])
    some = without(result(), task=["", *result().items.task[1:]])
    assert table("7", [some]).notes == (
        f"The files do not say the task of 1 of {COUNT} items: they count in Overall alone.",
    )


def test_domains_of_the_older_label_are_marked_as_such():
    types = ["动物类" if number % 2 else "中药类" for number in range(COUNT)]
    types[0] = ""
    plain = without(result(), domain=types)
    made_of_types = SettingResult("m", "zero-shot", plain.items, domains_are_types=True)
    made = table("8", [made_of_types])
    assert [column.code for column in made.columns] == ["TCH", "AST", "Overall"]
    assert any("deprecated" in note and "95.8 %" in note for note in made.notes)
    assert any(f"1 of {COUNT} items" in note for note in made.notes)
    assert [column.code for column in table("8", [plain]).columns] == ["Overall"]
    both = without(made_of_types, domain=["林学类", *types[1:]])
    assert [column.code for column in table("8", [both]).columns] == ["TCH", "Fore", "AST", "Overall"]


def test_published_lines_stand_in_the_columns_of_the_run():
    made = table("9", [result(setting="few-shot")])
    (gpt,) = [line for line in made.published if line.model == "GPT-4o"]
    assert [cell.value for cell in gpt.cells][-1] == "52.64"
    assert [cell.group_checked for cell in gpt.cells] == [*(column.code for column in made.columns[:-1]), "overall"]
    assert gpt.cells[0].group == "M-T"
    assert len(made.published) == 48
    assert len(table("7", [result()]).published) == 51
    assert len(table("2", [result()]).published) == 36
    assert table("7", [result()], published=False).published == ()
    assert table("levels", [result()]).published == ()


def test_the_experts_stand_beside_a_run_only_with_their_sample():
    (experts,) = table("7", [result()]).in_text
    assert (experts.value, experts.n) == ("70.62", 1500)
    assert "65.78" in experts.doubts[0]
    assert table("7", [result()], published=False).in_text == ()
    assert table("8", [result()]).in_text == ()


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ("zero-shot", "zero-shot"),
        ("Zero-Shot", "zero-shot"),
        ("5-shot", "few-shot"),
        ("few-shot", "few-shot"),
        ("cot", "cot"),
        ("retrieval", "rag"),
        ("zero-shot, shuffled", "shuffled"),
        ("cot, shuffled", "cot, shuffled"),
        ("3-shot, later", "few-shot, later"),
        ("0-shot", "0-shot"),
    ],
)
def test_settings_in_other_spellings(label, word):
    assert setting_of(label) == word


def test_faulty_columns_are_errors_that_say_what_is_wrong():
    good = vars(result().items)
    with pytest.raises(UsageError, match=f"task {COUNT - 1}"):
        ItemColumns(**{**good, "task": list(good["task"])[1:]})
    with pytest.raises(UsageError, match=r"'essay' \(one of single"):
        ItemColumns(**{**good, "kind": ["essay"] * COUNT})
    for score in (1.5, -0.1, float("nan")):
        with pytest.raises(UsageError, match="outside 0 to 1"):
            ItemColumns(**{**good, "score": [score] * COUNT})
    with pytest.raises(UsageError, match="no result table '5'"):
        agrieval_tables([result()], numbers=["5"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["", *(task.code for task in TASKS)]), st.sampled_from(KINDS), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_every_choice_item_counts_once_in_overall_and_at_most_once_in_a_task(entries):
    n = len(entries)
    items = ItemColumns(
        item=[f"i{at}" for at in range(n)],
        kind=[kind for _, kind, _ in entries],
        score=[float(right) for _, _, right in entries],
        cluster=list(range(n)),
        domain=[""] * n,
        field=[""] * n,
        level=[""] * n,
        task=[code for code, _, _ in entries],
        epoch=[0] * n,
    )
    made = table("7", [SettingResult("m", "zero-shot", items)], published=False)
    cells = dict(zip((column.code for column in made.columns), made.rows[0].cells, strict=True))
    assert cells["Overall"].estimate.n == n
    assert cells["Overall"].estimate.value == pytest.approx(sum(right for _, _, right in entries) / n)
    named = [code for code, _, _ in entries if code and not task_of(code).is_open]
    assert sum(cell.estimate.n for code, cell in cells.items() if code != "Overall") == len(named)
