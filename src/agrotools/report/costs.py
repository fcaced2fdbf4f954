"""Expected cost of the answers of runs under a table of costs that the user gives.

A score counts an overlooked disease like a needless spraying; a cost table weighs them. Beside the runs stand policies
that need no model: the same answer to every question, and a refusal of each ("send an agronomist"). A model whose costs
exceed those of the best of them is worth less than none.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from agrotools.core import (
    BooleanSlot,
    ExactSlot,
    FileSlot,
    FrozenModel,
    Mode,
    Record,
    Slot,
    ToleranceSlot,
    UsageError,
    first_error,
)
from agrotools.core.base import count_text, number_text, suggestion
from agrotools.core.slot import asked_slots, is_derivable
from agrotools.report.layout import Paragraph, Part, new_table, paragraph, value_cell
from agrotools.runner.config import check_keys, read_toml
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.metrics import SLOT_METRIC, is_invalid
from agrotools.scoring.slots import outcome_scores, refuses
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate, Interval, estimate_difference

_ORACLE = "baseline:oracle"
_OTHERS = "*"
_REFUSE = "always refuse"
_MOST_LABELS = 12
"""Maximum number of labels of a slot that each get a row of their own as a constant answer."""
Cost = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SlotCosts(FrozenModel):
    """Costs of the answers to a slot: ``answers`` for labels and yes or no, ``over`` and ``under`` for numbers.

    ``answers[truth][answer]``: ``*`` stands for every other truth or answer; a right answer costs nothing unless it is
    listed. ``over`` and ``under`` are costs per unit above and below the truth, up to ``most``; a number within the
    tolerance of its slot costs nothing. ``refusal`` and ``unusable`` replace those of the table.
    """

    answers: dict[str, dict[str, Cost]] = {}
    over: Cost | None = None
    under: Cost | None = None
    most: Cost | None = None
    refusal: Cost | None = None
    unusable: Cost | None = None

    @model_validator(mode="after")
    def _has_one_kind(self) -> Self:
        if bool(self.answers) == (self.over is not None and self.under is not None):
            raise ValueError("give either answers, or over and under")
        return self

    def of_label(self, truth: str, answer: str) -> float | None:
        """Return the cost of a label; None if the table does not tell."""
        row = self.answers.get(truth, self.answers.get(_OTHERS, {}))
        return row.get(answer, 0.0 if truth == answer else row.get(_OTHERS))

    def of_number(self, slot: ToleranceSlot | ExactSlot, answer: float) -> float:
        """Return the cost of a number in the unit of ``slot``."""
        off = answer - float(slot.value)
        if abs(off) <= (slot.margin if isinstance(slot, ToleranceSlot) else 0.0):
            return 0.0
        cost = abs(off) * ((self.over if off > 0 else self.under) or 0.0)
        return cost if self.most is None else min(cost, self.most)


class CostTable(FrozenModel):
    """Costs in ``unit`` by name or pattern of a slot; the first entry that matches a slot counts.

    ``refusal``: cost of a refusal. ``unusable``: cost of no answer, and of one that cannot be read. ``unfounded``: cost
    of a value given to a question that the files do not allow to answer; without it, these questions are left out.
    """

    unit: Annotated[str, Field(min_length=1)]
    refusal: Cost
    unusable: Cost
    unfounded: Cost | None = None
    slots: Annotated[dict[str, SlotCosts], Field(min_length=1)]


def read_cost_table(path: Path) -> CostTable:
    """Read a cost table (TOML).

    Raises:
        UsageError: it cannot be read, a key is unknown, or a value is invalid.
    """
    data = read_toml(path, "cost table", hint="docs/costs.md has an example")
    check_keys(data, CostTable.model_fields, str(path))
    try:
        return CostTable.model_validate(data)
    except ValidationError as error:
        raise UsageError(
            f"{path}: {first_error(error)}", hint="docs/costs.md has an example"
        ) from error


class Question(NamedTuple):
    """A slot of a sample that an entry of the table covers; ``answerable``: the files allow an answer."""

    entry: str
    costs: SlotCosts
    slot: Slot
    answerable: bool
    cluster: str

    def cost(self, table: CostTable, answer: str | float | None, *, refused: bool = False) -> float:
        """Return the cost of an answer; None is one that cannot be used."""
        unusable = table.unusable if self.costs.unusable is None else self.costs.unusable
        if refused:
            return table.refusal if self.costs.refusal is None else self.costs.refusal
        if answer is None:
            return unusable
        cost = None if self.answerable else table.unfounded
        if self.answerable and isinstance(answer, str):
            cost = self.costs.of_label(_truth(self.slot), answer)
        elif self.answerable and isinstance(self.slot, ToleranceSlot | ExactSlot):
            cost = self.costs.of_number(self.slot, float(answer))
        return unusable if cost is None else cost


class PolicyCost(FrozenModel):
    """Mean cost per question of a run or of a constant answer, and paired differences to other policies.

    ``kinds``: number of right, wrong, refused and unusable answers of a run.
    """

    policy: str
    cost: Estimate
    above_best_constant: Estimate | None = None
    above_oracle: Estimate | None = None
    kinds: dict[str, int] = {}


class ExpectedCosts(FrozenModel):
    """Expected costs by entry of the table.

    ``n_uncovered``: samples without a slot in the table. ``unused``: entries of the table without a slot in the runs.
    """

    unit: str
    mode: Mode
    n_uncovered: int
    unused: tuple[str, ...] = ()
    entries: dict[str, tuple[PolicyCost, ...]]


_Key = tuple[str, str]
"""Ids of a sample and a slot."""


class _RunCosts(NamedTuple):
    """Costs and kinds of the answers of a run, of all epochs, by question."""

    model: str
    costs: dict[_Key, list[float]]
    kinds: dict[_Key, list[str]]


def expected_costs(
    runs: Sequence[str | Path], table: CostTable | str | Path, mode: Mode = "end-to-end"
) -> ExpectedCosts:
    """Return the expected costs of ``runs`` on the questions that have a valid record in each of them.

    Args:
        runs: run folders; those of ``baseline:oracle`` show what the tools allow.
        table: cost table, or its TOML file.
        mode: mode of the records, end-to-end or no-tool.

    Raises:
        UsageError: the table does not fit the slots of the runs, or no question is in all runs.
        RunStoreError: a run cannot be read.
    """
    table = table if isinstance(table, CostTable) else read_cost_table(Path(table))
    questions: dict[_Key, Question] = {}
    uncovered, names = set[str](), set[str]()
    parts: list[_RunCosts] = []
    for run in map(Path, runs):
        manifest = read_manifest(run)
        name = (
            f"{manifest.model} ({manifest.conditions})" if manifest.conditions else manifest.model
        )
        part = _RunCosts(name, defaultdict(list), defaultdict(list))
        for record in iter_records(run):
            if record.mode == mode and record.trajectory is not None and not is_invalid(record):
                of_record = _questions(record, table)
                questions |= of_record
                _add(part, record, of_record, table)
                uncovered |= {record.sample.id} if not of_record else set()
                names |= {slot.name for slot in asked_slots(record.sample.answer)}
        parts.append(part)
    _check_labels(table, questions.values())
    if not questions:
        raise UsageError(
            "no record has a slot of the table",
            hint=f"slots of the runs: {', '.join(sorted(names))}",
        )
    keys = [key for key in questions if all(key in part.costs for part in parts)]
    if not keys:
        raise UsageError(
            f"no slot of the table has a valid {mode} record in every run", hint="give fewer runs"
        )
    used = {question.entry for question in questions.values()}
    by_entry = defaultdict[str, list[_Key]](list)
    for key in keys:
        by_entry[questions[key].entry].append(key)
    return ExpectedCosts(
        unit=table.unit,
        mode=mode,
        n_uncovered=len(uncovered),
        unused=tuple(entry for entry in table.slots if entry not in used),
        entries={
            entry: _of_entry(of_entry, questions, parts, table)
            for entry, of_entry in by_entry.items()
        },
    )


def _questions(record: Record, table: CostTable) -> dict[_Key, Question]:
    """Return the questions of a record that the table covers.

    Raises:
        UsageError: an entry does not fit the type of a slot, or a pair of its labels has no cost.
    """
    sample = record.sample
    if not sample.answerable and table.unfounded is None:
        return {}
    questions: dict[_Key, Question] = {}
    for slot in asked_slots(sample.answer):
        entry = next((pattern for pattern in table.slots if fnmatchcase(slot.name, pattern)), None)
        if entry is not None:
            _check(entry, table.slots[entry], slot)
            cluster = sample.cluster or sample.id
            questions[sample.id, slot.name] = Question(
                entry, table.slots[entry], slot, sample.answerable, cluster
            )
    return questions


def _check(entry: str, costs: SlotCosts, slot: Slot) -> None:
    labels = _labels(slot)
    if not labels and _true_number(slot) is None:
        raise UsageError(
            f"[slots.{entry}]: answers of slot {slot.name!r} ({slot.type}) are neither labels nor numbers"
        )
    if bool(labels) != bool(costs.answers):
        raise UsageError(
            f"[slots.{entry}]: slot {slot.name!r} needs {'answers' if labels else 'over and under'}"
        )
    pair = next(((a, b) for a in labels for b in labels if costs.of_label(a, b) is None), None)
    if pair:
        raise UsageError(
            f"[slots.{entry}]: no cost of the answer {pair[1]!r} if the truth is {pair[0]!r}",
            hint=f'give answers."{pair[0]}"."{pair[1]}", or "*" for all others',
        )


def _check_labels(table: CostTable, questions: Iterable[Question]) -> None:
    """Refuse labels that no slot of their entry has."""
    known: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        known[question.entry] |= {_OTHERS, *_labels(question.slot)}
    for entry in known:
        costs = table.slots[entry]
        for label in (
            *costs.answers,
            *(answer for row in costs.answers.values() for answer in row),
        ):
            if label not in known[entry]:
                others = sorted(known[entry] - {_OTHERS})
                raise UsageError(
                    f"[slots.{entry}]: unknown label {label!r}", hint=suggestion(label, others)
                )


def _labels(slot: Slot) -> tuple[str, ...]:
    """Return the labels that an answer may give; empty for a slot without labels."""
    if isinstance(slot, BooleanSlot):
        return ("yes", "no")
    if isinstance(slot, FileSlot | ExactSlot) and isinstance(slot.value, str):
        return tuple(dict.fromkeys((slot.value, *slot.choices)))
    return ()


def _true_number(slot: Slot) -> float | None:
    value = slot.value if isinstance(slot, ToleranceSlot | ExactSlot) else ""
    return None if isinstance(value, str) else float(value)


def _truth(slot: Slot) -> str:
    return (
        ("yes" if slot.value else "no")
        if isinstance(slot, BooleanSlot)
        else str(getattr(slot, "value", ""))
    )


def _add(
    part: _RunCosts, record: Record, questions: Mapping[_Key, Question], table: CostTable
) -> None:
    """Add the costs of the answers of a record."""
    sample, text = record.sample, record.trajectory.answer if record.trajectory else None
    asked = [question.slot for question in questions.values()]
    whole = asked_slots(sample.answer)
    refused = bool(asked) and text is not None and refuses(whole, text)
    # The reading of a slot does not depend on whether the sample is answerable.
    shown = record.model_copy(update={"sample": sample.model_copy(update={"answer": whole})})
    rows = (
        {row.slot: row for row in outcome_scores(shown) if row.metric == SLOT_METRIC}
        if asked
        else {}
    )
    for key, question in questions.items():
        row = rows.get(question.slot.name)
        answer = None if row is None or refused else _answer(row.reading.get("value"))
        is_right = row is not None and row.value > 0
        if (
            isinstance(answer, str)
            and (choices := getattr(question.slot, "choices", ()))
            and answer not in choices
        ):
            answer = None
        kind = "refused" if refused else "unusable" if answer is None else "wrong"
        part.kinds[key].append("right" if question.answerable and is_right else kind)
        part.costs[key].append(question.cost(table, answer, refused=refused))


def _answer(value: object) -> str | float | None:
    """Return the answer in the reading of a score: a label, yes or no, or a number (the middle of a range)."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
        return statistics.fmean(value)
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None  # several labels do not decide
    return value if isinstance(value, int | float) else None


