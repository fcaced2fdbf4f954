"""Last words of a program: what its failure is called in a message."""

import traceback

import pytest

from agrotools.core.errors import last_words


def printed(error: BaseException) -> str:
    """Traceback of an exception as Python prints it when a program ends with it."""
    try:
        raise error
    except BaseException as raised:
        return "started\n" + "".join(traceback.format_exception(raised))


KEY, SCALE = ValueError("no key"), KeyError("no scale")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KEY, "ValueError: no key"),
        (ExceptionGroup("tasks", [KEY]), "ValueError: no key"),
        (ExceptionGroup("tasks", [KEY, SCALE]), "ValueError: no key; KeyError: 'no scale'"),
        (
            ExceptionGroup("tasks", [ExceptionGroup("inner", [KEY, SCALE]), OSError("offline")]),
            "ValueError: no key; KeyError: 'no scale'; OSError: offline",
        ),
        (
            ExceptionGroup("tasks", [ExceptionGroup("one", [ExceptionGroup("two", [KEY])])]),
            "ValueError: no key",
        ),
        (ExceptionGroup("tasks", [KEY, KEY]), "ValueError: no key"),
    ],
)
def test_the_exceptions_in_a_group_stand_in_place_of_its_last_line(error: Exception, words: str):
    assert last_words(printed(error)) == words


def test_other_programs_have_their_last_line():
    assert last_words("one\ntwo\n\n") == "two"
    assert last_words("a table\n+-----+") == "+-----+"
    assert last_words(" \n") == ""
