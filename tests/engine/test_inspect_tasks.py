"""The tasks of Inspect AI give the scores of ``agrotools eval`` for the same replies, odd ones included."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agrotools as at
from agrotools.core import AbstainSlot, Record, Step, Trajectory
from agrotools.foreign.predictions import import_predictions
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.runner.records import iter_records
from agrotools.sandbox.agents import is_available
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.slots import pair_rows
from support.marked_server import MarkedServer
from support.openai_server import ReferenceFollower, completion, serving, text_of
from support.plain_sample import plain_sample

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.slow


def test_a_task_without_the_extra_tools_is_refused_when_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
):
    from agrotools.inspect_tasks import embedded_quick

    # A module without specification stands for one that is not installed.
    monkeypatch.setitem(sys.modules, "rasterio", SimpleNamespace(__spec__=None))
    with pytest.raises(at.AgrotoolsError, match="needs rasterio"):
        embedded_quick()


def test_the_score_is_that_of_eval_to_the_digit(tmp_path: Path):
    from inspect_ai.log import read_eval_log

    benchmark = at.load_benchmark("embedded", quick=True)
    samples = [each for each in benchmark.samples if each.id in benchmark.header.quick]
    followers = [
        ReferenceFollower(samples, benchmark.root, sloppy=sloppy) for sloppy in (True, False)
    ]
    forms = Counter[str]()

    def follow(body: dict) -> Any:
        """Fill one of two forms of a sample as it should be: epochs differ, whichever comes first."""
        if not text_of(body["messages"][-1]).startswith("Now copy"):
            return followers[0](body)
        forms[asked := str(body["messages"][1])] += 1
        return followers[forms[asked] % 2](body)

    with serving(follow) as endpoint:
        run = at.evaluate(
            "embedded", quick=True, mode="end-to-end", protocol="tool-calling", out=str(tmp_path / "run"),
            model="scripted", base_url=endpoint.base_url, epochs=2,
        )  # fmt: skip
        command = [
            str(Path(sys.executable).with_name("inspect")),
            "eval",
            "agrotools/embedded_quick",
            "--epochs",
            "2",
        ]
        command += [
            "--model",
            "openai-api/local/scripted",
            "--log-dir",
            str(tmp_path / "logs"),
            "--display",
            "none",
        ]
        keys = {"LOCAL_API_KEY": "none", "LOCAL_BASE_URL": endpoint.base_url}
        subprocess.run(command, env=os.environ | keys, check=True, timeout=600)
    file = next((tmp_path / "logs").glob("*.eval"))
    log = read_eval_log(file)
    expected = run.summary.modes["end-to-end"].metrics["fas"].overall
    metrics = {name: each.value for name, each in log.results.scores[0].metrics.items()}
    assert metrics.pop("stderr") > 0
    assert metrics == {
        "fas": expected.value,
        "low": expected.interval.lower,
        "high": expected.interval.upper,
    }
    assert 0.2 < expected.value < 0.9, "the replies are odd, and some are right"
    scores = [score for sample in log.samples for score in sample.scores.values()]
    assert all(score.explanation.startswith("Expected: ") for score in scores)
    values = [score.value for score in scores if not math.isnan(score.value)]
    assert math.fsum(values) / len(values) == pytest.approx(expected.value, abs=1e-12)
    whole = [score for score in scores if "No points lost." in score.explanation]
    assert all(score.value == 1 for score in whole)
    assert any("No points lost." in score.explanation for score in scores)
    assert any("Points lost by unread answers" in score.explanation for score in scores)
    tools = {
        event.function for sample in log.samples for event in sample.events if event.event == "tool"
    }
    assert "measure_fruit_size" in tools, "the log shows the calls as tools of Inspect"
    made = at.read_run(import_predictions(file, benchmark, "embedded", out=tmp_path / "made")[0])
    assert made.scores["fas"].value == run.scores["fas"].value
    for field in ("prompt_hash", "toolset_hash", "benchmark_hash", "protocol", "max_steps"):
        assert getattr(made.manifest, field) == getattr(run.manifest, field)


@pytest.mark.parametrize(
    ("yes", "no"), [("7", "unknown"), ("unknown", "unknown"), ("unknown", "7")]
)
def test_values_of_a_pair_sum_to_its_final_answer_scores(yes: str, no: str):
    from agrotools.inspect_tasks import sample_value

    asked = plain_sample("yes", twin="no", may_abstain=True)
    refusal = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=asked.answer)
    unanswerable = plain_sample("no", twin="yes", may_abstain=True, answer=(refusal,))
    records = [
        Record(
            sample=sample,
            mode="end-to-end",
            trajectory=Trajectory(
                steps=(Step(turn=0, kind="answer", text=f"weeds: {text}"),), termination="answered"
            ),
        )
        for sample, text in ((asked, yes), (unanswerable, no))
    ]
    rows = [score_record(record) for record in records]
    of_pair = pair_rows(records[1], rows[1], records[0], rows[0])
    scores = [row.value for row in (*rows[0], *of_pair) if row.metric == "fas"]
    values = [sample_value(record, each) for record, each in zip(records, rows, strict=True)]
    assert sum(values) == sum(scores)


@pytest.mark.filterwarnings("ignore")  # of libraries that Inspect uses
def test_pictures_of_results_reach_the_model_and_other_solvers(tmp_path: Path):
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import ContentImage, get_model
    from inspect_ai.solver import generate

    from agrotools.inspect_tasks import embedded_quick

    benchmark = at.load_benchmark("embedded", quick=True)
    sample = next(
        each
        for each in benchmark.samples
        if each.id in benchmark.header.quick
        and each.reference
        and each.reference.steps[0].tool == "count_objects"
    )
    follow = ReferenceFollower([sample], benchmark.root)
    for solver in (None, generate()):
        with serving(follow) as endpoint:
            log = inspect_eval(
                embedded_quick(tool_images=True),
                model=get_model(
                    "openai-api/local/scripted", base_url=endpoint.base_url, api_key="none"
                ),
                sample_id=sample.id,
                solver=solver,
                display="none",
                log_dir=str(tmp_path),
            )[0]
        assert log.status == "success", log.error
        results = [each for each in log.samples[0].messages if each.role == "tool"]
        shown = [
            part for each in results for part in each.content if isinstance(part, ContentImage)
        ]
        assert shown, "the result holds the picture of the call"


@pytest.mark.filterwarnings("ignore")  # of libraries that Inspect uses
def test_tools_of_a_server_are_offered_and_end_with_the_sample(tmp_path: Path):
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from agrotools.inspect_tasks import embedded_quick

    server = MarkedServer()
    benchmark = load_as("embedded", Loading(quick=True, files_later=True))
    asked = [benchmark.sample(name) for name in benchmark.header.quick[:2]]
    running: list[int] = []

    def reply(body: dict) -> Any:
        """Call the server, which dies for the second question, and then answer."""
        texts = "\n".join(text_of(message) for message in body["messages"])
        if body["messages"][-1]["role"] != "user" or "do not know" in texts:
            running.append(server.processes())
            return completion("I do not know.")
        if asked[0].query in texts:
            arguments = {"image_path": asked[0].files[0].name}
            return completion(calls=[("cover", json.dumps(arguments))])
        return completion(calls=[("die", "{}")])

    with serving(reply) as endpoint:
        log = inspect_eval(
            embedded_quick(tool_servers=server.address),
            model=get_model(
                "openai-api/local/scripted", base_url=endpoint.base_url, api_key="none"
            ),
            sample_id=[each.id for each in asked],
            fail_on_error=False,
            display="none",
            log_dir=str(tmp_path / "logs"),
        )[0]
    first, second = sorted(log.samples, key=lambda each: each.id != asked[0].id)
    result = next(each.text for each in first.messages if each.role == "tool")
    assert json.loads(result.split("\n")[1])["result"] == {"cover": 0.5}
    assert "out of field" in second.error.message, "the sample is invalid, not wrong"
    assert not second.scores
    assert max(running) > 0
    assert server.processes() == 0
    used = log.eval.metadata["agrotools_manifest"]["tool_servers"]
    assert [(use["name"], use["sealed"]) for use in used] == [("field-tools", is_available())]
    run = import_predictions(Path(log.location), benchmark, "embedded", out=tmp_path / "made")[0]
    kept = {record.sample.id: record for record in iter_records(run)}
    assert kept[asked[0].id].trajectory.calls[0].call.tool == "cover"
