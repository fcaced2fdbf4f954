"""Questions that the files do not allow to answer: recognising a refusal, credit by twins, and the metrics beside."""

import json
from pathlib import Path

import pytest

from agrotools import Run
from agrotools.core import (
    AbstainSlot,
    BooleanSlot,
    ExactSlot,
    PlotSlot,
    Record,
    Sample,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.core.record import Observation, ReferenceStep, ReferenceTrajectory
from agrotools.report.comparison import comparison_tables
from agrotools.report.terminal import PLAIN_WIDTH
from agrotools.runner.rescore import rescore
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.comparisons import compare
from agrotools.scoring.metrics import FALSE_CONFIDENCE, FALSE_REFUSAL, GUESS_METRIC
from agrotools.scoring.slots import NO_TWIN, refuses
from agrotools.text.expressions import shows_no_answer
from support.command import run_command
from support.plain_sample import plain_sample
from support.runs import manifest, summarise
from support.shown import rendered

FAS = "fas"
SIZE = ToleranceSlot.model_validate(
    {
        "name": "size", "label": "mean diameter", "value": 70, "unit": "mm", "abs_tol": 4,
        "from": "steps[0].observation.mm",
    }
)  # fmt: skip
READY = BooleanSlot(name="ready", label="ready for harvest", value=True)
PLACE = ExactSlot(
    name="place", label="larger half", value="left half", choices=("left half", "right half")
)
ABSTAIN = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=(SIZE,))
REFUSAL = "size: unknown"


def sample(name: str, *, answerable: bool, twin: str | None, slot: Slot = SIZE, **fields):
    result = {"mm": 70.0 if answerable else None}
    call = ReferenceStep(
        tool="calculate", arguments={"expression": "1"}, observation=Observation(result=result)
    )
    return plain_sample(
        name,
        answer=(slot if answerable else ABSTAIN.model_copy(update={"asks": (slot,)}),),
        answer_type="tolerance",
        twin=twin,
        may_abstain=True,
        reference=ReferenceTrajectory(steps=(call,)),
        **fields,
    )


def record(of, text: str | None, epoch: int = 0, **fields) -> Record:
    steps = (Step(turn=0, kind="answer", text=text),) if text is not None else ()
    trajectory = Trajectory(steps=steps, termination="max_steps" if text is None else "answered")
    return Record(sample=of, mode="end-to-end", epoch=epoch, trajectory=trajectory, **fields)


def value(records, metric: str = FAS) -> float | None:
    metrics = summarise(records).modes["end-to-end"].metrics
    return metrics[metric].overall.value if metric in metrics else None


YES, NO = sample("a", answerable=True, twin="b"), sample("b", answerable=False, twin="a")


@pytest.mark.parametrize(
    ("slots", "text", "refused"),
    [
        ((SIZE,), "size: unknown", True), ((SIZE,), "There is no scale.\n\nsize: **Unknown**.", True),
        ((SIZE,), "unknown", True), ((SIZE,), "size: 未知", True), ((SIZE,), '{"size": "unknown"}', True),
        ((SIZE, READY, PLACE), "unknown", True), ((SIZE, READY), "size: unknown\nready: unknown", True),
        ((SIZE, READY), "size: unknown\nready: yes", False), ((SIZE, READY), "size: unknown", False),
        ((SIZE,), "It cannot be determined: there is no depth.", False), ((SIZE,), "size: 70 mm", False),
        ((SIZE,), "size: unknown\nsize: 70 mm", False), ((SIZE,), "size: unknown, about 70 mm", False),
        ((SIZE,), "", False),
    ],
)  # fmt: skip
def test_an_answer_refuses_if_all_its_values_are_unknown(slots, text, refused):
    assert refuses(slots, text) is refused


def test_a_label_that_says_unknown_is_an_answer():
    kind = ExactSlot(name="kind", label="kind", value="unknown", choices=("maize", "unknown"))
    assert not refuses((kind,), "kind: unknown")
    assert refuses((PLACE,), "place: unknown")


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "fas", "confidence", "refusal"),
    [
        ("size: 70 mm", REFUSAL, 1.0, 0.0, 0.0), ("size: 70 mm", "size: 70 mm", 0.5, 1.0, 0.0),
        (REFUSAL, REFUSAL, 0.0, 0.0, 1.0), ("size: 99 mm", REFUSAL, 0.5, 0.0, 0.0),
        (None, REFUSAL, 0.5, 0.0, 0.0), (REFUSAL, "size: 70 mm", 0.0, 1.0, 1.0), (REFUSAL, None, 0.0, 0.0, 1.0),
    ],
)  # fmt: skip
def test_an_unanswerable_sample_scores_its_refusal_minus_that_of_the_twin(
    answerable, unanswerable, fas, confidence, refusal
):
    records = [record(YES, answerable), record(NO, unanswerable)]
    for ordered in (records, records[::-1]):
        assert value(ordered) == fas
        assert value(ordered, FALSE_CONFIDENCE) == confidence
        assert value(ordered, FALSE_REFUSAL) == refusal
        assert summarise(ordered).modes["end-to-end"].counts.successes == round(2 * fas)


