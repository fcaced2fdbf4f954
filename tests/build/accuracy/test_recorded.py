import pytest

from agrotools.build.accuracy.recorded import compare_fields
from agrotools.core import BooleanSlot, Observation, ReferenceStep, ReferenceTrajectory, Sample, SampleFile


def _sample(number, *steps):
    return Sample(
        id=f"s-{number}",
        query="?",
        files=(SampleFile(name="image_1.jpg", path=f"files/{number}.jpg", kind="image"),),
        family="CM",
        task_type="tree_counting",
        answer_type="exact",
        template="t",
        source="s",
        toolset=("count_objects",),
        reference=ReferenceTrajectory(steps=steps),
        answer=(BooleanSlot(name="a", label="a", value=True),),
    )


def _step(tool, truth, result):
    return ReferenceStep(
        tool=tool, arguments={"image": "image_1.jpg"}, truth=truth, observation=Observation(result=result)
    )


def test_truth_beside_observation_each_distinct_call_once():
    counted = _step("count_objects", {"count": 10}, {"count": 12})
    boxes = [{"regions": [{"box": box}]} for box in ([0, 0, 10, 10], [0, 0, 10, 5])]
    samples = [
        _sample(1, counted),
        _sample(1, counted),
        _sample(2, _step("count_objects", {"count": 0}, {"count": 3})),
        _sample(3, _step("extract_marked_region", *boxes)),
        _sample(4, _step("detect_change", {"changed": True}, {"changed": None})),
    ]
    rows = {(row.tool, row.kind): row for row in compare_fields(samples)}
    absolute = rows["count_objects", "difference"]
    assert (absolute.figure, absolute.n) == (2.5, 2)
    relative = rows["count_objects", "relative, %"]
    assert (relative.figure, relative.n) == (pytest.approx(20), 1)
    assert rows["extract_marked_region", "IoU"].figure == pytest.approx(0.5)
    unsaid = rows["detect_change", "equal, %"]
    assert (unsaid.figure, unsaid.n, unsaid.without) == (None, 0, 1)


def test_a_name_is_compared_by_its_entry_and_abstaining_leaves_it_open():
    truth = {"best": "a", "abstained": False, "candidates": [{"kb_id": "disease.a", "label": "a"}]}
    right = {"abstained": False, "candidates": [{"kb_id": "disease.a"}, {"kb_id": "disease.b"}]}
    wrong = {"abstained": False, "candidates": [{"kb_id": "disease.b"}]}
    steps = [_step("diagnose_pest_disease", truth, result) for result in (right, wrong, {**right, "abstained": True})]
    (row,) = compare_fields(_sample(number, step) for number, step in enumerate(steps))
    assert (row.figure, row.n, row.without) == (50.0, 2, 1)
