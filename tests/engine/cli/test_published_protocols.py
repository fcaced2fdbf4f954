"""Published benchmarks are run in the protocols of their papers, by default or on request, and repeated exactly."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import CallTools, Record, Sample
from agrotools.core.record import literal_value, rename_texts
from agrotools.loading import load_benchmark
from agrotools.runner import early_checks
from agrotools.runner.records import iter_records
from support.made_agent_x import write_agent_x
from support.made_gta import write_gta
from support.made_thinkgeo import write_thinkgeo
from support.openai_server import Body, completion, serving, text_of

pytestmark = pytest.mark.process


class Follower:
    """Makes the reference calls in the published words, then says the first right answer; slips as it is told to."""

    def __init__(self, samples: list[Sample], slips: bool = False) -> None:
        self.by_query = {sample.query: sample for sample in samples}
        self.slips = slips
        self.bodies: list[Body] = []

    def __call__(self, body: Body) -> web.Response:
        self.bodies.append(body)
        messages = body["messages"]
        assert not any(isinstance(message["content"], list) for message in messages), (
            "no image is sent"
        )
        sample = next(
            self.by_query[text_of(each)] for each in messages if text_of(each) in self.by_query
        )
        steps = sample.reference.steps if sample.reference else ()
        done = sum(message["role"] == "assistant" for message in messages)
        if self.slips and done == 0:
            return completion("I wonder what to do.")
        done -= self.slips and any(
            text_of(each) == "Response:Please follow the format\n" for each in messages
        )
        if done >= len(steps) or text_of(messages[-1]).startswith("Please summarize"):
            return completion(f"Thought: that is it\nFinal Answer: {sample.metadata['final_text']}")
        arguments = {name: literal_value(value) for name, value in steps[done].arguments.items()}
        given = json.dumps(rename_texts(arguments, sample.published_paths or {}))
        return completion(f"Thought: I go on.\nAction: {steps[done].tool}\nAction Input: {given}")


def agrotools(*arguments: object) -> str:
    """All that the command says, on both outputs."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def records(run: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def errors_of_run(run: Path, mode: str) -> dict[str, dict[str, Any]]:
    summary = json.loads((run / "scores.json").read_text(encoding="utf-8"))["summary"]
    return {row["error"]: row for row in summary["modes"][mode]["errors"]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    write_gta(root / "gta_dataset")
    # The tools of the made-up folder are declared with one argument each: the package's own words are tried here.
    (root / "gta_dataset" / "toolmeta.json").unlink()
    write_thinkgeo(root / "ThinkGeo_dataset")
    write_agent_x(root / "AgentX", count=8, calls=24, images=2, videos=1)
    return root


@pytest.fixture(scope="module")
def gta(root: Path) -> list[Sample]:
    return list(load_benchmark("gta", data_root=root).samples)


def test_a_perfect_model_in_the_published_protocol_has_the_published_figures(
    root: Path, gta: list[Sample], tmp_path: Path
):
    run, follower = tmp_path / "run", Follower(gta)
    with serving(follower) as api:
        command = (
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "lagent",
        )
        agrotools("eval", *command, "--backend", "recorded", "--out", run)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["protocol"], manifest["max_steps"], manifest["images"]) == (
        "lagent",
        10,
        False,
    )
    assert manifest["modes"] == ["step-by-step", "end-to-end"]
    modes = json.loads((run / "scores.json").read_text(encoding="utf-8"))["summary"]["modes"]
    steps = modes["step-by-step"]["published"]
    assert steps["reference"]["gta.tool_acc"] == 1
    assert steps["reference"]["gta.arg_acc"] == 1
    assert steps["reference"]["gta.inst_acc"] == pytest.approx((557 + 229) / (557 + 172))
    assert steps["differs"] == []
    end = modes["end-to-end"]["published"]
    assert end["counts"]["tool_call_error"] == 0
    assert end["differs"] == ["recorded observations instead of tools"]
    assert all(
        body["messages"][0]["content"].startswith("You are a assistant") for body in follower.bodies
    )


