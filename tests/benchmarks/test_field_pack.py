"""What the packed benchmark ``field`` promises: its size, and that no source, type or photograph counts too much."""

from collections import Counter, defaultdict
from statistics import fmean

import pytest

from agrotools.core import Sample
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.scoring.constants import ConstantScores
from agrotools.scoring.metrics import counts_in_guess
from agrotools.scoring.slots import guess_points
from agrotools_benchmarks.field.load import _weighted_as_quick_part
from agrotools_benchmarks.field.pack import read_head, read_samples
from agrotools_build.deciding import count_deciding

LARGEST_SHARE = 0.1
"""Of the weight in every mean that a source, or a task type, may have."""
MOST_OF_A_SOURCE = 100
"""Questions of a source, unanswerable twins counted."""
MOST_OF_A_PHOTOGRAPH = 4
"""Answerable questions about a photograph."""
MOST_OF_A_CONSTANT = 0.1
"""Of the score, by which the best constant answers may beat guesses in a task type."""


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return read_samples()


def test_there_are_enough_questions_photographs_clusters_and_sources(samples):
    assert len(samples) >= 1189
    assert len({file.sha256 for sample in samples for file in sample.files}) >= 982
    assert len({sample.cluster for sample in samples}) >= 332
    assert len({sample.source for sample in samples}) >= 35


def test_every_question_says_that_a_refusal_is_possible_and_some_need_one(samples):
    assert all(sample.may_abstain for sample in samples)
    assert sum(not sample.answerable for sample in samples) >= 108


@pytest.mark.parametrize("kind", ["source", "task_type"])
def test_no_source_and_no_task_type_weighs_more_than_a_tenth(samples, kind):
    weight_of: Counter[str] = Counter()
    for sample in samples:
        weight_of[getattr(sample, kind)] += sample.weight
    assert max(weight_of.values()) <= LARGEST_SHARE * sum(weight_of.values())


def test_no_source_and_no_photograph_is_asked_about_too_often(samples):
    assert max(Counter(sample.source for sample in samples).values()) <= MOST_OF_A_SOURCE
    shown = Counter(file.sha256 for sample in samples if sample.answerable for file in sample.files)
    assert max(shown.values()) <= MOST_OF_A_PHOTOGRAPH


def test_each_agricultural_tool_is_in_a_reference(samples):
    used = {step.tool for sample in samples for step in sample.reference.steps}
    assert used == {*read_head().header.toolset}
    assert len(used) == 14


def test_places_that_are_no_farm_are_a_named_part(samples):
    kinds = {sample.groups["no farm"] for sample in samples if "no farm" in sample.groups}
    assert kinds == {
        "trees of towns",
        "crowns of forests",
        "heights of forests",
        "changes of suburbs",
    }


def test_no_constant_answer_is_far_above_guessing_in_any_task_type(samples):
    scores, guesses = ConstantScores(), list[float]()
    asked = [each for each in samples if each.answerable and any(map(counts_in_guess, each.answer))]
    for number, sample in enumerate(asked):
        guess = guess_points(sample)
        scores.add(number, sample, guess)
        guesses.append(guess.score)
    constants = scores.by_sample()
    gains: defaultdict[str, list[float]] = defaultdict(list)
    for number, sample in enumerate(asked):
        gains[sample.task_type].append(constants[number] - guesses[number])
    too_easy = {
        name: fmean(each) for name, each in gains.items() if fmean(each) > MOST_OF_A_CONSTANT
    }
    assert too_easy == {}


def test_many_questions_need_several_tools_whose_result_decides(samples):
    counts = count_deciding(samples)
    assert counts is not None
    assert counts.deciding >= 0.95 * counts.calls
    several = sum(n for tools, n in counts.tools_per_question.items() if int(tools) > 1)
    assert several >= 0.45 * counts.questions


def test_every_file_has_an_address_of_a_fixed_commit():
    for file in read_head().files:
        assert len(file.commit) == 40
        assert file.source


def test_task_types_weigh_the_same_in_the_quick_part_too():
    benchmark = load_as("field", Loading(questions_only=True))
    quick = {*benchmark.header.quick}
    weighted = _weighted_as_quick_part(benchmark)
    assert weighted.content_hash == benchmark.content_hash
    weight_of: Counter[str] = Counter()
    for sample in weighted.samples:
        if sample.id in quick:
            weight_of[sample.task_type] += sample.weight
    assert len(weight_of) == 12
    assert max(weight_of.values()) < 1.01 * min(weight_of.values())
