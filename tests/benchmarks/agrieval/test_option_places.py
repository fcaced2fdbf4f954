"""Places of options: policies whose preference is known by construction are found out."""

from collections.abc import Callable, Mapping

import pytest

from agrotools.core import Record, Sample, Step, Trajectory
from agrotools_benchmarks.agrieval.plugin import OptionsSlot
from agrotools_benchmarks.agrieval.score import OptionPlaces, Rotations
from support.runs import summarise

TEXTS = [f"text {number}" for number in range(7)]


def record(number: int, turn: int | None, choose: Callable[[Mapping[str, str]], str]) -> Record:
    """Question ``number``, whose right text is one of the first five, answered by ``choose`` from the options."""
    right = TEXTS[number % 5]
    texts = TEXTS[turn or 0 :] + TEXTS[: turn or 0]
    options = dict(zip("ABCDEFG", texts, strict=True))
    letter = next(letter for letter, text in options.items() if text == right)
    slot = OptionsSlot(
        name="answer", label="right", kind="single", value=(letter,), options=options
    )
    rotated = {} if turn is None else {"rotation": turn}
    sample = Sample(
        id=f"q{number}" if turn is None else f"q{number}-r{turn}", query="q", files=(), family="knowledge",
        task_type="single_choice", answer_type="exact", template="t", source="s", toolset=(), answer=(slot,),
        cluster=f"q{number}", metadata=rotated,
    )  # fmt: skip
    step = Step(turn=0, kind="answer", text=choose(options))
    return Record(
        sample=sample, mode="no-tool", trajectory=Trajectory(steps=(step,), termination="answered")
    )


def results(choose: Callable[[Mapping[str, str]], str]) -> tuple[OptionPlaces, Rotations]:
    """Results of 30 questions in every rotation."""
    part = summarise(
        [record(number, turn, choose) for number in range(30) for turn in range(7)]
    ).modes["no-tool"]
    places, rotations = part.part("option_places", OptionPlaces), part.part("rotations", Rotations)
    assert places is not None
    assert rotations is not None
    return places, rotations


def first(_: Mapping[str, str]) -> str:
    return "A"


def knowing(options: Mapping[str, str]) -> str:
    """Always the text that is right of every fifth question, wherever it stands."""
    return next(letter for letter, text in options.items() if text == TEXTS[0])


def test_shares_by_place_tell_knowing_from_guessing():
    places, rotations = results(first)
    assert places.chosen == (210, 0, 0, 0, 0, 0, 0)
    assert places.right == (30,) * 7, "every text stood everywhere"
    assert (places.constant, places.preference) == (pytest.approx(1 / 7), pytest.approx(6 / 7))
    assert (rotations.n_questions, rotations.accuracy.value) == (30, pytest.approx(1 / 7))
    assert rotations.majority.value == 0, "each text was chosen once"
    assert rotations.consistency.value == 0
    places, rotations = results(knowing)
    assert places.preference == pytest.approx(0)
    assert (rotations.accuracy.value, rotations.majority.value) == (
        pytest.approx(1 / 5),
        pytest.approx(1 / 5),
    )
    assert rotations.consistency.value == 1
    records = [record(number, turn, knowing) for number in range(3) for turn in range(7)][:-1]
    assert summarise(records).modes["no-tool"].part("rotations", Rotations).n_questions == 2