def test_a_prediction_file_tells_what_was_said(root: Path, gta: list[Sample], tmp_path: Path):
    run = tmp_path / "run"
    with serving(Follower(gta, slips=True)) as api:
        command = (
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "lagent",
        )
        agrotools("eval", *command, "--backend", "recorded", "--limit", 12, "--out", run)
    exported = CliRunner().invoke(
        app, ["export", str(run), "--format", "predictions", "--out", f"{tmp_path}/files"]
    )
    assert "a part of 229 questions" in exported.stderr
    by_step = json.loads((tmp_path / "files" / "gta_step-by-step.json").read_text(encoding="utf-8"))
    end = json.loads((tmp_path / "files" / "gta_end-to-end.json").read_text(encoding="utf-8"))
    assert [*by_step] == [*end] == [str(number) for number in range(12)]
    wondered = {
        "role": "assistant",
        "tool_calls": [
            {"type": "function", "function": {"name": "NoAction", "arguments": {"text": ""}}}
        ],
        "error": {"type": "API_ERROR", "msg": "Please follow the format"},
    }
    for entry in by_step.values():
        assert len(entry["gold"]) == len(entry["prediction"]) == len(entry["origin_prompt"])
        assert entry["prediction"][0] == wondered
        assert entry["prediction"][1:] == [
            *entry["gold"][1:-1],
            {**entry["gold"][-1], "content": f" {entry['gold'][-1]['content']}"},
        ]
        assert entry["origin_prompt"][0][0]["role"] == "user"
    for entry in end.values():
        assert entry["prediction"][0][:2] == [wondered, {"role": "tool", "content": None}]
        assert entry["prediction"][0][-1]["content"].startswith(" ")
        assert isinstance(entry["origin_prompt"][0], str)
    for mode in ("step-by-step", "end-to-end"):
        of_run = errors_of_run(run, mode)
        file = tmp_path / "files" / f"gta_{mode}.json"
        theirs = {
            row["error"]: row
            for row in json.loads(agrotools("score", file, "--format", "gta", "--json"))["errors"]
        }
        assert of_run["format_error"]["count"] == of_run["format_error"]["samples"] == 12
        for error, row in of_run.items():
            if (
                row["count"] is not None
                and "keyword" not in error
                and error != "calculated_in_head"
            ):
                assert (row["count"], row["samples"]) == (
                    theirs[error]["count"],
                    theirs[error]["samples"],
                ), error


def test_turns_are_as_many_as_asked_for_and_unreadable_replies_do_not_end_a_sample(
    root: Path, tmp_path: Path
):
    run = tmp_path / "run"
    with serving(lambda _body: completion("I wonder.")) as api:
        command = (
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "lagent",
        )
        agrotools(
            "eval", *command, "--mode", "end-to-end", "--limit", 2, "--max-steps", 5, "--out", run
        )
    for record in records(run):
        assert len(record["trajectory"]["steps"]) == 5
        assert record["trajectory"]["termination"] == "max_steps"


def test_a_tool_list_beside_the_data_wins_and_makes_another_run(root: Path, tmp_path: Path):
    meta = root / "gta_dataset" / "toolmeta.json"
    sent: list[str] = []

    def responder(body: Body) -> web.Response:
        sent.append(text_of(body["messages"][0]))
        return completion("Final Answer: 1")

    hashes: list[str] = []
    with serving(responder) as api:
        command = [
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "lagent",
        ]
        command += ["--mode", "end-to-end", "--limit", 40]
        for number in range(2):
            run = tmp_path / f"run{number}"
            agrotools("eval", *command, "--out", run)
            hashes.append(
                json.loads((run / "manifest.json").read_text(encoding="utf-8"))["prompt_hash"]
            )
            inputs = [{"type": "image", "name": "image", "description": None, "optional": False}]
            own = {
                "OCR": {"name": "OCR", "description": "Reads what stands there.", "inputs": inputs}
            }
            meta.write_text(json.dumps(own), encoding="utf-8")
    try:
        assert hashes[0] != hashes[1]
        assert any("Reads what stands there." in text for text in sent)
        assert any("recognize all text" in text for text in sent)
        meta.write_text("{", encoding="utf-8")
        refused = CliRunner().invoke(
            app, [*map(str, ("eval", *command, "--out", tmp_path / "run2"))]
        )
        assert refused.exit_code != 0
        assert "toolmeta.json is no list of tools" in str(refused.exception)
    finally:
        meta.unlink()


def test_the_published_protocol_has_no_mode_without_tools(root: Path, monkeypatch):
    monkeypatch.setattr(early_checks, "_LONG_LOADING_S", 600)  # no server is asked while it loads
    command = ("eval", "gta", "--data-root", root, "-m", "m", "--base-url", "http://127.0.0.1:9/v1")
    done = CliRunner().invoke(
        app, [*map(str, (*command, "--protocol", "lagent", "--mode", "no-tool"))]
    )
    assert done.exit_code != 0
    assert "in the protocol lagent it runs in step-by-step, end-to-end" in str(done.exception)


def made_up(body: Body) -> web.Response:
    prompt = text_of(body["messages"][0])
    tool = next(iter(json.loads(prompt.split("as JSON:\n")[1].split("\n")[0])))
    step = {"step": 1, "task": "look", "tool_used": tool, "tool_output": "3", "thought": "needed"}
    answer = {"value": "3 shapes", "justification": "the tool says so"}
    return completion(
        f"```json\n{json.dumps({'reasoning_steps': [step], 'final_answer': answer})}\n```"
    )


