"""``agrotools attribute`` on run folders of a small benchmark."""

import json
import shutil
from pathlib import Path

import pytest

from agrotools import Run
from agrotools.core import AbstainSlot, Record
from agrotools.scoring.attribution import read_attribution
from agrotools.scoring.slots import NO_TWIN
from support.command import run_command
from support.made_runs import call, end_to_end, made_sample, write_run
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process
REFUSAL = "rows: unknown"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a planted agent that fails one decision in ten or so."""
    folder = tmp_path_factory.mktemp("attribution")
    write_sums(folder / "sums", 24)
    done = run_command("eval", folder / "sums", "-m", "baseline:planted:0.5:3", "--out", folder / "run", "--mode",
                       "end-to-end,step-by-step")  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_the_parts_of_a_run_sum_to_the_gap_of_its_score(run: Path):
    done = run_command("attribute", run)
    assert done.returncode == 0, done.stderr
    attribution, outdated = read_attribution(run)
    assert outdated == ""
    scores = json.loads((run / "scores.json").read_text())
    score = scores["summary"]["modes"]["end-to-end"]["metrics"]["fas"]["overall"]["value"]
    assert attribution.run.score == pytest.approx(100 * score, abs=1e-5)
    assert 0 < attribution.run.gap == sum(attribution.run.parts.values())
    assert all(sum(each.parts.values()) == each.gap for each in attribution.samples)
    assert "tool:calculate" not in attribution.run.parts, "a planted agent errs, the tool does not"
    assert attribution.left_out == {"in mode step-by-step": 24}
    assert set(attribution.run.intervals) == {*attribution.run.parts, "gap"}
    assert scores["attribution"] == attribution.model_dump(mode="json", exclude={"samples"})
    assert f"{attribution.run.gap:.1f} of 100 points lost, 24 samples" in done.stdout
    assert json.loads(run_command("attribute", run, "--json").stdout) == json.loads(
        (run / "attribution.json").read_text()
    )


def test_a_split_of_other_records_is_out_of_date(run: Path, tmp_path: Path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "scores.json").write_text("[")
    assert run_command("attribute", copy, "--data-root", run.parent).returncode == 0
    command = f"run again: agrotools attribute {copy}"

    def stored() -> dict[str, object]:
        run_command("score", copy)
        return json.loads((copy / "scores.json").read_text())["attribution"]

    assert "run" in stored(), "scoring again keeps a current split"
    lines = (copy / "records.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "records.jsonl").write_bytes(b"".join(lines[:-1]))
    assert read_attribution(copy)[0] is None
    assert command in str(stored()["out_of_date"])
    assert command in run_command("compare", copy, run).stderr
    assert command in run_command("explain", copy, json.loads(lines[0])["sample"]["id"]).stderr
    run_command("attribute", copy, "--data-root", run.parent)
    assert "run" in stored()


def test_a_split_that_an_older_version_wrote_is_read(run: Path, tmp_path: Path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    assert run_command("attribute", copy, "--data-root", run.parent).returncode == 0
    current, _ = read_attribution(copy)
    older = json.loads((copy / "attribution.json").read_text())
    older |= {
        "rerun": True,
        "joint": [{"parts": ["arguments", "reading"], "points": 1.0}],
        "tool_noise": {"n": 24},
    }
    older["samples"][0]["joint"] = ["arguments", "reading"]
    (copy / "attribution.json").write_text(json.dumps(older))
    assert read_attribution(copy) == (current, "")


def test_without_the_benchmark_no_tool_is_run(run: Path):
    before = json.loads(run_command("attribute", run, "--json").stdout)
    folder = run.parent / "sums"
    folder.rename(run.parent / "elsewhere")
    try:
        done = run_command("attribute", run, "--json")
    finally:
        (run.parent / "elsewhere").rename(folder)
    found = json.loads(done.stdout)
    assert found["notes"][0].startswith("no tool is run again: ")
    assert found["run"]["gap"] == before["run"]["gap"] == sum(found["run"]["parts"].values())


def test_the_split_of_unanswerable_samples_counts_the_refusals_of_their_twins(tmp_path: Path):
    records: list[Record] = []
    for at, (text, twin_text) in enumerate(
        ((REFUSAL, "rows: 7"), (REFUSAL, REFUSAL), ("rows: 7", REFUSAL))
    ):
        yes = made_sample(f"yes-{at}", twin=f"no-{at}", may_abstain=True)
        slot = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=yes.answer)
        no = made_sample(f"no-{at}", twin=f"yes-{at}", may_abstain=True, answer=(slot,))
        records += [end_to_end(no, call("2*3"), call("6 + 1", 1), answer=text)]
        records += [end_to_end(yes, call("2*3"), call("6 + 1", 1), answer=twin_text)]
    records.append(
        end_to_end(
            made_sample("alone", may_abstain=True, twin="gone", answer=(slot,)), answer=REFUSAL
        )
    )
    run = write_run(tmp_path / "run", records, benchmark_path=str(tmp_path))
    assert run_command("attribute", run).returncode == 0
    attribution, _ = read_attribution(run)
    scores = {each.id: each.score for each in attribution.samples}
    assert scores == {"no-0": 100, "yes-0": 100, "no-1": 0, "yes-1": 0, "no-2": -100, "yes-2": 0}
    assert attribution.left_out == {f"unanswerable, {NO_TWIN}": 1}
    mode = Run(run).summary.modes["end-to-end"]
    assert attribution.run.score == pytest.approx(100 * mode.metrics["fas"].overall.value, abs=1e-5)
    assert attribution.run.score == pytest.approx(100 / 6, abs=1e-5)
    assert mode.counts.without_twin == 1
