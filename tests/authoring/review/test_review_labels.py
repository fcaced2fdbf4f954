"""Labels of a folder in its editor: a new question takes them, or its reviewer says that the tool's value counts."""

from pathlib import Path
from typing import Any

import pytest

from agrotools.core import ReferenceStep, Sample
from agrotools_build.answer_origin import TOOL_VALUES, origins_of
from agrotools_build.composing import CannotCompose, StepRunner
from agrotools_build.labels import LABELS_FILE, labels_of_samples, read_labels, write_labels
from agrotools_build.review.correcting import (
    Written,
    corrected_sample,
    new_sample,
    part_states,
    steps_with_truth,
    with_bound_fields,
    written_of,
)
from agrotools_build.review.folder_labels import FolderLabels, KnownLabels, known_labels
from agrotools_build.review.material import apply_review, open_material
from support.review_server import green_blocks

TOOL = "measure_crop_weed_area"
BY_LABEL = 30.0
BY_TOOL = 21.0
SOIL_BY_TOOL = 79.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One sample, whose label says that 30 % of its picture is covered; the tool measures 21 %."""
    step = {
        "tool": TOOL,
        "arguments": {"image": "image_1.png"},
        "observation": {"result": {"veg_pct": BY_TOOL, "soil_pct": SOIL_BY_TOOL}},
        "truth": {"veg_pct": BY_LABEL},
    }
    answer = {
        "type": "tolerance",
        "name": "cover",
        "label": "the share that plants cover",
        "value": BY_LABEL,
        "unit": "%",
        "abs_tol": 3.0,
        "from": "steps[0].observation.veg_pct",
    }
    return green_blocks(tmp_path / "labelled", 1, reference={"steps": [step]}, answer=[answer])


@pytest.fixture
def base(folder: Path) -> Sample:
    sample = open_material(str(folder)).sample("rows-0001")
    assert sample is not None
    return sample


def ran(result: dict[str, Any], **arguments: Any) -> ReferenceStep:
    call = {"tool": TOOL, "arguments": {"image": "image_1.png", **arguments}}
    return ReferenceStep.model_validate({**call, "observation": {"result": result}})


MEASURED = {"veg_pct": BY_TOOL, "soil_pct": SOIL_BY_TOOL}


def question(field: str, value: str = "stands", **more: Any) -> Written:
    part = {"name": "share", "label": "share", "form": "number", "value": value}
    return Written.model_validate(
        {
            "query": "How much of this block is covered?",
            "task_type": "weed_crop_area",
            "steps": [{"tool": TOOL, "arguments": {"image": "image_1.png"}}],
            "parts": [{**part, "from": f"steps[0].observation.{field}"}],
            **more,
        }
    )


def known(base: Sample, steps: list[ReferenceStep]) -> KnownLabels:
    return known_labels(steps, base.files, FolderLabels([base]), None)


def written(base: Sample, folder: Path, asked: Written) -> Sample:
    steps = [ran(MEASURED)]
    runner = StepRunner(folder, toolset=[TOOL, "calculate"])
    return new_sample("written-1", asked, base.files, steps, runner, "Ada", known(base, steps))


def test_a_new_question_is_refused_until_its_reviewer_says_whether_the_label_counts(
    base: Sample, folder: Path
):
    steps = [ran(MEASURED)]
    asked = question("veg_pct")
    (state,) = part_states(asked, steps, base.files, None, known(base, steps))
    assert (state.state, state.stands[:2], state.result[:2]) == ("differs", "30", "21")
    assert "rows-0001" in state.origin
    with pytest.raises(CannotCompose, match="the label in rows-0001 says 30"):
        written(base, folder, asked)

    by_label = written(base, folder, question("veg_pct", "label"))
    assert by_label.answer[0].model_dump()["value"] == BY_LABEL
    assert TOOL_VALUES not in by_label.metadata
    by_tool = written(base, folder, question("veg_pct", "result"))
    assert by_tool.answer[0].model_dump()["value"] == BY_TOOL
    assert by_tool.metadata[TOOL_VALUES] == ["share"]
    # A label that was not taken is not forgotten.
    assert set(by_tool.metadata["written"]["labels_dropped"]) == {"share"}
    assert f"says {BY_LABEL}" in by_tool.metadata["written"]["labels_dropped"]["share"]
    assert "labels_dropped" not in by_label.metadata["written"]


def test_a_value_without_a_label_says_that_it_is_a_tools(base: Sample, folder: Path):
    steps = [ran(MEASURED)]
    asked = question("soil_pct")
    (state,) = part_states(asked, steps, base.files, None, known(base, steps))
    assert state.origin == "no label: the value is the tool's"
    sample = written(base, folder, asked)
    assert sample.metadata[TOOL_VALUES] == ["share"]
    # Its truth contradicts no label, and the tool's value is no label of another question.
    assert sample.reference is not None
    assert sample.reference.steps[0].truth == {"veg_pct": BY_LABEL, "soil_pct": SOIL_BY_TOOL}
    found = FolderLabels([sample]).of(steps[0], base.files)
    assert found.keys() == {"veg_pct"}


def test_a_label_that_the_tool_agrees_with_is_taken_without_a_question(base: Sample, folder: Path):
    steps = [ran({**MEASURED, "veg_pct": BY_LABEL})]
    asked = question("veg_pct")
    runner = StepRunner(folder, toolset=[TOOL])
    labels = known(base, steps)
    sample = new_sample("written-1", asked, base.files, steps, runner, "Ada", labels)
    assert TOOL_VALUES not in sample.metadata


def test_a_label_that_only_an_answer_has_counts_and_one_of_a_part_of_the_picture_does_not(
    base: Sample,
):
    assert base.reference is not None
    bare = base.reference.steps[0].model_copy(update={"truth": None})
    reference = base.reference.model_copy(update={"steps": (bare,)})
    labels = FolderLabels([base.model_copy(update={"reference": reference})])
    assert labels.of(ran(MEASURED), base.files)["veg_pct"].value == BY_LABEL
    region = ran(MEASURED, region=[0, 0, 20, 20])
    assert labels.of(region, base.files) == {}


def test_a_calculation_may_use_a_field_without_a_label_of_a_call_that_has_one(
    base: Sample, folder: Path
):
    fields = written_of(base)
    soil = {"$ref": "steps[0].observation.soil_pct"}
    half = {"expression": "s / 2", "variables": {"s": soil}}
    fields["steps"].append({"tool": "calculate", "arguments": half})
    fields["parts"][0] |= {"from": "steps[1].observation.value", "value": "result"}
    now = Written.model_validate(fields)
    seen = {"s": {**soil, "value": SOIL_BY_TOOL}}
    made = {
        "tool": "calculate",
        "arguments": {**half, "variables": seen},
        "observation": {"result": {"value": SOIL_BY_TOOL / 2}},
    }
    steps = steps_with_truth([ran(MEASURED), ReferenceStep.model_validate(made)], now.steps, base)
    sample = corrected_sample(base, now, steps, folder, "Ada")
    assert sample.answer[0].model_dump()["value"] == SOIL_BY_TOOL / 2


def test_a_calculation_without_a_value_by_the_label_is_said(base: Sample):
    fields = written_of(base)
    share = {"$ref": "steps[0].observation.veg_pct"}
    odd = {"expression": f"1 / (s - {BY_LABEL:g})", "variables": {"s": share}}
    fields["steps"].append({"tool": "calculate", "arguments": odd})
    now = Written.model_validate(fields)
    seen = {"s": {**share, "value": BY_TOOL}}
    made = {
        "tool": "calculate",
        "arguments": {**odd, "variables": seen},
        "observation": {"result": {"value": 1 / (BY_TOOL - BY_LABEL)}},
    }
    steps = [ran(MEASURED), ReferenceStep.model_validate(made)]
    with pytest.raises(CannotCompose, match=r"step 2 \(calculate\) cannot be calculated"):
        steps_with_truth(steps, now.steps, base)


def test_a_question_with_a_step_that_decides_nothing_is_refused_with_that_step(
    base: Sample, folder: Path
):
    soil = {"tool": TOOL, "arguments": {"image": "image_1.png"}}
    idle = {"tool": TOOL, "arguments": {"image": "image_1.png", "region": [0, 0, 20, 20]}}
    steps = [ran(MEASURED), ran(MEASURED, region=[0, 0, 20, 20])]
    runner = StepRunner(folder, toolset=[TOOL, "calculate"])

    def refused(asked: Written, steps: list[ReferenceStep]) -> str:
        with pytest.raises(CannotCompose) as why:
            new_sample("written-1", asked, base.files, steps, runner, "Ada", known(base, steps))
        assert why.value.reason == "idle_step"
        return why.value.message

    said = refused(question("soil_pct", steps=[soil, idle]), steps)
    assert f"step 2 ({TOOL})" in said
    again = question("soil_pct", steps=[soil, soil])
    both = again.parts[0].model_copy(
        update={"from_": "steps[0].observation.soil_pct + steps[1].observation.soil_pct"}
    )
    said = refused(again.model_copy(update={"parts": (both,)}), [ran(MEASURED), ran(MEASURED)])
    assert said == f"step 2 ({TOOL}) is the same call as step 1"


def test_a_correction_cannot_add_a_step_that_decides_nothing(base: Sample, folder: Path):
    fields = written_of(base)
    idle = {"tool": TOOL, "arguments": {"image": "image_1.png", "region": [0, 0, 20, 20]}}
    fields["steps"].append(idle)
    now = Written.model_validate(fields)
    made = [ran(MEASURED), ran(MEASURED, region=[0, 0, 20, 20])]
    steps = steps_with_truth(made, now.steps, base)
    with pytest.raises(CannotCompose, match="nothing uses the result of step 2"):
        corrected_sample(base, now, steps, folder, "Ada")


def test_the_page_says_where_a_tolerance_comes_from_before_and_after(tmp_path: Path):
    seen = {"severity_pct": 12.0, "severity_interval_pct": [10.0, 15.0]}
    call = {"tool": "analyze_lesions", "arguments": {"image": "image_1.png"}}
    answer = {
        "type": "tolerance",
        "name": "sick",
        "label": "the sick share",
        "value": 30.0,
        "unit": "%",
        "abs_tol": 4.0,
        "from": "steps[0].observation.severity_pct",
    }
    step = {**call, "observation": {"result": seen}, "truth": {"severity_pct": 30.0}}
    folder = green_blocks(tmp_path / "sick", 1, reference={"steps": [step]}, answer=[answer])
    sample = open_material(str(folder)).sample("rows-0001")
    assert sample is not None
    fields = written_of(sample)
    fields["steps"][0]["arguments"]["region"] = [0, 0, 20, 20]
    now = Written.model_validate(fields)
    changed = {
        **call,
        "arguments": fields["steps"][0]["arguments"],
        "observation": {"result": seen},
    }
    steps = steps_with_truth([ReferenceStep.model_validate(changed)], now.steps, sample)
    (state,) = part_states(now, steps, sample.files, sample)
    assert (state.stands, state.result) == ("30 % ± 4", "12 % ± 2.5")
    assert "set when the sample was made" in state.stands_tolerance
    assert state.tolerance == "± 2.5: analyze_lesions states 10 to 15"


def test_labels_beside_the_samples_count_and_stay_in_the_folder_that_apply_writes(
    base: Sample, folder: Path, tmp_path: Path
):
    labels = labels_of_samples([base])
    write_labels(folder, labels)
    known_here = FolderLabels([], read_labels(folder)).of(ran(MEASURED), base.files)
    assert known_here["veg_pct"] == (BY_LABEL, LABELS_FILE)
    apply_review(open_material(str(folder)), [], tmp_path / "reviewed")
    assert read_labels(tmp_path / "reviewed") == labels


def test_a_calculation_follows_from_the_label_and_parts_cannot_take_both(
    base: Sample, folder: Path
):
    share = {"$ref": "steps[0].observation.veg_pct"}
    double = {"expression": "2 * s", "variables": {"s": share}}
    call = {"tool": "calculate", "arguments": double}
    seen = {"s": {**share, "value": BY_TOOL}}
    made = {**call, "arguments": {**double, "variables": seen}}
    first = {"tool": TOOL, "arguments": {"image": "image_1.png"}}
    number = {"label": "share", "form": "number", "unit": "%"}
    doubled = {**number, "name": "double", "from": "steps[1].observation.value", "value": "label"}
    single = {**number, "name": "single", "from": share["$ref"], "value": "result"}
    steps = [
        ran(MEASURED),
        ReferenceStep.model_validate({**made, "observation": {"result": {"value": 2 * BY_TOOL}}}),
    ]
    runner = StepRunner(folder, toolset=[TOOL, "calculate"])
    asked = question("", steps=[first, call], parts=[doubled])
    sample = new_sample("written-1", asked, base.files, steps, runner, "Ada", known(base, steps))
    assert sample.answer[0].model_dump()["value"] == 2 * BY_LABEL

    both = question("", steps=[first, call], parts=[doubled, single])
    with pytest.raises(CannotCompose, match="takes the label of step 1, and single its result"):
        new_sample("written-1", both, base.files, steps, runner, "Ada", known(base, steps))


def test_an_answer_that_needs_no_picture_is_refused(base: Sample, folder: Path):
    call = {"tool": "calculate", "arguments": {"expression": "17 * 3"}}
    steps = [ReferenceStep.model_validate({**call, "observation": {"result": {"value": 51}}})]
    part = {
        "name": "crates",
        "label": "crates",
        "form": "number",
        "from": "steps[0].observation.value",
    }
    asked = question("", steps=[call], parts=[part])
    runner = StepRunner(folder, toolset=["calculate"])
    with pytest.raises(CannotCompose, match="rests on no picture"):
        new_sample("written-1", asked, (), steps, runner, "Ada")


def corrected(
    base: Sample, step: ReferenceStep, **part: Any
) -> tuple[Written, list[ReferenceStep]]:
    """A correction that makes one call, with ``part`` changed."""
    fields = written_of(base)
    fields["steps"][0]["arguments"] = dict(step.arguments)
    fields["parts"][0].update(part)
    now = Written.model_validate(fields)
    return now, with_bound_fields(steps_with_truth([step], now.steps, base), now.parts)


def test_a_changed_call_whose_result_moves_within_the_tolerance_is_asked_about(
    base: Sample, folder: Path
):
    near = ran({**MEASURED, "veg_pct": BY_LABEL + 1}, index="exg")
    asked, steps = corrected(base, near)
    (state,) = part_states(asked, steps, base.files, base)
    assert state.state == "differs"
    with pytest.raises(CannotCompose, match="30 % ± 3 stands in the sample"):
        corrected_sample(base, asked, steps, folder, "Ada")
    for value, number in (("label", BY_LABEL), ("result", BY_LABEL + 1)):
        asked, steps = corrected(base, near, value=value)
        sample = corrected_sample(base, asked, steps, folder, "Ada")
        assert sample.answer[0].model_dump()["value"] == number
    assert sample.metadata[TOOL_VALUES] == ["cover"]
    assert sample.metadata["corrected"] == [
        {"by": "Ada", "date": sample.metadata["corrected"][0]["date"], "labels_dropped": {"cover": "30 % ± 3"}}
    ]  # fmt: skip


def test_a_part_bound_to_another_field_shows_what_differs(base: Sample, folder: Path):
    other = {"from": "steps[0].observation.soil_pct"}
    asked, steps = corrected(base, ran(MEASURED), **other)
    (state,) = part_states(asked, steps, base.files, base)
    assert (state.state, state.result[:2]) == ("differs", "79")
    asked, steps = corrected(base, ran(MEASURED), **other, value="result")
    sample = corrected_sample(base, asked, steps, folder, "Ada")
    assert sample.answer[0].model_dump()["value"] == SOIL_BY_TOOL
    assert sample.metadata[TOOL_VALUES] == ["cover"]
    asked, steps = corrected(base, ran(MEASURED), **other, value="label")
    with pytest.raises(CannotCompose, match="another field"):
        corrected_sample(base, asked, steps, folder, "Ada")


def test_a_label_that_goes_with_its_part_is_named_in_the_sample(base: Sample, folder: Path):
    asked, steps = corrected(
        base, ran(MEASURED), name="soil", **{"from": "steps[0].observation.soil_pct"}
    )
    sample = corrected_sample(base, asked, steps, folder, "Ada", labels=known(base, steps))
    assert sample.metadata["corrected"][0]["labels_dropped"] == {"cover": "30 % ± 3"}
    assert origins_of([base, sample]) == {"label": 1, "tool": 1}
