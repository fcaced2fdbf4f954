"""What the page makes of a sample: boxes on the right picture, observations beside truths, edits."""

from pathlib import Path
from typing import Any

import pytest

from agrotools.core import Sample
from agrotools.core.slot import SLOT_TYPES
from agrotools_build.review.agreement import Edits, apply_edits, edit_text, effective_edits
from agrotools_build.review.app import render
from agrotools_build.review.material import (
    TOOL_FAILED,
    TOOLS_DIFFER,
    facts_of_sample,
    open_material,
    read_flags,
)
from agrotools_build.review.presenting import PictureRenderer, compared_fields, present, shapes_of
from support.review_server import review_benchmark, review_sample


def sample_of(folder: Path, **changes: Any) -> Sample:
    return Sample.model_validate(review_sample(folder, 1, **changes))


def test_boxes_and_points_lie_on_the_file_that_the_step_looked_at(tmp_path: Path):
    sample = sample_of(tmp_path)
    data = sample.model_dump(mode="json", by_alias=True)
    data["files"].append(data["files"][0] | {"name": "image_2.png"})
    data["reference"]["steps"][0]["observation"]["result"] = {
        "fruits": [
            {"id": 3, "centre_px": [12.5, 9], "box": [1, 2, 3, 4]},
            {"id": 4, "centre_px": [20, 9]},
        ],
        "scores": [0.9, 0.8, 0.7, 0.6],
        "leaf_box": [4, 4, 20, 20],
        "boxes": [[1, 1, 5, 5], [9, 9, 2, 2]],
        "bbox": None,
    }
    data["reference"]["steps"][0]["truth"] = {"box": [0, 0, 2, 2]}
    shapes = shapes_of(Sample.model_validate(data))
    assert {shape.file for shape in shapes} == {"image_1.png"}
    assert [(shape.origin, shape.numbers) for shape in shapes] == [
        ("argument", (8, 6, 40, 30)), ("observation", (12.5, 9)), ("observation", (1, 2, 3, 4)),
        ("observation", (20, 9)), ("observation", (4, 4, 20, 20)), ("observation", (1, 1, 5, 5)),
        ("truth", (0, 0, 2, 2)),
    ]  # fmt: skip
    assert [shape.label for shape in shapes][1:5] == ["3", "3", "4", "leaf_box"]


def test_a_step_on_two_files_of_one_size_is_drawn_on_both(tmp_path: Path):
    data = sample_of(tmp_path).model_dump(mode="json", by_alias=True)
    data["files"] += [
        data["files"][0] | {"name": "after.png"},
        data["files"][0] | {"name": "far.png", "width_px": 640},
    ]
    arguments = {
        "before": "image_1.png",
        "after": "after.png",
        "other": "far.png",
        "region": [0, 0, 9, 9],
    }
    data["reference"]["steps"][0] |= {"arguments": arguments, "observation": None, "truth": None}
    assert [shape.file for shape in shapes_of(Sample.model_validate(data))] == [
        "image_1.png",
        "after.png",
    ]


@pytest.mark.parametrize(
    ("observed", "true", "state"),
    [
        (50.0, 50.004, "same"), (49, 50, "differs"), (3, 0, "differs"), (None, 50, "missing"), (True, 1, "same"),
        ("rust", "scab", "differs"), ([1, 2], [1, 2.0], "same"), ([1, 2], [1, 3], "differs"),
    ],
)  # fmt: skip
def test_an_observation_stands_beside_the_truth(observed: Any, true: Any, state: str):
    (row,) = compared_fields({"value": observed}, {"value": true})
    assert row.state == state


def test_objects_are_compared_field_by_field():
    observed = {
        "fruits": [{"id": 1, "mm": 80.0, "more": 1}, {"id": 2, "mm": 70.0}],
        "region": {"pct": 4},
    }
    truth = {
        "fruits": [{"id": 1, "mm": 60.0}, {"id": 2, "mm": 70.0}],
        "region": {"pct": 4},
        "unknown": None,
    }
    rows = [(row.name, row.state) for row in compared_fields(observed, truth)]
    assert rows == [
        ("fruits[0].id", "same"),
        ("fruits[0].mm", "differs"),
        ("fruits[1].id", "same"),
        ("fruits[1].mm", "same"),
        ("region.pct", "same"),
    ]


def test_edits_change_wording_labels_and_tolerances_and_nothing_else(tmp_path: Path):
    sample = sample_of(tmp_path)
    edits = Edits.model_validate(
        {"query": "How much?", "slots": {"green": {"label": "share", "rel_tol": 0.1}}}
    )
    changed = apply_edits(sample, edits)
    assert (changed.query, changed.answer[0].label) == ("How much?", "share")
    assert changed.answer[0].model_dump()["rel_tol"] == 0.1
    kept = {"query", "answer"}
    assert changed.model_dump(exclude=kept) == sample.model_dump(exclude=kept)
    assert changed.answer[0].from_ == "steps[1].observation.value"
    same = Edits.model_validate({"query": sample.query, "slots": {"green": {"abs_tol": 2.0}}})
    assert effective_edits(sample, same) is None
    with pytest.raises(ValueError, match="no slot"):
        effective_edits(sample, Edits.model_validate({"slots": {"blue": {"label": "x"}}}))
    yes = {"type": "boolean", "name": "green", "label": "green", "value": True}
    with pytest.raises(ValueError, match="no tolerance"):
        effective_edits(
            sample_of(tmp_path, answer=[yes]),
            Edits.model_validate({"slots": {"green": {"abs_tol": 1.0}}}),
        )


