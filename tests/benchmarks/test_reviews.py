"""Reviews of the questions of our own benchmarks: recorded decisions are on the questions that ship."""

import pytest

from agrotools.benchmarks.loading import Loading, load_as
from agrotools.benchmarks.describing import describe
from agrotools.benchmarks.pack import pack_path
from agrotools.build.review.agreement import Decision
from agrotools.build.review.material import facts_of_sample


@pytest.mark.parametrize("name", ["embedded", "field"])
def test_two_reviewers_accepted_each_question_as_it_ships(name):
    benchmark = load_as(name, Loading(questions_only=True))
    reviewed = benchmark.header.quick if name == "embedded" else [sample.id for sample in benchmark.samples]
    contents = {sample.id: facts_of_sample(sample, ()).content for sample in benchmark.samples}
    lines = pack_path(name).with_name(f"{name}.review.jsonl").read_text("utf-8").splitlines()
    decisions = [Decision.model_validate_json(line) for line in lines]
    assert {(each.sample, each.reviewer) for each in decisions} == {
        (sample, reviewer) for sample in reviewed for reviewer in {each.reviewer for each in decisions}
    }
    assert len({each.reviewer for each in decisions}) == 2
    assert {each.verdict for each in decisions} == {"accept"}
    assert [each.sample for each in decisions if contents[each.sample] != each.content] == []
    assert describe(benchmark).reviewed == {"people": 0, "models": len(reviewed)}
