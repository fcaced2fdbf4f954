"""The floor ``guess``: an answer from the prompt alone, whatever the gold is."""

from agrotools.agents.baselines.simple import ImmediatePolicy, guessed_answer
from agrotools.core import Answer, Sample
from agrotools.models import Endpoint
from agrotools.runner.policies import policy_source
from agrotools.text import answer_form
from agrotools.text.answer_form import Guesser, GuessModel, guessed_values, prompt_features, shipped_model, slot_key
from support.small_sample import view_of

SLOTS = [
    {"name": "stage", "label": "stage", "type": "exact", "value": "severe", "choices": ["light", "moderate", "severe"]},
    {"name": "changed", "label": "it has changed", "type": "boolean", "value": True},
    {"name": "leaf", "label": "leaf", "type": "file", "value": "b.jpg", "choices": ["a.jpg", "b.jpg"]},
    {"name": "seen", "label": "seen", "type": "choice_set", "value": ["rust"], "choices": ["rust", "smut"]},
    {"name": "share", "label": "share", "type": "tolerance", "value": 31.0, "unit": "%", "abs_tol": 1.0},
]
OTHER_GOLD = [
    {"value": "light"}, {"value": False}, {"value": "a.jpg"}, {"value": ["smut"]}, {"value": 77.0, "abs_tol": 9.0},
]  # fmt: skip


def sample_of(slots: list[dict[str, object]]) -> Sample:
    return Sample.model_validate({
        "id": "leaf-1", "query": "How sick is it, over 12 % or not?", "family": "SI", "task_type": "lesion_severity",
        "answer_type": "exact", "template": "t", "source": "s", "toolset": [], "answer": slots,
        "files": [{"name": "a.jpg", "path": "a.jpg", "kind": "image", "width_px": 800, "height_px": 600},
                  {"name": "b.jpg", "path": "b.jpg", "kind": "image"}],
    })  # fmt: skip


def test_gold_changes_no_guess():
    first = sample_of(SLOTS)
    second = sample_of([{**slot, **gold} for slot, gold in zip(SLOTS, OTHER_GOLD, strict=True)])
    guesses = guessed_values(first, first.answer)
    assert guesses == guessed_values(second, second.answer)
    assert set(guesses) == {"stage", "changed", "leaf", "seen", "share"}
    assert answer_form(first.answer) == answer_form(second.answer)


async def test_the_policy_answers_at_once_and_is_not_privileged(tmp_path):
    sample = sample_of(SLOTS)
    assert policy_source(Endpoint("baseline:guess"), [sample]).privileged is False
    assert (
        policy_source(Endpoint("baseline:prior"), [sample]).privileged is True
    )  # It learns from the gold of other samples.
    action = await ImmediatePolicy(sample, guessed_answer).act(view_of(sample, tmp_path), [])
    assert isinstance(action, Answer)
    assert [line.partition(":")[0] for line in action.text.splitlines()] == [slot["name"] for slot in SLOTS]


def test_a_linear_model_reads_words_and_numbers_of_the_question():
    import numpy as np

    sample = sample_of(SLOTS)
    size = len(prompt_features(sample.query, sample.files))
    number = size - 13  # The first number of the question, behind the hashed words.
    weights = np.zeros((size + 1, 1), np.float32)
    weights[number] = 1.0
    guesser = Guesser(5.0, weights=weights, logarithm=True, low=0.0, high=10.0)
    model = GuessModel({slot_key(sample.answer[4]): guesser})
    assert round(model.values(sample.query, sample.files, sample.answer[4:])["share"], 3) == 13.0  # exp(log1p(12))
    classes = np.zeros((size + 1, 2), np.float32)
    classes[number, 1], classes[-1, 0] = 1.0, 2.0
    yes_above = Guesser(False, outcomes=(False, True), weights=classes)
    model = GuessModel({slot_key(sample.answer[1]): yes_above})
    assert model.values("Is it over 12 %?", (), sample.answer[1:2]) == {"changed": True}
    assert model.values("Is it over 2 %?", (), sample.answer[1:2]) == {"changed": False}


def test_the_model_that_ships_is_finite_and_knows_many_slots():
    import numpy as np

    guessers = shipped_model().guessers
    assert len(guessers) > 100
    assert all(np.isfinite(guesser.weights).all() for guesser in guessers.values() if guesser.weights is not None)
