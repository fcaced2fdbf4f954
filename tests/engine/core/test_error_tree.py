"""The tree of errors, as the first lines of their module draw it."""

import re
from importlib import import_module

import pytest

from agrotools.core import AgrotoolsError, errors

ELSEWHERE = (
    "agrotools.core.libraries", "agrotools.analysis.served_check", "agrotools.scoring.predictions",
    "agrotools.sandbox.result", "agrotools.text.expression_functions", "agrotools_build.references",
    "agrotools_build.composing.reasons",
)  # fmt: skip
_LINE = re.compile(r"^( *)- (\w+)", re.MULTILINE)


def drawn_parents() -> dict[str, str]:
    """The parent of each error in the drawing."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for indent, name in _LINE.findall(errors.__doc__ or ""):
        while above and above[-1][0] >= len(indent):
            above.pop()
        parents[name] = above[-1][1] if above else "Exception"
        above.append((len(indent), name))
    return parents


@pytest.fixture(scope="module")
def classes() -> dict[str, type[AgrotoolsError]]:
    for module in ELSEWHERE:
        import_module(module)
    found: dict[str, type[AgrotoolsError]] = {}
    left = [AgrotoolsError]
    while left:
        error = left.pop()
        if error.__module__.startswith("agrotools"):
            found[error.__name__] = error
            left += error.__subclasses__()
    return found


def test_the_drawing_has_every_error_below_its_base(classes: dict[str, type[AgrotoolsError]]):
    assert drawn_parents() == {name: error.__bases__[0].__name__ for name, error in classes.items()}
