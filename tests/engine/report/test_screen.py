"""The screen at the end of ``agrotools eval``, as it stands: a change of wording or layout shows in the diff.

``python tests/check.py --update-snapshots tests/engine/report/test_screen.py`` writes the snapshots anew.
"""

import io
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from agrotools.core import BENCHMARKS, MODES, Trajectory
from agrotools.loading.obtaining import listed
from agrotools.plugin import BenchmarkPlugin
from agrotools.report.comparison import ModelVerdict, headline_verdict
from agrotools.report.screen import LINES, Screen, headline, print_screen, screen
from agrotools.runner.rescore import Rescored
from agrotools.runner.yardsticks import CEILING, PLANNER, Yardsticks
from agrotools.runner.yardsticks import GUESS as GUESS_FLOOR
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons
from engine.report.test_tables import sample, scored, summary
from support.made_runs import call, made_sample
from support.made_runs import end_to_end as made_end_to_end

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("AGROTOOLS_UPDATE_SNAPSHOTS"))
PAGE = Path("runs/field-rows-m1-c0ffee/report.html")


def of_pairs(pairs: Sequence[Any], model: str, **options: object) -> Rescored:
    tally = RunAggregator()
    for record, rows in pairs:
        tally.add(record, rows)
    return Rescored(summary(pairs, model=model).model_copy(update=options), tally=tally)


def end_to_end(
    model: str, share: float, *, n: int = 40, invalid: int = 0, **options: object
) -> Rescored:
    pairs = [scored(at, "end-to-end", float(at < share * n)) for at in range(n - invalid)]
    pairs += [
        scored(at, "end-to-end", 0.0, invalid="connection refused") for at in range(n - invalid, n)
    ]
    return of_pairs(pairs, model, **options)


def in_part(share: float) -> Yardsticks:
    """The ceiling of 10 of the 40 samples, whose answer follows from the calls."""
    oracle = end_to_end(CEILING, share, n=10, privileged=True)
    return Yardsticks(
        {GUESS_FLOOR: end_to_end(GUESS_FLOOR, 0.1), CEILING: oracle},
        frozenset({GUESS_FLOOR, CEILING}),
    )


def three_modes(model: str, **options: object) -> Rescored:
    pairs = [scored(at, "no-tool", float(at < 5)) for at in range(20)]
    pairs += [scored(at, "step-by-step", float(at < 10)) for at in range(20)]
    pairs += [
        scored(at, "end-to-end", float(at < 31), task="weed_crop_area" if at < 20 else "plotting")
        for at in range(40)
    ]
    return of_pairs(pairs, model, **options)


GUESS, PLANS = (
    end_to_end("baseline:guess", 0.1),
    end_to_end("baseline:planner", 0.4, privileged=True),
)
ORACLE = end_to_end("baseline:oracle", 0.9, privileged=True)
BLURRED = partial(end_to_end, share=0.9, n=20, benchmark_options={"degrade": "blur=1"})
ENDS = Yardsticks(
    {each.summary.model: each for each in (GUESS, ORACLE)},
    frozenset({GUESS.summary.model, ORACLE.summary.model}),
)
EXPLAIN = "agrotools explain runs/field-rows-m1-c0ffee s3"
COMPARE = "agrotools compare runs/field-rows-m1-c0ffee runs/field-rows-m2-decade"
WHOLE = "agrotools eval field-rows --model m1  # the whole benchmark"
TRY = "agrotools eval field-rows --quick --model openai:gpt-4.1-mini --budget 3"

