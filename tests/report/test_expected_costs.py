"""Expected costs under a user's table: labels, numbers, refusals, constant answers, and tables that do not fit."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import (
    AbstainSlot,
    BooleanSlot,
    ExactSlot,
    Record,
    Slot,
    ToleranceSlot,
    UsageError,
)
from agrotools.report.costs import (
    CostTable,
    PolicyCost,
    cost_tables,
    expected_costs,
    read_cost_table,
)
from support.made_runs import end_to_end, made_sample, write_run
from support.shown import rendered

SICK = {"yes": {"yes": 40, "no": 150}, "no": {"yes": 40}}
TABLE: dict[str, Any] = {
    "unit": "EUR",
    "refusal": 20,
    "unusable": 60,
    "slots": {"sick": {"answers": SICK}},
}


def answered(name: str, slot: Slot, answer: str | None) -> Record:
    sample = made_sample(name, cluster=name, answer=(slot,), reference=None, may_abstain=True)
    return end_to_end(sample, answer=answer)


def yes_no(name: str, truth: bool, answer: str | None) -> Record:
    slot = {
        "name": "sick",
        "label": "diseased",
        "value": truth,
        "from": "steps[0].observation.sick",
    }
    return answered(name, BooleanSlot.model_validate(slot), answer)


def rows(
    tmp_path: Path, records: list[Record], table: dict[str, Any], entry: str
) -> dict[str, PolicyCost]:
    run = write_run(tmp_path / "run", records)
    return {
        row.policy: row
        for row in expected_costs([run], CostTable.model_validate(table)).entries[entry]
    }


def test_each_kind_of_answer_costs_what_the_table_says(tmp_path: Path):
    records = [
        yes_no("a", True, "sick: yes"),  # 40
        yes_no("b", True, "sick: no"),  # 150
        yes_no("c", False, "sick: yes"),  # 40
        yes_no("d", False, "sick: no"),  # 0: a right answer that is not listed
        yes_no("e", False, "sick: unknown"),  # 20
        yes_no("f", False, None),  # 60
    ]
    found = rows(tmp_path, records, TABLE, "sick")
    assert found["m"].cost.value == pytest.approx(310 / 6)
    assert found["m"].kinds == {"right": 2, "wrong": 2, "refused": 1, "unusable": 1}
    assert (found["always yes"].cost.value, found["always no"].cost.value) == (
        pytest.approx(40),
        pytest.approx(50),
    )
    assert found["always refuse"].cost.value == pytest.approx(20)
    assert found["m"].above_best_constant.value == pytest.approx(310 / 6 - 20)
    answers = {"a": 104, "b": 120, "c": 70, "d": 0}
    records = [
        answered(
            name,
            ToleranceSlot(name="trees", label="trees", value=100, abs_tol=5),
            f"trees: {number}",
        )
        for name, number in answers.items()
    ]
    table = {**TABLE, "slots": {"tre*": {"over": 1, "under": 2, "most": 100}}}
    found = rows(tmp_path, records, table, "tre*")
    assert (found["m"].cost.value, found["always 100"].cost.value) == (
        pytest.approx((0 + 20 + 60 + 100) / 4),
        0,
    )


def test_a_value_for_an_unanswerable_question_has_a_cost_of_its_own(tmp_path: Path):
    asks = (BooleanSlot(name="sick", label="diseased", value=True),)
    slot = AbstainSlot(name="refusal", label="refusal", reason="wrong_subject", asks=asks)
    records = [answered("a", slot, "sick: yes"), answered("b", slot, "sick: unknown")]
    found = rows(
        tmp_path, [*records, yes_no("c", True, "sick: yes")], {**TABLE, "unfounded": 70}, "sick"
    )
    assert found["m"].cost.value == pytest.approx((70 + 20 + 40) / 3)
    assert found["m"].kinds == {"right": 1, "wrong": 1, "refused": 1}
    assert found["always no"].cost.value == pytest.approx((70 + 70 + 150) / 3)
    assert expected_costs([tmp_path / "run"], CostTable.model_validate(TABLE)).n_uncovered == 2


def test_differences_to_the_oracle_are_paired_and_have_intervals(tmp_path: Path):
    truths = {f"s{k}": k % 3 == 0 for k in range(30)}
    oracle = [
        yes_no(name, truth, f"sick: {'yes' if truth else 'no'}") for name, truth in truths.items()
    ]
    first = write_run(tmp_path / "oracle", oracle, model="baseline:oracle")
    second = write_run(
        tmp_path / "m", [yes_no(name, truth, "sick: no") for name, truth in truths.items()]
    )
    costs = expected_costs([first, second], CostTable.model_validate(TABLE))
    model = next(row for row in costs.entries["sick"] if row.policy == "m")
    assert model.above_oracle.value == pytest.approx(110 / 3)
    assert 0 < model.above_oracle.interval.lower < 110 / 3
    assert model.cost.interval.lower > 20


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ({"sik": {"answers": SICK}}, "no record has a slot of the table"),
        ({"sick": {"over": 1, "under": 1}}, "needs answers"),
        (
            {"sick": {"answers": {"yes": {"no": 5}}}},
            "no cost of the answer 'yes' if the truth is 'no'",
        ),
        ({"sick": {"answers": {**SICK, "maybe": {"*": 1}}}}, "unknown label 'maybe'"),
    ],
)
def test_a_table_that_does_not_fit_the_slots(tmp_path: Path, slots: Any, message: str):
    with pytest.raises(UsageError, match=message):
        rows(tmp_path, [yes_no("a", True, "sick: yes")], {**TABLE, "slots": slots}, "sick")


def test_labels_may_share_costs_and_entries_without_a_slot_are_a_warning(tmp_path: Path):
    run = write_run(tmp_path / "run", [yes_no("a", True, "sick: yes")])
    table = {**TABLE, "slots": {**TABLE["slots"], "fruits": {"over": 1, "under": 1}}}
    costs = expected_costs([run], CostTable.model_validate(table))
    assert costs.unused == ("fruits",)
    shown = rendered(cost_tables(costs), 100)
    assert "warning: no record has a slot of [slots.fruits]" in shown
    assert "add a run of baseline:oracle" in shown
    slot = ExactSlot(
        name="disease", label="disease", value="rust", choices=("rust", "mildew", "healthy")
    )
    table = {**TABLE, "slots": {"disease": {"answers": {"*": {"*": 30, "healthy": 90}}}}}
    records = [answered(name, slot, f"disease: {name}") for name in slot.choices]
    records.append(answered("both", slot, "disease: rust or mildew"))
    assert rows(tmp_path, records, table, "disease")["m"].cost.value == pytest.approx(
        (0 + 30 + 90 + 60) / 4
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit = ", "cannot read the cost table"),
        (
            'unit = "EUR"\nrefusal = -1\nunusable = 0\n[slots.a]\nover = 1\nunder = 1',
            "refusal: .*greater than or equal",
        ),
        (
            'unit = "EUR"\nrefusal = 1\nunusable = 0\n[slots.a]\nover = 1',
            "give either answers, or over and under",
        ),
        ('unit = "EUR"\nrefusl = 1', "unknown key 'refusl' in .*did you mean refusal"),
    ],
)
def test_a_table_that_cannot_be_read(tmp_path: Path, text: str, message: str):
    (tmp_path / "costs.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_cost_table(tmp_path / "costs.toml")


def test_the_example_of_the_documentation_runs(tmp_path: Path):
    page = Path(__file__).parents[2] / "docs/costs.md"
    example = re.search(
        r"```toml\n(# costs.toml.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    assert example
    (tmp_path / "costs.toml").write_text(example[1])
    state = ExactSlot(
        name="state", label="state", value="rust", choices=("healthy", "rust", "angular leaf spot")
    )
    records = [
        answered("a", state, "state: healthy"),
        answered(
            "b",
            BooleanSlot(name="above_limit", label="above the limit", value=True),
            "above_limit: yes",
        ),
        answered("c", ToleranceSlot(name="fruits", label="fruits", value=10), "fruits: 9"),
    ]
    run = write_run(tmp_path / "run", records)
    done = CliRunner().invoke(app, ["score", str(run), "--costs", str(tmp_path / "costs.toml")])
    assert done.exit_code == 0, done.output
    assert "always refuse" in done.output
