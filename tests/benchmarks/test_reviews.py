"""Reviews of the questions of our own benchmarks: recorded decisions are on the questions that ship."""

import pytest

from agrotools.loading.benchmarks import Loading, load_as
from agrotools.loading.describing import describe
from agrotools.loading.pack import read_pack
from agrotools.packages import packaged_file
from agrotools_build.review.agreement import Decision
from agrotools_build.review.material import facts_of_sample


@pytest.mark.parametrize("name", ["embedded", "field"])
def test_two_reviewers_accepted_each_question_as_it_ships(name):
    lines = packaged_file(f"{name}.review.jsonl").read_text("utf-8").splitlines()
    pack, decisions = read_pack(name), [*map(Decision.model_validate_json, lines)]
    contents = {sample.id: facts_of_sample(sample, ()).content for sample in pack.samples}
    reviewed = pack.header.quick if name == "embedded" else contents
    reviewers = {each.reviewer for each in decisions}
    assert len(reviewers) == 2
    assert not any(each.person for each in decisions)
    assert {each.verdict for each in decisions} == {"accept"}
    assert {(each.sample, each.reviewer) for each in decisions} >= {
        (one, who) for one in reviewed for who in reviewers
    }
    assert [each.sample for each in decisions if contents[each.sample] != each.content] == []


def test_description_says_who_reviewed():
    benchmark = load_as("field", Loading(questions_only=True))
    assert describe(benchmark).reviewed == {"people": 0, "models": len(benchmark.samples)}
