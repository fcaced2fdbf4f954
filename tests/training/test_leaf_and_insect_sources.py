"""Readers of snapshots that show leaves and insects: names of files become labels and places."""

import pytest
from field_sources import mango, rice_pests

from agrotools.knowledge.entries import load


def test_a_pause_of_more_than_ten_minutes_begins_a_session():
    paths = [
        "a/IMG_20211106_120000 (Custom).jpg",
        "b/20211106_120900.jpg",
        "a/20211106_122000.jpg",
        "a/20211107_000100.jpg",
    ]
    sessions = mango._sessions(paths)
    assert [sessions[path] for path in paths] == [
        "2021-11-06_1200",
        "2021-11-06_1200",
        "2021-11-06_1220",
        "2021-11-07_0001",
    ]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("brown_0246_jpg.rf.5d6c02b.jpg", 246),
        ("rice_leaf_roller_77_dataset_0471_jpg.rf.0a1.jpg", 471),
        ("rice_bug_97_dataset_0369_JPG.rf.77.jpg", 369),
    ],
)
def test_the_number_of_a_picture_is_the_last_one_of_its_own_name(name, number):
    assert rice_pests._number(f"train/images/{name}") == number


def test_outlines_are_no_boxes():
    text = "5 0.5 0.5 0.25 0.5\n6 0.1 0.1 0.2 0.1 0.2 0.2\n\n"
    assert rice_pests._boxes(text) == [("5", 0.25, 0.5)]


def test_pictures_of_one_session_are_one_place():
    assert rice_pests._session("brown", 295) == rice_pests._session("brown", 317) != ""
    assert rice_pests._session("rice_bug", 370) == ""


def test_labels_are_entries_of_the_knowledge_base():
    known = {entry.id for entry in load().entries}
    assert {f"pest.{label}" for label in rice_pests._LABELS.values()} <= known
