"""The baseline ``colours``: what it reads of a file, and when it refuses."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.agents.baselines.colours import (
    ColoursPolicy,
    file_numbers,
    likelihood_of_files,
    shipped_rule,
)
from agrotools.core import Answer, BooleanSlot, Sample, SampleFile, SampleView
from agrotools.text.answer_form import UNKNOWN

pytestmark = pytest.mark.unit


def picture(path: Path, low: int, high: int) -> Path:
    rng = np.random.default_rng(5)
    pixels = rng.integers(low, high, (120, 160, 3), np.uint8)
    Image.fromarray(pixels).save(path, "JPEG", quality=90)
    return path


def test_a_file_has_seven_numbers_and_one_that_is_missing_has_none(tmp_path) -> None:
    numbers = file_numbers(str(picture(tmp_path / "field.jpg", 40, 200)))
    assert numbers is not None
    assert len(numbers) == 7
    assert 0.4 < numbers[0] < 0.55
    assert file_numbers(str(tmp_path / "none.jpg")) is None
    assert likelihood_of_files(shipped_rule(), [str(tmp_path / "none.jpg")]) == 0.0


def test_it_refuses_only_where_the_form_offers_it_and_else_answers_as_guess(tmp_path) -> None:
    black = picture(tmp_path / "black.jpg", 2, 6)
    slot = BooleanSlot(name="above", label="above the limit", value=True)
    file = SampleFile(name="image_1.jpg", path=str(black), kind="image")
    sample = Sample(
        id="s-1",
        query="Is more than 5 % of the leaf diseased?",
        files=(file,),
        family="measurement",
        task_type="lesion_severity",
        answer_type="exact",
        template="made",
        source="made",
        toolset=(),
        answer=(slot,),
    )

    def answer(*, may_abstain: bool) -> str:
        view = SampleView(
            id="s-1",
            query=sample.query,
            files=sample.files,
            toolset=(),
            answer_form="",
            may_abstain=may_abstain,
        )
        action = asyncio.run(ColoursPolicy(sample).act(view, ()))
        assert isinstance(action, Answer)
        return action.text

    is_likely = likelihood_of_files(shipped_rule(), [str(black)]) >= shipped_rule().threshold
    assert (answer(may_abstain=True) == UNKNOWN) is is_likely
    assert answer(may_abstain=False) != UNKNOWN
