"""The harness of faults: what it finds, and that it finds it."""

import json
from pathlib import Path

import fault_table
import faults
import pytest
from fault_endpoint import arriving, asked_about, message, says
from fault_table import FAULTS, INVALID, MENDED, REFUSED, RIGHT, WARNED, Fault
from faults import Outcome, judge


def test_the_table_has_no_row_twice_and_many_rows():
    assert len(FAULTS) > 130
    assert all(name == fault.name for name, fault in FAULTS.items())


@pytest.mark.slow
def test_runs_become_what_their_faults_make_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    bad = {
        "canned": Fault("canned", message(content="mean: 99 t/ha"), RIGHT, asked_about(4)),
        "hidden": Fault("hidden", says(401, {"error": "no"}), RIGHT, arriving(1)),
    }
    monkeypatch.setattr(faults, "FAULTS", {**FAULTS, **bad})
    for name in ("AGROTOOLS_CACHE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "COLUMNS"):
        monkeypatch.setenv(name, "")  # so that what the harness sets is undone
    names = ["healthy", "healthy_tools", "key_401_openai", "reset_once", "canned", "hidden"]
    by_name = {outcome.name: outcome for outcome in faults.run_all(names, tmp_path, jobs=2)}
    assert {name: outcome.verdict for name, outcome in by_name.items()} == {
        "healthy": "ok", "healthy_tools": "ok", "key_401_openai": "ok", "reset_once": "ok",
        "canned": "wrong", "hidden": "wrong",
    }  # fmt: skip
    # One more where an endpoint is tried with a short question first.
    for name, questions in {"healthy": 24, "healthy_tools": 48, "reset_once": 36}.items():
        assert questions <= by_name[name].requests <= questions + 2
    assert (by_name["healthy"].score, by_name["canned"].why) == (100, "sample 4 became wrong")
    assert by_name["canned"].score == 91.7
    assert by_name["key_401_openai"].said.startswith("error: http://127.0.0.1")
    assert by_name["key_401_openai"].exit == 2


def _outcome(ends: str, **more: object) -> Outcome:
    kinds = {"r": "right", "w": "wrong", "i": "invalid", "m": "missing", "t": "timeout"}
    return Outcome("f", **{"exit": 0, "samples": [kinds[end] for end in ends]} | more)  # pyright: ignore


@pytest.mark.parametrize(
    ("expected", "outcome", "verdict"),
    [
        (RIGHT, _outcome("r" * 12), "ok"), (RIGHT, _outcome("r" * 12, exit=1), "wrong"),
        (RIGHT, _outcome("r" * 11 + "i", exit=1), "wrong"), (RIGHT, _outcome("r" * 12, seconds=99.0), "slow"),
        (RIGHT, _outcome("r" * 12, exit=None), "wrong"), (INVALID, _outcome("i" * 12, exit=3, told=True), "ok"),
        (INVALID, _outcome("i" * 12, exit=3), "wrong"),
        (INVALID, _outcome("i" * 11 + "t", exit=3, told=True), "wrong"),
        (MENDED, _outcome("r" * 6 + "m" * 6, exit=2), "ok"),
        (MENDED, _outcome("r" * 6 + "i" * 6, exit=0), "wrong"),
        (REFUSED, _outcome("m" * 12, exit=2, told=True, requests=9), "ok"),
        (REFUSED, _outcome("m" * 12, exit=2, told=True, requests=9, tables=True), "wrong"),
        (REFUSED, _outcome("m" * 12, exit=2, told=True, requests=36), "wrong"),
        (WARNED, _outcome("t" * 12, exit=0), "wrong"), (WARNED, _outcome("t" * 12, exit=3, told=True), "ok"),
    ],
)  # fmt: skip
def test_what_counts_as_wrong(expected: fault_table.Expected, outcome: Outcome, verdict: str):
    fault = Fault("f", says(500), expected)
    assert judge(fault, outcome).verdict == verdict


def test_samples_that_met_no_fault_must_be_right():
    fault = Fault("f", says(400), INVALID, asked_about(3), frozenset({3}))
    assert judge(fault, _outcome("rrri" + "r" * 8, exit=1, told=True)).verdict == "ok"
    assert (
        judge(fault, _outcome("rrri" + "r" * 7 + "m", exit=1, told=True)).why
        == "sample 11, which met no fault, became missing"
    )


def test_outcomes_are_written_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        faults,
        "run_all",
        lambda names, *_: [judge(FAULTS[name], _outcome("r" * 12)) for name in names],
    )
    monkeypatch.setattr(
        "sys.argv", ["faults.py", "--only", "healthy*", "--json", str(tmp_path / "out.json")]
    )
    with pytest.raises(SystemExit) as ended:
        faults.main()
    assert ended.value.code == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert [row["verdict"] for row in written] == ["ok"] * 4
