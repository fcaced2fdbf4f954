"""How much one has to read: the figures of the structure of this package, beside their goals.

    python performance/structure.py [--json] [--repo DIR] [--benchmark NAME] [--list ROW]
    python performance/structure.py --check | --update

``--check`` fails where a figure is above its ceiling in ``structure_ceilings.toml``; ``--update`` writes the figures
there that fell, and never raises one. ``--repo`` measures another checkout, ``--list`` prints what a row
counted.

* ``files_entered``, ``modules_imported``: of a process that evaluates one scripted sample with one tool call
  (``eval BENCHMARK -m scripted:... --mode end-to-end --limit 1``). Entered is a file with a function that ran
  (``sys.setprofile``; bodies of modules and classes are left out, and comprehensions in them). Tool workers are
  processes of their own and not counted.
* ``config_rooms``, ``config_climbs``: files with a function to which the configuration of a run, a part of it, or an
  object that holds it is handed, followed through the source from ``evaluate``; and how often that walk goes on in a
  package on a higher floor. An exception that is raised with a part of it is no visit.
* ``changes_of_file``: calls in that process from a function of one file of the package to one of another.
* ``circles``: modules that import each other, inside functions or outside; ``circle_of_types``: the largest, if
  imports for types count too.
* ``patterns``: calls of ``re`` with a pattern in ``scoring`` and ``text``.
* ``complex_functions``: functions of more than 30 paths by the count of McCabe (grades E and F of radon).
* ``page_screens``: the longest page of ``docs`` outside its "Reference", at 450 words a screen.
"""

import argparse
import ast
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = Path(__file__).with_name("structure_ceilings.toml")
GOLDEN = ROOT / "tests" / "golden" / "benchmarks" / "drawn"
_WORDS_A_SCREEN = 450
_SCRIPT = [
    'Thought: It is a sum.\nAction: calculate\nAction Input: {"expression": "2 + 3"}',
    "Thought: That is all.\nFinal Answer: 5",
]
_PROBE = """
import json, os, sys, threading
entered, inline, changes = set(), {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}, 0
part = os.sep + "agrotools" + os.sep
def profile(frame, event, _):
    global changes
    code = frame.f_code
    # bodies of modules and classes have no fast locals; a comprehension is part of what it stands in
    if event == "call" and code.co_flags & 1 and code.co_name not in inline and part in code.co_filename:
        entered.add(code.co_filename)
        caller = frame.f_back and frame.f_back.f_code.co_filename
        changes += bool(caller) and part in caller and caller != code.co_filename
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
    json.dump({"code": code, "entered": sorted(entered), "modules": sorted(sys.modules), "changes": changes}, file)
"""


