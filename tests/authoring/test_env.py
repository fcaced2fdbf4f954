"""The environment to train agents in: its tools, episodes, rewards and splits, and its certificate."""

import inspect
import json
import multiprocessing
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.agents.baselines.simple import random_answer
from agrotools.cli.main import app
from agrotools.core import Record, Step, Trajectory, UsageError
from agrotools.core.slot import asked_slots
from agrotools.loading.pack import read_pack
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.slots import outcome_value
from agrotools_build import Env, PictureEnv, certificate
from agrotools_build import env as environment
from agrotools_build.env import call_tool, fresh_seed, offered_tools, published, question_of
from agrotools_build.sources.drawn.fresh import STRIDE
from agrotools_tools import AGROTOOLS

pytestmark = pytest.mark.process
SAMPLES = published().samples
_POSSIBLE_IDS = environment.possible_ids
NUMBER = next(
    each
    for each in SAMPLES
    if [slot.type for slot in each.answer] == ["tolerance"]
    and not each.twin
    and not float(each.answer[0].value).is_integer()
)
TWINS = [
    next(each for each in SAMPLES if each.twin and each.answerable is answerable)
    for answerable in (True, False)
]


@pytest.fixture(autouse=True)
def _not_drawn(monkeypatch: pytest.MonkeyPatch):
    """The questions are those of the package, whose files are not there: what is asserted needs none."""
    asked = {each.id: question_of(published(), each) for each in (NUMBER, *TWINS)}
    monkeypatch.setattr(environment, "questions", lambda *_: asked)
    monkeypatch.setattr(environment, "possible_ids", lambda _: {*asked})


def started(sample: Any) -> Env:
    env = Env()
    env.reset(id=f"train-0-0:{sample.id}", prompt=[], images=[])
    return env


def test_the_tools_are_functions_of_the_class_with_types_and_docstrings():
    public = {
        name: each
        for name, each in inspect.getmembers(Env, inspect.isfunction)
        if not name.startswith("_")
    }
    tools = {name: each for name, each in public.items() if name not in ("reset", "get_reward")}
    assert tools.keys() == {*AGROTOOLS, "submit_answer"}
    for tool in tools.values():
        arguments = inspect.signature(tool.__get__(Env())).parameters
        assert all(each.annotation is not inspect.Parameter.empty for each in arguments.values())
        assert all(f"\n{' ' * 4}{name}: " in inspect.cleandoc(tool.__doc__) for name in arguments)


def test_the_form_comes_after_the_answer_and_a_refusal_costs_on_the_twin():
    env = started(NUMBER)
    assert '"value": 42' in env.calculate(expression="6 * 7")
    slot = NUMBER.answer[0]
    form = env.submit_answer("It is so many.")
    assert f"{slot.name}: <number>" in form
    assert "no further tool" in env.calculate(expression="6 * 7")
    assert env.get_reward() == 0
    env.submit_answer({slot.name: f"{slot.value} {slot.unit or ''}"})
    assert env.get_reward() == 1
    assert env.submit_answer(f"{slot.name}: 0") == "The answer is submitted: the episode is over."
    assert env.get_reward() == 1
    env.close()
    assert env.get_reward() == 0
    rewards = []
    for sample in (NUMBER, *TWINS):
        env = started(sample)
        env.submit_answer("unknown")
        rewards.append(env.get_reward())
    assert rewards == [0, -1, 1]


def test_a_tool_called_by_name_returns_what_the_method_does_and_refuses_what_is_none():
    assert [tool["name"] for tool in offered_tools()] == [*AGROTOOLS, "submit_answer"]
    env, other = started(NUMBER), started(NUMBER)
    assert call_tool(env, "calculate", {"expression": "2"}) == other.calculate(expression="2")
    for name, arguments in (("nothing", {}), ("reset", {"id": 1}), ("_close", {})):
        assert "unknown_tool" in call_tool(env, name, arguments)
    for arguments in ({}, {"text": "unknown"}, {"answer": "unknown", "sure": True}):
        assert "takes one argument" in call_tool(env, "submit_answer", arguments)
        assert "takes one argument" in env.submit_answer(**arguments)
    assert not env.is_over
    answer = {"answer": "unknown"}
    assert call_tool(env, "submit_answer", answer) == other.submit_answer(**answer)
    assert call_tool(env, "submit_answer", answer) == other.submit_answer(**answer)
    assert env.is_over
    assert env.get_reward() == other.get_reward()


