"""Composing of a sample: values come from results, tolerances from the tools, and what cannot be made says why."""

import pytest

from agrotools.calling.services import run_now
from agrotools.core import ErrorInfo, Observation, ReferenceStep
from agrotools_build.composing import (
    CannotCompose,
    Composition,
    StepRunner,
    TraceStep,
    bound_slot,
    compose_sample,
    tolerance_of,
)
from agrotools_build.composing.binding import unit_of
from agrotools_build.composing.tolerance import tolerance_source
from support.composed import part, picture, ran

_LESIONS = {"severity_pct": 12.0, "severity_interval_pct": [10.0, 15.0], "n_lesions": 7}


def _lesions(**changes):
    return ran("analyze_lesions", {"image": "image_1.png"}, {**_LESIONS, **changes})


def _counted(count, image="image_1.png"):
    arguments = {"image": image, "target": "apple"}
    return ran("count_objects", arguments, {"count": count, "count_interval": None})


def _calculated(expression, value, **sources):
    variables = {name: {"$ref": source, "value": of} for name, (source, of) in sources.items()}
    return ran("calculate", {"expression": expression, "variables": variables}, {"value": value})


def _reason(call):
    with pytest.raises(CannotCompose) as raised:
        call()
    return raised.value.reason


@pytest.mark.unit
def test_the_name_of_a_field_states_its_unit():
    assert unit_of("lesions[0].area_mm2") == "mm2"
    assert unit_of("count") is None


@pytest.mark.unit
def test_the_interval_that_a_tool_states_is_the_tolerance():
    tolerance = tolerance_of("steps[0].observation.severity_pct", [_lesions()])
    assert tolerance == (2.5, 0.0, "interval")


@pytest.mark.unit
def test_without_an_interval_the_tolerance_of_the_quantity_counts():
    steps = [_lesions(severity_interval_pct=None)]
    tolerance = tolerance_of("steps[0].observation.severity_pct", steps)
    assert (tolerance.basis, tolerance.margin_of(12.0)) == ("quantity", pytest.approx(2.4))


@pytest.mark.unit
def test_the_errors_of_calculated_values_add_up_as_independent_ones():
    sources = {"a": ("steps[0].observation.count", 30), "b": ("steps[1].observation.count", 40)}
    calculated = _calculated("2 * (a + b)", 140, **sources)
    steps = [_counted(30), _counted(40, "image_2.png"), calculated]
    tolerance = tolerance_of("steps[2].observation.value", steps)
    assert (tolerance.basis, tolerance.abs_tol) == ("calculated", pytest.approx(10.0))


@pytest.mark.unit
def test_errors_of_one_tool_on_one_file_add_up():
    mean = "(steps[0].observation.severity_pct + steps[1].observation.severity_pct) / 2"
    tool, image = "analyze_lesions", "image_1.png"
    steps = [ran(tool, {"image": image, "mode": mode}, _LESIONS) for mode in ("lesions", "rust")]
    assert tolerance_of(mean, steps).abs_tol == pytest.approx(2.5)


@pytest.mark.unit
def test_the_error_of_a_number_counts_what_lies_between_the_ends_of_an_interval():
    # 18 and 22 leave the same remainder as 20, and 19 does not.
    tolerance = tolerance_of("100 + steps[0].observation.count % 2", [_counted(20)])
    assert tolerance.abs_tol >= 1


@pytest.mark.unit
def test_the_distance_of_a_label_to_the_interval_of_a_tool_is_no_error():
    step = _lesions().model_copy(update={"truth": {**_LESIONS, "severity_pct": 90.0}})
    assert tolerance_of("steps[0].observation.severity_pct", [step]).abs_tol == 2.5


@pytest.mark.unit
@pytest.mark.parametrize("expression", ["a * 0 + 42", "a * 0.000001 + 42"])
def test_a_number_that_does_not_rest_on_what_is_measured_has_no_tolerance(expression):
    steps = [_counted(30), _calculated(expression, 42, a=("steps[0].observation.count", 30))]
    assert _reason(lambda: tolerance_of("steps[1].observation.value", steps)) == "not_measured"


