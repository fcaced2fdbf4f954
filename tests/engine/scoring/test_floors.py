"""Scoring asks the registered floor, and says so if none is registered."""

import pytest

from agrotools.core import BooleanSlot, UsageError
from agrotools.core.registry import Registry
from agrotools.scoring import floors
from agrotools.scoring.slots import guess_points
from support.plain_sample import plain_sample


class ConstantFloor:
    """Floor that answers every question with the same text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def answer(self, sample):
        return self._text

    def chart(self, sample):
        return None

    def calls(self, sample):
        return None

    def ignores_prompt(self, slots):
        return True


@pytest.mark.parametrize(("text", "score"), [("hail_damage: yes", 1.0), ("hail_damage: no", 0.0)])
def test_the_score_of_a_guess_is_that_of_the_registered_floor(monkeypatch, text, score) -> None:
    slot = BooleanSlot(name="hail_damage", label="hail has done damage", value=True)
    sample = plain_sample(answer=(slot,))
    registry = Registry("floor", "", {})
    registry.add("guess", ConstantFloor(text))
    monkeypatch.setattr(floors, "FLOORS", registry)
    monkeypatch.setattr("agrotools.scoring.slots._guesses", {})
    assert guess_points(sample).score == score


def test_a_missing_floor_is_an_error_with_a_hint(monkeypatch) -> None:
    registry = Registry("floor", "", {})
    registry.add("other", ConstantFloor(""))
    monkeypatch.setattr(floors, "FLOORS", registry)
    monkeypatch.setattr("agrotools.scoring.slots._guesses", {})
    with pytest.raises(UsageError, match="no floor 'guess' is registered") as raised:
        guess_points(plain_sample())
    assert raised.value.hint is not None
    assert "registered: other" in raised.value.hint
