"""Conversations of runs on training scenes, as TRL and OpenAI's fine-tuning read them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import agrotools as at
from agrotools.core import AbstainSlot, UsageError
from agrotools_build.env import fresh_seed, is_training_version
from agrotools_build.export.messages import write_messages
from support.benchmark_folders import HEADER, number_sample, write_folder
from support.command import run_command
from support.made_runs import end_to_end, made_sample, right, write_run
from support.openai_server import Body, Endpoint, completion, serving, text_of

N = 3
ARGUMENTS = {"expression": "(a + b) / 2", "variables": {"a": 4.5, "b": 6.3}}


def reply(body: Body) -> web.Response:
    """Calls the calculator, and answers; wrongly about field 2."""
    if not any(message["role"] == "tool" for message in body["messages"]):
        return completion("I calculate.", [("calculate", json.dumps(ARGUMENTS))])
    is_wrong = "field 2." in text_of(body["messages"][1])
    return completion(f"mean_yield: {9.9 if is_wrong else 5.4} t/ha")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with serving(reply) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint) -> Path:
    """A run of a model with pictures, on a benchmark with the version of training scenes."""
    folder = tmp_path_factory.mktemp("training")
    version = f'version = "1-fresh-{fresh_seed("train", 0, 0)}"'
    samples = [number_sample(folder / "scenes", f"yield-{at}", at) for at in range(1, N + 1)]
    write_folder(folder / "scenes", samples, HEADER.replace('version = "1"', version))
    made = at.evaluate(
        folder / "scenes",
        "m",
        base_url=endpoint.base_url,
        mode="no-tool,end-to-end",
        protocol="tool-calling",
        out=folder / "run",
    )
    return made.path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.process
def test_a_conversation_has_its_calls_results_and_reward_in_both_formats(run: Path, tmp_path: Path):
    done = run_command("export", run, "--format", "messages", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    for_trl, for_openai = rows(tmp_path / "trl.jsonl"), rows(tmp_path / "openai.jsonl")
    assert sorted((row["id"], row["reward"]) for row in for_trl) == [
        ("yield-1", 1.0), ("yield-2", 0.0), ("yield-3", 1.0),
    ]  # fmt: skip
    row, example = for_trl[0], for_openai[0]
    roles = ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    for each in (row, example):
        assert [message["role"] for message in each["messages"]] == roles
        assert {tool["function"]["name"] for tool in each["tools"]} == {"calculate", "plot"}
        call, result = each["messages"][2]["tool_calls"][0], each["messages"][3]
        assert result["tool_call_id"] == call["id"]
        assert "5.4" in json.dumps(result["content"])
        assert "mean_yield: 5.4" in json.dumps(each["messages"][-1]["content"])
    assert example.keys() == {"messages", "tools"}, "OpenAI takes no other keys"
    function = row["messages"][2]["tool_calls"][0]["function"]
    assert function == {"name": "calculate", "arguments": ARGUMENTS}
    in_text = example["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(in_text) == ARGUMENTS

    (picture,) = row["images"]
    assert Path(picture).is_file()
    shown = [part["type"] for part in row["messages"][1]["content"]]
    assert shown.count("image") == 1
    urls = [part["image_url"]["url"] for part in example["messages"][1]["content"] if "image_url" in part]  # fmt: skip
    assert [url.partition(",")[0] for url in urls] == ["data:image/jpeg;base64"]


@pytest.mark.process
def test_a_least_score_leaves_out_the_others_and_says_how_many(run: Path, tmp_path: Path):
    done = run_command("export", run, "--format", "messages", "--min-score", 1, "--out", tmp_path)
    assert "left out, a reward below 1: 1" in done.stderr
    assert {row["id"] for row in rows(tmp_path / "trl.jsonl")} == {"yield-1", "yield-3"}
    with pytest.raises(UsageError, match=r"no conversation to export: a reward below 2 \(3\)"):
        write_messages(run, tmp_path, 2)
    refused = run_command("export", run, "--format", "scores", "--min-score", 1, "--out", tmp_path)
    assert refused.returncode == 2


@pytest.mark.parametrize(
    ("version", "is_training"),
    [
        ("21", False),
        ("21-fresh-1", False),
        (f"21-fresh-{fresh_seed('train', 0, 0)}", True),
        (f"21-fresh-{fresh_seed('train', 7, 12)}", True),
        (f"21-fresh-{fresh_seed('validation', 0, 0)}", False),
        (f"21-fresh-{fresh_seed('test', 0, 0)}", False),
        ("fresh-1000000", False),
    ],
)
def test_only_scenes_of_the_training_split_are_exported(
    tmp_path: Path, version: str, is_training: bool
):
    assert is_training_version(version) == is_training
    run = write_run(tmp_path / "run", [right(made_sample())], benchmark_version=version)
    with pytest.raises(UsageError) as failure:
        write_messages(run, tmp_path / "out")
    reason = "no requests are stored" if is_training else "questions measure models"
    assert reason in failure.value.message
    if not is_training:
        assert f"--fresh-seed {fresh_seed('train', 0, 0)}" in str(failure.value.hint)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("twin_answer", ["rows: unknown", "rows: 7"])
def test_with_a_least_score_no_refusal_is_taken_of_a_model_that_refuses_both_twins(
    tmp_path: Path, twin_answer: str
):
    """A model that refuses everything is right on each question without an answer."""
    yes = made_sample("yes", twin="no", may_abstain=True)
    refusal = AbstainSlot(name="refusal", label="none", reason="no_scale", asks=yes.answer)
    no = made_sample("no", twin="yes", may_abstain=True, answer=(refusal,))
    records = [end_to_end(no, answer="rows: unknown"), end_to_end(yes, answer=twin_answer)]
    version = f"21-fresh-{fresh_seed('train', 0, 0)}"
    run = write_run(tmp_path / "run", records, benchmark_version=version)
    with pytest.raises(UsageError) as failure:
        write_messages(run, tmp_path / "out", 1)
    is_blind = twin_answer == "rows: unknown"
    assert ("a refusal like that of the answerable twin (1)" in failure.value.message) is is_blind


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_loaders_of_trl_read_the_rows_whole(run: Path, tmp_path: Path):
    """Needs ``python tests/environments.py trl``; of TRL only what its trainer reads rows with."""
    datasets = pytest.importorskip("datasets", reason="python tests/environments.py trl")
    data_utils = pytest.importorskip("trl.data_utils", reason="python tests/environments.py trl")
    path, _ = write_messages(run, tmp_path).paths
    cache = str(tmp_path / "cache")
    data = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=cache)
    written = rows(path)
    assert data.to_list() == written, "no key is added, lost or filled in"
    assert all(data_utils.is_conversational(row) for row in data)
    seen = data.cast_column("images", datasets.List(datasets.Image()))
    assert [picture.size for picture in seen[0]["images"]] == [(32, 24)]
