"""Readings of a user's files: what is asked, what is taken, and the error that answers all questions at once."""

import pytest

from agrotools.core import UndecidedError, UsageError
from agrotools.core.readings import Choice, ReadingQuestion, Readings

LAYER = ReadingQuestion(
    "Which layer of plots.gpkg holds the zones?",
    "--layer",
    (Choice("plots", "4 polygons"), Choice("boundary", "1 polygon")),
)
SHEET = ReadingQuestion("Which sheet of a.xlsx?", "--set=sheet", (Choice("2026"), Choice("old")))


def test_one_reading_is_taken_without_a_question():
    readings = Readings()
    assert readings.choose(LAYER._replace(choices=LAYER.choices[:1])) == "plots"
    readings.settle()


def test_in_a_script_all_questions_come_in_one_error_with_the_words_that_answer_them():
    readings = Readings()
    assert readings.choose(LAYER) == "plots"  # goes on, to find the other questions
    readings.choose(SHEET)
    readings.choose(LAYER)  # asked once
    with pytest.raises(UndecidedError) as raised:
        readings.settle()
    assert raised.value.answers == ("--layer=plots", "--set=sheet=2026")
    for part in ("1. Which layer", "plots (4 polygons), boundary (1 polygon)", "2. Which sheet"):
        assert part in raised.value.message


def test_an_answer_given_with_the_command_settles_its_question():
    readings = Readings()
    assert readings.choose(LAYER, given="boundary") == "boundary"
    readings.settle()
    with pytest.raises(UsageError, match="there is no fields"):
        readings.choose(LAYER, given="fields")
    assert readings.choose(LAYER._replace(is_open=True), given="fields") == "fields"


def test_yes_takes_the_proposed_reading_and_asks_nobody():
    readings = Readings(lambda _: pytest.fail("nobody is asked"), accept=True)
    assert readings.choose(LAYER) == "plots"
    assert readings.answers == ["--layer=plots"]
    readings.settle()


def test_a_terminal_is_asked_at_once():
    readings = Readings(lambda question: question.choices[-1].value)
    assert readings.choose(LAYER) == "boundary"
    assert readings.choose(SHEET, given="2026") == "2026"
    assert readings.answers == ["--layer=boundary"]  # an option says the other one already
    readings.settle()


def test_what_was_read_and_what_was_not_is_said_once():
    readings = Readings()
    for _ in range(2):
        readings.take("layer plots")
        readings.leave("layer boundary")
    assert readings.as_data() == {"read": ["layer plots"], "not_read": ["layer boundary"]}