@pytest.mark.unit
def test_a_value_whose_error_no_tool_states_is_refused_with_those_it_states():
    with pytest.raises(CannotCompose) as raised:
        tolerance_of("steps[0].observation.n_lesions", [_lesions()])
    assert raised.value.reason == "no_stated_error"
    assert "severity_pct" in str(raised.value.hint)


@pytest.mark.unit
def test_a_calculated_number_is_written_without_the_noise_of_floats(tmp_path):
    from_ = "1 - steps[0].observation.severity_pct / 100"
    slot = bound_slot(part("number", from_), [_lesions(severity_pct=88.4)], [picture(tmp_path)])
    assert slot.value == 0.116
    third = "steps[0].observation.severity_pct / 3"
    slot = bound_slot(part("number", third), [_lesions(severity_pct=13.0)], [picture(tmp_path)])
    assert slot.value == pytest.approx(13 / 3, rel=1e-11)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("expression", "source"),
    [
        ("steps[0].observation.severity_pct", "analyze_lesions states 10 to 15"),
        ("steps[1].observation.count", "the stated error of count_objects"),
        ("2 * steps[1].observation.count", "calculated from count 30 ± 3 (the stated error of count_objects)"),
    ],
)  # fmt: skip
def test_a_tolerance_says_what_it_rests_on(expression, source):
    assert tolerance_source(expression, [_lesions(), _counted(30)]) == source


@pytest.mark.unit
def test_a_number_has_the_unit_of_its_field(tmp_path):
    written = part("number", "steps[0].observation.severity_pct", unit="kg")
    slot = bound_slot(written, [_lesions()], [picture(tmp_path)])
    assert (slot.value, slot.unit, slot.abs_tol) == (12.0, "%", 2.5)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("form", "from_", "reason"),
    [
        ("number", "42", "no_value"),
        ("number", "steps[0].observation.absent", "no_value"),
        ("number", "steps[4].observation.count", "no_value"),
        ("number", "steps[3].observation.best", "nothing_found"),
        ("yes_no", "steps[0].observation.count", "wrong_kind"),
        ("file", "steps[0].observation.count", "wrong_kind"),
        ("name", "steps[1].observation.best", "no_choices"),
        ("yes_no", "steps[0].observation.count > 29", "within_error"),
        ("yes_no", "steps[2].observation.count % 2 == 0", "within_error"),
    ],
)
def test_what_cannot_be_bound_says_why(tmp_path, form, from_, reason):
    steps = [
        _counted(30),
        ran("diagnose_pest_disease", {}, {"best": "rust"}),
        _counted(20),
        ran("diagnose_pest_disease", {}, {"best": None}),
    ]
    assert _reason(lambda: bound_slot(part(form, from_), steps, [picture(tmp_path)])) == reason


@pytest.mark.unit
def test_a_number_within_its_error_of_0_is_no_question(tmp_path):
    steps = [_counted(1)]
    written = part("number", "steps[0].observation.count")
    assert _reason(lambda: bound_slot(written, steps, [picture(tmp_path)])) == "error_too_large"


@pytest.mark.unit
def test_a_file_is_chosen_if_the_measured_values_are_far_apart(tmp_path):
    files = [picture(tmp_path, f"image_{number}.png", number) for number in (1, 2)]
    from_ = "'image_1.png' if steps[0].observation.count > steps[1].observation.count else 'image_2.png'"
    slot = bound_slot(part("file", from_), [_counted(30), _counted(10)], files)
    assert (slot.value, slot.choices) == ("image_1.png", ("image_1.png", "image_2.png"))


@pytest.mark.unit
def test_the_id_of_an_entry_is_one_of_the_choices_by_its_name(tmp_path):
    steps = [ran("diagnose_pest_disease", {}, {"best": "disease.coffee_leaf_rust"})]
    written = part(
        "name",
        "steps[0].observation.best",
        choices=("coffee leaf rust", "brown eye spot", "healthy"),
    )
    slot = bound_slot(written, steps, [picture(tmp_path)])
    assert slot.value == "coffee leaf rust"
    assert "disease.coffee_leaf_rust" in slot.names


