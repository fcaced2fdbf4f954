"""How much one has to read: the figures of the structure of this package. They are printed and never fail a check.

Tool of developers (CONTRIBUTING.md).

    python performance/structure.py [--json] [--repo DIR] [--benchmark NAME] [--list ROW]

``--repo`` measures another checkout, ``--list`` prints what a row counted.

* ``nodes``: nodes of the syntax tree (``ast.walk``). Nodes a line tells how dense the code is: 3.7 to 4.3 in
  Inspect AI, tau2, torchgeo, smolagents and httpx.
* ``large_functions``: functions of more than 400 nodes.
* ``circles``: modules that import each other at run time; ``circle_of_types``: the largest circle, if imports for
  types count too.
* ``twice``: public class names that two modules of a package define.
* ``functions_run``, ``files_entered``: of a process that evaluates one scripted sample with one tool call
  (``eval BENCHMARK -m scripted:... --mode end-to-end --limit 1``; ``sys.setprofile``). Bodies of modules and classes
  and comprehensions are left out. Workers of tools are processes of their own and not counted.
* ``config_rooms``: files with a function to which the configuration of a run, a part of it, or an object that holds
  it is handed, followed through the source from ``evaluate``.
"""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "benchmarks" / "drawn"
LARGE_FUNCTION_NODES = 400
"""About 80 lines of ordinary code: more does not fit on a screen."""
_SCRIPT = [
    'Thought: It is a sum.\nAction: calculate\nAction Input: {"expression": "2 + 3"}',
    "Thought: That is all.\nFinal Answer: 5",
]
_PROBE = """
import json, os, sys, threading
run, inline = set(), {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
part = os.sep + "src" + os.sep + "agrotools"
def profile(frame, event, _):
    code = frame.f_code
    # bodies of modules and classes have no fast locals; a comprehension is part of what it stands in
    if event == "call" and code.co_flags & 1 and code.co_name not in inline and part in code.co_filename:
        run.add((code.co_filename, code.co_firstlineno))
threading.setprofile(profile)
sys.setprofile(profile)
from agrotools.cli.main import main
try:
    main()
except SystemExit as end:
    code = end.code or 0
else:
    code = 0
sys.setprofile(None)
with open(os.environ["STRUCTURE_OUT"], "w") as file:
    json.dump({"code": code, "run": sorted(run)}, file)
"""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Row(NamedTuple):
    """A figure. ``items``: what was counted, where that can be listed."""

    name: str
    text: str
    value: float
    items: tuple[str, ...] = ()