class Row(NamedTuple):
    """A figure beside its goal. ``items``: what was counted, where that can be listed."""

    name: str
    text: str
    value: int
    goal: str
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
        self.source = repo / "src" / "agrotools"
        self.modules: dict[str, Module] = {}
        for path in sorted(self.source.rglob("*.py")):
            parts = path.relative_to(self.source.parent).with_suffix("").parts
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
                named |= {f"{base}.{name}" if f"{base}.{name}" in self.modules else base for base, name in origin}
        return {name for name in named if name in self.modules and name != module.name}

    def circles(self, *, with_types: bool = False) -> list[list[str]]:
        """Modules that import each other, inside functions or outside; imports for types count ``with_types`` only."""
        walk = ast.walk if with_types else _at_run_time
        edges = {name: self.targets(module, walk(module.tree)) for name, module in self.modules.items()}
        return [sorted(circle) for circle in circles(edges) if len(circle) > 1]

    def resolve(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> tuple[Module, ast.AST] | None:
        """Where ``name``, as seen in ``module``, is defined; re-exports are followed."""
        here = self.modules.get(module)
        if here is None or module in seen:
            return None
        if name in here.definitions:
            return here, here.definitions[name]
        base, original = here.imports.get(name, ("", None))
        return self.resolve(base, original, seen | {module}) if original else None

    def package_of(self, name: str) -> str:
        return name.split(".")[1] if "." in name else name


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


def floors(edges: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each node, counted from 1: one above the highest that it points to; circles share a floor."""
    result: dict[str, int] = {}
    for circle in circles(edges):
        below = {other for node in circle for other in edges.get(node, ()) if other not in circle}
        result |= dict.fromkeys(circle, 1 + max((result[other] for other in below), default=0))
    return result


class Walk:
    """The route of one parameter through the source: every function that it, or a part of it, is handed to."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._done: set[tuple[str, int, str]] = set()
        self.stays: list[str] = []
        """Modules in the order in which they are entered; the same one twice in a row is one stay."""

    def enter(self, module: Module, function: ast.AST, parameter: str, owner: ast.ClassDef | None = None) -> None:
        """Follow ``parameter`` into ``function``, a method of ``owner`` if it is one."""
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        if not self.stays or self.stays[-1] != module.name:
            self.stays.append(module.name)
        key = (module.name, function.lineno, parameter)
        if key in self._done:
            return
        self._done.add(key)
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        types = {each.arg: kind for each in arguments if (kind := self._annotated(module, each.annotation))}
        if owner is not None:
            types["self"] = (module, owner)
        carried = {parameter}
        for statement in function.body:
            self._statement(module, statement, carried, types)

    def _statement(self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            return
        bodies = [child for name in ("body", "orelse", "finalbody") for child in getattr(node, name, []) or []]
        bodies += [child for handler in getattr(node, "handlers", []) for child in handler.body]
        heads = [child for child in ast.iter_child_nodes(node) if child not in bodies]
        for head in heads:
            self._calls(module, head, carried, types)
        self._bind(module, node, carried, types)
        for child in bodies:
            self._statement(module, child, carried, types)

    def _bind(self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]) -> None:
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For | ast.AsyncFor):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items if item.optional_vars]
        pairs += [(each.target, each.value) for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        for target, value in pairs:
            if not (_holds(value, carried) and self._still_it(module, value)):
                continue
            carried |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name) and name.id != "self"}
            if isinstance(target, ast.Name) and (kind := self._type_of(module, value)):
                types[target.id] = kind

    def _still_it(self, module: Module, value: ast.AST) -> bool:
        """Whether ``value`` is the parameter, a part of it, or an object that holds it: no call but of a class."""
        for call in (each for each in ast.walk(value) if isinstance(each, ast.Call)):
            found = self._house.resolve(module.name, call.func.id) if isinstance(call.func, ast.Name) else None
            if not (found and isinstance(found[1], ast.ClassDef)):
                return isinstance(call.func, ast.Attribute) and call.func.attr in ("model_copy", "_replace")
        return True

    def _calls(self, module: Module, node: ast.AST, carried: set[str], types: dict[str, Any]) -> None:
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            handed: list[tuple[int | None, str | None]] = [
                (place, None)
                for place, value in enumerate(call.args)
                if not isinstance(value, ast.Starred) and _holds(value, carried)
            ]
            handed += [(None, word.arg) for word in call.keywords if word.arg and _holds(word.value, carried)]
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
                    if isinstance(owner, ast.ClassDef) and (method := _method(owner, call.func.attr)) is not None:
                        self._parameters(where, method, handed, 1, owner)

    def _hand_over(self, module: Module, found: ast.AST, handed: list[tuple[int | None, str | None]]) -> None:
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

    def _parameters(self, module: Module, function: Any, handed: list[Any], first: int, owner: Any) -> None:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        words = {*names, *(each.arg for each in function.args.kwonlyargs)}
        for place, word in handed:
            if word in words:
                self.enter(module, function, word, owner)
            elif place is not None and place + first < len(names):
                self.enter(module, function, names[place + first], owner)

    def _annotated(self, module: Module, annotation: ast.AST | None) -> tuple[Module, ast.ClassDef] | None:
        names = [] if annotation is None else [each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)]
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
    return next((node for node in owner.body if isinstance(node, kinds) and node.name == name), None)


