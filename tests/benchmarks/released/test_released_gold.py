"""Made-up questions in the dialog form with AgroTools' names: gold against itself is 100, changed gold is less."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agrotools.loading.benchmarks import load_benchmark
from support.command import run_command
from support.made_agrotools import QUESTIONS, agrotools_entries, write_agrotools

PERFECT = {
    "step-by-step": (
        *("st_acc", "tool_acc", "tool_acc_strict", "arg_acc", "arg_acc_strict"),
        *("summ_acc", "summ_acc_truth"),
    ),
    "end-to-end": ("fas", "css", "ots_floor", "plot"),
    "no-tool": ("fas", "css", "ots_floor"),
}
"""Metrics of a mode that are 100 % if all is right."""
Row = dict[str, Any]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_agrotools(tmp_path / "agrotools")
    return tmp_path


def _modes(scores: Path) -> dict[str, Any]:
    """Return the metrics of each mode in a ``scores.json``."""
    modes = json.loads(scores.read_text())["summary"]["modes"]
    return {mode: scored["metrics"] for mode, scored in modes.items()}


def _scored(root: Path, rows: list[Row]) -> dict[str, Any]:
    """Return the metrics of predictions by mode."""
    file = root / "predictions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return _scored_file(root, file)


def _scored_file(root: Path, file: Path) -> dict[str, Any]:
    """Return the metrics of a file of predictions by mode."""
    out = root / f"scored-{len(list(root.glob('scored-*')))}"
    ended = run_command(
        *("score", "--predictions", str(file), "--benchmark", "agrotools"),
        *("--data", str(root), "--out", str(out), "--allow-invalid"),
    )
    assert (out / "scores.json").is_file(), ended.stdout + ended.stderr
    return _modes(out / "scores.json")


def _overall(metrics: Mapping[str, Any], mode: str) -> dict[str, float]:
    """Return the metrics of a mode that are 100 % if all is right."""
    return {name: metrics[name]["overall"]["value"] for name in PERFECT[mode]}


def _tasks_below(metric: Mapping[str, Any]) -> set[str]:
    """Return the tasks in which a metric is below 100 %; each question has a task of its own."""
    return {task for task, score in metric["by_task_type"].items() if score["value"] < 1}


def _forms(root: Path) -> dict[str, str]:
    """Return the gold of each sample as a filled form, or as the text that it is."""
    forms: dict[str, str] = {}
    for sample in load_benchmark("agrotools", root).samples:
        (slot,) = sample.answer
        if slot.type == "boolean":
            forms[sample.id] = f"{slot.name}: {'yes' if slot.value else 'no'}"
        elif slot.type == "open_text":
            forms[sample.id] = slot.facts[0].phrases[0]
        elif slot.type == "keywords":
            forms[sample.id] = ", ".join(group[0] for group in slot.whitelist)
        elif slot.type in ("exact", "tolerance"):
            forms[sample.id] = f"{slot.name}: {slot.value}"
        else:
            forms[sample.id] = "drawn"
    return forms


def _messages(root: Path) -> list[Row]:
    """Return the published dialogs word for word, each with its answer in the form."""
    forms = _forms(root)
    return [
        {"id": key, "messages": [*entry["dialogs"][:-1], _said(forms[key])]}
        for key, entry in agrotools_entries().items()
    ]


def _steps(root: Path) -> list[Row]:
    """Return the messages of the assistant in the published dialogs, word for word."""
    return [
        {
            "id": row["id"],
            "steps": [each for each in row["messages"] if each["role"] == "assistant"],
        }
        for row in _messages(root)
    ]


def _said(text: str) -> Row:
    return {"role": "assistant", "content": text}


def test_all_questions_are_read_and_nothing_is_left(root: Path) -> None:
    benchmark = load_benchmark("agrotools", root)
    assert len(benchmark.samples) == len(QUESTIONS)
    assert benchmark.header.metadata["unread"] == {}
    types = [(sample.task_type, sample.answer[0].type) for sample in benchmark.samples]
    assert types == [
        ("pest_diagnosis", "exact"),
        ("weed_identification", "exact"),
        ("apple_size", "tolerance"),
        ("tree_counting", "exact"),
        ("lesion_severity", "tolerance"),
        ("organ_counting", "exact"),
        ("farm_pond_change", "boolean"),
        ("farmland_change", "boolean"),
        ("weed_crop_area", "keywords"),
        ("crop_disease", "open_text"),
        ("plotting", "plot"),
        ("band_selection", "image_calls"),
        ("canopy_height", "tolerance"),
    ]


def test_reference_calls_and_gold_score_100(root: Path) -> None:
    command = "eval agrotools -m baseline:perfect-tools --backend recorded"
    ended = run_command(*command.split(), "--data-root", str(root), "--out", str(root / "run"))
    assert ended.returncode == 0, ended.stderr
    modes = _modes(root / "run/scores.json")
    for mode in ("step-by-step", "end-to-end"):
        assert set(_overall(modes[mode], mode).values()) == {1.0}


def test_published_dialogs_word_for_word_score_100(root: Path) -> None:
    """The calls name files by their published paths, ``images/fruit_1.jpg``."""
    answers = [{"id": key, "prediction": text} for key, text in _forms(root).items()]
    for mode, rows in (
        ("step-by-step", _steps(root)),
        ("end-to-end", _messages(root)),
        ("no-tool", answers),
    ):
        assert set(_overall(_scored(root, rows)[mode], mode).values()) == {1.0}, mode


@pytest.mark.parametrize("place", range(3))
def test_one_changed_argument_falls_below_100(root: Path, place: int) -> None:
    """Of each question the argument at ``place`` of the first call is changed, if there is one."""
    rows, changed = _steps(root), set[str]()
    for sample, row in zip(load_benchmark("agrotools", root).samples, rows, strict=True):
        arguments = _first_call(row)["arguments"]
        for name in [*arguments][place : place + 1]:
            arguments[name] = "images/other.jpg" if "image" in name else f"not {arguments[name]}"
            changed.add(sample.task_type)
    metrics = _scored(root, rows)["step-by-step"]
    assert _tasks_below(metrics["arg_acc"]) == changed
    assert metrics["tool_acc"]["overall"]["value"] == 1


def test_another_tool_falls_below_100(root: Path) -> None:
    rows = _steps(root)
    for row in rows:
        _first_call(row)["name"] = "Calculator"
    tasks = {sample.task_type for sample in load_benchmark("agrotools", root).samples}
    assert _tasks_below(_scored(root, rows)["step-by-step"]["tool_acc"]) == tasks


def test_another_answer_falls_below_100(root: Path) -> None:
    rows = _messages(root)
    samples = load_benchmark("agrotools", root).samples
    for sample, row in zip(samples, rows, strict=True):
        messages = row["messages"]
        match sample.answer[0].type:
            case "boolean":
                is_yes = messages[-1]["content"].endswith("yes")
                messages[-1] = _said("answer: no" if is_yes else "answer: yes")
            case "exact" | "tolerance":
                messages[-1] = _said("answer: 99.9")
            case "keywords" | "open_text":
                messages[-1] = _said("wheat, without any disease")
            case _:  # the figure of the last call
                arguments = messages[-3]["tool_calls"][0]["function"]["arguments"]
                arguments |= {"y": [1.0, 2.0]} if "y" in arguments else {"command": "print(1)"}
    metrics = _scored(root, rows)["end-to-end"]
    open_text = {sample.task_type for sample in samples if sample.answer_type == "open_text"}
    others = {sample.task_type for sample in samples} - open_text
    assert _tasks_below(metrics["fas"]) == others
    assert _tasks_below(metrics["ots_floor"]) == open_text


def _harness_file(root: Path, name: str, changed: Mapping[str, Row]) -> Path:
    """Write step-by-step predictions as GTA's harness does: the gold itself, but for the first message of some samples.

    The harness puts the folder of the data before the paths of files.
    """
    folder = "/home/user/opencompass/data/agrotools"
    content: dict[str, Row] = {}
    for key, entry in agrotools_entries().items():
        paths = {file["path"]: f"{folder}/{file['path']}" for file in entry["files"]}
        gold = [message for message in entry["dialogs"] if message["role"] == "assistant"]
        for message in gold:
            for call in message.get("tool_calls", []):
                arguments = call["function"]["arguments"]
                for argument, value in arguments.items():
                    if isinstance(value, str):
                        arguments[argument] = paths.get(value, value)
        prediction = [changed[key], *gold[1:]] if key in changed else gold
        content[key] = {"gold": gold, "prediction": prediction}
    file = root / name
    file.write_text(json.dumps(content))
    return file


def test_files_of_gtas_harness_have_process_metrics(root: Path) -> None:
    process = ("st_acc", "tool_acc", "tool_acc_strict", "arg_acc", "arg_acc_strict")
    gold = _scored_file(root, _harness_file(root, "gold.json", {}))["step-by-step"]
    assert {gold[name]["overall"]["value"] for name in process} == {1.0}
    function = {"name": "Calculator", "arguments": {"expression": "1 + 1"}}
    call = {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}
    file = _harness_file(root, "changed.json", {"0": call, "3": _said("There are 14 trees.")})
    changed = _scored_file(root, file)["step-by-step"]
    assert _tasks_below(changed["tool_acc"]) == {"pest_diagnosis", "tree_counting"}
    assert _tasks_below(changed["st_acc"]) == {"tree_counting"}


def _first_call(row: Row) -> Row:
    message = next(each for each in row["steps"] if "tool_calls" in each)
    return message["tool_calls"][0]["function"]


def test_a_blacklist_is_shown_to_no_model(root: Path) -> None:
    benchmark = load_benchmark("agrotools", root)
    views = [benchmark.view(sample, "end-to-end") for sample in benchmark.samples]
    assert "Lantana" not in "".join(view.answer_form for view in views)
