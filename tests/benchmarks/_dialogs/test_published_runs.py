"""Runs in the metrics of GTA's and ThinkGeo's papers: records as prediction files, figures, and what differs."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import (
    Answer,
    CallTools,
    ErrorInfo,
    Observation,
    Record,
    Sample,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.core.record import literal_value
from agrotools.loading import load_benchmark
from agrotools.plugin import PublishedRun
from agrotools.scoring import embedders
from agrotools_benchmarks._dialogs.record_dialogues import dialogue_of, published_answer
from agrotools_benchmarks._dialogs.scores import differences_of_run, published_figures
from agrotools_benchmarks.gta.plugin import PAPER_RUN
from agrotools_benchmarks.gta.score import RULES as GTA
from support.made_gta import write_gta
from support.made_thinkgeo import write_thinkgeo
from support.runs import manifest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    write_gta(root / "gta_dataset")
    write_thinkgeo(root / "ThinkGeo_dataset")
    return root


@pytest.fixture(scope="module")
def samples(root: Path) -> list[Sample]:
    return list(load_benchmark("gta", data_root=root).samples)


def gold_call(step: Any) -> ToolCall:
    return ToolCall(
        tool=step.tool,
        arguments={name: literal_value(value) for name, value in step.arguments.items()},
    )


def right_text(sample: Sample) -> str:
    answer = published_answer(sample)
    if isinstance(answer, dict):
        return " ".join(group[0] for group in answer["whitelist"])
    return answer[0] if answer else "done"


def by_step(sample: Sample) -> Record:
    """The gold, predicted step by step."""
    calls = [CallTools(calls=(gold_call(step),)) for step in sample.reference.steps]
    return Record(
        sample=sample, mode="step-by-step", actions=(*calls, Answer(text=right_text(sample)))
    )


class Same:
    """Embedder for which two texts are alike only if they are equal."""

    name = "equal"

    def similarity(self, first: str, second: str) -> float:
        return float(first == second)


def test_a_perfect_run_has_what_the_published_scorer_gives_it_and_all_when_corrected(
    samples: list[Sample],
):
    run = PublishedRun(
        manifest(), "step-by-step", [by_step(sample) for sample in samples], None, Same()
    )
    found = published_figures(GTA, PAPER_RUN, run)
    assert found.reference["gta.inst_acc"] == pytest.approx((557 + 229) / (557 + 172)), (
        "more than all"
    )
    assert (found.reference["gta.tool_acc"], found.reference["gta.arg_acc"]) == (1, 1)
    assert {
        metric: estimate.value for metric, estimate in found.corrected.items()
    } == pytest.approx(dict.fromkeys(found.corrected, 1.0))
    assert found.embedder == "equal"


def test_predictions_are_written_as_the_published_evaluation_writes_them(samples: list[Sample]):
    sample = next(
        sample for sample in samples if sample.reference and len(sample.reference.steps) > 3
    )
    tool = sample.toolset[0]
    actions = (
        Unparseable(text="hm", reason="neither a call nor an answer"),
        CallTools(calls=(ToolCall(tool="Nonsense", arguments={"a": 1}),)),
        CallTools(calls=(ToolCall(tool=tool, arguments={"no_such_argument": 1}),)),
        *[CallTools(calls=(gold_call(step),)) for step in sample.reference.steps[3:]],
        Answer(text=" 5"),
    )
    dialogue = dialogue_of(Record(sample=sample, mode="step-by-step", actions=actions))
    functions = [message["tool_calls"][0]["function"] for message in dialogue.prediction[:4]]
    assert functions[0] == {"name": "NoAction", "arguments": {"text": ""}}
    assert functions[1] == {"name": "InvalidAction", "arguments": {"text": '{"a": 1}'}}
    assert functions[2] == {"name": tool, "arguments": '{"no_such_argument": 1}'}
    assert [message["error"]["type"] for message in dialogue.prediction[:3]] == [
        "API_ERROR",
        "API_ERROR",
        "ARGS_ERROR",
    ]
    assert "error" not in dialogue.prediction[3]
    assert dialogue.prediction[-1] == {"role": "assistant", "content": " 5"}
    observation = Observation(error=ErrorInfo(kind="tool_failed", message="it broke"))
    step = Step(
        turn=0, kind="call", call=gold_call(sample.reference.steps[0]), observation=observation
    )
    failed = Record(
        sample=sample,
        mode="end-to-end",
        trajectory=Trajectory(steps=(step,), termination="max_steps"),
    )
    called, returned = dialogue_of(failed).prediction[0]
    assert called["error"] == {"type": "API_ERROR", "msg": "it broke"}
    assert returned == {"role": "tool", "content": None}
    assert len(dialogue.prediction) == len(dialogue.gold) == len(sample.reference.steps) + 1


def test_what_keeps_a_run_from_comparison_is_told():
    run = manifest(
        benchmark="gta",
        toolset={"OCR": "1:a", "Plot": "1:b"},
        backends={"OCR": "recorded"},
        sample_ids=("a", "b"),
    )
    told = "; ".join(differences_of_run(run, "end-to-end", PAPER_RUN))
    assert "protocol react" in told
    assert "2 questions of 229" in told
    assert "recorded observations instead of tools for 1 of them" in told
    assert "at most 20 turns, not 10" in told
    assert "tools" not in "; ".join(differences_of_run(run, "step-by-step", PAPER_RUN))


def agrotools(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    common = (
        "eval",
        "gta",
        "--data-root",
        root,
        "-m",
        "baseline:oracle",
        "--backend",
        "recorded",
        "--out",
        folder,
    )
    agrotools(*common, "--mode", "all")
    return folder


@pytest.mark.slow
def test_the_embedder_of_a_run_is_named_wherever_its_cosines_are(
    run: Path, monkeypatch: pytest.MonkeyPatch
):
    told = " ".join(agrotools("score", run).split())
    assert all(words in told for words in ("(--embedder)", "107.8", "gpt-4-1106-preview"))
    half = embedders.Embedder("all-mpnet-base-v2", lambda first, second: 0.5)
    monkeypatch.setattr(embedders, "open_embedder", lambda name, folder: half)
    told = agrotools("score", run, "--embedder", "all-mpnet-base-v2", "--embedder-path", run)
    assert "By cosines of all-mpnet-base-v2 where answers are subjective or images." in " ".join(
        told.split()
    )
    (summary,) = json.loads(agrotools("score", run, "--embedder-path", run, "--json"))
    figures = summary["modes"]["end-to-end"]["published"]
    assert figures["embedder"] == "all-mpnet-base-v2"
    assert "gta.ans_acc" in figures["reference"]
    assert (
        json.loads((run / "scores.json").read_bytes())["summary"]["modes"]["end-to-end"][
            "published"
        ]
        == figures
    )


def test_the_pictures_of_a_run_are_found_again_where_they_were(root, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(root)
    monkeypatch.chdir(tmp_path)
    agrotools(
        "eval",
        "gta",
        "--data-root",
        "data",
        "-m",
        "baseline:echo",
        "--limit",
        5,
        "--out",
        "runs/one",
    )
    monkeypatch.chdir("/")
    run = tmp_path / "runs" / "one"
    report = ["report", str(run), "--out", str(tmp_path / "page.html")]
    shown = CliRunner().invoke(app, report)
    assert "could not be embedded" not in shown.output
    assert "with 0 images" not in shown.output
    (tmp_path / "data").unlink()
    lost = CliRunner().invoke(app, report)
    assert "hint: if the benchmark was moved, give its folder with --data-root DIR" in lost.output
    assert (
        "could not be embedded"
        not in CliRunner().invoke(app, [*report, "--data-root", str(root)]).output
    )


def test_a_run_and_the_prediction_files_written_from_it_have_the_same_figures(
    root: Path, run: Path, tmp_path: Path
):
    output = agrotools("export", run, "--format", "predictions", "--out", tmp_path)
    assert "229 predictions, step-by-step" in output
    assert "229 predictions, end-to-end" in output
    entries = json.loads((tmp_path / "gta_end-to-end.json").read_text(encoding="utf-8"))
    assert list(entries) == [str(number) for number in range(229)]
    assert entries["0"].keys() == {"gold", "prediction", "origin_prompt", "steps"}
    (summary,) = json.loads(agrotools("score", run, "--json"))
    for mode in ("step-by-step", "end-to-end"):
        data = root / "gta_dataset" / "dataset.json"
        scored = agrotools(
            "score", "--format", "gta", tmp_path / f"gta_{mode}.json", "--data", data, "--json"
        )
        for name, figure in json.loads(scored)["published"]["metrics"].items():
            if "embedder" not in figure:
                theirs = summary["modes"][mode]["published"]["reference"][name]
                assert figure["value"] == pytest.approx(100 * theirs), name
