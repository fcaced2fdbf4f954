"""``agrotools attribute`` on run folders of a small benchmark."""

import json
import re
import shutil
from pathlib import Path

import pytest
from aiohttp import web

from agrotools import Run
from agrotools.analysis.tool_noise import tool_noise
from agrotools.benchmarks.field.pack import read_samples
from agrotools.core import (
    AbstainSlot,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    ToleranceSlot,
)
from agrotools.scoring.attribution import read_attribution
from agrotools.scoring.slots import NO_TWIN
from support.command import run_command
from support.made_runs import call, end_to_end, made_sample, write_run
from support.openai_server import Body, completion, serving, text_of
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


def test_without_the_benchmark_no_tool_is_run(run: Path):
    before = json.loads(run_command("attribute", run, "--json").stdout)
    folder = run.parent / "sums"
    folder.rename(run.parent / "elsewhere")
    try:
        done = run_command("attribute", run, "--json")
        assert run_command("attribute", run, "--rerun").returncode == 2
    finally:
        (run.parent / "elsewhere").rename(folder)
    found = json.loads(done.stdout)
    assert found["notes"][0].startswith("no tool is run again: ")
    assert found["run"]["gap"] == before["run"]["gap"] == sum(found["run"]["parts"].values())


def test_the_split_of_unanswerable_samples_counts_the_refusals_of_their_twins(tmp_path: Path):
    records: list[Record] = []
    for at, (text, twin_text) in enumerate(((REFUSAL, "rows: 7"), (REFUSAL, REFUSAL), ("rows: 7", REFUSAL))):
        yes = made_sample(f"yes-{at}", twin=f"no-{at}", may_abstain=True)
        slot = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=yes.answer)
        no = made_sample(f"no-{at}", twin=f"yes-{at}", may_abstain=True, answer=(slot,))
        records += [end_to_end(no, call("2*3"), call("6 + 1", 1), answer=text)]
        records += [end_to_end(yes, call("2*3"), call("6 + 1", 1), answer=twin_text)]
    records.append(end_to_end(made_sample("alone", may_abstain=True, twin="gone", answer=(slot,)), answer=REFUSAL))
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


def careless(body: Body) -> web.Response:
    """A model that divides by three instead of two, and then writes something else."""
    results = [message for message in body["messages"] if message["role"] == "tool"]
    if not results:
        field = re.search(r"gave ([\d.]+) and ([\d.]+)", " ".join(map(text_of, body["messages"])))
        variables = {"a": float(field[1]), "b": float(field[2])}
        return completion(calls=[("calculate", json.dumps({"expression": "a + b", "variables": variables}))])
    if len(results) == 1:
        total = re.search(r'"value": ?([\d.]+)', text_of(results[0]))
        assert total is not None, results[0]
        return completion(
            calls=[("calculate", json.dumps({"expression": "s / 3", "variables": {"s": float(total[1])}}))]
        )
    return completion("mean: 99 t/ha")


def test_a_model_is_asked_again_only_after_its_price_is_accepted(tmp_path: Path):
    write_sums(tmp_path / "sums", 3)
    run = tmp_path / "run"
    with serving(careless) as endpoint:
        model = ("-m", "m", "--base-url", endpoint.base_url, "--protocol", "tool-calling", "--price", "1/2")
        done = run_command("eval", tmp_path / "sums", *model, "--mode", "end-to-end", "--out", run, "--yes")
        assert done.returncode == 0, done.stderr
        before = json.loads(run_command("attribute", run, "--json").stdout)
        assert before["run"]["parts"] == {"arguments": 50.0, "reading": 50.0}
        assert before["joint"][0]["parts"] == ["arguments", "reading"]
        sent = len(endpoint.requests)
        refused = run_command("attribute", run, "--rerun", "--price", "1/2")
        assert refused.returncode == 2
        assert "about 6 requests" in refused.stderr
        assert "1.00/2.00 USD per million tokens" in refused.stderr
        assert len(endpoint.requests) == sent
        done = run_command("attribute", run, "--rerun", "--price", "1/2", "--yes", "--json")
        assert done.returncode == 0, done.stderr
        assert len(endpoint.requests) == sent + 6, "one other sequence of results for each sample, and its form"
    after = json.loads(done.stdout)
    assert (after["run"]["parts"], after["joint"]) == ({"arguments": 50.0, "reading": 50.0}, [])


def counting_sample(at: int, ratio: float) -> Sample:
    """Trees times 2 of one picture; the count is off by ``ratio``, the share of weeds is right."""
    true = 40 + at
    steps = (
        ReferenceStep(
            tool="count_objects", arguments={"image": "a.jpg", "target": "tree"}, truth={"count": true},
            observation=Observation(result={"count": round(true * ratio)}),
        ),
        ReferenceStep(
            tool="measure_crop_weed_area", arguments={"image": "a.jpg"}, truth={"weed_pct": 5.0},
            observation=Observation(result={"weed_pct": 5.0}),
        ),
        ReferenceStep(
            tool="calculate", truth={"value": 2.0 * true + 5},
            arguments={
                "expression": "2 * n + w",
                "variables": {
                    "n": {"$ref": "steps[0].observation.count", "value": round(true * ratio)},
                    "w": {"$ref": "steps[1].observation.weed_pct", "value": 5.0},
                },
            },
            observation=Observation(result={"value": 2.0 * round(true * ratio) + 5}),
        ),
    )  # fmt: skip
    answer = ToleranceSlot.model_validate(
        {"name": "n", "label": "n", "value": 2 * true + 5, "from": "steps[2].observation.value", "rel_tol": 0.14}
    )
    return Sample(
        id=f"s{at}", query="?", files=(SampleFile(name="a.jpg", path=f"{at}.jpg", kind="image"),), family="CM",
        task_type="tree_counting", answer_type="tolerance", template="t", source="made", cluster=f"c{at}",
        toolset=("count_objects", "measure_crop_weed_area", "calculate"), answer=(answer,),
        reference=ReferenceTrajectory(steps=steps),
    )  # fmt: skip


def test_scores_fall_with_the_errors_of_tools_drawn_from_other_clusters():
    found = tool_noise([counting_sample(at, 1.2) for at in range(30)], draws=4)
    assert found.predicted == found.recorded == 0
    assert found.tools["count_objects"].scores == {"0.0": 100, "0.5": 100, "1.0": 0, "2.0": 0}
    assert (found.tools["count_objects"].gain, found.tools["measure_crop_weed_area"].gain) == (100, 0)
    assert "calculate" not in found.tools, "it follows from its arguments"
    # Only one cluster has an error; whatever is drawn for it comes from the others.
    samples = [counting_sample(at, 1.2 if at == 7 else 1.0) for at in range(30)]
    alone = tool_noise([samples[7]], samples, draws=8)
    assert (alone.predicted, alone.recorded) == (100, 0)


def test_the_predicted_ceiling_of_field_is_near_that_of_the_tools():
    found = tool_noise(read_samples(), scales=(1.0,), draws=4)
    assert found.n > 400
    assert found.recorded > 80, "the oracle reaches 87"
    assert abs(found.predicted - found.recorded) <= 3