def test_agent_x_is_asked_once_for_everything_and_no_tool_runs(root: Path, tmp_path: Path):
    run, bodies = tmp_path / "run", list[Body]()

    def responder(body: Body) -> web.Response:
        bodies.append(body)
        return made_up(body)

    with serving(responder) as api:
        command = (
            "agent-x",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "agent-x",
        )
        told = agrotools("eval", *command, "--out", run)
    assert len(bodies) == len(records(run)) == 8
    assert {record["mode"] for record in records(run)} == {"no-tool"}
    assert any(not record["sample"]["no_tool_eligible"] for record in records(run)), (
        "images are asked for, too"
    )
    assert "No-tool leaves out" not in told
    assert all("tools" not in body for body in bodies)
    for record in records(run):
        assert [step["kind"] for step in record["trajectory"]["steps"]] == ["answer"]
        assert record["trajectory"]["steps"][0]["text"] == "3 shapes"
    agrotools("export", run, "--format", "predictions", "--out", tmp_path / "files")
    predictions = json.loads(
        (tmp_path / "files" / "agent-x_no-tool.json").read_text(encoding="utf-8")
    )
    assert [[*each] for each in predictions] == [[str(number)] for number in range(8)]
    first = predictions[0]["0"]
    assert [*first] == ["query", "filename", "reasoning_steps", "final_answer"]
    assert first["reasoning_steps"][0]["tool_output"] == "3"
    assert first["final_answer"] == {"value": "3 shapes", "justification": "the tool says so"}


def test_agent_x_is_asked_a_second_time_and_then_given_up(root: Path, tmp_path: Path):
    run, counts = tmp_path / "run", dict[str, int]()

    def responder(body: Body) -> web.Response:
        query = text_of(body["messages"][1])
        counts[query] = counts.get(query, 0) + 1
        return (
            made_up(body)
            if counts[query] == 2 and "drawing 3?" not in query
            else completion("{ 3 shapes")
        )

    with serving(responder) as api:
        command = (
            "agent-x",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            api.base_url,
            "--protocol",
            "agent-x",
        )
        agrotools("eval", *command, "--out", run)
    assert set(counts.values()) == {2}
    ends = {record["sample"]["id"]: record["trajectory"]["termination"] for record in records(run)}
    assert sorted(ends.values()) == ["answered"] * 7 + ["unparseable"]
    agrotools("export", run, "--format", "predictions", "--out", tmp_path / "files")
    predictions = json.loads(
        (tmp_path / "files" / "agent-x_no-tool.json").read_text(encoding="utf-8")
    )
    failed = [
        each for entry in predictions for each in entry.values() if each["reasoning_steps"] == ""
    ]
    assert [each["final_answer"] for each in failed] == [{"value": "", "justification": ""}]
    errors = errors_of_run(run, "no-tool")
    # What cannot be read is exported as nothing; the record knows that it began an object.
    assert (errors["invalid_format"]["count"], errors["no_response"]["count"]) == (1, 0)
    assert (errors["only_thought"]["count"], errors["invalid_format"]["of"]) == (0, 8)
    assert errors["valid_call_failed"]["not_looked_for"]


@contextmanager
def answering(text: str) -> Iterator[str]:
    with serving(lambda _body: completion(text)) as endpoint:
        yield endpoint.base_url


def manifest(run: Path) -> dict[str, Any]:
    return json.loads((run / "manifest.json").read_text(encoding="utf-8"))


def differs(run: Path, mode: str) -> list[str]:
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    return scores["summary"]["modes"][mode]["published"]["differs"]


@pytest.mark.parametrize(("name", "turns"), [("gta", 10), ("thinkgeo", 15)])
def test_a_model_is_asked_in_the_published_protocol(
    root: Path, tmp_path: Path, name: str, turns: int
):
    run = tmp_path / "run"
    with answering("Final Answer: 1") as address:
        options = ("--backend", "recorded", "--limit", 4, "--out", run)
        told = agrotools(
            "eval", name, "--data-root", root, "-m", "m", "--base-url", address, *options
        )
    held = manifest(run)
    assert (held["protocol"], held["max_steps"], held["images"]) == ("lagent", turns, False)
    assert held["modes"] == ["step-by-step", "end-to-end"]
    assert (
        f"protocol lagent, as published (--protocol react for ours); it has no no-tool; at most {turns} turns"
        in told
    )
    assert "no images are shown (--images)" in told
    assert not any("protocol" in each or "turns" in each for each in differs(run, "end-to-end"))