def test_rewards_are_in_the_mean_the_final_answer_score():
    rng, tally, values = (
        Random(1),
        RunAggregator(protocol="react"),
        defaultdict[bool, list[float]](list),
    )
    for sample in SAMPLES:
        text = "unknown" if rng.random() < 0.3 else random_answer(asked_slots(sample.answer), rng)
        steps = (Step(turn=0, kind="answer", text=text),)
        trajectory = Trajectory(steps=steps, termination="answered")
        record = Record(
            sample=sample, mode="end-to-end", epoch=0, trajectory=trajectory, seconds=0.0
        )
        tally.add(record, score_record(record))
        if not sample.answerable or any(slot.type not in ("open_text",) for slot in sample.answer):
            values[sample.answerable].append(outcome_value(sample, trajectory))
    fas = tally.summary().modes["end-to-end"].metrics["fas"].overall
    every = values[True] + values[False]
    assert fas.n == len(every)
    assert fas.value == pytest.approx(sum(every) / len(every))


@pytest.mark.parametrize(
    "hostile", [None, 3, "", "train-0-0:nothing", "test-0-0:../x", "train-0-9999:a", "\0" * 99]
)
def test_a_row_that_does_not_exist_is_a_usage_error(hostile: Any):
    with pytest.raises(UsageError, match="there is no row"):
        Env().reset(id=hostile)


def test_a_row_that_no_group_can_have_is_refused_without_drawing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(environment, "possible_ids", _POSSIBLE_IDS)
    monkeypatch.setattr(environment, "questions", lambda *_: pytest.fail("drew a group"))
    possible = _POSSIBLE_IDS(7)
    kind = min(possible).rpartition("-")[0]
    for name in ("nothing-001", f"{kind}-000", f"{kind}-099", f"{kind}-1"):
        assert name not in possible
        with pytest.raises(UsageError, match="there is no row"):
            Env().reset(id=f"train-0-7:{name}")


