"""Words of the command line for what tools say of their arguments."""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import agrotools
import agrotools_tools
from agrotools.cli.option_words import in_options, options_of, with_pairs
from agrotools_tools.table import TARGETS

OPTIONS = options_of(
    dict.fromkeys(
        ["bands", "gsd_m", "region", "view", "chm", "dsm", "dtm", "depth", "min_px", "label_map"]
    )
)


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("say bands={'R': 3, 'NIR': 4}", """say --bands '{"R": 3, "NIR": 4}'"""),
        ("say bands={'R': 3} or {'N': 1}", """say --bands '{"R": 3}' or --bands '{"N": 1}'"""),
        ("bands: 'x' is no band", "--bands: 'x' is no band"),
        ("pass gsd_m, metres per pixel", "pass --gsd-m, metres per pixel"),
        ("min_px = 3 is not below", "--min-px 3 is not below"),
        ("say view='side'", "say --view side"),
        ("take a part with region", "take a part with --region"),
        ("pass chm, or dsm and dtm", "pass --chm, or --dsm and --dtm"),
        ("the depth of a region of bands", "the depth of a region of bands"),
        ("use a colour picture", "use a colour picture"),
        ("it takes view (optional), dsm", "it takes --view (optional), --dsm"),
    ],
)
def test_arguments_become_options(said: str, typed: str) -> None:
    assert in_options(said, OPTIONS) == typed
    assert in_options(typed, OPTIONS) == typed


def test_bands_of_zones_are_an_option_each() -> None:
    said = "say bands={'R': 3, 'NIR': 4}, or use {'R': 1}"
    typed = "say --band R=3 --band NIR=4, or use --band R=1"
    assert in_options(said, {"bands": "--band"}, with_pairs) == typed


@pytest.mark.parametrize(
    ("said", "argument", "typed"),
    [
        ("give label_map, e.g. {'a': [1]}", None, """give --label-map, e.g. --label-map '{"a": [1]}'"""),
        ("use crop, e.g. {'a': [1]}", "label_map", """use crop, e.g. --label-map '{"a": [1]}'"""),
        ("use R, e.g. {'R': 1}", None, """use R, e.g. --bands '{"R": 1}'"""),
        ("bands={'R': 3} or {'N': 1}", "label_map", """--bands '{"R": 3}' or --bands '{"N": 1}'"""),
    ],
)  # fmt: skip
def test_an_object_alone_is_a_value_of_the_argument_it_is_about(
    said: str, argument: str | None, typed: str
) -> None:
    assert in_options(said, OPTIONS, argument=argument) == typed


ENGINE = Path(agrotools.__file__).parent
TOOLS = Path(agrotools_tools.__file__).parent
OF_ANY_TOOL = ("image", "bands", "gsd_m", "region", "label_map")
"""Arguments of which files speak that several tools share."""
OF_ZONES = {"bands": "--band", "id_field": "--id", "values": "--value"}
DETERMINERS = (
    "a", "an", "the", "this", "its", "no", "another", "which", "smaller", "colour", "…",
)  # fmt: skip
"""Words behind which the name of an argument is a word like any other; … stands for a value in the message."""
AS_WORDS: dict[str, set[str]] = {
    "agrotools/calling/pictures.py": {
        "…: an array of shape … is not (rows, columns) or (rows, columns, bands)",
        "bands come last: numpy.moveaxis(array, 0, -1)",
    },
    "agrotools_tools/canopy_height.py": {"chm and dsm, dtm are two ways to give heights"},
    "agrotools_tools/change/measure.py": {
        "threshold must be above 0",
        "name bands that both files have, e.g. bands={'R': 3, 'NIR': 4}",
    },
    "agrotools_tools/fruit/tool.py": {
        "pass either depth (a depth image of the same view) or distance_mm",
        "depth and distance_mm were both given",
        "check that boxes, image and depth show the same view, and the limits of diameter",
        "boxes are [x0, y0, x1, y1] in pixels of the original image",
        "pixels of fruit colour were found, but none of them has a depth",
        "pixels of fruit colour were found, but nothing round of the size of a fruit",
    },
    "agrotools_tools/general/code.py": {
        "solving equations needs sympy, which is not installed",
        "write numbers, names, + - * / ^ ( ) and functions such as sqrt(x); anything else goes into code",
    },
    "agrotools_tools/marks/tool.py": {"index is …, but … has … such mark…"},
    "agrotools_tools/plants/tool.py": {
        "plants are found by their green; choose another picture or region",
    },
}
"""By file, the messages in which a name of an argument is read as a word: no rule changes it there."""


