"""Samples that reviewers corrected and wrote: versions, unfinished work, and what a correction makes of a sample."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agrotools.core import ReferenceStep, Sample
from agrotools.core.record import renumbered_text, update_literals
from agrotools_build.answer_origin import TOOL_VALUES
from agrotools_build.composing import CannotCompose, StepRunner
from agrotools_build.drafting.funnel import reviewed_by_family
from agrotools_build.review.agreement import Decision, ReviewJournal, review_parts, summary_of
from agrotools_build.review.correcting import (
    Written,
    corrected_sample,
    part_states,
    run_steps,
    steps_with_truth,
    unstated_numbers,
    written_of,
)
from agrotools_build.review.material import apply_review, open_material
from agrotools_build.review.unfinished import Unfinished, UnfinishedWork
from agrotools_build.review.versions import Version, Versions, content_of
from support.review_server import green_blocks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return green_blocks(tmp_path / "benchmark", 2)


@pytest.fixture
def base(folder: Path) -> Sample:
    sample = open_material(str(folder)).sample("rows-0001")
    assert sample is not None
    return sample


def ran(written: Written, base: Sample, share: float = 17.0) -> list[ReferenceStep]:
    """The steps as a tool that measures ``share`` runs them."""
    results: list[dict[str, Any]] = []
    for step in written.steps:
        is_measured = step.tool == "describe_region"
        results.append({"vegetation_pct": share} if is_measured else {"value": 2 * share})
    steps = [
        ReferenceStep.model_validate(
            {
                "tool": step.tool,
                "arguments": update_literals(dict(step.arguments), results),
                "observation": {"result": result},
            }
        )
        for step, result in zip(written.steps, results, strict=True)
    ]
    return steps_with_truth(steps, written.steps, base)


def version(sample: Sample, of: str, number: int = 1, by: str = "Ada") -> Version:
    fields = sample.model_dump(mode="json", by_alias=True)
    return Version(id=f"{number:08x}", sample=fields, of=of, by=by, at="2026-11-30T12:00:00+00:00")


def test_values_of_references_do_not_come_in_with_what_a_reviewer_wrote(base: Sample):
    written = written_of(base)
    variables = written["steps"][1]["arguments"]["variables"]
    assert variables == {"g": {"$ref": "steps[0].observation.vegetation_pct"}}
    variables["g"]["value"] = 99
    kept = Written.model_validate(written).steps[1].arguments["variables"]
    assert kept == {"g": {"$ref": "steps[0].observation.vegetation_pct"}}
    with pytest.raises(ValidationError):
        Written.model_validate(written | {"steps": [{"tool": "calculate"}] * 100})


def test_a_call_that_did_not_change_keeps_what_labels_say_of_it(base: Sample):
    written = Written.model_validate(written_of(base))
    measured, calculated = ran(written, base)
    assert measured.truth == {"vegetation_pct": 20.0}
    assert calculated.truth is not None
    assert calculated.truth["value"] == 40.0
    (state,) = part_states(written, [measured, calculated], base.files, base)
    assert (state.state, state.stands) == ("same", "40 % ± 2")


def test_the_tolerance_of_a_label_is_that_which_the_tool_states_beside_its_result(base: Sample):
    fields = base.model_dump(mode="json", by_alias=True)
    result = {"vegetation_pct": 17.0, "vegetation_interval_pct": [15.0, 19.0]}
    step = fields["reference"]["steps"][0]
    step |= {"observation": {"result": result}, "truth": {"vegetation_pct": 20.0}}
    fields["reference"]["steps"] = [step]
    fields["answer"][0] |= {"from": "steps[0].observation.vegetation_pct", "value": 20.0}

    def said(abs_tol: float) -> str:
        fields["answer"][0]["abs_tol"] = abs_tol
        labelled = Sample.model_validate(fields)
        written = Written.model_validate(written_of(labelled))
        assert labelled.reference is not None
        steps = labelled.reference.steps
        return part_states(written, steps, labelled.files, labelled)[0].stands_tolerance

    assert said(2.0) == "± 2: describe_region states 15 to 19"
    assert said(5.0) == "± 5 was set when the sample was made"
    del result["vegetation_interval_pct"]
    assert said(2.0).endswith("no tool states an error of the value")


def test_numbers_that_only_the_reviewer_wrote_are_named(base: Sample):
    fields = written_of(base)
    assert unstated_numbers(Written.model_validate(fields), base.files, base) == []
    fields["steps"][1]["arguments"]["expression"] = "g + 42"
    (warning,) = unstated_numbers(Written.model_validate(fields), base.files, base)
    assert warning.startswith("42 (calculate)")
    fields["query"] += " Is it more than 42 %?"
    assert unstated_numbers(Written.model_validate(fields), base.files, base) == []


def test_doubts_stay_after_a_correction_and_say_that_they_are_of_before(base: Sample, folder: Path):
    doubt = {
        "id": base.id,
        "check": "doubt",
        "severity": "info",
        "message": "the tolerance is wide",
    }
    (folder / "quality.jsonl").write_text(json.dumps(doubt))
    material = open_material(str(folder))
    assert material.versions is not None
    changed = base.model_copy(update={"query": "How much is green, doubled?"})
    for number in (1, 2):
        material.versions.append(version(changed, material.contents[base.id], number))
        material.update()
        changed = changed.model_copy(update={"query": "How much of it is green, doubled?"})
    (flag,) = material.shown_flags(base.id)
    assert flag.message == "before the correction: the tolerance is wide"
    assert "doubt" in material.facts[base.id].flags


def test_a_rejected_correction_is_not_counted_as_one(base: Sample):
    drafts = [base, base.model_copy(update={"id": "second"})]
    made = {"reviewer": "Bo", "content": "0" * 16}
    accept = Decision(id="0" * 8, sample=base.id, verdict="accept", **made)
    reject = Decision(id="1" * 8, sample="second", verdict="reject", reason="vague", **made)
    decided = {base.id: [accept], "second": [reject]}
    (counts,) = reviewed_by_family(drafts, decided, [base.id, "second"]).values()
    assert counts == {"reviewed": 2, "corrected": 1, "accepted": 1}


def test_new_words_alone_change_nothing_of_the_trace_and_the_answer(base: Sample, folder: Path):
    written = Written.model_validate(written_of(base) | {"query": "How much is green, doubled?"})
    steps = ran(written, base)
    corrected = corrected_sample(base, written, steps, folder, "Ada")
    assert corrected.query == "How much is green, doubled?"
    assert (corrected.reference, corrected.answer) == (base.reference, base.answer)


def test_a_calculation_after_a_label_is_made_again_with_the_label(base: Sample, folder: Path):
    fields = written_of(base)
    fields["steps"][1]["arguments"]["expression"] = "3 * g"
    fields["parts"][0]["value"] = "result"
    written = Written.model_validate(fields)
    steps = ran(written, base)
    assert steps[1].truth == {"value": 60.0}
    corrected = corrected_sample(base, written, steps, folder, "Ada")
    assert corrected.answer[0].model_dump()["value"] == 60.0


def test_a_changed_call_loses_its_label_and_the_reviewer_says_which_value_counts(
    base: Sample, folder: Path
):
    fields = written_of(base)
    fields["steps"][0]["arguments"]["region"] = [8, 12, 160, 180]
    written = Written.model_validate(fields)
    steps = ran(written, base)
    assert [step.truth for step in steps] == [None, None]
    with pytest.raises(CannotCompose, match="40 % ± 2 stands in the sample"):
        corrected_sample(base, written, steps, folder, "Ada")

    fields["parts"][0]["value"] = "result"
    by_tool = corrected_sample(base, Written.model_validate(fields), steps, folder, "Ada")
    assert by_tool.answer[0].model_dump()["value"] == 34.0
    assert by_tool.answer[0].model_dump()["abs_tol"] == 2.0
    assert by_tool.metadata["corrected"][0]["by"] == "Ada"

    fields["parts"][0]["value"] = "label"
    by_label = corrected_sample(base, Written.model_validate(fields), steps, folder, "Ada")
    assert by_label.answer[0].model_dump()["value"] == 40.0
    assert by_label.metadata["corrected"][0]["labels_kept"] == ["green"]
    assert base.reference is not None
    assert by_label.reference is not None
    # The label is the truth of the changed call as well, so that exact tools reach the answer.
    kept, stood = by_label.reference.steps[0].truth, base.reference.steps[0].truth
    assert kept is not None
    assert stood is not None
    assert {name: kept[name] for name in stood} == stood


def _refused(base: Sample, folder: Path, fields: dict[str, Any], share: float = 17.0) -> str:
    """Why a correction is refused whose reviewer keeps the value of the sample."""
    fields["parts"][0]["value"] = "label"
    written = Written.model_validate(fields)
    with pytest.raises(CannotCompose) as refused:
        corrected_sample(base, written, ran(written, base, share), folder, "Ada")
    assert "Keep the label" not in str(refused.value.hint)
    return refused.value.message


def test_a_value_given_for_another_calculation_is_not_kept_as_a_label(base: Sample, folder: Path):
    fields = written_of(base)
    fields["steps"][1]["arguments"]["expression"] = "4 * g"
    written = Written.model_validate(fields)
    (state,) = part_states(written, ran(written, base), base.files, base)
    assert (state.state, bool(state.not_kept)) == ("differs", True)
    assert "another calculation" in _refused(base, folder, fields)

    # The calculation may also stand in the part, or be one more step.
    fields = written_of(base)
    fields["parts"][0]["from"] = "3 * steps[1].observation.value"
    assert "another calculation" in _refused(base, folder, fields)
    fields = written_of(base)
    value = {"$ref": "steps[1].observation.value"}
    more = {"tool": "calculate", "arguments": {"expression": "v / 2", "variables": {"v": value}}}
    fields["steps"].append(more)
    fields["parts"][0]["from"] = "steps[2].observation.value"
    assert "another calculation" in _refused(base, folder, fields, share=23.0)


def test_a_value_given_for_the_whole_picture_is_no_label_of_a_part_of_it(
    base: Sample, folder: Path
):
    fields = written_of(base)
    del fields["steps"][0]["arguments"]["region"]
    assert "something else" in _refused(base, folder, fields)


def test_a_part_whose_result_was_removed_needs_another_one(base: Sample, folder: Path):
    fields = written_of(base)
    fields["parts"][0]["from"] = ""
    assert "no result is chosen" in _refused(base, folder, fields)


def test_a_value_that_a_tool_measured_is_no_label_to_keep(base: Sample, folder: Path):
    measured = base.model_copy(update={"metadata": {**base.metadata, TOOL_VALUES: ["green"]}})
    fields = written_of(measured)
    fields["steps"][0]["arguments"]["region"] = [8, 12, 160, 180]
    assert "is a tool's" in _refused(measured, folder, fields)


def test_a_label_is_kept_wherever_its_steps_stand_now(base: Sample, folder: Path):
    fields = written_of(base)
    fields["steps"].insert(0, {"tool": "describe_region", "arguments": {"image": "image_1.png"}})
    fields["steps"][1]["arguments"]["region"] = [8, 12, 160, 180]
    share = {"$ref": "steps[1].observation.vegetation_pct"}
    fields["steps"][2]["arguments"]["variables"]["g"] = share
    fields["parts"][0] |= {"from": "steps[2].observation.value", "value": "label"}
    written = Written.model_validate(fields)
    (state,) = part_states(written, ran(written, base), base.files, base)
    assert (state.state, state.not_kept) == ("differs", "")


def test_a_chart_whose_call_changed_is_not_kept_as_it_was(tmp_path: Path):
    share = {"$ref": "steps[0].observation.vegetation_pct"}

    def drawn(second: float) -> dict[str, Any]:
        series = [{"name": "share", "x": ["p", "q"], "y": [17.0, second]}]
        return {"kind": "bar", "series": series, "legend": False, "title": "Shares"}

    def call(second: float) -> dict[str, Any]:
        series = [{"name": "share", "x": ["p", "q"], "y": [share | {"value": 17.0}, second]}]
        return {"kind": "bar", "series": series, "title": "Shares"}

    measured = {
        "tool": "describe_region",
        "arguments": {"image": "image_1.png"},
        "observation": {"result": {"vegetation_pct": 17.0}},
    }
    plot = {"tool": "plot", "arguments": call(5), "observation": {"result": {"spec": drawn(5)}}}
    from_ = "steps[1].observation.spec"
    answer = {"type": "plot", "name": "chart", "label": "chart", "value": drawn(5), "from": from_}
    folder = green_blocks(
        tmp_path / "charts", 1, reference={"steps": [measured, plot]}, answer=[answer],
        answer_type="plot", no_tool_eligible=False,
    )  # fmt: skip
    sample = open_material(str(folder)).sample("rows-0001")
    assert sample is not None
    fields = written_of(sample)
    fields["steps"][1]["arguments"]["series"][0]["y"][1] = 50
    written = Written.model_validate(fields)
    changed = {**plot, "arguments": call(50), "observation": {"result": {"spec": drawn(50)}}}
    made = [ReferenceStep.model_validate(each) for each in (measured, changed)]
    steps = steps_with_truth(made, written.steps, sample)
    with pytest.raises(CannotCompose, match="another calculation"):
        corrected_sample(sample, written, steps, folder, "Ada")
    fields["parts"][0]["value"] = "result"
    taken = corrected_sample(sample, Written.model_validate(fields), steps, folder, "Ada")
    assert taken.answer[0].model_dump()["value"]["series"][0]["y"] == [17.0, 50.0]


def test_references_follow_their_steps(base: Sample):
    assert renumbered_text("steps[0].observation.a + steps[1].observation.b", {0: 1, 1: 0}) == (
        "steps[1].observation.a + steps[0].observation.b"
    )
    fields = written_of(base)
    extra = {"tool": "describe_region", "arguments": {"image": "image_1.png"}, "was": None}
    fields["steps"].insert(0, extra)
    share = {"$ref": "steps[1].observation.vegetation_pct"}
    fields["steps"][2]["arguments"]["variables"]["g"] = share
    written = Written.model_validate(fields)
    truths = [step.truth for step in ran(written, base)]
    assert truths[0] is None
    assert truths[1] == {"vegetation_pct": 20.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query": " "}, "query"),
        ({"parts": []}, "no parts"),
        ({"task_type": "weed_crop_areas"}, "unknown task type"),
    ],
)
def test_a_sample_with_a_fault_is_refused_with_the_fault(
    base: Sample, folder: Path, changes: dict[str, Any], said: str
):
    written = Written.model_validate(written_of(base) | changes)
    with pytest.raises(CannotCompose, match=said):
        corrected_sample(base, written, ran(written, base), folder, "Ada")


def test_a_version_is_a_new_content_on_which_earlier_decisions_do_not_count(folder: Path):
    material = open_material(str(folder))
    sample = material.sample("rows-0001")
    assert sample is not None
    journal = ReviewJournal(material.journal)
    accepted = {"sample": sample.id, "reviewer": "Bo", "verdict": "accept"}
    journal.append(Decision(id="0" * 8, content=content_of(sample), **accepted))
    changed = sample.model_copy(update={"query": "How much is green, doubled?"})
    assert material.versions is not None
    material.versions.append(version(changed, content_of(sample)))
    material.update()
    shown = material.sample("rows-0001")
    assert shown is not None
    assert shown.query == "How much is green, doubled?"
    summary = summary_of(material.contents, journal.decisions(), corrected=material.corrected)
    assert (summary.standings["accepted"], summary.outdated, summary.corrected) == (0, 1, 1)
    assert {"text": "corrected on the page: 1"} in review_parts(summary)
    assert len(journal.lines()) == 1

    # Another process sees it, and a version of a content that is no longer there is not applied.
    later = changed.model_copy(update={"query": "Later?"})
    material.versions.append(version(later, content_of(sample), 2))
    again = open_material(str(folder))
    assert again.contents == material.contents
    assert any("1 correction" in note for note in again.notes)


def test_versions_and_new_questions_are_in_the_folder_that_apply_writes(
    folder: Path, tmp_path: Path
):
    material = open_material(str(folder))
    sample = material.sample("rows-0001")
    assert sample is not None
    assert material.versions is not None
    changed = sample.model_copy(update={"query": "How much is green, doubled?"})
    new = sample.model_copy(update={"id": "written-1", "query": "What share is green, doubled?"})
    material.versions.append(version(changed, content_of(sample)))
    material.versions.append(version(new, "", 2))
    material.update()
    applied = apply_review(material, [], tmp_path / "new")
    assert (applied.corrected, applied.written, applied.faults) == (
        ("rows-0001",),
        ("written-1",),
        (),
    )
    lines = (tmp_path / "new" / "samples.jsonl").read_text().splitlines()
    queries = {each["id"]: each["query"] for each in map(json.loads, lines)}
    assert queries["rows-0001"] == "How much is green, doubled?"
    assert queries["written-1"] == "What share is green, doubled?"
    assert len(queries) == 3
    reject = {"sample": "written-1", "reviewer": "Bo", "verdict": "reject", "reason": "vague"}
    rejected = Decision(id="1" * 8, content=content_of(new), **reject)
    again = apply_review(material, [rejected], tmp_path / "other")
    assert (again.written, again.dropped) == ((), {"vague": ("written-1",)})


def test_a_line_that_a_crash_cut_off_is_removed_by_the_next_version(folder: Path, base: Sample):
    versions = Versions(folder / "review.written")
    versions.append(version(base, content_of(base)))
    path = folder / "review.written" / "versions.jsonl"
    with path.open("a") as file:
        file.write('{"id": "00000002", "sam')
    assert Versions(folder / "review.written").update({base.id: content_of(base)}).keys() == {
        base.id
    }
    assert not versions.append(version(base, content_of(base)))
    assert versions.append(version(base, content_of(base), 3))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [
        "00000001",
        "00000003",
    ]


def test_unfinished_work_is_kept_by_reviewer_and_never_replaced_by_an_older_state(tmp_path: Path):
    work = UnfinishedWork(tmp_path)

    def state(edited: int, text: str | None, reviewer: str = "Ada") -> Unfinished:
        content = None if text is None else {"query": text}
        return Unfinished(key="rows-1", reviewer=reviewer, edited=edited, state=content)

    assert work.keep(state(2, "second"))
    assert not work.keep(state(1, "first"))
    assert work.keep(state(1, "of Bo", "Bo"))
    again = UnfinishedWork(tmp_path)
    kept = again.get("Ada", "rows-1")
    assert kept is not None
    assert kept.state == {"query": "second"}
    assert [each.reviewer for each in again.of("Bo")] == ["Bo"]
    assert again.keep(state(3, None))
    assert again.get("Ada", "rows-1") is None
    assert not again.keep(state(2, "second"))


async def test_a_variable_without_a_value_is_named_before_anything_runs(base: Sample, folder: Path):
    fields = written_of(base)
    fields["steps"][1]["arguments"]["variables"]["limit"] = ""
    written = Written.model_validate(fields)
    runner = StepRunner(folder, toolset=["describe_region", "calculate"])
    with pytest.raises(CannotCompose, match=r"step 2 \(calculate\): limit has no value"):
        await run_steps(written, base.files, runner, base)