def test_a_pool_is_the_rows_drawn_ahead(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(environment, "env_rows", lambda *each: asked.append(each) or [{"id": "a"}])
    assert Env.pool(7, "test", 3) == [{"id": "a"}]
    assert asked == [("test", 7, 3)]


CHART: dict[str, Any] = {"kind": "bar", "series": [{"name": "cover", "x": ["a", "b"], "y": [1, 2]}]}


def test_results_hold_the_pictures_that_a_call_made_for_models_that_see():
    plain, seeing = Env(), PictureEnv()
    for env in (plain, seeing):
        env.reset(id=f"train-0-0:{NUMBER.id}")
    text = plain.plot(**CHART)
    picture, last = seeing.plot(**CHART)
    assert isinstance(text, str)
    assert last == {"type": "text", "text": text}
    assert picture["type"] == "image"
    assert max(picture["image"].size) == 512
    assert isinstance(seeing.calculate(expression="6 * 7"), str)
    assert isinstance(seeing.plot(kind="nothing"), str)
    seeing.close()
    assert "no further tool" in seeing.plot(**CHART)


def test_hostile_arguments_become_observations_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    env = started(NUMBER)
    for value in (
        deep,
        object(),
        float("nan"),
        2**70,
        10**400,
        "\ud800",
        "../../etc/passwd",
        {1: 2},
    ):
        observation = env.count_objects(image=value, self=1)
        assert json.loads(observation.split("\n")[1])["error"]["message"]
    assert [*tmp_path.iterdir()]
    env.submit_answer(deep)
    env.close()
    assert not [*tmp_path.iterdir()]


def test_a_forked_process_has_tools_of_its_own_and_keeps_the_files_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = started(NUMBER)
    env.calculate(expression="1 + 1")
    files = [*tmp_path.glob("agrotools-*")]

    def episode() -> None:
        env.reset(id=f"train-0-0:{NUMBER.id}")
        assert '"value": 42' in env.calculate(expression="6 * 7")

    child = multiprocessing.get_context("fork").Process(target=episode)
    child.start()
    child.join(60)
    child.kill()
    assert child.exitcode == 0
    assert files == [*tmp_path.glob("agrotools-*")]


def test_drawing_shows_its_progress_and_drawn_groups_need_no_cache_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def write(_published: Any, _seed: int, folder: Path, *, progress: Any, workers: int) -> None:
        progress("scenes", 0, workers)
        folder.mkdir()

    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(environment, "write_fresh", write)
    monkeypatch.setattr(environment, "load_folder", lambda folder: folder)
    drawn = environment.draw_group("train", 0, 0)
    assert "scenes: 0/" in capsys.readouterr().err
    monkeypatch.setattr(environment, "FileLock", None)
    assert environment.draw_group("train", 0, 0) == drawn


def test_the_first_groups_are_small_and_together_ask_what_one_of_the_others_asks():
    sizes = [len(environment.published_of(group)) for group in range(environment.FIRST_GROUPS + 2)]
    assert sizes == [2] * 6 + [12] * 2
    asked = [sample.id for group in range(8) for sample in environment.published_of(group)]
    assert len(set(asked)) == len(asked) == 36
    first = environment.published_of(0)
    tools = {step.tool for sample in first if sample.reference for step in sample.reference.steps}
    assert "lookup_agronomy" not in tools


def test_splits_seeds_and_published_benchmarks_share_no_scene():
    drawn = [
        fresh_seed(split, seed, group)
        for split in environment.SPLITS
        for seed in (0, 1, 2, 999_999)
        for group in (0, 1, 500, 999)
    ]
    assert len(drawn) == len({*drawn})
    assert min(drawn) >= 1_000_000
    seeds = defaultdict[str, list[int]](list)
    for sample in (*SAMPLES, *read_pack("frontier").samples):
        kind, seed, _ = str(sample.metadata["subject"]).split("-", 2)
        seeds[kind].append(int(seed))
    assert all(max(each) - min(each) < STRIDE for each in seeds.values()), (
        "fresh scenes are whole strides away"
    )


def test_the_certificate_finds_a_number_of_the_gold_in_a_question():
    assert not certificate._tells_number(NUMBER)
    told = f"{NUMBER.query} It is about {NUMBER.answer[0].value}."
    assert certificate._tells_number(NUMBER.model_copy(update={"query": told, "reference": None}))


def test_doctor_prints_the_certificate_and_fails_with_a_line(monkeypatch: pytest.MonkeyPatch):
    lines = [
        certificate.Line("semantic.oracle_max", "oracle", True, 1.0, ">= 0.95"),
        certificate.Line("agrotools.hack", "hack", False, 0.5, "<= 0.3"),
    ]

    def given(count: int) -> Iterator[certificate.Line]:
        return iter(lines[:count])

    for count, code in ((1, 0), (2, 1)):
        monkeypatch.setattr(certificate, "certificate", lambda count=count: given(count))
        result = CliRunner().invoke(app, ["doctor", "--env", "--json"])
        assert result.exit_code == code
        told = json.loads(result.output)
        assert [each["passed"] for each in told["lines"]] == [True, False][:count]
        assert told["lines"][0]["check_id"] == "semantic.oracle_max"
        assert "| PASS | oracle | 1.00 |" in told["markdown"]
        assert all(f"- {fault}" in told["markdown"] for fault in certificate.NOT_CHECKED)