class Module:
    """A source file: its syntax tree, and the names it defines and imports."""

    def __init__(self, name: str, path: Path, is_package: bool) -> None:
        self.name, self.path, self.is_package = name, path, is_package
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.count("\n")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """Local name to module and the name in it (None: the module itself), wherever in the file it is imported."""
        names: dict[str, tuple[str, str | None]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    names[each.asname or each.name.split(".")[0]] = (each.name, None)
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                if node.level:
                    parts = self.name.split(".")
                    base = parts[: len(parts) - node.level + self.is_package]
                    module = ".".join([*base, *([node.module] if node.module else [])])
                for each in node.names:
                    names[each.asname or each.name] = (module, each.name)
        return names

    @cached_property
    def definitions(self) -> dict[str, ast.AST]:
        """Functions and classes at the top of the file."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {node.name: node for node in self.tree.body if isinstance(node, kinds)}


class House:
    """All modules of the package in a checkout."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.source = repo / "src"
        self.modules: dict[str, Module] = {}
        for path in sorted(self.source.rglob("*.py")):
            parts = path.relative_to(self.source).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.modules[name] = Module(name, path, is_package)

    def targets(self, module: Module, nodes: Iterable[ast.AST] | None = None) -> set[str]:
        """Modules of the package that ``module`` imports in these nodes, by default in those outside of functions."""
        named: set[str] = set()
        for node in _outside_functions(module.tree) if nodes is None else nodes:
            if isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                origin = {module.imports[each.asname or each.name] for each in node.names}
                named |= {
                    f"{base}.{name}" if f"{base}.{name}" in self.modules else base
                    for base, name in origin
                }
        return {name for name in named if name in self.modules and name != module.name}

    def circles(self, *, with_types: bool = False) -> list[list[str]]:
        """Modules that import each other, inside functions or outside; imports for types count ``with_types`` only."""
        walk = ast.walk if with_types else _at_run_time
        edges = {
            name: self.targets(module, walk(module.tree)) for name, module in self.modules.items()
        }
        return [sorted(circle) for circle in circles(edges) if len(circle) > 1]

    def resolve(
        self, module: str, name: str, seen: frozenset[str] = frozenset()
    ) -> tuple[Module, ast.AST] | None:
        """Where ``name``, as seen in ``module``, is defined; re-exports are followed."""
        here = self.modules.get(module)
        if here is None or module in seen:
            return None
        if name in here.definitions:
            return here, here.definitions[name]
        base, original = here.imports.get(name, ("", None))
        return self.resolve(base, original, seen | {module}) if original else None

    def package_of(self, name: str) -> str:
        """The import package that a module is in."""
        return name.split(".")[0]

    def room_of(self, name: str) -> str:
        """The package, and the package or module right below it that a module is in or is."""
        return ".".join(name.split(".")[:2])


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        yield from _outside_functions(node)


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    yield tree
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        inside: Iterable[ast.AST] = tree.orelse
    else:
        inside = ast.iter_child_nodes(tree)
    for node in inside:
        yield from _at_run_time(node)


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Nodes that reach each other, those that point to others last; a node that is in no circle is alone."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(node: str, graph: dict[str, set[str]], out: list[str]) -> None:
        seen.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in seen:
                visit(other, graph, out)
        out.append(node)

    for node in sorted(edges):
        if node not in seen:
            visit(node, edges, order)
    back: dict[str, set[str]] = {node: set() for node in edges}
    for node, others in edges.items():
        for other in others:
            back.setdefault(other, set()).add(node)
    seen.clear()
    found: list[list[str]] = []
    for node in reversed(order):
        if node not in seen:
            circle: list[str] = []
            visit(node, back, circle)
            found.append(circle)
    return found[::-1]


class Walk:
    """The route of one parameter through the source: every function that it, or a part of it, is handed to."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._done: set[tuple[str, int, str]] = set()
        self.stays: list[str] = []
        """Modules in the order in which they are entered; the same one twice in a row is one stay."""

    def enter(
        self, module: Module, function: ast.AST, parameter: str, owner: ast.ClassDef | None = None
    ) -> None:
        """Follow ``parameter`` into ``function``, a method of ``owner`` if it is one."""
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        if not self.stays or self.stays[-1] != module.name:
            self.stays.append(module.name)
        key = (module.name, function.lineno, parameter)
        if key in self._done:
            return
        self._done.add(key)
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        types = {
            each.arg: kind
            for each in arguments
            if (kind := self._annotated(module, each.annotation))
        }
        if owner is not None:
            types["self"] = (module, owner)
        carried = {parameter}
        for statement in function.body:
            self._statement(module, statement, carried, types)

    def _statement(
        self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]
    ) -> None:
        if isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom,
        ):
            return
        bodies = [
            child
            for name in ("body", "orelse", "finalbody")
            for child in getattr(node, name, []) or []
        ]
        bodies += [child for handler in getattr(node, "handlers", []) for child in handler.body]
        heads = [child for child in ast.iter_child_nodes(node) if child not in bodies]
        for head in heads:
            self._calls(module, head, carried, types)
        self._bind(module, node, carried, types)
        for child in bodies:
            self._statement(module, child, carried, types)

    def _bind(
        self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]
    ) -> None:
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For | ast.AsyncFor):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pairs = [
                (item.optional_vars, item.context_expr) for item in node.items if item.optional_vars
            ]
        pairs += [
            (each.target, each.value) for each in ast.walk(node) if isinstance(each, ast.NamedExpr)
        ]
        for target, value in pairs:
            if not (_holds(value, carried) and self._still_it(module, value)):
                continue
            carried |= {
                name.id
                for name in ast.walk(target)
                if isinstance(name, ast.Name) and name.id != "self"
            }
            if isinstance(target, ast.Name) and (kind := self._type_of(module, value)):
                types[target.id] = kind

    def _still_it(self, module: Module, value: ast.AST) -> bool:
        """Whether ``value`` is the parameter, a part of it, or an object that holds it: no call but of a class."""
        for call in (each for each in ast.walk(value) if isinstance(each, ast.Call)):
            found = (
                self._house.resolve(module.name, call.func.id)
                if isinstance(call.func, ast.Name)
                else None
            )
            if not (found and isinstance(found[1], ast.ClassDef)):
                return isinstance(call.func, ast.Attribute) and call.func.attr in (
                    "model_copy",
                    "_replace",
                )
        return True

    def _calls(
        self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]
    ) -> None:
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            handed: list[tuple[int | None, str | None]] = [
                (place, None)
                for place, value in enumerate(call.args)
                if not isinstance(value, ast.Starred) and _holds(value, carried)
            ]
            handed += [
                (None, word.arg)
                for word in call.keywords
                if word.arg and _holds(word.value, carried)
            ]
            if isinstance(call.func, ast.Name):
                found = self._house.resolve(module.name, call.func.id)
                if found:
                    self._hand_over(*found, handed)
            elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                holder = call.func.value.id
                if kind := types.get(holder):
                    where, owner = kind
                    if (method := _method(owner, call.func.attr)) is not None:
                        if holder in carried and holder != "self":
                            self.enter(where, method, "self", owner)
                        self._parameters(where, method, handed, 1, owner)
                elif found := self._house.resolve(module.name, holder):
                    where, owner = found
                    if (
                        isinstance(owner, ast.ClassDef)
                        and (method := _method(owner, call.func.attr)) is not None
                    ):
                        self._parameters(where, method, handed, 1, owner)

    def _hand_over(
        self, module: Module, found: ast.AST, handed: list[tuple[int | None, str | None]]
    ) -> None:
        if isinstance(found, ast.ClassDef):
            if found.name.endswith("Error"):  # raised: the walk ends there
                return
            method = _method(found, "__init__")
            if method is not None:
                self._parameters(module, method, handed, 1, found)
            elif handed and self.stays[-1] != module.name:
                self.stays.append(module.name)
        else:
            self._parameters(module, found, handed, 0, None)

    def _parameters(
        self, module: Module, function: Any, handed: list[Any], first: int, owner: Any
    ) -> None:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        words = {*names, *(each.arg for each in function.args.kwonlyargs)}
        for place, word in handed:
            if word in words:
                self.enter(module, function, word, owner)
            elif place is not None and place + first < len(names):
                self.enter(module, function, names[place + first], owner)

    def _annotated(
        self, module: Module, annotation: ast.AST | None
    ) -> tuple[Module, ast.ClassDef] | None:
        names = (
            []
            if annotation is None
            else [each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)]
        )
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            names = [annotation.value]
        for name in names:
            found = self._house.resolve(module.name, name)
            if found and isinstance(found[1], ast.ClassDef):
                return found[0], found[1]
        return None

    def _type_of(self, module: Module, value: ast.AST) -> tuple[Module, ast.ClassDef] | None:
        value = value.value if isinstance(value, ast.Await) else value
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            return None
        found = self._house.resolve(module.name, value.func.id)
        if found is None:
            return None
        where, node = found
        if isinstance(node, ast.ClassDef):
            return where, node
        return self._annotated(where, getattr(node, "returns", None))


def _holds(value: ast.AST, carried: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in carried for each in ast.walk(value))


def _method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next(
        (node for node in owner.body if isinstance(node, kinds) and node.name == name), None
    )


def walk_of_config(house: House) -> list[str]:
    """The files that the configuration of a run visits."""
    found = house.resolve("agrotools.runner.evaluate", "evaluate")
    if found is None:
        return []
    module, function = found
    walk = Walk(house)
    walk.enter(module, function, function.args.args[0].arg)  # pyright: ignore[reportAttributeAccessIssue]
    return sorted(set(walk.stays))


def large_functions(house: House) -> list[str]:
    """Functions of more than ``LARGE_FUNCTION_NODES`` nodes, the largest first: ``nodes module:line name``."""
    found: list[tuple[int, str]] = []
    for module in house.modules.values():
        for function in ast.walk(module.tree):
            if isinstance(function, _FUNCTIONS):
                nodes = sum(1 for _ in ast.walk(function))
                if nodes > LARGE_FUNCTION_NODES:
                    found.append((nodes, f"{module.name}:{function.lineno} {function.name}"))
    return [f"{nodes} {place}" for nodes, place in sorted(found, reverse=True)]


def classes_defined_twice(house: House) -> list[str]:
    """Public class names that two modules of a package define: ``name: modules``."""
    modules_of: dict[tuple[str, str], list[str]] = {}
    for module in house.modules.values():
        package = house.package_of(module.name)
        for name, node in module.definitions.items():
            if isinstance(node, ast.ClassDef) and not name.startswith("_"):
                modules_of.setdefault((package, name), []).append(module.name)
    return [
        f"{name}: {', '.join(modules)}"
        for (_, name), modules in sorted(modules_of.items())
        if len(modules) > 1
    ]


class Density(NamedTuple):
    """Figures of the code of a room, or of all rooms."""

    files: int
    lines: int
    nodes: int
    code_lines: int
    """Lines with a token that is neither a comment nor a docstring."""
    comments: int
    comprehensions: int
    conditionals: int


def density(modules: Iterable[Module]) -> Density:
    """Count lines, syntax nodes, and what makes code dense or explains it."""
    files = lines = nodes = code_lines = comments = comprehensions = conditionals = 0
    for module in modules:
        files += 1
        lines += module.lines
        for node in ast.walk(module.tree):
            nodes += 1
            comprehensions += isinstance(node, _COMPREHENSIONS)
            conditionals += isinstance(node, ast.IfExp)
        code, commented = _lines_of_code_and_comments(module.text)
        code_lines += code
        comments += commented
    return Density(files, lines, nodes, code_lines, comments, comprehensions, conditionals)


def _lines_of_code_and_comments(text: str) -> tuple[int, int]:
    """Lines that hold code (docstrings left out), and comments."""
    no_code = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    code: set[int] = set()
    comments = 0
    at_start = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        elif token.type in no_code:
            at_start = token.type != tokenize.NL or at_start
        else:
            is_docstring = at_start and token.type == tokenize.STRING
            if not is_docstring:
                code.update(range(token.start[0], token.end[0] + 1))
            at_start = False
    return len(code), comments


def one_sample(house: House, benchmark: str) -> list[tuple[str, int]]:
    """File and first line of each function that a process runs which evaluates one scripted sample.

    Raises:
        RuntimeError: the process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder, "script.json"), Path(folder, "out.json")
        script.write_text(json.dumps(_SCRIPT))
        words = [
            "eval",
            benchmark,
            "-m",
            f"scripted:{script}",
            "--mode",
            "end-to-end",
            "--limit",
            "1",
        ]
        command = [sys.executable, "-c", _PROBE, *words, "--out", str(Path(folder, "run"))]
        own = {
            "PYTHONPATH": str(house.source),
            "STRUCTURE_OUT": str(out),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command, env={**os.environ, **own}, capture_output=True, text=True, check=False
        )
        if not out.is_file() or (said := json.loads(out.read_bytes()))["code"]:
            raise RuntimeError(
                f"the evaluation failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
    base = f"{house.source}/"
    return [(path.removeprefix(base), line) for path, line in said["run"] if path.startswith(base)]


def lines_of_functions(house: House, places: Iterable[tuple[str, int]]) -> int:
    """Lines of the functions at these places, a function inside another counted once with it."""
    wanted = set(places)
    covered: set[tuple[str, int]] = set()
    for module in house.modules.values():
        path = str(module.path.relative_to(house.source))
        for node in ast.walk(module.tree):
            if isinstance(node, _FUNCTIONS):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                if (path, first) in wanted:
                    covered.update(
                        (path, line) for line in range(first, (node.end_lineno or first) + 1)
                    )
    return len(covered)


def rows(repo: Path, benchmark: str) -> list[Row]:
    """Today's figures."""
    house = House(repo)
    whole = density(house.modules.values())
    tests = sorted((repo / "tests").rglob("*.py"))
    run = one_sample(house, benchmark)
    entered = sorted({path for path, _ in run})
    large = large_functions(house)
    at_run_time = [" ".join(circle) for circle in house.circles()]
    with_types = house.circles(with_types=True)
    rooms, twice = walk_of_config(house), classes_defined_twice(house)
    words = sum(
        len(page.read_text(encoding="utf-8").split()) for page in (repo / "docs").glob("*.md")
    )
    a_thousand = whole.code_lines / 1000
    return [
        Row("lines", "Python lines in src", whole.lines),
        Row("files", "source files", whole.files),
        Row("nodes", "syntax nodes in src", whole.nodes),
        Row("nodes_a_line", "nodes a line", round(whole.nodes / whole.lines, 1)),
        Row("comments", "comments, per 1,000 lines of code", round(whole.comments / a_thousand)),
        Row(
            "comprehensions", "comprehensions, per 1,000", round(whole.comprehensions / a_thousand)
        ),
        Row(
            "conditionals",
            "conditional expressions, per 1,000",
            round(whole.conditionals / a_thousand),
        ),
        Row(
            "lines_tests",
            "Python lines in tests",
            sum(path.read_bytes().count(b"\n") for path in tests),
        ),
        Row("words_docs", "words in docs", words),
        Row(
            "large_functions",
            f"functions of more than {LARGE_FUNCTION_NODES} nodes",
            len(large),
            tuple(large),
        ),
        Row("circles", "circles of imports at run time", len(at_run_time), tuple(at_run_time)),
        Row(
            "circle_of_types",
            "files in the largest circle, imports for types counted",
            max(map(len, with_types), default=0),
        ),
        Row("twice", "public class names that two modules define", len(twice), tuple(twice)),
        Row("functions_run", "one sample with one tool call: functions run", len(run)),
        Row("lines_run", "lines of these functions", lines_of_functions(house, run)),
        Row("files_entered", "files with these functions", len(entered), tuple(entered)),
        Row("config_rooms", "files that the configuration visits", len(rooms), tuple(rooms)),
    ]


def print_parts(house: House, noun: str, part_of: Callable[[str], str]) -> None:
    """Print lines, nodes and large functions of each part of the source; ``part_of``: the part of a module."""
    parts: dict[str, list[Module]] = {}
    for name, module in house.modules.items():
        parts.setdefault(part_of(name), []).append(module)
    large = Counter(part_of(place.split()[1].split(":")[0]) for place in large_functions(house))
    print(f"\n{noun:<32}{'files':>7}{'lines':>9}{'nodes':>10}{'a line':>8}{'large functions':>17}")
    for part, modules in sorted(
        parts.items(), key=lambda item: -sum(module.lines for module in item[1])
    ):
        one = density(modules)
        a_line = one.nodes / max(one.lines, 1)
        print(
            f"{part:<32}{one.files:>7}{one.lines:>9,}{one.nodes:>10,}{a_line:>8.1f}{large[part]:>17}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--repo", type=Path, default=ROOT, help="checkout to measure")
    parser.add_argument(
        "--benchmark", default=str(GOLDEN), help="benchmark of the one sample, e.g. embedded"
    )
    parser.add_argument("--list", metavar="ROW", help="print what was counted for this row")
    given = parser.parse_args()
    repo = given.repo.resolve()
    found = rows(repo, given.benchmark)
    if given.json:
        print(json.dumps({row.name: {"value": row.value, "items": row.items} for row in found}))
    elif given.list:
        items = {row.name: row.items for row in found if row.items}
        if given.list not in items:
            parser.error(f"no such row; those with a list: {', '.join(items)}")
        print("\n".join(items[given.list]))
    else:
        for row in found:
            print(f"{row.name:<18}{row.text:<58}{row.value:>10,}")
        house = House(repo)
        print_parts(house, "package", house.package_of)
        print_parts(house, "room", house.room_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