def _functions(file: Path) -> dict[str, ast.FunctionDef]:
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


def _arguments_by_file() -> dict[Path, dict[str, None]]:
    """The arguments of the tools that each file defines."""
    arguments: dict[Path, dict[str, None]] = {}
    for name, target in TARGETS.items():
        module = target.partition(":")[0]
        file = TOOLS.parent.joinpath(*module.split(".")).with_suffix(".py")
        signature = _functions(file)[name].args
        of_file = arguments.setdefault(file, {})
        of_file |= dict.fromkeys(each.arg for each in (*signature.args, *signature.kwonlyargs))
    return arguments


def _literals(node: ast.AST) -> Iterator[str]:
    """The texts of an expression, with … for values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    else:
        for child in ast.iter_child_nodes(node):
            yield from _literals(child)


def _messages(file: Path) -> Iterator[str]:
    """What errors of a file say: the last argument of ...Error, hint=..., and values of names such as hint."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        said: list[ast.expr] = []
        if isinstance(node, ast.Call):
            said += [each.value for each in node.keywords if each.arg == "hint"]
            if ast.unparse(node.func).endswith("Error"):
                said += node.args[-1:]
        elif isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0]).strip("_").lower()
            said += [node.value] if name in {"hint", "message", "why"} else []
        for text in said:
            yield from (each for each in _literals(text) if " " in each)


def _left_as_python(text: str, names: Collection[str]) -> list[str]:
    """The names of arguments in a rewritten text that are no options and stand behind no determiner."""
    name = "|".join(sorted(names, key=len, reverse=True))
    left: list[str] = []
    for found in re.finditer(rf"(?<![\w-])({name})(?![\w-])", text):
        words_before = text[: found.start()].split()
        if not words_before or words_before[-1].strip("(") not in DETERMINERS:
            left.append(found[1])
    return left


def _options_of_files() -> Iterator[tuple[Path, dict[str, str]]]:
    """Every file whose errors the command line prints, with the options that they may speak of."""
    of_tools = _arguments_by_file()
    shared = [*ENGINE.glob("calling/*.py"), *ENGINE.glob("vision/*.py")]
    for file in sorted([*TOOLS.rglob("*.py"), *shared]):
        beside = [
            names for other, names in of_tools.items() if other.parent == file.parent != TOOLS
        ]
        if file.parent.name == "zones":
            yield file, OF_ZONES
        elif file in of_tools:
            yield file, options_of(of_tools[file])
        elif beside:
            yield file, options_of({name: None for names in beside for name in names})
        else:
            yield file, options_of(dict.fromkeys(OF_ANY_TOOL))


def test_a_new_wording_is_noticed() -> None:
    assert _left_as_python("state depth, in metres", OPTIONS) == ["depth"]
    assert _left_as_python("state the depth, in metres, or --depth", OPTIONS) == []


def test_no_message_of_a_tool_is_left_with_names_of_python() -> None:
    left: dict[str, set[str]] = {}
    n_rewritten = 0
    for file, options in _options_of_files():
        texts = set(_messages(file))
        n_rewritten += sum(in_options(text, options) != text for text in texts)
        unread = {text for text in texts if _left_as_python(in_options(text, options), options)}
        if unread:
            left[file.relative_to(ENGINE.parent).as_posix()] = unread
    assert n_rewritten > 50, "the messages of tools were not found"
    assert left == AS_WORDS, (
        "write the message so that a rule of option_words.py reads it (pass depth, with region, depth=3), "
        "or add it to AS_WORDS if the name is a word there"
    )