def test_what_is_asked_for_wins(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    with answering('{"action": "answer"}\nFinal Answer: 1') as address:
        command = (
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            address,
            "--backend",
            "recorded",
        )
        told = agrotools(
            "eval", *command, "--limit", 3, "--out", run, "--protocol", "react", "--max-steps", 4
        )
    held = manifest(run)
    assert (held["protocol"], held["max_steps"], held["images"]) == ("react", 4, True)
    assert held["modes"] == ["no-tool", "step-by-step", "end-to-end"]
    assert "as published (" not in told
    assert {"protocol react, not that of the paper", "at most 4 turns, not 10"} < set(
        differs(run, "end-to-end")
    )


def test_a_mode_that_the_published_protocol_has_not_is_run_in_ours(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    with answering("Final Answer: 1") as address:
        command = (
            "gta",
            "--data-root",
            root,
            "-m",
            "m",
            "--base-url",
            address,
            "--mode",
            "no-tool",
            "--limit",
            3,
        )
        told = agrotools("eval", *command, "--out", run)
    assert (manifest(run)["protocol"], manifest(run)["images"]) == ("react", True)
    assert "protocol react: lagent, of the paper, has no no-tool" in told


def test_a_baseline_has_no_protocol_whatever_is_asked(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    command = (
        "gta",
        "--data-root",
        root,
        "-m",
        "baseline:oracle",
        "--backend",
        "recorded",
        "--protocol",
        "lagent",
    )
    told = agrotools("eval", *command, "--limit", 6, "--out", run)
    assert (manifest(run)["protocol"], manifest(run)["max_steps"]) == ("react", 20)
    assert "as published (" not in told
    found = differs(run, "end-to-end")
    assert "a baseline, which is no model and has no protocol" in found
    assert not any("turns" in each or "not that of the paper" in each for each in found)


class Slipping:
    """Calls as the reference does, but calls an unknown tool first, then gives a wrong argument, then says nothing."""

    def __init__(self, root: Path) -> None:
        self.by_query = {
            sample.query: sample for sample in load_benchmark("gta", data_root=root).samples
        }

    def __call__(self, body: Body) -> web.Response:
        messages = body["messages"]
        sample = next(
            self.by_query[text_of(each)] for each in messages if text_of(each) in self.by_query
        )
        done = sum(message["role"] == "assistant" for message in messages)
        path = next(iter((sample.published_paths or {}).values()), sample.files[0].path)
        tool = next(
            (tool for tool in sample.toolset if tool in ("OCR", "ImageDescription")),
            sample.toolset[0],
        )
        said = [
            'Thought: one\nAction: Telescope\nAction Input: {"image": "x"}',
            f'Thought: two\nAction: {tool}\nAction Input: {{"wrong": 1}}',
            "I wonder.",
            f'Thought: three\nAction: {tool}\nAction Input: {{"image": "{path}"}}',
        ]
        return completion(said[done] if done < len(said) else "Thought: so\nFinal Answer: 12")


def trajectories(run: Path) -> dict[Any, Any]:
    """What was done in each record, without how long it took."""

    def done(record: Record) -> Any:
        if record.trajectory is None:
            return record.actions
        quick = [
            step.model_copy(update={"seconds": 0.0, "cached": False})
            for step in record.trajectory.steps
        ]
        return record.trajectory.model_copy(update={"steps": tuple(quick)})

    return {record.key: done(record) for record in iter_records(run)}


def test_a_replay_refuses_what_was_refused(root: Path, tmp_path: Path):
    first, again = tmp_path / "first", tmp_path / "again"
    with serving(Slipping(root)) as endpoint:
        command = ("gta", "--data-root", root, "--limit", 12, "--backend", "OCR=recorded")
        agrotools("eval", *command, "-m", "m", "--base-url", endpoint.base_url, "--out", first)
    agrotools("eval", *command, "-m", f"replay:{first}", "--out", again)
    was = trajectories(first)
    ended = [done for (mode, *_), done in was.items() if mode == "end-to-end"]
    assert all([step.refused for step in done.steps[:3]] == [True, True, False] for done in ended)
    assert any(done.steps[3].observation.ok for done in ended), "some calls did run"
    predicted = [actions for (mode, *_), actions in was.items() if mode == "step-by-step"]
    assert all(isinstance(actions[0], CallTools) and actions[0].refused for actions in predicted)
    assert trajectories(again) == was
    held = {name: manifest(again)[name] for name in ("protocol", "max_steps", "images")}
    assert held == {"protocol": "lagent", "max_steps": 10, "images": False}
    modes = [
        json.loads((run / "scores.json").read_text(encoding="utf-8"))["summary"]["modes"]
        for run in (first, again)
    ]
    for mode in ("step-by-step", "end-to-end"):
        assert modes[0][mode]["metrics"] == modes[1][mode]["metrics"]
        assert modes[0][mode]["published"] == modes[1][mode]["published"]
    shown = agrotools("explain", again, next(iter(was))[1], "--mode", "end-to-end")
    assert "rejected, tool not run" in shown
