"""Runs on published benchmarks are held as their papers held theirs, and are repeated exactly."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from agrotools.benchmarks import load_benchmark
from agrotools.cli.main import app
from agrotools.core import CallTools, Record
from agrotools.runner.records import iter_records
from support.made_agent_x import write_agent_x
from support.made_gta import write_gta
from support.made_thinkgeo import write_thinkgeo
from support.openai_server import Body, completion, serving, text_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    write_gta(root / "gta_dataset")
    # The tools of the made-up folder are declared with one argument each: the package's own words are tried here.
    (root / "gta_dataset" / "toolmeta.json").unlink()
    write_thinkgeo(root / "ThinkGeo_dataset")
    write_agent_x(root / "AgentX", count=8, calls=24, images=2, videos=0)
    return root


@contextmanager
def answering(text: str) -> Iterator[str]:
    with serving(lambda _body: completion(text)) as endpoint:
        yield endpoint.base_url


def agrotools(*arguments: object) -> str:
    """All that the command says, on both outputs."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def manifest(run: Path) -> dict[str, Any]:
    return json.loads((run / "manifest.json").read_text(encoding="utf-8"))


def differs(run: Path, mode: str) -> list[str]:
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    return scores["summary"]["modes"][mode]["published"]["differs"]


@pytest.mark.parametrize(("name", "turns"), [("gta", 10), ("thinkgeo", 15)])
def test_a_model_is_asked_in_the_published_protocol(root: Path, tmp_path: Path, name: str, turns: int):
    run = tmp_path / "run"
    with answering("Final Answer: 1") as address:
        options = ("--backend", "recorded", "--limit", 4, "--out", run)
        told = agrotools("eval", name, "--data-root", root, "-m", "m", "--base-url", address, *options)
    held = manifest(run)
    assert (held["protocol"], held["max_steps"], held["images"]) == ("lagent", turns, False)
    assert held["modes"] == ["step-by-step", "end-to-end"]
    assert (
        f"protocol lagent, as published (--protocol react for ours); it has no no-tool; at most {turns} turns" in told
    )
    assert "no images are shown (--images)" in told
    assert not any("protocol" in each or "turns" in each for each in differs(run, "end-to-end"))


def test_what_is_asked_for_wins(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    with answering('{"action": "answer"}\nFinal Answer: 1') as address:
        command = ("gta", "--data-root", root, "-m", "m", "--base-url", address, "--backend", "recorded")
        told = agrotools("eval", *command, "--limit", 3, "--out", run, "--protocol", "react", "--max-steps", 4)
    held = manifest(run)
    assert (held["protocol"], held["max_steps"], held["images"]) == ("react", 4, True)
    assert held["modes"] == ["no-tool", "step-by-step", "end-to-end"]
    assert "as published (" not in told
    assert {"protocol react, not that of the paper", "at most 4 turns, not 10"} < set(differs(run, "end-to-end"))


def test_a_mode_that_the_published_protocol_has_not_is_run_in_ours(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    with answering("Final Answer: 1") as address:
        command = ("gta", "--data-root", root, "-m", "m", "--base-url", address, "--mode", "no-tool", "--limit", 3)
        told = agrotools("eval", *command, "--out", run)
    assert (manifest(run)["protocol"], manifest(run)["images"]) == ("react", True)
    assert "protocol react: lagent, of the paper, has no no-tool" in told


def test_a_baseline_has_no_protocol_whatever_is_asked(root: Path, tmp_path: Path):
    run = tmp_path / "run"
    command = ("gta", "--data-root", root, "-m", "baseline:oracle", "--backend", "recorded", "--protocol", "lagent")
    told = agrotools("eval", *command, "--limit", 6, "--out", run)
    assert (manifest(run)["protocol"], manifest(run)["max_steps"]) == ("react", 20)
    assert "as published (" not in told
    found = differs(run, "end-to-end")
    assert "a baseline, which is no model and has no protocol" in found
    assert not any("turns" in each or "not that of the paper" in each for each in found)


class Slipping:
    """Calls as the reference does, but calls an unknown tool first, then gives a wrong argument, then says nothing."""

    def __init__(self, root: Path) -> None:
        self.by_query = {sample.query: sample for sample in load_benchmark("gta", data_root=root).samples}

    def __call__(self, body: Body) -> web.Response:
        messages = body["messages"]
        sample = next(self.by_query[text_of(each)] for each in messages if text_of(each) in self.by_query)
        done = sum(message["role"] == "assistant" for message in messages)
        path = next(iter((sample.published_paths or {}).values()), sample.files[0].path)
        tool = next((tool for tool in sample.toolset if tool in ("OCR", "ImageDescription")), sample.toolset[0])
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
        quick = [step.model_copy(update={"seconds": 0.0, "cached": False}) for step in record.trajectory.steps]
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
        json.loads((run / "scores.json").read_text(encoding="utf-8"))["summary"]["modes"] for run in (first, again)
    ]
    for mode in ("step-by-step", "end-to-end"):
        assert modes[0][mode]["metrics"] == modes[1][mode]["metrics"]
        assert modes[0][mode]["published"] == modes[1][mode]["published"]
    shown = agrotools("explain", again, next(iter(was))[1], "--mode", "end-to-end")
    assert "rejected, tool not run" in shown