ANSWERS = {
    "tolerance": {"type": "tolerance", "value": 4.0, "abs_tol": 1.0},
    "boolean": {"type": "boolean", "value": True},
    "exact": {"type": "exact", "value": "rust", "choices": ["rust", "miner"]},
    "count": {"type": "exact", "value": 4},
}


@pytest.mark.parametrize(
    ("kind", "text", "value", "stored"),
    [
        ("tolerance", "5,50", 5.5, "5.5"), ("boolean", "No", False, "no"), ("exact", "miner", "miner", "miner"),
        ("count", "7", 7, "7"),
    ],
)  # fmt: skip
def test_the_answer_is_edited(tmp_path: Path, kind: str, text: str, value: object, stored: str):
    slot = {
        "name": "green",
        "label": "green",
        "from": "steps[1].observation.value",
        **ANSWERS[kind],
    }
    sample = sample_of(tmp_path, answer=[slot])
    edits = effective_edits(sample, Edits.model_validate({"slots": {"green": {"value": text}}}))
    assert edits.slots["green"].value == stored
    edited = apply_edits(sample, edits)
    (changed,) = edited.answer
    assert (changed.model_dump()["value"], changed.from_) == (value, slot["from"])
    assert edited.reference is not None
    assert edited.reference.steps[1].truth is None, "the label says otherwise than the true result"
    assert edited.reference.steps[0] == sample.reference.steps[0]
    assert type(changed.model_dump()["value"]) is type(value)
    same = {"slots": {"green": {"value": edit_text(sample.answer[0].model_dump()["value"])}}}
    assert effective_edits(sample, Edits.model_validate(same)) is None


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("tolerance", "many", "not a number"), ("tolerance", "nan", "finite"), ("boolean", "perhaps", "yes or no"),
        ("exact", "mildew", "one of rust, miner"), ("count", "4 or 5", "not a number"),
    ],
)  # fmt: skip
def test_an_answer_that_the_slot_cannot_have_is_refused(
    tmp_path: Path, kind: str, text: str, why: str
):
    sample = sample_of(tmp_path, answer=[{"name": "green", "label": "green", **ANSWERS[kind]}])
    with pytest.raises(ValueError, match=why):
        effective_edits(sample, Edits.model_validate({"slots": {"green": {"value": text}}}))


FACTS = [{"phrases": ["late blight"], "not": ["early blight"]}]
SLOTS: dict[str, dict[str, Any]] = {
    "exact": {"value": "rust", "choices": ["rust", "smut"]},
    "boolean": {"value": False},
    "choice_set": {"value": ["a"], "choices": ["a", "b"]},
    "file": {"value": "image_1.png", "choices": ["image_1.png"]},
    "tolerance": {"value": 2.0, "unit": "mm", "abs_tol": 0.5},
    "open_text": {"facts": FACTS},
    "plot": {"value": {"type": "bar", "series": []}},
    "keywords": {"whitelist": [["rust"]]},
    "reference_texts": {"values": ["rust"]},
    "abstain": {
        "reason": "no_scale",
        "asks": [{"type": "boolean", "name": "wet", "label": "is it wet", "value": True}],
    },
}


@pytest.mark.parametrize("kind", [each.model_fields["type"].default for each in SLOT_TYPES])
def test_a_sample_with_any_type_of_answer_is_shown(tmp_path: Path, kind: str):
    slot = {"type": kind, "name": "first", "label": "what <i>it</i> is", **SLOTS[kind]}
    folder = review_benchmark(tmp_path, 1, rows_0001={"answer": [slot], "answer_type": "exact"})
    material = open_material(str(folder))
    shown = present(material, PictureRenderer(material), material.sample("rows-0001"))  # pyright: ignore[reportArgumentType]
    page = render("sample.html.j2", shown={**shown, "corrects": True, "made": []})
    assert "what &lt;i&gt;it&lt;/i&gt; is" in page
    assert ("Right answer" in page) == (kind in ("exact", "boolean", "tolerance"))
    assert ("Right answer, mm" in page) == (kind == "tolerance")


def test_the_words_that_a_model_replaced_stand_beside_the_new_ones(tmp_path: Path):
    replaced = {"original_question": "How much of <this> leaf is sick?"}
    folder = review_benchmark(tmp_path, 1, rows_0001={"metadata": replaced})
    material = open_material(str(folder))
    sample = material.sample("rows-0001")
    assert sample is not None
    shown = present(material, PictureRenderer(material), sample) | {"made": [], "corrects": False}
    page = render("sample.html.j2", shown=shown)
    assert "Before a model rephrased it: <q>How much of &lt;this&gt; leaf is sick?</q>" in page


def test_flags_come_from_the_folder_and_from_the_reference_itself(tmp_path: Path):
    sample = sample_of(tmp_path)
    assert facts_of_sample(sample, ()).flags == (TOOLS_DIFFER,)
    data = sample.model_dump(mode="json", by_alias=True)
    data["reference"]["steps"][1]["observation"]["result"]["value"] = 101.0
    assert facts_of_sample(Sample.model_validate(data), ()).flags == ()
    data["reference"]["steps"][1]["observation"] = {
        "error": {"kind": "nothing_found", "message": "none"}
    }
    assert facts_of_sample(Sample.model_validate(data), ()).flags == (TOOL_FAILED, TOOLS_DIFFER)

    path = tmp_path / "quality.jsonl"
    assert read_flags(path) == ({}, [])
    path.write_bytes(
        b'{"id": "a", "check": "leak", "severity": "error", "message": "m"}\n\n[]\n{"id": "a"}\n\xff\n'
    )
    flags, notes = read_flags(path)
    assert [flag.check for flag in flags["a"]] == ["leak"]
    assert notes == ["quality.jsonl: 3 lines could not be read"]
