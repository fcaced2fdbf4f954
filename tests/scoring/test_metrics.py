import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import (
    Answer,
    ErrorInfo,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Reply,
    Score,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
    Usage,
)
from agrotools.scoring import Summary, compare
from support.plain_sample import plain_sample
from support.runs import summarise

NUMBER = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5)


def sample(number=0, *, slots=(NUMBER,), cluster=None, eligible=True, family="SI", calls=2, answer_type="tolerance"):
    return plain_sample(
        f"s{number}",
        family=family,
        task_type={"SI": "weed_crop_area", "CM": "apple_size", "VA": "plotting"}[family],
        answer_type=answer_type,
        toolset=("calculate",),
        reference=ReferenceTrajectory(steps=(ReferenceStep(tool="calculate", arguments={"expression": "1"}),) * calls),
        answer=slots,
        no_tool_eligible=eligible,
        cluster=cluster or f"c{number}",
    )


def answered(text="area: 7 %", **changes):
    return Trajectory(steps=(Step(turn=0, kind="answer", text=text),), termination="answered", **changes)


def record(of, mode="end-to-end", *, epoch=0, invalid=None, **fields):
    if invalid is None and mode != "step-by-step":
        fields.setdefault("trajectory", answered())
    return Record(sample=of, mode=mode, epoch=epoch, invalid=invalid, **fields)


def row(of, value, metric="fas", step=None):
    return Score(metric=metric, version="1", sample_id=of.sample.id, epoch=of.epoch, step=step, value=value)


def summary_of(pairs, **options) -> Summary:
    """Summary of (record, value of its fas row) pairs."""
    records = [each for each, _ in pairs]
    return summarise(records, [[] if each.invalid else [row(each, value)] for each, value in pairs], **options)


def fas(summary, mode="end-to-end"):
    return summary.modes[mode].metrics["fas"]


@given(st.lists(st.tuples(st.integers(0, 14), st.floats(0, 1)), min_size=1, max_size=40), st.randoms())
def test_the_order_of_records_means_nothing_and_more_score_never_lowers_the_mean(values, random):
    epochs: dict[int, int] = {}
    pairs = []
    for number, value in values:
        pairs.append((record(sample(number), epoch=epochs.get(number, 0)), value))
        epochs[number] = epochs.get(number, 0) + 1
    before = fas(summary_of(pairs)).overall
    means = [sum(v for n, v in values if n == number) / count for number, count in epochs.items()]
    assert before.value == pytest.approx(sum(means) / len(means))
    random.shuffle(pairs)
    after = fas(summary_of(pairs)).overall
    assert after.value == pytest.approx(before.value)
    assert (after.interval is None) == (before.interval is None) == (len(epochs) < 10)
    raised = [(pairs[0][0], 1.0), *pairs[1:]]
    assert fas(summary_of(raised)).overall.value >= after.value - 1e-12


def test_invalid_records_are_counted_bounded_and_leave_no_headline_beyond_one_percent():
    pairs = [(record(sample(number)), float(number % 2)) for number in range(199)]
    pairs.append((record(sample(199), invalid="HTTP 503"), 0.0))
    summary = summary_of(pairs)
    mode = summary.modes["end-to-end"]
    assert mode.headline
    assert (mode.invalid.n, mode.invalid.share, mode.invalid.reasons) == (1, 0.005, {"HTTP 503": 1})
    assert fas(summary).overall.n == 199
    assert fas(summary).overall.value == pytest.approx(99 / 199)
    bounds = fas(summary).bounds
    assert (bounds.lower, bounds.upper) == (pytest.approx(99 / 200), pytest.approx(100 / 200))
    pairs = [(record(sample(number)), 1.0) for number in range(49)]
    pairs.append((record(sample(49), invalid="refused"), 0.0))
    assert not summary_of(pairs).modes["end-to-end"].headline
    assert summary_of(pairs, allow_invalid=True).modes["end-to-end"].headline


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_bounds_hold_what_the_mean_would_be_with_any_outcome_of_the_invalid(rows):
    pairs = [
        (record(sample(at), invalid="lost" if invalid else None), value) for at, (value, invalid) in enumerate(rows)
    ]
    metrics = summary_of(pairs).modes["end-to-end"].metrics
    if all(invalid for _, invalid in rows):
        assert metrics == {}
        return
    metric = metrics["fas"]
    if not any(invalid for _, invalid in rows):
        assert metric.bounds is None
        return
    truth = sum(value for value, _ in rows) / len(rows)
    assert metric.bounds.lower - 1e-12 <= truth <= metric.bounds.upper + 1e-12
    assert metric.bounds.lower - 1e-12 <= metric.overall.value <= metric.bounds.upper + 1e-12


