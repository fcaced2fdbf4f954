"""Reviews of the questions of our own benchmarks: recorded decisions are on the questions that ship."""

import pytest

from agrotools.loading.benchmarks import Loading, load_as
from agrotools.loading.describing import describe
from agrotools.loading.pack import read_pack
from agrotools.packages import packaged_file
from agrotools_build.review.agreement import Decision
from agrotools_build.review.versions import content_of

REVIEWED = {"embedded": 60, "field": 495}
"""Questions that both reviewers accepted, with the words, files and answers that ship."""


@pytest.mark.parametrize("name", REVIEWED)
def test_two_reviewers_accepted_these_questions_as_they_ship(name):
    lines = packaged_file(f"{name}.review.jsonl").read_text("utf-8").splitlines()
    decisions = [*map(Decision.model_validate_json, lines)]
    contents = {sample.id: content_of(sample) for sample in read_pack(name).samples}
    reviewers = {each.reviewer for each in decisions}
    reviewed = {each.sample for each in decisions}
    assert len(reviewers) == 2
    assert not any(each.person for each in decisions)
    assert {each.verdict for each in decisions} == {"accept"}
    assert len(reviewed) == REVIEWED[name]
    assert {(each.sample, each.reviewer) for each in decisions} == {
        (one, who) for one in reviewed for who in reviewers
    }
    assert [each.sample for each in decisions if contents.get(each.sample) != each.content] == []


def test_the_quick_part_of_embedded_was_reviewed():
    lines = packaged_file("embedded.review.jsonl").read_text("utf-8").splitlines()
    reviewed = {Decision.model_validate_json(line).sample for line in lines}
    assert reviewed >= {*read_pack("embedded").header.quick}


def test_description_says_who_reviewed():
    benchmark = load_as("field", Loading(questions_only=True))
    assert describe(benchmark).reviewed == {"people": 0, "models": REVIEWED["field"]}
