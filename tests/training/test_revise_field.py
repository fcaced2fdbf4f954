"""Revision of the questions of ``field``: what stays of a question whose part describes its pictures anew."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "training"))

from revise_field import terms_of, with_notes_of

from agrotools.core import SampleFile
from agrotools.loading.pack import read_pack

pytestmark = pytest.mark.unit


def _file(digest: str, note: str, name: str = "image_1.jpg") -> SampleFile:
    return SampleFile(
        name=name, path=f"files/{digest}.jpg", sha256=digest * 64, kind="image", note=note
    )


def test_a_kept_question_gets_the_notes_of_today_by_picture():
    asked = (_file("a", "One leaf."), _file("b", "A tree.", "image_2.jpg"))
    today = (_file("a", "One leaf. Shares are of the whole leaf."),)
    kept = with_notes_of(today, asked)
    assert [each.note for each in kept] == ["One leaf. Shares are of the whole leaf.", "A tree."]
    assert [each.name for each in kept] == ["image_1.jpg", "image_2.jpg"]


def test_sources_and_terms_are_those_of_the_data_sets_that_are_asked_about():
    pack = read_pack("field")
    terms = terms_of(pack.described["data_sets"])
    assert terms == {"sources": pack.header.sources, "licence": pack.header.licence}
