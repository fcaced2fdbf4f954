"""GTA from files in the shape in which it is published: whole folders of ours, and pieces of the real one."""

import json
from pathlib import Path
from typing import Any

import pytest

from agrotools.agents.modes import reference_history
from agrotools.core import BenchmarkError, Observation, ReferenceTextsSlot, Sample
from agrotools.loading import load_benchmark
from agrotools.runner.plan import RecordedTools
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot
from support.made_gta import call, draw, plain_entry, returned, write_entries


def loaded(tmp_path: Path, entries: dict[str, Any], **options: Any) -> list[Sample]:
    write_entries(tmp_path / "gta_dataset", entries)
    return list(load_benchmark("gta", tmp_path, options=options).samples)


def only(tmp_path: Path, entry: dict[str, Any]) -> Sample:
    (sample,) = loaded(tmp_path, {"0": entry})
    return sample


def test_steps_have_published_tools_our_file_names_and_recorded_observations(
    tmp_path: Path,
) -> None:
    steps = [
        call("OCR", {"image": "image/image 1.jpg"}, "read it"),
        returned("OCR", "(1, 2, 3, 4) 7"),
        call("DrawBox", {"image": "image/image 1.jpg", "bbox": "(1, 2, 3, 4)"}, None),
        returned("DrawBox", "image/made.png", "image"),
    ]
    dialogs = [
        {"role": "user", "content": "Mark it"},
        *steps,
        {"role": "assistant", "content": "The image is saved."},
    ]
    files = [{"type": "image", "path": "image/image 1.jpg", "url": None}]
    sample = only(tmp_path, plain_entry(dialogs=dialogs, files=files, gt_answer=None))
    first, second = sample.reference.steps
    assert (first.tool, first.arguments, first.thought) == (
        "OCR",
        {"image": "image_1.jpg"},
        "read it",
    )
    assert first.observation.result == {"text": "(1, 2, 3, 4) 7"}
    assert second.observation.result == {"image": "image/made.png"}
    assert sample.files[0].path == "image/image 1.jpg"
    assert sample.answer == (ImageCallsSlot(name="image", label="the image", tools=("DrawBox",)),)
    assert sample.metadata == {"entry": "0", "position": 0, "final_text": "The image is saved."}


@pytest.mark.parametrize(
    ("answer", "slot"),
    [
        ({"whitelist": [["-3"]], "blacklist": None}, {"whitelist": (("-3",),), "blacklist": ()}),
        (["a", "b", "c"], {"values": ("a", "b", "c")}),
        ("a", {"values": ("a",)}),
    ],
)
def test_answers_in_words_keep_what_was_written(
    tmp_path: Path, answer: Any, slot: dict[str, Any]
) -> None:
    (read,) = only(tmp_path, plain_entry(gt_answer=answer)).answer
    assert {name: getattr(read, name) for name in slot} == slot


@pytest.mark.parametrize("answer", [[], {}])
def test_without_a_gold_answer_and_an_image_the_dialogs_last_text_is_it(
    tmp_path: Path, answer: Any
) -> None:
    sample = only(tmp_path, plain_entry(gt_answer=answer))
    assert sample.answer == (ReferenceTextsSlot(name="answer", label="the answer", values=("7",)),)


