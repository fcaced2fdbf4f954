"""The calls behind the commands, from Python: they print nothing, and return what the commands show."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

import agrotools as at
from agrotools.exit_codes import FAULTS, NOT_DONE
from agrotools.report import screen
from agrotools.report.comparison import comparison_data
from agrotools.report.html.page import build_report
from agrotools.runner.yardsticks import GUESS
from support.command import run_command
from support.text_benchmark import write_text_benchmark

SAMPLES = 24
"""Each is a cluster of its own, so that there are intervals and tests."""


class Reader:
    """A policy that knows the values of the first plots, and fails on one of them, if that is named."""

    def __init__(self, name: str, n_right: int, fails_on: str = "") -> None:
        self.name, self.n_right, self.fails_on = name, n_right, fails_on

    async def act(self, view: Any, history: Any) -> at.Answer:
        number = view.query.rstrip("?").rpartition(" ")[2]
        if number == self.fails_on:
            raise ConnectionError("the field is under water")
        return at.Answer(text=f"value: {number if int(number) < self.n_right else -1}")


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_text_benchmark(tmp_path / "farm", SAMPLES)


def evaluated(farm: Path, policy: Reader) -> at.Run:
    out = farm.parent / policy.name
    return at.evaluate(farm, policy, mode="no-tool", out=out, progress=io.StringIO())


def as_json(value: object) -> Any:
    return json.loads(json.dumps(value))


def places(shown: screen.Screen) -> list[tuple[object, ...]]:
    return [(rung.role, rung.name, rung.estimate, rung.bounds) for rung in shown.ladder]


def test_calls_print_nothing_and_return_what_the_commands_show(
    farm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, poor = evaluated(farm, Reader("good", 20)), evaluated(farm, Reader("poor", 4, "7"))
    scored = at.score(poor)
    validity, warnings = scored.validity, scored.screen.warnings
    compared = at.compare(good, poor)
    gated = at.gate(poor, good, allow_invalid=True)
    page = build_report([poor.path], poor.path / "report.html")
    assert capfd.readouterr() == ("", "")

    done = run_command("score", poor.path, "--json")
    (summary,) = json.loads(done.stdout)
    assert scored.summary.model_dump(mode="json") == summary
    assert validity.exit_code == done.returncode == FAULTS
    assert any("the field is under water" in line for line in warnings)

    pairs = json.loads(run_command("compare", good.path, poor.path, "--json").stdout)
    assert as_json([comparison_data(each) for each in compared.pairs]) == pairs
    assert compared[0].value < 0

    done = run_command("gate", poor.path, "--against", good.path, "--allow-invalid", "--json")
    verdict = json.loads(done.stdout)
    assert gated.result.model_dump(mode="json").items() <= verdict.items()
    assert gated.result.passed == verdict["passed"] == (done.returncode == 0)
    assert not gated.result.passed

    written = json.loads(run_command("report", poor.path, "--json").stdout)
    assert as_json({**vars(page), "path": str(page.path)}) == written


def test_the_screen_of_a_run_is_that_of_eval(farm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[screen.Screen] = []
    monkeypatch.setattr(screen, "print_screen", printed.append)
    words = ("--mode", "no-tool", "--out", farm.parent / "random")
    done = run_command("eval", farm, "-m", "baseline:random", *words)
    assert done.returncode == 0, done.stderr

    run = at.read_run(farm.parent / "random")
    (shown,) = printed
    assert places(run.screen) == places(shown)
    assert {role for role, *_ in places(shown)} >= {"floor", "baseline"}
    assert run.screen.warnings == shown.warnings
    assert run.validity.exit_code == 0
    assert GUESS in run.screen.yardsticks.summaries


def test_a_run_without_a_reply_has_no_ladder_and_says_why(farm: Path) -> None:
    class Silent(Reader):
        async def act(self, view: Any, history: Any) -> at.Answer:
            raise ConnectionError("the field is under water")

    with pytest.raises(at.InvalidRunError) as error:
        evaluated(farm, Silent("silent", 0))
    run = error.value.run
    assert isinstance(run, at.Run)
    assert not run.screen.yardsticks.scored
    assert run.validity.exit_code == NOT_DONE
    assert "the field is under water" in run.validity.error