def walk_of_config(house: House) -> tuple[list[str], int]:
    """The files that the configuration of a run visits, and how often the walk climbs to a higher package."""
    found = house.resolve("agrotools.runner.evaluate", "evaluate")
    if found is None:
        return [], 0
    module, function = found
    walk = Walk(house)
    walk.enter(module, function, function.args.args[0].arg)  # pyright: ignore[reportAttributeAccessIssue]
    edges: dict[str, set[str]] = {}
    for name, each in house.modules.items():
        below = {house.package_of(target) for target in house.targets(each, ast.walk(each.tree))}
        edges.setdefault(house.package_of(name), set()).update(below - {house.package_of(name)})
    for others in list(edges.values()):
        for other in others:
            edges.setdefault(other, set())
    level = floors({package: others & edges.keys() for package, others in edges.items()})
    heights = [level[house.package_of(name)] for name in walk.stays]
    return sorted(set(walk.stays)), sum(after > before for before, after in itertools.pairwise(heights))


def patterns(house: House) -> list[str]:
    """Places in ``scoring`` and ``text`` that give a pattern to ``re``: ``module:line``."""
    rooms = [module for name, module in house.modules.items() if house.package_of(name) in ("scoring", "text")]
    return [
        f"{module.name}:{node.lineno}"
        for module in rooms
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr != "escape"
    ]


_BRANCHES = ast.If | ast.IfExp | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.Assert | ast.match_case


