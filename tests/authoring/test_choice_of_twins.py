"""Which twins a benchmark gets: few with empty files, and those whose reason people see though the tools do not."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import AbstainSlot
from agrotools_build.building import Group, build_samples
from agrotools_build.choosing import Chosen
from agrotools_build.sources.drawn import save_jpeg
from agrotools_build.sources.part import Originals, named, photo_thing
from agrotools_build.templates import Thing, load_templates
from agrotools_build.templates.thing import Subject
from agrotools_build.twins import unanswerable_twin, with_twin
from agrotools_tools import AGROTOOLS

sys.path.append(str(Path(__file__).resolve().parents[2] / "training"))

LEAF = {"leaf_area_px": 400, "lesion_area_px": 40, "severity_pct": 10.0}


@pytest.fixture
def originals(tmp_path: Path) -> Originals:
    (tmp_path / "files").mkdir()
    for name, shade in (("leaf", 90), ("half", 120), ("black", 4)):
        photo = np.full((60, 80, 3), 230, np.uint8)
        photo[15:45, 20:60] = (40, shade, 40)
        save_jpeg(tmp_path / f"{name}.jpg", photo)
    return Originals(tmp_path / "files")


def asked(originals: Originals, folder: Path, number: int, *, cut: bool = False) -> Chosen:
    """A question on the share of a leaf, which may be shown cut in half, and may be blank."""
    leaf, half, black = (
        originals.file(folder / f"{name}.jpg", note="One leaf.")
        for name in ("leaf", "half", "black")
    )

    def shown(_: int, place: int) -> Thing:
        return photo_thing(
            named(leaf, "image", place), "analyze_lesions", LEAF, "I need the share."
        )

    question = next(each for each in load_templates("leaf") if each.things == 1)
    instance = question.instantiate((shown(0, 1),), np.random.default_rng(3))
    assert instance is not None
    instead = {"part": {leaf.path: half}} if cut else {}
    subject = Subject(f"leaf-{number}", 1, shown, of=question.of, instead=instead)
    blank = {"path": black.path, "sha256": black.sha256}
    subject = replace(subject, blank=lambda file: file.model_copy(update=blank))
    return Chosen(subject, question, instance, question.wordings[number % len(question.wordings)])


def test_of_many_questions_only_one_in_eight_twins_has_an_empty_file(originals, tmp_path) -> None:
    from paired import with_twins

    items = [asked(originals, tmp_path, number, cut=number % 2 == 0) for number in range(12)]
    assert all(unanswerable_twin(item) for item in items)
    chosen = with_twins(items, share=0.45)
    twins = [each for each in chosen if any(isinstance(slot, AbstainSlot) for slot in each.slots)]
    empty = [each for each in twins if each.instance.has_empty_file]
    assert len(twins) > 5
    assert 8 * len(empty) <= len(twins)


def test_a_twin_that_people_see_through_and_tools_do_not_stays_only_where_people_decide(
    originals, tmp_path
) -> None:
    pair = with_twin(asked(originals, tmp_path, 0, cut=True))
    assert len(pair) == 2
    for stored, path in originals.files.items():
        (tmp_path / stored).write_bytes(path.read_bytes())
    groups = [Group("t", "made", pair)]
    kept, _ = build_samples(groups, tmp_path, toolset=AGROTOOLS, workers=1, people_decide=True)
    assert sorted(each.answerable for each in kept) == [False, True]
    twin = next(each for each in kept if not each.answerable)
    assert twin.reference is not None
    assert all(step.truth is None for step in twin.reference.steps)
    left, tally = build_samples(groups, tmp_path, toolset=AGROTOOLS, workers=1)
    assert [each.answerable for each in left] == [True]
    assert tally.dropped == {"the tools answer what has no answer": 1}