def test_replies_that_cannot_be_read_are_no_sign_of_restraint():
    unread = [
        Record(sample=of, mode="end-to-end", trajectory=Trajectory(termination="unparseable"))
        for of in (YES, NO)
    ]
    answered = [record(YES, "size: 70 mm"), record(NO, "size: 70 mm")]
    assert (value(unread), value(unread, FALSE_CONFIDENCE), value(unread, FALSE_REFUSAL)) == (
        0.0,
        None,
        None,
    )
    assert value([unread[0], answered[1]], FALSE_CONFIDENCE) == 1.0
    (warning,) = summarise(unread).warnings
    assert warning.startswith(
        "end-to-end: 2 of 2 samples (100.0 %) ended with output that is neither a call nor an"
    )
    assert ": the score says nothing about answers." in warning
    compared = compare(answered, unread, names=("m1", "m2"))
    assert FALSE_CONFIDENCE not in compared.modes["end-to-end"]
    text = rendered(comparison_tables(compared), PLAIN_WIDTH)
    assert "replies of m2 could not be read" in text


def test_a_pair_without_both_records_of_an_epoch_is_left_out_and_counted():
    unpaired = sample("c", answerable=False, twin=None)
    records = [
        record(YES, "size: 70 mm"),
        record(NO, REFUSAL),
        record(NO, "70 mm", epoch=1),
        record(unpaired, REFUSAL),
    ]
    mode = summarise(records).modes["end-to-end"]
    assert (
        mode.metrics[FAS].overall.value,
        mode.metrics[FAS].overall.n,
        mode.counts.without_twin,
    ) == (1.0, 2, 2)
    assert mode.metrics[GUESS_METRIC].overall.n == 2
    invalid = Record(sample=YES, mode="end-to-end", invalid="lost")
    for twin in (
        [],
        [invalid],
        [record(sample("a", answerable=True, twin="another"), "size: 70 mm")],
    ):
        alone = summarise([*twin, record(NO, REFUSAL)], allow_invalid=True)
        assert alone.modes["end-to-end"].counts.without_twin == 1
        assert alone.warnings[0] == f"end-to-end: 1 unanswerable sample {NO_TWIN}"
        assert value([*twin[:1], record(NO, REFUSAL)]) == (
            1.0 if twin and twin != [invalid] else None
        )


@pytest.mark.process
def test_rows_of_a_run_count_a_refusal_as_its_score_does_whichever_twin_comes_first(tmp_path: Path):
    fine = (sample("c", answerable=True, twin="d"), sample("d", answerable=False, twin="c"))
    records = [
        record(NO, REFUSAL),
        record(YES, REFUSAL),
        record(fine[0], "size: 70 mm"),
        record(fine[1], REFUSAL),
    ]
    coin = (sample("e", answerable=True, twin="f"), sample("f", answerable=False, twin="e"))
    records += [record(coin[0], REFUSAL), record(coin[1], "size: 70 mm")]
    records.append(record(sample("g", answerable=False, twin=None), REFUSAL))
    for name, ordered in (("run", records), ("turned", records[::-1])):
        run = tmp_path / name
        run.mkdir()
        lines = [each.model_dump_json(by_alias=True) + "\n" for each in ordered]
        (run / "records.jsonl").write_text("".join(lines))
        (run / "manifest.json").write_text(
            manifest(modes=("end-to-end",), sample_ids=tuple("abcdefg")).model_dump_json()
        )
        scored = rescore(run).summary.modes["end-to-end"]
        rows = [
            row
            for row in json.loads((run / "scores.json").read_text())["scores"]
            if row["metric"] == FAS
        ]
        values = {row["sample_id"]: row["value"] for row in rows}
        assert values == {"a": 0, "b": 0, "c": 1, "d": 1, "e": 0, "f": -1}
        assert {row["sample"]: row[FAS] for row in Run(run).rows() if FAS in row} == values
        assert sum(values.values()) / 6 == pytest.approx(scored.metrics[FAS].overall.value)
        assert (scored.counts.successes, scored.counts.without_twin) == (2, 1)
        (reading,) = [row["reading"] for row in rows if row["sample_id"] == "b"]
        assert reading == {"twin": "a", "twin_refused": True}
        shown = " ".join(run_command("explain", run, "f").stdout.split())
        assert "FAS -100.0" in shown
        assert "answerable, refused, 1 point less for this sample" in shown
        assert f"agrotools explain {run} e" in shown