def _of_entry(
    keys: Sequence[_Key],
    questions: Mapping[_Key, Question],
    parts: Sequence[_RunCosts],
    table: CostTable,
) -> tuple[PolicyCost, ...]:
    """Return the costs of the runs, then of constant answers, on the questions ``keys`` of one entry."""
    asked = [questions[key] for key in keys]
    of_runs = [[statistics.fmean(part.costs[key]) for key in keys] for part in parts]
    constants = {
        f"always {answer if isinstance(answer, str) else format(answer, 'g')}": [
            question.cost(table, answer) for question in asked
        ]
        for answer in _constants(asked, table)
    }
    constants[_REFUSE] = [question.cost(table, None, refused=True) for question in asked]
    best = min(constants.values(), key=sum)
    oracle = next(
        (values for part, values in zip(parts, of_runs, strict=True) if part.model == _ORACLE), None
    )
    oracle = oracle if all(is_derivable(question.slot) for question in asked) else None
    scale = max(1e-12, *map(max, of_runs), *map(max, constants.values()))
    clusters = [question.cluster for question in asked]

    def difference(first: Sequence[float], second: Sequence[float]) -> Estimate:
        scaled = estimate_difference(
            [one / scale for one in first], [two / scale for two in second], clusters
        )
        interval = scaled.interval and Interval(
            lower=scale * scaled.interval.lower, upper=scale * scaled.interval.upper
        )
        return Estimate(
            value=scale * scaled.value, interval=interval, n=scaled.n, n_clusters=scaled.n_clusters
        )

    zeros = [0.0] * len(keys)
    rows = [
        PolicyCost(
            policy=part.model,
            cost=difference(values, zeros),
            above_best_constant=difference(values, best),
            above_oracle=difference(values, oracle) if oracle and part.model != _ORACLE else None,
            kinds=dict(Counter(kind for key in keys for kind in part.kinds[key])),
        )
        for part, values in zip(parts, of_runs, strict=True)
    ]
    rows += [
        PolicyCost(policy=policy, cost=difference(values, zeros))
        for policy, values in constants.items()
    ]
    return tuple(rows)


