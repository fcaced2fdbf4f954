"""What becomes of chains that do not run to their end, and how difficult the samples are."""

from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image

from agrotools.core import (
    BenchmarkError,
    BooleanSlot,
    ExactSlot,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    ToleranceSlot,
)
from agrotools.core.errors import ErrorInfo
from agrotools.core.files import sha256_of_file
from agrotools_build.building import Group, build_samples, measured_difficulty, with_levels
from agrotools_build.choosing import Chosen
from agrotools_build.references import ChainBroken, PlannedCall, build_notes, check_observed
from agrotools_build.templates.template import Template
from agrotools_build.templates.thing import QuestionInstance, Subject
from agrotools_tools import AGROTOOLS
from support.caches import separate_cache
from support.plain_sample import plain_sample

_QUESTION = Template.model_validate(
    {
        "template": "t", "task_type": "crop_disease", "of": "x", "answer_type": "exact", "wordings": ["Is it so?"],
        "slots": [{"type": "boolean", "name": "so", "label": "so", "from": "@0.best == 'a'"}],
    }
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    separate_cache(monkeypatch, tmp_path / "cache")


@pytest.fixture
def root(tmp_path):
    noise = np.random.default_rng(1).integers(0, 255, (80, 80, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    return tmp_path


def _chosen(
    call: PlannedCall,
    path: str = "a.png",
    truth: bool = True,
    digest: str | None = None,
    wording: str = "Is it so?",
) -> Chosen:
    files = (SampleFile(name="image_1.png", path=path, kind="image", sha256=digest),)
    slot = BooleanSlot.model_validate(
        {"name": "so", "label": "so", "value": truth, "from": "steps[0].observation.best == 'a'"}
    )
    asked = QuestionInstance(files, (call,), (slot,), "exact", {})
    return Chosen(Subject("s", 1, lambda *_: None), _QUESTION, asked, wording)


def _call(**arguments) -> PlannedCall:
    return PlannedCall(
        "diagnose_pest_disease", {"image": "image_1.png", **arguments}, {"best": "a"}
    )


def test_a_lacking_model_keeps_the_sample_and_is_counted_and_what_cannot_be_read_is_dropped(root):
    digest = sha256_of_file(root / "a.png")
    lacking = _chosen(_call(kind="pest"), digest=digest)
    other = _chosen(_call(kind="pest"), digest=digest, wording="Is that so?")
    unreadable = _chosen(_call(kind="pest"), "broken.png")
    wrong = _chosen(_call(kind="pest"), truth=False)
    groups = [Group("p", "s", [unreadable, lacking, wrong, other])]
    samples, tally = build_samples(groups, root, toolset=AGROTOOLS)
    assert [sample.id for sample in samples] == ["p-001", "p-002"]
    observed = samples[0].reference.steps[0]
    assert (observed.observation.error.kind, observed.truth) == (
        "backend_unavailable",
        {"best": "a"},
    )
    assert tally.metadata() == {
        "dropped": {
            "diagnose_pest_disease: unreadable_file": 1,
            "true values do not give its answer": 1,
        },
        "needs_backend": {"diagnose_pest_disease": 2},
    }
    lines = build_notes(tally.metadata())
    assert any("packs train" in line and "2 samples" in line for line in lines)
    assert any("1 diagnose_pest_disease: unreadable_file" in line for line in lines)


def test_questions_that_fail_the_check_are_dropped_with_their_reason(root):
    digest = sha256_of_file(root / "a.png")
    sound = _chosen(_call(kind="pest"), digest=digest)
    again = _chosen(_call(kind="pest"), digest=digest)
    told = _chosen(_call(kind="pest"), digest=digest, wording="Use diagnose_pest_disease. So?")
    samples, tally = build_samples([Group("p", "s", [sound, again, told])], root, toolset=AGROTOOLS)
    assert [sample.query for sample in samples] == ["Is it so?"]
    (repeated, named) = sorted(tally.dropped)
    assert "duplicate_question" in repeated
    assert "tool_in_query" in named
    assert any("duplicate_question" in line for line in build_notes(tally.metadata()))


def test_a_build_of_which_most_chains_break_fails_and_says_how(root):
    chosen = [
        _chosen(_call(), "broken.png"),
        _chosen(_call(), "broken.png"),
        _chosen(_call(kind="pest")),
    ]
    with pytest.raises(
        BenchmarkError, match=r"2 of 3 chains of calls broke.*no known image format"
    ) as raised:
        build_samples([Group("p", "s", chosen)], root, toolset=AGROTOOLS)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("kind", "argument", "follows", "breaks"),
    [
        ("nothing_found", None, False, False), ("low_confidence", None, False, False),
        ("shape_mismatch", None, False, False), ("backend_unavailable", None, False, False),
        ("invalid_argument", None, False, True), ("invalid_argument", None, True, False),
        ("region_empty", None, True, False), ("tool_failed", None, True, True), ("timeout", None, True, True),
        ("limit", None, False, True), ("missing_metadata", "scale_marker", False, False),
        ("missing_metadata", "gsd_m", False, True), ("invalid_argument", "scale_marker", False, True),
    ],
)  # fmt: skip
def test_answers_about_the_picture_stay_and_breakdowns_go(kind, argument, follows, breaks):
    error = ErrorInfo(kind=kind, message="so it is", argument=argument)
    with pytest.raises(ChainBroken) if breaks else nullcontext() as raised:
        check_observed(0, "a_tool", error, follows=follows)
    assert not breaks or raised.value.reason == f"a_tool: {kind}"


def test_a_share_that_was_not_reached_is_told_with_its_reason():
    metadata = {
        "shares": {"a": {"wanted": 5, "made": 5}, "b": {"wanted": 9, "made": 4, "why": "4 broke"}}
    }
    assert build_notes(metadata) == ["b: 4 of 9 samples (4 broke)"]


FILES = tuple(SampleFile(name=f"image_{k}.png", path=f"{k}.png", kind="image") for k in (1, 2, 3))


def _measured(first: float, second: float) -> dict[str, float]:
    """Difficulty of the larger of two counts, and of their sum within 3."""
    steps = tuple(
        ReferenceStep(tool="count_objects", arguments={"image": file.name}, truth={"count": count})
        for file, count in zip(FILES, (first, second), strict=False)
    )
    larger = "'one' if steps[0].observation.count > steps[1].observation.count else 'two'"
    name = "one" if first > second else "two"
    slots = (
        ExactSlot.model_validate(
            {"name": "larger", "label": "larger", "value": name, "from": larger}
        ),
        ToleranceSlot.model_validate(
            {"name": "sum", "label": "sum", "value": first + second, "abs_tol": 3.0}
        ),
    )
    return measured_difficulty(
        QuestionInstance(FILES, (), slots, "exact", {}), ReferenceTrajectory(steps=steps)
    )


def test_levels_rank_samples_by_calls_unused_files_and_margin():
    assert _measured(11.0, 10.0)["margin"] == 0.05
    assert _measured(2.0, 8.0)["margin"] == pytest.approx(0.3)
    assert _measured(2.0, 8.0) | {"margin": 0} == {
        "calls": 2,
        "tools": 1,
        "files": 3,
        "unused_files": 1,
        "margin": 0,
    }
    measures = [
        {"calls": 1.0, "unused_files": 0.0, "margin": 0.5},
        {"calls": 6.0, "unused_files": 2.0, "margin": 0.05},
        {"calls": 3.0, "unused_files": 0.0, "margin": 0.2},
        {"calls": 3.0, "unused_files": 0.0, "margin": 0.2},
    ]
    ranked = with_levels(
        [plain_sample(f"s{k}", difficulty=each) for k, each in enumerate(measures)]
    )
    assert [sample.difficulty["level"] for sample in ranked] == [0.0, 1.0, 0.5, 0.5]
    assert with_levels([]) == []