def test_an_invalid_step_by_step_record_weighs_as_many_steps_as_it_would_have_had():
    good, invalid = sample(0, calls=1), sample(1, calls=3)
    scored = record(good, "step-by-step", actions=(Answer(text="x"), Answer(text="7 %")))
    rows = [
        row(scored, 0.0, "st_acc", 0),
        row(scored, 1.0, "st_acc", 1),
        row(scored, 1.0, "ear", 0),
        row(scored, 1.0, "summ_acc", 1),
    ]
    summary = summarise([scored, record(invalid, "step-by-step", invalid="refused")], [rows, []])
    metrics = summary.modes["step-by-step"].metrics
    st_acc, ear, summ = (metrics[name].bounds for name in ("st_acc", "ear", "summ_acc"))
    assert (st_acc.lower, st_acc.upper) == (pytest.approx(1 / 6), pytest.approx(5 / 6))
    assert (ear.lower, ear.upper) == (pytest.approx(1 / 4), 1.0)
    assert (summ.lower, summ.upper) == (0.5, 1.0)


def test_tools_gain_what_end_to_end_has_over_no_tool_on_the_same_samples():
    samples = [sample(number, eligible=number < 12) for number in range(20)]
    pairs = [(record(each, "no-tool"), 0.0) for each in samples if each.no_tool_eligible]
    pairs += [(record(each), 1.0 if each.no_tool_eligible else 0.0) for each in samples]
    summary = summary_of(pairs)
    part = summary.no_tool_part
    assert part.n_excluded == 8
    assert fas(summary).overall.value == pytest.approx(12 / 20)
    assert (part.metrics["fas"].overall.value, part.metrics["fas"].overall.n) == (1.0, 12)
    gain = part.gain["fas"].overall
    assert (gain.value, gain.n) == (1.0, 12)


def test_counts_say_what_happened():
    reply = Reply(usage=Usage(input_tokens=100, output_tokens=10))
    failed = Observation(error=ErrorInfo(kind="invalid_argument", message="no"))
    steps = (
        Step(turn=0, kind="call", call=ToolCall(tool="calculate"), observation=failed, reply=reply, seconds=0.5),
        Step(turn=0, kind="call", call=ToolCall(tool="calculate"), observation=Observation(result={}), seconds=0.25),
        Step(turn=1, kind="unparseable", text="?", reply=reply),
        Step(turn=2, kind="answer", text="area: 7 %", reply=reply),
    )
    worked = record(sample(0), trajectory=Trajectory(steps=steps, termination="answered"), seconds=3.0)
    stopped = record(sample(1), trajectory=Trajectory(steps=steps[:3], termination="max_steps"), seconds=1.0)
    counts = summarise([worked, stopped]).modes["end-to-end"].counts
    assert counts.terminations == {"answered": 1, "max_steps": 1}
    assert (counts.unparseable, counts.tool_calls, counts.tool_errors) == (2, 4, {"invalid_argument": 2})
    assert counts.successes == 1
    assert counts.spent["turns"].total == 5
    assert (counts.spent["input_tokens"].total, counts.spent["output_tokens"].per_record) == (500, 25)
    assert (counts.spent["seconds"].total, counts.spent["seconds"].per_success) == (4.0, 4.0)
    assert counts.spent["tool_seconds"].total == 1.5


def test_two_runs_are_compared_on_what_both_have():
    first = [record(sample(number)) for number in range(30)]
    second = [record(sample(number), trajectory=answered("area: 9 %")) for number in range(5, 40)]
    comparison = compare(first, second, names=("a", "b"))
    difference = comparison.modes["end-to-end"]["fas"].overall
    assert (difference.value, difference.n) == (1.0, 25)
    assert comparison.unpaired == {"end-to-end": (5, 10)}