@pytest.mark.process
def test_the_twin_of_a_sample_is_offered_if_it_has_a_record(tmp_path: Path):
    (tmp_path / "records.jsonl").write_text(record(YES, REFUSAL).model_dump_json(by_alias=True))
    of_one = manifest(modes=("end-to-end",), sample_ids=("a", "b"))
    (tmp_path / "manifest.json").write_text(of_one.model_dump_json())
    shown = run_command("explain", tmp_path, "a").stdout
    assert shown.splitlines()[-1] == "twin b: no record"


PAIRS = [
    (
        sample(f"yes-{k}", answerable=True, twin=f"no-{k}"),
        sample(f"no-{k}", answerable=False, twin=f"yes-{k}"),
    )
    for k in range(12)
]


@pytest.mark.parametrize(
    ("refuses_answerable", "refuses_unanswerable", "fas"),
    [
        ((0,) * 12, (1,) * 12, 1.0), ((1,) * 12, (1,) * 12, 0.0), ((0,) * 12, (0,) * 12, 0.5),
        ((0, 0, 1, 1) * 3, (0, 1, 0, 1) * 3, 0.25), ((1,) * 12, (0,) * 12, 0.0), ((1, 1, 0) * 4, (0, 0, 0) * 4, 0.0),
    ],
    ids=["perfect", "always refuses", "never refuses", "coin", "worst", "below 0"],
)  # fmt: skip
def test_planted_policies_score_what_they_earn(refuses_answerable, refuses_unanswerable, fas):
    """A coin earns half of what the answers to the answerable samples earn, and nothing by its refusals."""
    flags = zip(PAIRS, refuses_answerable, refuses_unanswerable, strict=True)
    records = [
        record(each, REFUSAL if refused else "size: 70 mm")
        for pair, *refusals in flags
        for each, refused in zip(pair, refusals, strict=True)
    ]
    assert value(records) == value(records[::-1]) == pytest.approx(fas)
    interval = summarise(records).modes["end-to-end"].metrics[FAS].overall.interval
    assert 0 <= interval.lower <= fas + 1e-9 <= interval.upper + 1e-9 <= 1 + 1e-9
    best = [
        record(each, REFUSAL if not each.answerable else "size: 70 mm")
        for pair in PAIRS
        for each in pair
    ]
    difference = compare(best, records).modes["end-to-end"][FAS].overall.value
    earned = (
        sum(0 if a else 1 for a in refuses_answerable)
        + sum(refuses_unanswerable)
        - sum(refuses_answerable)
    )
    assert difference == pytest.approx(earned / 24 - 1)
    by_cause = compare(best, records).by_cause["end-to-end"]
    assert sum(each.value for each in by_cause.values()) == pytest.approx(difference)


def test_who_draws_the_chart_answers_whatever_the_text_says():
    spec = {
        "kind": "bar",
        "series": [{"name": "weed", "x": ["A", "B"], "y": [8.9, 3.2]}],
        "title": "Weed cover",
    }
    chart = PlotSlot(name="chart", label="chart of the weed cover", value=spec)
    of = YES.model_copy(update={"answer": (chart,)})
    observation = Observation(result={"spec": spec})
    drawn = Step(
        turn=0, kind="call", call=ToolCall(tool="plot", arguments={}), observation=observation
    )
    text = Step(
        turn=1, kind="answer", text="No guess."
    )  # of the baseline: it has nothing to say beside the chart
    of_another_kind = Observation(result={"spec": spec | {"kind": "pie"}})
    other = drawn.model_copy(update={"observation": of_another_kind})
    unanswerable = NO.model_copy(
        update={"answer": (ABSTAIN.model_copy(update={"asks": (chart,)}),)}
    )

    def rows_of(of: Sample, *steps: Step) -> dict[str, float]:
        ended = Record(
            sample=of, mode="end-to-end", trajectory=Trajectory(steps=steps, termination="answered")
        )
        return {row.metric: row.value for row in score_record(ended)}

    found = [rows_of(of, *steps) for steps in ((drawn, text), (other, text), (text,))]
    assert [(rows[FALSE_REFUSAL], rows[FAS] > 0.5) for rows in found] == [
        (0, True),
        (0, False),
        (1, False),
    ]
    found = [rows_of(unanswerable, *steps) for steps in ((drawn, text), (other, text), (text,))]
    assert [(rows[FALSE_CONFIDENCE], rows["slot"]) for rows in found] == [(1, 0), (1, 0), (0, 1)]


def test_an_expression_over_the_results_is_evidence_too():
    slot = ABSTAIN.model_copy(update={"from_": "'too_dark' in steps[0].observation.flags"})
    assert [shows_no_answer(slot, [{"flags": flags}]) for flags in (["too_dark"], [])] == [
        True,
        False,
    ]
