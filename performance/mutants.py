"""Mutants: small faults put into the code one at a time, to see whether a test fails for each.

Tool of developers (CONTRIBUTING.md).

    python performance/mutants.py [--number 20] [--seed 0] [--tests FOLDER ...] [--list] MODULE ...

A module is a file or a folder of ``src/agrotools`` or ``src`` (``scoring/plots.py``, ``agrotools_tools/fruit``).
Faults: a comparison flipped, a
constant changed, a condition negated, None returned, a branch dropped. The seed chooses them, evenly among the modules.
Each is written into a copy of the tree, where the tests of its room run up to the first failure: files that name the
module first, then the other files of ``tests/ROOM``, then those of ``--tests``; unit tests before those of processes,
without slow ones, real data and browsers. Printed: each mutant with the test that found it, or ``SURVIVED``.

A survivor is a line without effect, which can go, or a missing test; some have the same effect as the code.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src")
ENGINE = "agrotools"
FOLDERS = {
    "agrotools_tools": "tools",
    "agrotools_build": "authoring",
    "agrotools_benchmarks": "benchmarks",
}
"""Folder of the tests of each package that builds on the engine."""
SECONDS = 300
"""Time after which the tests of a mutant are stopped; it counts as found."""
_PAIRS = (("Lt", "<", "LtE", "<="), ("Gt", ">", "GtE", ">="), ("Eq", "==", "NotEq", "!="))
_PAIRS += (("In", "in", "NotIn", "not in"), ("Is", "is", "IsNot", "is not"))
FLIPPED = {
    kind: pair for one, a, other, b in _PAIRS for kind, pair in ((one, (a, b)), (other, (b, a)))
}
"""Sign of a comparison and the one that replaces it, by its kind in :mod:`ast`."""


class Mutant(NamedTuple):
    """A fault: the text from ``start`` to ``end`` (bytes of the file) is replaced by ``new``."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    new: str


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    content = (ROOT / path).read_bytes()
    starts = [0, *accumulate(len(line) for line in content.splitlines(keepends=True))]

    def replaced(kind: str, node: ast.expr, new: str) -> Mutant:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return Mutant(path, node.lineno, kind, start, end, new)

    found: list[Mutant] = []
    for node in _nodes(ast.parse(content)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sign, other = FLIPPED[type(node.ops[0]).__name__]
            left, right = (ast.unparse(each) for each in (node.left, node.comparators[0]))
            found.append(
                replaced(
                    f"comparison flipped: {sign} to {other}", node, f"({left}) {other} ({right})"
                )
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = not node.value if isinstance(node.value, bool) else 2 * node.value + 1
            found.append(replaced(f"constant changed: {node.value} to {value}", node, f"{value}"))
        elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
            found.append(replaced("None returned", node.value, "None"))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            found.append(
                replaced("condition negated", node.test, f"(not ({ast.unparse(node.test)}))")
            )
            if isinstance(node, ast.If):
                found.append(
                    replaced("branch dropped", node.test, f"(({ast.unparse(node.test)}) and False)")
                )
    return found


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes whose change can have an effect: no annotations, decorators, f-strings and type-only imports."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child)


def chosen(modules: list[str], number: int, seed: int) -> list[Mutant]:
    """Return ``number`` mutants, as many of each module as of the others, as far as it has them."""
    drawn = random.Random(seed)
    of_modules: list[list[Mutant]] = []
    for module in modules:
        path = SOURCE / module
        if not (ROOT / path).exists():
            path = SOURCE / ENGINE / module
        files = (
            [path]
            if path.suffix
            else sorted(each.relative_to(ROOT) for each in (ROOT / path).rglob("*.py"))
        )
        of_modules.append(
            drawn.sample(every := [each for file in files for each in mutants(file)], len(every))
        )
    return [each for turn in zip(*of_modules, strict=False) for each in turn][:number]


def copy_of_tree(folder: Path) -> None:
    """Copy the files that git knows or does not ignore."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(
        listed, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def first_failure(mutant: Mutant, folder: Path, others: list[str]) -> str:
    """Return the line of pytest that names the failing test; empty if every test passes."""
    package, inside, *_ = mutant.path.relative_to(SOURCE).parts
    room = f"engine/{inside}" if package == ENGINE else FOLDERS[package]
    name = mutant.path.stem
    files = sorted(
        (folder / "tests" / room).rglob("test_*.py"),
        key=lambda file: f".{name}" not in file.read_text(),
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *map(str, files),
        *others,
        "-m",
    ]
    environment = {**os.environ, "PYTHONPATH": f"{folder}/src", "PYTHONDONTWRITEBYTECODE": "1"}
    content = (target := folder / mutant.path).read_bytes()
    target.write_bytes(content[: mutant.start] + mutant.new.encode() + content[mutant.end :])
    try:
        for tiers in ("unit or tools", "process"):
            run = [*command, tiers]
            done = subprocess.run(
                run, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
            )
            if done.returncode not in (0, 5):  # 5: there is no such test
                return next(
                    (line for line in done.stdout.splitlines() if line[:6] in ("FAILED", "ERROR ")),
                    "failed",
                )
        return ""
    except subprocess.TimeoutExpired:
        return "stopped"
    finally:
        target.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="+", metavar="MODULE")
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tests",
        nargs="*",
        default=[],
        metavar="FOLDER",
        help="further tests, such as tests/golden",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    given = parser.parse_args()
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy_of_tree(Path(folder))
        for each in chosen(given.modules, given.number, given.seed):
            found = (
                ""
                if given.list
                else first_failure(each, Path(folder), given.tests)[:90] or "SURVIVED"
            )
            survivors += found == "SURVIVED"
            print(f"{each.path}:{each.line}: {each.kind}  {found}", flush=True)
    print(f"{survivors} survivors")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
