import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import (
    Answer,
    ErrorInfo,
    Fact,
    Observation,
    OpenTextSlot,
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
from agrotools.scoring.record_tally import group_reasons
from agrotools.scoring.summary import Summary
from support.plain_sample import plain_sample
from support.runs import summarise

NUMBER = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5)


def sample(
    number=0,
    *,
    slots=(NUMBER,),
    cluster=None,
    eligible=True,
    family="SI",
    calls=2,
    answer_type="tolerance",
):
    return plain_sample(
        f"s{number}",
        family=family,
        task_type={"SI": "weed_crop_area", "CM": "apple_size", "VA": "plotting"}[family],
        answer_type=answer_type,
        toolset=("calculate",),
        reference=ReferenceTrajectory(
            steps=(ReferenceStep(tool="calculate", arguments={"expression": "1"}),) * calls
        ),
        answer=slots,
        no_tool_eligible=eligible,
        cluster=cluster or f"c{number}",
    )


def answered(text="area: 7 %", **changes):
    return Trajectory(
        steps=(Step(turn=0, kind="answer", text=text),), termination="answered", **changes
    )


def record(of, mode="end-to-end", *, epoch=0, invalid=None, **fields):
    if invalid is None and mode != "step-by-step":
        fields.setdefault("trajectory", answered())
    return Record(sample=of, mode=mode, epoch=epoch, invalid=invalid, **fields)


def row(of, value, metric="fas", step=None):
    return Score(
        metric=metric, version="1", sample_id=of.sample.id, epoch=of.epoch, step=step, value=value
    )


def summary_of(pairs, **options) -> Summary:
    """Summary of (record, value of its fas row) pairs."""
    records = [each for each, _ in pairs]
    return summarise(
        records, [[] if each.invalid else [row(each, value)] for each, value in pairs], **options
    )


def fas(summary, mode="end-to-end"):
    return summary.modes[mode].metrics["fas"]


def test_reasons_that_differ_only_in_amounts_are_one_and_codes_and_names_tell_them_apart():
    cut = "the endpoint cut the prompt: {} characters are counted as 1,000 tokens"
    reasons = {"HTTP 500 of m-1": 1, "HTTP 503 of m-1": 1, "HTTP 503 of m-2": 1}
    lengths = {cut.format(length): 1 for length in ("10,106", "10,809", "9,950")}
    assert group_reasons({**reasons, **lengths}) == {cut.format("9,950..10,809"): 3, **reasons}


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


@given(
    st.lists(
        st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=4),
        min_size=1,
        max_size=15,
    ),
    st.randoms(),
)
def test_means_and_bounds_are_those_of_the_plain_formula_in_any_order(samples, random):
    """An epoch is its value, and True if it is invalid; two samples are a cluster."""
    pairs = [
        (
            record(
                sample(number, cluster=f"c{number // 2}"),
                epoch=epoch,
                invalid="lost" if is_lost else None,
            ),
            value,
        )
        for number, epochs in enumerate(samples)
        for epoch, (value, is_lost) in enumerate(epochs)
    ]
    random.shuffle(pairs)
    mode = summary_of(pairs).modes["end-to-end"]
    lost = [sum(is_lost for _, is_lost in epochs) for epochs in samples]
    totals = [sum(value for value, is_lost in epochs if not is_lost) for epochs in samples]
    sizes = [*map(len, samples)]
    assert (mode.n_samples, mode.n_clusters, mode.invalid.n) == (
        len(samples),
        (len(samples) + 1) // 2,
        sum(lost),
    )
    means = [
        total / (n - bad) for total, n, bad in zip(totals, sizes, lost, strict=True) if n > bad
    ]
    if not means:
        assert mode.metrics == {}
        return
    metric = mode.metrics["fas"]
    assert (metric.overall.value, metric.overall.n) == (
        pytest.approx(sum(means) / len(means)),
        len(means),
    )
    assert metric.by_family == {"SI": metric.overall}
    assert (metric.bounds is None) == (not any(lost))
    if metric.bounds is not None:
        low = sum(total / n for total, n in zip(totals, sizes, strict=True)) / len(samples)
        high = sum(
            (total + bad) / n for total, n, bad in zip(totals, sizes, lost, strict=True)
        ) / len(samples)
        assert (metric.bounds.lower, metric.bounds.upper) == (
            pytest.approx(low),
            pytest.approx(high),
        )


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
        Step(
            turn=0,
            kind="call",
            call=ToolCall(tool="calculate"),
            observation=failed,
            reply=reply,
            seconds=0.5,
        ),
        Step(
            turn=0,
            kind="call",
            call=ToolCall(tool="calculate"),
            observation=Observation(result={}),
            seconds=0.25,
        ),
        Step(turn=1, kind="unparseable", text="?", reply=reply),
        Step(turn=2, kind="answer", text="area: 7 %", reply=reply),
    )
    worked = record(
        sample(0), trajectory=Trajectory(steps=steps, termination="answered"), seconds=3.0
    )
    stopped = record(
        sample(1), trajectory=Trajectory(steps=steps[:3], termination="max_steps"), seconds=1.0
    )
    counts = summarise([worked, stopped]).modes["end-to-end"].counts
    assert counts.terminations == {"answered": 1, "max_steps": 1}
    assert (counts.unparseable, counts.tool_calls, counts.failed_calls) == (
        2,
        4,
        {"invalid_argument": 2},
    )
    assert counts.successes == 1
    assert counts.spent["turns"].total == 5
    assert (counts.spent["input_tokens"].total, counts.spent["output_tokens"].per_record) == (
        500,
        25,
    )
    assert (counts.spent["seconds"].total, counts.spent["seconds"].per_success) == (4.0, 4.0)
    assert counts.spent["tool_seconds"].total == 1.5


def test_samples_whose_open_text_no_judge_graded_are_counted():
    slot = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("hoe",)),))
    records = [
        record(sample(number, slots=(slot,)), trajectory=answered("hoe")) for number in range(3)
    ]
    made = summarise(records, [[row(records[0], 1.0, "ots")], [], []]).modes["end-to-end"]
    assert made.without_open_text == 2
    assert summarise(records).modes["end-to-end"].metrics.keys() == {"ots_floor"}
