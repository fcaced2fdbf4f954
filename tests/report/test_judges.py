"""Agreement of judges whose grades are known: the same, the other way round, and by lot."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import Fact, OpenTextSlot, Record, UsageError
from agrotools.report.judges import judge_agreement
from agrotools.runner.rescore import JUDGEMENTS_FILE
from agrotools.scoring.judging.judgements import Judgement, agreement
from agrotools.scoring.judging.questions import judge_questions
from support.made_runs import end_to_end, made_sample, write_run

MODELS = ("m0", "m1", "m2", "m3")
SLOT = OpenTextSlot(
    name="why", label="why", facts=(Fact(phrases=("late blight",)), Fact(phrases=("leaf mould",)))
)
Grading = Callable[[int, int], float]
"""Grade (0 to 2) of an answer by number of the model and of the sample."""


def record(model: int, sample: int, answer: str | None = None) -> Record:
    made = made_sample(f"s{sample:02}", answer=(SLOT,), reference=None, cluster=f"c{sample // 2}")
    return end_to_end(made, answer=answer or f"why: m{model} says {sample}")


def verdicts(grade: float) -> str:
    """Return a judge's reply that finds as many of the two facts stated."""
    said = {"verdict": "stated", "quote": "says"}
    return json.dumps(
        {str(number): said if number <= grade else {"verdict": "absent"} for number in (1, 2)}
    )


def runs_of(folder: Path, judges: dict[str, Grading], n: int = 40) -> list[Path]:
    """A run for each model, whose answers the judges graded."""
    runs = []
    for model, name in enumerate(MODELS):
        records = [record(model, sample) for sample in range(n)]
        run = write_run(folder / name, records, model=name)
        lines = []
        for sample, each in enumerate(records):
            (question,) = judge_questions(each)
            lines += [
                Judgement(metric=question.metric, judge=judge, prompt=question.prompt, asked=question.asked,
                          sample_id=each.sample.id, reply=verdicts(grading(model, sample)))
                for judge, grading in judges.items()
            ]  # fmt: skip
        (run / JUDGEMENTS_FILE).write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
        runs.append(run)
    return runs


def stepwise(model: int, sample: int) -> int:
    """Grades of 0 to 2 whose mean rises from model to model."""
    return min(2, (sample * 7 % 10 + 2 * model) // 5)


def test_judges_that_agree_differ_by_lot_or_turn_it_round(tmp_path: Path):
    result = judge_agreement(runs_of(tmp_path, {"a": stepwise, "b": stepwise}))
    (pair,) = result.pairs
    assert result.models == ("m3", "m2", "m1", "m0")
    assert (pair.tau, pair.rho) == pytest.approx((1, 1))
    assert (pair.tau_interval.lower, pair.tau_interval.upper) == (1, 1)
    assert (pair.alpha.alpha, pair.alpha.n_units) == (pytest.approx(1), 160)
    assert (result.n, result.n_answers) == (40, 160)
    means = {each.model: each.value.value for each in result.scores if each.judge == "a"}
    assert means == {
        name: sum(stepwise(m, s) for s in range(40)) / 80 for m, name in enumerate(MODELS)
    }
    judges: dict[str, Grading] = {
        "a": stepwise,
        "b": lambda model, sample: 2 - stepwise(model, sample),
    }
    (pair,) = judge_agreement(runs_of(tmp_path, judges)).pairs
    assert (pair.tau, pair.rho) == pytest.approx((-1, -1))
    assert pair.alpha.alpha < -0.5
    chance = random.Random(4)
    (pair,) = judge_agreement(
        runs_of(tmp_path, {"a": stepwise, "b": lambda *_: chance.randrange(3)})
    ).pairs
    assert pair.rho_interval.lower < 0 < pair.rho_interval.upper
    assert pair.tau_interval.upper - pair.tau_interval.lower > 0.5
    assert pair.alpha.interval.lower < 0 < pair.alpha.interval.upper


def test_metrics_are_judges_and_missing_answers_score_zero(tmp_path: Path):
    runs = runs_of(tmp_path, {"a": stepwise}, n=12)
    silent = write_run(
        tmp_path / "silent",
        [end_to_end(record(9, sample).sample, answer=None) for sample in range(12)],
        model="silent",
    )
    (silent / JUDGEMENTS_FILE).write_bytes((runs[0] / JUDGEMENTS_FILE).read_bytes())
    result = judge_agreement([*runs, silent], scores=["ots_floor"])
    assert (result.judges, result.models[-1], result.n_answers) == (
        ("a", "ots_floor"),
        "silent",
        48,
    )
    assert "12 answers are missing and score 0" in result.notes
    with pytest.raises(UsageError, match="only a graded"):
        judge_agreement(runs)
    with pytest.raises(UsageError, match="two runs"):
        judge_agreement(runs[:1])


def test_the_bootstrap_draws_whole_clusters():
    """A cluster of equal answers is one answer to the bootstrap."""
    chance = random.Random(1)
    single = [(chance.randrange(3), chance.randrange(3)) for _ in range(30)]
    repeated = [unit for unit in single for _ in range(20)]
    by_cluster = agreement(repeated, [at // 20 for at in range(600)])
    by_answer, alone = agreement(repeated), agreement(single)

    def width(each: object) -> float:
        return each.interval.upper - each.interval.lower  # pyright: ignore[reportAttributeAccessIssue]

    assert width(by_cluster) == pytest.approx(width(alone), rel=0.1)
    assert width(by_answer) < width(alone) / 3


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_command_draws_and_prints(tmp_path: Path, suffix: str):
    chance = random.Random(2)
    judges: dict[str, Grading] = {"<b>a$": stepwise, "b": lambda *_: chance.randrange(3)}
    runs = runs_of(tmp_path, judges, n=12)
    out = tmp_path / f"judges.{suffix}"
    command: Sequence[str] = ["chart", "judges", *map(str, runs), "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "tau-b" in done.stdout
    assert "1.00" not in done.stdout
    assert out.stat().st_size > 5000
    data = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert data["judges"] == ["<b>a$", "b"]
