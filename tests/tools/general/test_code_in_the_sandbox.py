"""Tools that run code: equations and figures, through a real worker and a real sandbox."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace, artifacts_in
from agrotools.core import AgrotoolsError, ToolCall, ToolError
from agrotools.sandbox.running import select_runner
from agrotools_benchmarks._dialogs.tools import Plot, Solver
from agrotools_tools.general import code
from agrotools_tools.general.code import _NO_EQUATION, plot_code, solve_equations


def _why_no_sandbox() -> str:
    try:
        select_runner(None)
    except (AgrotoolsError, NotImplementedError) as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(
    bool(_why_no_sandbox()), reason=f"no sandbox: {_why_no_sandbox()}"
)
FIGURE = """```python
import matplotlib.pyplot as plt
def solution():
    figure, axes = plt.subplots(figsize=(4, 3), dpi=100)
    axes.bar(["wheat", "rye"], [4, 3])
    return figure
```"""
ROOTS = """```python
from sympy import symbols, solve
def solution():
    x = symbols("x")
    return str(solve(x**2 - 4, x))
```"""


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own code for equations without a sandbox, whose start costs more than the equation."""

    def run(source: str, *, argument: str) -> code.CodeRun:
        namespace: dict[str, Any] = {}
        try:
            exec(source, namespace)
            return code.CodeRun(namespace["solution"](), (), "")
        except Exception as error:
            return code.CodeRun(
                None, (), f"{type(error).__name__}: {error} (line 1: read(part, {argument}))"
            )

    monkeypatch.setattr(code, "run_in_sandbox", run)


@pytest.mark.usefixtures("in_this_process")
class TestEquations:
    @pytest.mark.parametrize(
        ("equations", "unknowns", "exact"),
        [
            (["2x + y = 7", "x - y = -1"], None, [{"x": "2", "y": "3"}]),
            (["x^2 - 2"], None, [{"x": "-sqrt(2)"}, {"x": "sqrt(2)"}]),
            (["E = m*c**2"], ["m"], [{"m": "E/c**2"}]),
            (["x = x + 1"], None, []),
            (["x² − 4 = 0"], ["x", "x"], [{"x": "-2"}, {"x": "2"}]),
            (["log10(x) = 2"], None, [{"x": "100"}]),
            (["gamma + S + N = I"], ["gamma"], [{"gamma": "I - N - S"}]),
            (["k(x + 1) = 3"], ["k"], [{"k": "3/(x + 1)"}]),
            (["max(2, 3) = sqrt(x)"], None, [{"x": "9"}]),
        ],
    )
    def test_solutions_are_exact(self, equations, unknowns, exact):
        assert solve_equations(equations=equations, unknowns=unknowns).exact == tuple(exact)

    def test_numbers_words_and_flags(self) -> None:
        assert solve_equations(equations=["3x = 1"]).text == "x = 1/3 (0.3333333333)"
        assert solve_equations(equations=["x**2 < 4"]).text == "(-2 < x) & (x < 2)"
        assert solve_equations(equations=["x = x + 1"]).flags == ("no_solution",)
        assert solve_equations(equations=["x = x"]).flags == ("always_true",)
        steps = solve_equations(equations=["cos(x) = x"])
        assert steps.solutions[0]["x"] == pytest.approx(0.7390851332151607)
        assert "numeric" in steps.flags

    @pytest.mark.parametrize(
        "equation",
        [
            "x + = 3",
            "(x",
            "x = 1 = 2",
            "1,5*x = 3",
            "print(x) = 3",
            "exit() = 3",
            "2foo(x) = 3",
            "x, y",
        ],
    )
    def test_what_cannot_be_read_is_a_typed_error(self, equation: str) -> None:
        with pytest.raises(ToolError, match="cannot be solved") as caught:
            solve_equations(equations=[equation])
        assert (caught.value.kind, caught.value.argument) == ("invalid_argument", "equations")
        assert not any(
            word in str(caught.value) for word in ("parse_expr", "Sympify", "Token", "Error")
        )


@needs_sandbox
class TestEquationsInTheSandbox:
    def test_equations_are_solved_and_code_that_fails_is_an_error_or_as_published_a_text(
        self,
    ) -> None:
        assert solve_equations(equations=["2x + y = 7", "x - y = -1"]).exact == (
            {"x": "2", "y": "3"},
        )
        with pytest.raises(ToolError, match=r"solved: there is no function foo \("):
            solve_equations(equations=["foo(x) = 3"])
        bad = "def solution():\n    return 1 / 0"
        with pytest.raises(ToolError, match="ZeroDivisionError") as caught:
            solve_equations(code=bad)
        assert caught.value.kind == "invalid_argument"
        assert Solver(command=bad).text.startswith("ZeroDivisionError")


