"""Test of the benchmark: its reference answers are right."""

import agrotools


def test_the_reference_answers_score_1(tmp_path):
    run = agrotools.evaluate(
        "my_field", model="baseline:oracle", mode="end-to-end", out=tmp_path / "run"
    )
    assert run.scores["fas"].value == 1