ASKED = {"role": "user", "content": "?"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (plain_entry(dialogs=None), "no dialogs"),
        (plain_entry(dialogs=[{"role": "assistant", "content": "hello"}]), "asks no question"),
        (
            plain_entry(files=[{"type": "image", "path": "image/../../secret.jpg"}]),
            "leads out of the folder",
        ),
        (plain_entry(files=[{"type": "image"}]), "a file without a path"),
        (plain_entry(files=[{"type": "image", "path": "./"}]), "a file without a path"),
        (plain_entry(files="image/image_1.jpg"), "files are no list"),
        (plain_entry(tools=[{"name": "Teleport"}]), "there is no tool 'Teleport'"),
        (plain_entry(tools=[{"name": 3}]), "a tool without a name"),
        (plain_entry(gt_answer={"whitelist": ["7"]}), "no list of lists"),
        (plain_entry(gt_answer={"white": [["7"]]}), "no whitelist"),
        (plain_entry(gt_answer={"whitelist": [[None]]}), "something else than texts"),
        (plain_entry(gt_answer=[["7"]]), "unknown form"),
        (plain_entry(gt_answer=[" "]), "all empty"),
        (
            plain_entry(dialogs=[ASKED, {"role": "assistant", "tool_calls": [{"function": {}}]}]),
            "step 1 names no tool",
        ),
        (
            plain_entry(dialogs=[ASKED, call("OCR", "not json", None)]),
            "arguments of step 1 are no object",
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_its_reason(
    tmp_path: Path, entry: Any, message: str
) -> None:
    entries = {"0": plain_entry(), "17": entry}
    with pytest.raises(BenchmarkError) as error:
        loaded(tmp_path, entries)
    assert "entry 17" in error.value.message
    assert message in error.value.message
    assert error.value.hint is not None
    assert [sample.id for sample in loaded(tmp_path, entries, faults="leave-out")] == ["gta-000"]


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    entries = {"0": plain_entry(), "4": plain_entry(gt_answer=True), "9": plain_entry(dialogs=[])}
    folder = write_entries(tmp_path, entries)
    (folder / "image" / "image_1.jpg").unlink()
    with pytest.raises(BenchmarkError) as error:
        load_benchmark("gta", tmp_path)
    lines = error.value.message.split("\n")
    assert "3 of 3 entries cannot be used" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "entry 0",
        "entry 4",
        "entry 4",
        "entry 9",
        "entry 9",
    ]
    with pytest.raises(BenchmarkError):
        load_benchmark("gta", tmp_path, options={"faults": "leave-out"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b'{"0": oops}', "is not valid JSON"),
        (b"\n<!DOCTYPE html><html><body>404", "is a web page"),
        (b'"text"', "no object of entries"),
        (
            json.dumps({"0": "caf\u00e9"}, ensure_ascii=False).encode("latin-1"),
            "not UTF-8: .* at byte 10",
        ),
        (b"[" * 100_000, "JSON|deep|cut off"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "dataset.json").write_bytes(content)
    with pytest.raises(BenchmarkError, match=message) as error:
        load_benchmark("gta", tmp_path)
    assert "dataset.json" in error.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it is empty"), (b"<html>not found</html>", r"no readable image \(it is a web page")],
)
def test_an_image_that_was_not_downloaded_is_a_fault(
    tmp_path: Path, content: bytes, message: str
) -> None:
    folder = write_entries(tmp_path, {"0": plain_entry()})
    (folder / "image" / "image_1.jpg").write_bytes(content)
    with pytest.raises(BenchmarkError, match=message):
        load_benchmark("gta", tmp_path)
    draw(tmp_path.parent / "elsewhere.jpg", 3)
    (folder / "image" / "image_1.jpg").unlink()
    (folder / "image" / "image_1.jpg").symlink_to(tmp_path.parent / "elsewhere.jpg")
    with pytest.raises(BenchmarkError, match="link that leads out"):
        load_benchmark("gta", tmp_path)


def test_a_call_without_a_recorded_observation_returned_nothing(tmp_path: Path) -> None:
    entry = plain_entry()
    entry["dialogs"] = [message for message in entry["dialogs"] if message["role"] != "tool"]
    sample = only(tmp_path, entry)
    assert sample.reference is not None
    # Step-by-step goes on, as the published evaluation does.
    (step,) = reference_history(sample.reference)
    assert step.observation.empty
    assert step.call is not None
    given = RecordedTools(sample).run(step.call).observation.error
    assert given.message == "nothing was recorded of this call"


def test_what_is_unusual_is_noted_and_used(tmp_path: Path) -> None:
    dialogs = [
        {"role": "user", "content": [{"type": "text", "text": "First"}, {"type": "text", "text": "question"}]},
        {**call("OCR", {"image": "image/image_1.jpg"}, None), "content": None},
        call("Calculator", {"expression": "1"}, None), {"role": "tool", "name": "OCR", "content": 58}, "stray",
        {"role": "assistant", "content": "7"}, {"role": "user", "content": "Second question"},
        call("Solver", {"command": "x"}, None), {"role": "assistant", "content": "8"},
    ]  # fmt: skip
    dialogs[1]["tool_calls"].append(dialogs[2]["tool_calls"][0])  # pyright: ignore
    entry = plain_entry(dialogs=dialogs, files=[*plain_entry()["files"] * 2])
    sample = only(tmp_path, entry)
    assert sample.query == "First\nquestion"
    assert [step.tool for step in sample.reference.steps] == ["OCR", "Calculator"]
    assert sample.reference.steps[0].observation == Observation(result={})
    assert (sample.reference.steps[1].observation.result, sample.metadata["user_turns"]) == (
        {"text": "58"},
        2,
    )
    notes = str(load_benchmark("gta", tmp_path).header.metadata["notes"])
    for said in ("user turns", "no recorded observation", "another tool", "twice", "several calls"):
        assert said in notes


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    paths = ["image/a/图.jpg", "image/b/图.jpg", "image/b/图 2.JPG"]
    files = [{"type": "image", "path": path, "url": None} for path in paths]
    dialogs = [
        {"role": "user", "content": "Which?"},
        call("OCR", {"image": paths[1], "images": paths}, None),
        {"role": "assistant", "content": "2"},
    ]
    sample = only(tmp_path, plain_entry(files=files, dialogs=dialogs))
    assert [file.name for file in sample.files] == ["file.jpg", "file_2.jpg", "2.JPG"]
    assert sample.reference.steps[0].arguments == {
        "image": "file_2.jpg",
        "images": ["file.jpg", "file_2.jpg", "2.JPG"],
    }


def test_gold_is_in_nothing_that_a_policy_sees_and_an_entry_without_tools_is_offered_all(
    tmp_path: Path,
) -> None:
    for tools in ([], None):  # those that it calls would tell the solution
        sample = only(tmp_path, plain_entry(tools=tools))
        assert len(sample.toolset) == 14
        assert {step.tool for step in sample.reference.steps} < {*sample.toolset}
    entry = plain_entry(gt_answer={"whitelist": [["MARKER"]], "blacklist": [["MARKER2"]]})
    entry["dialogs"][-1]["content"] = "MARKER"
    write_entries(tmp_path, {"0": entry})
    benchmark = load_benchmark("gta", tmp_path)
    assert "MARKER" not in benchmark.view(benchmark.samples[0], "end-to-end").model_dump_json()


@pytest.mark.data
def test_real_entries_are_read(field_data: Path, tmp_path: Path) -> None:
    source = field_data / "gta_entries" / "real_entries_via_TRACE.json"
    if not source.is_file():
        pytest.skip(f"no entries of GTA at {source.parent}: set AGROTOOLS_TEST_DATA")
    write_entries(tmp_path, json.loads(source.read_text("utf-8")))
    first, second = load_benchmark("gta", tmp_path).samples
    assert (first.toolset, first.groups) == (
        ("Calculator", "OCR"),
        {"answer": "objective", "steps": "2", "tools": "2"},
    )
    assert first.reference.steps[0].arguments == {"image": "image_96.jpg"}
    assert second.answer[0].whitelist == (("-3",),)
    assert [step.thought for step in second.reference.steps] == ["", ""]