def complex_functions(house: House, most: int = 30) -> list[str]:
    """Functions with more than ``most`` paths: ``module:line name paths``."""
    found: list[str] = []
    for module in house.modules.values():
        for function in ast.walk(module.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                nodes = list(ast.walk(function))
                paths = 1 + sum(isinstance(node, _BRANCHES) for node in nodes)
                paths += sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
                paths += sum(1 + len(node.ifs) for node in nodes if isinstance(node, ast.comprehension))
                if paths > most:
                    found.append(f"{module.name}:{function.lineno} {function.name} {paths}")
    return found


def words_of_pages(repo: Path) -> dict[str, int]:
    """Words of each page of ``docs``."""
    return {page.name: len(page.read_text(encoding="utf-8").split()) for page in sorted((repo / "docs").glob("*.md"))}


def one_sample(house: House, benchmark: str) -> tuple[list[str], list[str], int]:
    """Files entered, modules imported and changes of file by a process that evaluates one scripted sample.

    Raises:
        RuntimeError: the process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder, "script.json"), Path(folder, "out.json")
        script.write_text(json.dumps(_SCRIPT))
        words = ["eval", benchmark, "-m", f"scripted:{script}", "--mode", "end-to-end", "--limit", "1"]
        command = [sys.executable, "-c", _PROBE, *words, "--out", str(Path(folder, "run"))]
        own = {"PYTHONPATH": str(house.source.parent), "STRUCTURE_OUT": str(out), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
        if not out.is_file() or (said := json.loads(out.read_bytes()))["code"]:
            raise RuntimeError(f"the evaluation failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    base = str(house.source)
    entered = [path.removeprefix(f"{house.source.parent}/") for path in said["entered"] if path.startswith(base)]
    modules = [name for name in said["modules"] if name.split(".")[0] == "agrotools"]
    return entered, modules, said["changes"]


def lines_under(folder: Path) -> int:
    """Lines of all Python files."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def rows(repo: Path, benchmark: str, *, all_rows: bool = True) -> list[Row]:
    """Today's figures; without ``all_rows`` those that have a ceiling."""
    house = House(repo)
    sizes = sorted(module.lines for module in house.modules.values())
    entered, modules, changes = one_sample(house, benchmark)
    found = [
        Row("lines_src", "Python lines in src", sum(sizes), "92,000"),
        Row("files_src", "source files", len(sizes), "430"),
        Row("lines_tests", "Python lines in tests", lines_under(repo / "tests"), "45,000"),
        Row("files_entered", "one sample with one tool call: files entered", len(entered), "50", tuple(entered)),
        Row("modules_imported", "modules imported for it", len(modules), "", tuple(modules)),
    ]
    if not all_rows:
        return found
    lines_entered = sum((house.source.parent / path).read_bytes().count(b"\n") for path in entered)
    rooms, climbs = walk_of_config(house)
    at_run_time, typed = house.circles(), [*map(len, house.circles(with_types=True)), 0]
    given, branched, words = patterns(house), complex_functions(house), words_of_pages(repo)
    navigation = tomllib.loads((repo / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    reference = str([part["Reference"] for part in navigation if "Reference" in part])
    longest = max((count, name) for name, count in words.items() if name not in reference)
    short, long = sum(size < 100 for size in sizes), [m for m in house.modules.values() if m.lines > 500]
    plugin = house.modules["agrotools.plugin.contracts"].definitions["BenchmarkPlugin"]
    fields = [ast.unparse(node.target) for node in ast.iter_child_nodes(plugin) if isinstance(node, ast.AnnAssign)]
    return [
        *found,
        Row("lines_entered", "lines in the files entered", lines_entered, "10,000"),
        Row("changes_of_file", "calls from file to file", changes, "2,000"),
        Row("config_rooms", "files that the configuration visits", len(rooms), "20", tuple(rooms)),
        Row("config_climbs", "climbs to a higher package on that way", climbs, "6"),
        Row("circles", "circles of imports", len(at_run_time), "0", tuple(map(" ".join, at_run_time))),
        Row("circle_of_types", "files in the largest circle, imports for types counted", max(typed), "6"),
        Row("patterns", "regular expressions in scoring and text", len(given), "40", tuple(given)),
        Row("complex_functions", "functions of more than 30 paths", len(branched), "3", tuple(branched)),
        Row("plugin_fields", "fields of the plug-in object", len(fields), "12", tuple(fields)),
        Row("words_docs", "words in docs", sum(words.values()), "35,000"),
        Row("page_screens", f"screens of the longest page ({longest[1]})", round(longest[0] / _WORDS_A_SCREEN), "8"),
        Row("files_short", "source files under 100 lines", short, ""),
        Row("files_long", "source files over 500 lines", len(long), "", tuple(m.name for m in long)),
        Row("files_median", "median lines of a source file", round(statistics.median(sizes)), ""),
    ]


def ceilings() -> dict[str, int]:
    """The largest allowed figure of each row that has one."""
    return tomllib.loads(CEILINGS.read_text(encoding="utf-8"))


def check(found: Iterable[Row]) -> list[str]:
    """A line for each figure above its ceiling."""
    most = ceilings()
    return [
        f"{row.text}: {row.value:,}, above the ceiling of {most[row.name]:,}"
        for row in found
        if row.name in most and row.value > most[row.name]
    ]


def write_ceilings(found: Iterable[Row]) -> None:
    """Store the figures that fell as ceilings."""
    values = {row.name: row.value for row in found}
    lines = [f"{name} = {min(ceiling, values[name])}\n" for name, ceiling in ceilings().items()]
    CEILINGS.write_text(
        "# Written by performance/structure.py --update, which only lowers them.\n" + "".join(lines), "utf-8"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--repo", type=Path, default=ROOT, help="checkout to measure")
    parser.add_argument("--benchmark", default=str(GOLDEN), help="benchmark of the one sample, e.g. embedded")
    parser.add_argument("--list", metavar="ROW", help="print what was counted for this row")
    parser.add_argument("--check", action="store_true", help="fail above a ceiling")
    parser.add_argument("--update", action="store_true", help="store the figures that fell as ceilings")
    given = parser.parse_args()
    found = rows(given.repo.resolve(), given.benchmark, all_rows=not (given.check or given.update))
    if given.update:
        write_ceilings(found)
    if given.json:
        print(json.dumps({row.name: {"value": row.value, "goal": row.goal, "items": row.items} for row in found}))
    elif given.list:
        items = {row.name: row.items for row in found if row.items}
        if given.list not in items:
            parser.error(f"no such row; those with a list: {', '.join(items)}")
        print("\n".join(items[given.list]))
    else:
        for row in found:
            print(f"{row.text:<70}{row.value:>10,}  {row.goal}")
    faults = check(found) if given.check else []
    for line in faults:
        print(f"{line}; delete or shorten something", file=sys.stderr)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