SCREENS = {
    "first-run": Screen(
        [
            each._replace(
                summary=each.summary.model_copy(update={"quick": True, "synthetic": True})
            )
            for each in (PLANS, ORACLE, GUESS)
        ],
        commands=[TRY, EXPLAIN],
        page=PAGE,
    ),
    "model": Screen(
        [three_modes("openai:gpt-4.1-mini-2025-04-14")],
        ENDS,
        commands=["agrotools score runs/field-rows-m1-c0ffee --details", EXPLAIN],
        page=PAGE,
    ),
    "quick-model": Screen(
        [end_to_end("m1", 0.5, quick=True)], ENDS, commands=[WHOLE, EXPLAIN], page=PAGE
    ),
    "baseline": Screen(
        [ORACLE], Yardsticks({GUESS_FLOOR: GUESS}), commands=[TRY, EXPLAIN], page=PAGE
    ),
    "invalid": Screen(
        [end_to_end("m1", 0.5, invalid=4)],
        ENDS,
        ["the budget of 5 USD is reached\nhint: raise --budget"],
        [EXPLAIN],
        PAGE,
    ),
    "guesser": Screen([end_to_end("m1", 0.15)], ENDS, commands=[EXPLAIN]),
    "worse": Screen(
        [end_to_end("m1", 0.0)],
        Yardsticks({PLANNER: PLANS, GUESS_FLOOR: end_to_end(GUESS_FLOOR, 0.3)}),
    ),
    "few": Screen([end_to_end("m1", 1.0, n=8)], ENDS),
    "no-tool": Screen([three_modes("m1")], modes=["no-tool"]),
    "doses": Screen(
        [end_to_end("m1", 0.5), *(BLURRED(each) for each in ("m1", CEILING)), ORACLE],
    ),
    "two-models": Screen(
        [end_to_end("m1", 0.5), end_to_end("m2", 0.9), PLANS], ENDS, commands=[COMPARE], page=PAGE
    ),
    "crowd": Screen(
        [
            end_to_end(f"provider:model-{at}-with-a-name-of-its-own", at / 10, invalid=4 * (at % 2))
            for at in range(9)
        ],
        ENDS,
        [
            f"run {at} was stopped for a reason that takes more than one line of eighty columns"
            for at in range(9)
        ],
        [WHOLE, EXPLAIN],
        PAGE,
    ),
}


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_is_as_it_was_and_fits(name: str, width: int) -> None:
    lines = [line.plain.rstrip() for line in screen(SCREENS[name], min(width, 100))]
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= width
    if width != 80:
        return
    text, stored = "".join(f"{line}\n" for line in lines), SNAPSHOTS / f"screen-{name}.txt"
    if UPDATE:
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_a_pipe_gets_plain_text_and_a_run_without_scores_says_so() -> None:
    written = io.StringIO()
    print_screen(Screen([three_modes("m1")], ENDS), file=written)
    assert "\x1b" not in written.getvalue()
    assert written.getvalue().startswith("field-rows")
    assert [line.plain for line in screen(Screen([of_pairs([], "m1")]), 80)][
        -1
    ] == "No records to score yet."


def test_the_reason_of_invalid_samples_precedes_other_warnings_if_most_ended_so() -> None:
    for n_invalid, is_first in ((30, True), (3, False)):
        made, rows = scored(0, "end-to-end", 0.0)
        unread = Trajectory(steps=(), termination="unparseable")
        pairs = [
            (
                made.model_copy(update={"sample": sample(at), "trajectory": unread}),
                [row.model_copy(update={"sample_id": sample(at).id}) for row in rows],
            )
            for at in range(10)
        ]
        pairs += [
            scored(10 + at, "end-to-end", 0.0, invalid="the prompt was cut")
            for at in range(n_invalid)
        ]
        first, *_ = Screen([of_pairs(pairs, "m1")]).warnings
        assert ("records invalid" in first) == is_first, first


def test_a_benchmark_that_tells_what_a_score_says_stands_in_place_of_the_remark_on_drawings() -> (
    None
):
    drawn = end_to_end("m1", 0.5, synthetic=True)
    name = drawn.summary.benchmark
    said = (
        "A score says how ripe fruit is. It does not say whether it tastes good, or keeps for long."
    )
    plugin = BenchmarkPlugin(name, print, scope=f"{said} Not asked: plotting.")
    remark = "scores say nothing about real fields"
    assert remark in "\n".join(map(str, screen(Screen([drawn]))))
    BENCHMARKS.add(name, plugin)
    try:
        shown = " ".join(map(str, screen(Screen([drawn]))))
        assert f"{said} Not asked: plotting." in shown
        assert remark not in shown
        few = Screen([drawn], commands=[EXPLAIN] * (LINES - len(screen(Screen([drawn]))) - 1))
        assert said in " ".join(map(str, screen(few)))
        many = Screen([drawn], commands=[*few.commands, EXPLAIN])
        assert remark in " ".join(map(str, screen(many)))
        assert len(screen(many)) <= LINES
        assert listed(plugin).scope == f"{said} Not asked: plotting."
    finally:
        BENCHMARKS.remove(name)


def test_a_run_of_open_text_alone_names_the_judge() -> None:
    run = end_to_end("m1", 0.5)
    part = run.summary.modes["end-to-end"]
    advice = part.model_copy(update={"metrics": {"ots_floor": part.metrics["fas"]}})
    summary_ = run.summary.model_copy(update={"modes": {"end-to-end": advice}})
    text = " ".join(line.plain for line in screen(Screen([run._replace(summary=summary_)])))
    assert (
        "No FAS: the answers are open text, which a judge scores: agrotools score RUN --judge MODEL."
        in text
    )