@needs_sandbox
class TestFigures:
    def test_a_figure_is_kept(self, tmp_path: Path) -> None:
        with artifacts_in(tmp_path) as out:
            made, published = plot_code(code=FIGURE), Plot(command=FIGURE)
        for name in (made.image.name, published.image.name):
            with Image.open(out / name) as picture:
                assert picture.size == (made.width_px, made.height_px)
                assert len(picture.convert("RGB").getcolors(1_000_000) or []) > 2

    @pytest.mark.parametrize("code", ["def solution():\n    return 3", "def solution(:"])
    def test_code_without_a_figure_is_a_typed_error(self, code: str) -> None:
        with pytest.raises(ToolError) as caught:
            plot_code(code=code)
        assert caught.value.kind == "invalid_argument"


@pytest.mark.process
@needs_sandbox
async def test_a_worker_asks_for_the_sandbox_and_stays_clean(tmp_path: Path) -> None:
    names = ["Solver", "Plot"]
    async with ToolExecutor(workers=1) as executor:
        calls = (
            ToolCall(tool="Solver", arguments={"command": ROOTS}),
            ToolCall(tool="Plot", arguments={"command": FIGURE}),
        )
        solved, drawn = [
            await executor.run(call, Workspace((), tmp_path / "made"), names) for call in calls
        ]
        assert len(executor.worker_pids) == 1
    assert solved.observation.result is not None, (solved.observation.error, solved.log)
    assert solved.observation.result["text"] == "[-2, 2]"
    assert drawn.observation.result is not None, (drawn.observation.error, drawn.log)
    assert (tmp_path / "made" / str(drawn.observation.result["image"])).is_file()


def test_without_a_sandbox_it_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    from agrotools.sandbox import running
    from agrotools.sandbox.result import SandboxUnavailable

    def none(*_: Any, **__: Any) -> None:
        raise SandboxUnavailable("neither bubblewrap nor Landlock is here")

    monkeypatch.setattr(running, "run_code", none)
    with pytest.raises(ToolError, match="neither bubblewrap") as caught:
        Solver(command=ROOTS)
    assert caught.value.kind == "backend_unavailable"
    assert "agrotools doctor" in str(caught.value.advice)


@pytest.mark.parametrize(
    ("termination", "kind"),
    [("wall_timeout", "timeout"), ("cpu_limit", "timeout"), ("memory", "limit"), ("output_cap", "limit"),
     ("artifact_cap", "limit"), ("denied", "invalid_argument"), ("infrastructure", "tool_failed")],
)  # fmt: skip
def test_each_end_of_a_run_has_its_error(
    monkeypatch: pytest.MonkeyPatch, termination: str, kind: str
) -> None:
    reply = {"value": None, "pictures": [], "termination": termination, "message": "so it ended"}
    monkeypatch.setattr(code, "request_service", lambda _request: reply)
    with pytest.raises(ToolError, match="so it ended") as caught:
        code.run_in_sandbox("x", argument="code")
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "given_both", [{}, {"equations": ["x = 1"], "code": "def solution(): return 1"}]
)
def test_either_equations_or_code(given_both: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="either equations or code"):
        solve_equations(**given_both)


@pytest.mark.parametrize(
    "equation",
    [
        '__import__("os").system("ls") = x', "x.subs(x, 1)", "[1][0] = x", "lambda x: x", "(1).real", "x != 3",
        "x | y",
    ],
)  # fmt: skip
def test_equations_that_are_code_reach_no_sandbox(
    monkeypatch: pytest.MonkeyPatch, equation: str
) -> None:
    monkeypatch.setattr(code, "request_service", lambda _request: pytest.fail("it was asked for"))
    with pytest.raises(ToolError, match="is not an equation"):
        solve_equations(equations=[equation])


@given(st.text(alphabet="xyz0123456789.+-*/^()= ", max_size=40))
def test_ordinary_equations_are_let_in(equation: str) -> None:
    if _NO_EQUATION.search(equation):
        assert "." in equation  # a point beside a name is an attribute


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(solve_equations, {"equations": ["x = 1"]}), (Solver, {"command": ROOTS})],
)
def test_without_sympy_a_solver_is_unavailable_and_the_code_is_not_wrong(
    tool, arguments, monkeypatch
):
    monkeypatch.setattr(code, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match="needs sympy") as missing:
        tool.function(**arguments)
    assert missing.value.kind == "backend_unavailable"
    assert "[solve]" in str(missing.value.advice)