def _constants(questions: Sequence[Question], table: CostTable) -> list[str | float]:
    """Return the labels that all questions share, or the number of least cost, chosen with the truth in hindsight."""

    def total(answer: str | float) -> float:
        return sum(question.cost(table, answer) for question in questions)

    if numbers := [number for each in questions if (number := _true_number(each.slot)) is not None]:
        return [min(numbers, key=total)]
    shared = set.intersection(*(set(_labels(question.slot)) for question in questions))
    labels = [label for label in _labels(questions[0].slot) if label in shared]
    return [min(labels, key=total)] if len(labels) > _MOST_LABELS else [*labels]


def cost_tables(costs: ExpectedCosts) -> list[Part]:
    """Return warnings, a table for each entry, and notes."""
    unused = ", ".join(f"[slots.{entry}]" for entry in costs.unused)
    parts: list[Part] = paragraph(
        [f"warning: no record has a slot of {unused}"] * bool(unused), "bold yellow"
    )
    for entry, rows in costs.entries.items():
        n, n_clusters = rows[0].cost.n, rows[0].cost.n_clusters
        title = f"{entry}: expected cost per question, {costs.unit} ({costs.mode}, n {n} ({n_clusters}))"
        table = new_table(
            title, ["cost", "above oracle", "above best constant", "right/wrong/refused/unreadable"]
        )
        for row, before in zip(rows, (rows[0], *rows), strict=False):
            ruled = row.above_best_constant is None and before.above_best_constant is not None
            kinds = "/".join(
                str(row.kinds.get(kind, 0)) for kind in ("right", "wrong", "refused", "unusable")
            )
            estimates = (row.cost, row.above_oracle, row.above_best_constant)
            cells = (value_cell(each, partial(number_text, digits=4)) for each in estimates)
            table.add_row(row.policy, *cells, kinds if row.kinds else "", ruled=ruled)
        parts.append(table)
    notes = [
        "",
        f"95 % intervals over clusters (none under {MIN_CLUSTERS}); differences are paired.",
        f"{count_text(costs.n_uncovered, 'sample')} without a slot in the table.",
        "unreadable: no answer, or one that is not read as a value of the slot (unusable in the cost table).",
        "always: the same answer to every question; a constant number is the best one in hindsight.",
    ]
    if not any(row.policy == _ORACLE for rows in costs.entries.values() for row in rows):
        notes.append(f"above oracle: add a run of {_ORACLE} to the arguments.")
    return [*parts, Paragraph("\n".join(notes))]