def test_scores_are_of_the_same_questions_and_a_ceiling_of_some_places_no_model() -> None:
    pairs = [scored(at, "no-tool", float(at < 5)) for at in range(20)]
    run = of_pairs(
        [*pairs, *(scored(at, "end-to-end", float(at < 10)) for at in range(3, 23))], "m1"
    )
    text = " ".join(line.plain for line in screen(Screen([run])))
    assert (
        "On the 17 questions that can be asked without tools: 11.8 without, 41.2 with tools (+29.4"
        in text
    )
    text = " ".join(line.plain for line in screen(Screen([end_to_end("m1", 0.95)], in_part(0.9))))
    assert "oracle (n 10)" in text
    on = "Even with every call right, the score is 90.0 on the 10 of 40 questions whose answer follows from the calls"
    assert f"{on}: tool errors or wrong labels cost 10.0 points." in text
    assert (
        "the ceiling" not in text.partition("(oracle is")[0]
    )  # neither above it nor on the way to it


def test_an_oracle_that_repeats_results_is_no_ceiling() -> None:
    part = ORACLE.summary.modes["end-to-end"].model_copy(update={"n_underivable": 40})
    summary = ORACLE.summary.model_copy(update={"modes": {"end-to-end": part}})
    text = " ".join(line.plain for line in screen(Screen([ORACLE._replace(summary=summary)], ENDS)))
    assert "baseline oracle" in text
    assert text.count("ceiling") - text.count("ceiling from") == 1  # the reference of its own
    alone = screen(Screen([ORACLE._replace(summary=summary)], Yardsticks({GUESS_FLOOR: GUESS})))
    assert not any("ceiling" in line.plain or "every call right" in line.plain for line in alone)


def test_a_ceiling_below_the_floor_and_calls_that_never_change_are_said() -> None:
    below = Yardsticks(
        {
            GUESS_FLOOR: end_to_end(GUESS_FLOOR, 0.5),
            CEILING: end_to_end(CEILING, 0.25, privileged=True),
        }
    )
    samples = [
        made_sample(
            f"s{at}",
            reference={"steps": [{"tool": "calculate", "arguments": {"expression": f"{at}*3"}}]},
        )
        for at in range(6)
    ]
    records = [made_end_to_end(each, call("2*3"), answer="rows: 7") for each in samples]
    m1 = of_pairs([(each, score_record(each)) for each in records], "m1")
    lines = [line.plain for line in screen(Screen([m1], below))]
    assert "The ceiling (25.0) is below the floor (50.0): guessing beats these tools." in lines
    assert (
        "All 6 calls of calculate by m1 have expression=2*3; in the reference, this argument varies."
        in lines
    )
    without_tools = screen(Screen([m1], below, modes=["no-tool"]))
    assert not any("All 6 calls" in line.plain for line in without_tools)
    varied = [made_end_to_end(each, call(f"{at % 2}*3")) for at, each in enumerate(samples)]
    varying = of_pairs([(each, score_record(each)) for each in varied], "m1").summary
    assert varying.modes["end-to-end"].counts.constant_arguments == ()


def verdict_of(*scored: Rescored) -> ModelVerdict | None:
    return Screen(scored, ENDS).verdict


def test_the_verdict_is_on_models_and_never_on_baselines() -> None:
    assert verdict_of(GUESS, PLANS, ORACLE) is None
    assert verdict_of(end_to_end("m1", 0.5), PLANS, ORACLE) is None
    found = verdict_of(ORACLE, end_to_end("m1", 0.9), PLANS, end_to_end("m2", 0.3))
    assert found is not None
    assert (found.first, found.second, found.n_models) == (1, 3, 2)
    assert found.text.startswith("m1 is better: 60.0 points (")


@pytest.mark.parametrize("quick", [False, True])
def test_the_verdict_is_the_one_that_compare_gives(quick: bool) -> None:
    pair = [end_to_end(model, share, quick=quick) for model, share in (("m1", 0.5), ("m2", 0.55))]
    found = verdict_of(*pair)
    assert found is not None
    (compared,) = comparisons([each.tally for each in pair if each.tally], ["m1", "m2"])
    assert found.text == headline_verdict(compared, "end-to-end")
    assert not found.is_shown


def test_of_several_models_the_best_two_are_compared_adjusted_for_all_pairs() -> None:
    models = [end_to_end(f"m{at}", share) for at, share in enumerate((0.2, 0.9, 0.1, 0.5))]
    found = verdict_of(*models)
    assert found is not None
    assert (found.first, found.second, found.n_models) == (1, 3, 4)


def test_a_missing_or_withheld_score_gives_no_verdict_of_its_own() -> None:
    assert verdict_of(end_to_end("m1", 0.5), end_to_end("m2", 0.5, invalid=4)) is None


@pytest.mark.parametrize("mode", MODES)
def test_the_headline_of_a_mode_is_the_metric_that_compare_uses(mode) -> None:
    runs = [three_modes(model) for model in ("m1", "m2")]
    measure = headline([each.summary for each in runs], [mode])
    assert measure is not None
    (compared,) = comparisons([each.tally for each in runs if each.tally], ["m1", "m2"])
    assert (measure[0].mode, measure[1]) == (mode, compared.headline[mode])