@pytest.mark.unit
def test_a_name_of_a_table_is_known_by_its_other_names(tmp_path):
    steps = [ran("diagnose_pest_disease", {}, {"best": "disease.coffee_leaf_rust"})]
    written = part(
        "name", "steps[0].observation.best", choices=("rust", "spot"), aliases={"rust": ("coffee leaf rust",)}
    )  # fmt: skip
    assert bound_slot(written, steps, [picture(tmp_path)]).value == "rust"


@pytest.mark.unit
def test_a_sample_has_the_truth_of_its_labels_and_free_steps_in_a_group(tmp_path):
    files = tuple(picture(tmp_path, f"image_{number}.png", number) for number in (1, 2))
    first = _counted(30).model_copy(update={"truth": {"count": 31}})
    sources = {"a": ("steps[0].observation.count", 30), "b": ("steps[1].observation.count", 44)}
    second = _counted(44, "image_2.png")
    steps = (first, second, _calculated("b - a", 14, **sources))
    sample = compose_sample(
        Composition(
            id="draft-1",
            query="By how much does the second tree carry more?",
            files=files,
            task_type="organ_counting",
            steps=steps,
            parts=(part("number", "steps[2].observation.value"),),
        ),
        tmp_path,
    )
    assert (sample.answer[0].value, sample.family, sample.answer_type) == (13, "CM", "tolerance")
    assert [step.group for step in sample.reference.steps] == [0, 0, None]


@pytest.mark.unit
def test_a_failed_step_or_a_leak_gives_no_sample(tmp_path):
    written = Composition(
        id="draft-1",
        query="Are there 30 apples or more on this tree?",
        files=(picture(tmp_path),),
        task_type="organ_counting",
        steps=(_counted(30),),
        parts=(part("number", "steps[0].observation.count"),),
    )
    with pytest.raises(CannotCompose) as raised:
        compose_sample(written, tmp_path)
    assert (raised.value.reason, raised.value.message.split(":")[0]) == ("faults", "gold_in_query")
    refused = Observation(error=ErrorInfo(kind="nothing_found", message="no apple is seen"))
    failed = ReferenceStep(tool="count_objects", arguments={}, observation=refused)
    assert (
        _reason(lambda: compose_sample(written.model_copy(update={"steps": (failed,)}), tmp_path))
        == "call_fails"
    )


@pytest.mark.unit
def test_a_look_up_that_fails_on_what_a_label_says_gives_no_sample(tmp_path):
    named = ran("diagnose_pest_disease", {"image": "image_1.png"}, {"best": "disease.bean_rust"})
    named = named.model_copy(update={"truth": {"best": "a name of the table"}})
    query = {"$ref": "steps[0].observation.best", "value": "disease.bean_rust"}
    looked_up = ran("lookup_agronomy", {"kb_id": query}, {"hits": []})
    written = Composition(
        id="draft-1",
        query="What should I do about it?",
        files=(picture(tmp_path),),
        task_type="crop_disease",
        steps=(named, looked_up),
        parts=(part("name", "steps[0].observation.best"),),
    )
    assert _reason(lambda: compose_sample(written, tmp_path)) == "call_fails"


async def _traced(root, files, steps):
    async with StepRunner(root) as runner:
        return await runner.run_trace(files, steps)


@pytest.mark.process
def test_a_trace_runs_with_values_of_earlier_steps(tmp_path):
    files = (picture(tmp_path),)
    first = TraceStep(tool="calculate", arguments={"expression": "3 * 7"})
    variables = {"a": {"$ref": "steps[0].observation.value"}}
    second = TraceStep(tool="calculate", arguments={"expression": "a + 1", "variables": variables})
    unknown = TraceStep(tool="no_such_tool")
    steps = run_now(_traced(tmp_path, files, [first, second, unknown])).steps
    assert steps[1].observation.result["value"] == 22
    assert steps[1].arguments["variables"]["a"]["value"] == 21
    assert steps[2].observation.error.kind == "unknown_tool"


@pytest.mark.process
def test_a_step_cannot_refer_to_a_later_one(tmp_path):
    later = TraceStep(
        tool="calculate",
        arguments={"expression": "a", "variables": {"a": {"$ref": "steps[1].observation.value"}}},
    )
    with pytest.raises(CannotCompose, match=r"step 1 .* refers to step 2 ") as raised:
        run_now(_traced(tmp_path, (picture(tmp_path),), [later]))
    assert raised.value.reason == "call_fails"
