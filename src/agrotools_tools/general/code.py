"""Tools that run code in the sandbox: figures from a model's code, and equations solved exactly by SymPy."""

import base64
import io
import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, cast

from pydantic import Field, JsonValue

from agrotools.calling.arguments import ReferenceCall, normalise_set
from agrotools.calling.contract import Agree, ToolResult, tool
from agrotools.calling.services import SANDBOX, ServiceRequest, request_service
from agrotools.calling.workspace import save_artifact
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.core.libraries import DRAWING
from agrotools.core.texts import install_command
from agrotools.text.expression_syntax import plain_expression

LONGEST_CODE = 20_000


@dataclass(frozen=True)
class CodeRun:
    """Result of running code: the returned value as text, and the pictures it drew."""

    value: str | None
    pictures: tuple[bytes, ...]
    fault: str
    """error of the code in one line, empty if it succeeded"""


def run_in_sandbox(code: str, *, argument: str) -> CodeRun:
    """Run code and call its ``solution()``. ToolError ``backend_unavailable``, ``timeout``, ``limit``,
    ``invalid_argument`` (a denied operation), ``tool_failed`` (the sandbox was lost)."""
    reply = request_service(ServiceRequest(SANDBOX, {"code": code}))
    message = str(reply["message"])
    match str(reply["termination"]):
        case "ok" | "error":
            pictures = tuple(base64.b64decode(picture) for picture in reply["pictures"])
            return CodeRun(
                reply["value"], pictures, message if reply["termination"] == "error" else ""
            )
        case "wall_timeout" | "cpu_limit":
            raise ToolError(
                "timeout", f"the code took too long: {message}", argument=argument, hint="do less"
            )
        case "memory" | "output_cap" | "artifact_cap":
            raise ToolError(
                "limit",
                f"the code used too much: {message}",
                argument=argument,
                hint="make less of it",
            )
        case "denied":
            why = f"the code tried what the sandbox denies: {message}"
            hint = "it can reach no network, no other program and no file but its own"
            raise ToolError("invalid_argument", why, argument=argument, hint=hint)
        case _:
            raise ToolError(
                "tool_failed",
                f"the sandbox was lost: {message}",
                hint="try again",
                setup="agrotools doctor says what the sandbox needs",
            )


def require_sympy() -> None:
    """Refuse to go on without SymPy: code that is right would fail in the sandbox like code that is wrong."""
    if find_spec("sympy") is None:
        raise ToolError(
            "backend_unavailable",
            "solving equations needs sympy, which is not installed",
            setup=install_command("solve"),
        )


class CodeFigure(ToolResult):
    image: Artifact
    """the figure"""
    width_px: int
    height_px: int


@tool(category="general", version="1", backends=(SANDBOX,), cacheable=False, libraries=DRAWING)
def plot_code(
    code: Annotated[
        str,
        Agree("text"),
        Field(
            min_length=1,
            max_length=LONGEST_CODE,
            description="Python that defines solution(), which returns a figure",
        ),
    ],
) -> CodeFigure:
    """Draw a figure by Python code with matplotlib, bare or in a Markdown fence.

    The code defines a function solution() without arguments that returns the figure. It runs in a sandbox: no network,
    no other files, a few seconds. The tool plot draws from values alone and needs no code.

    Raises:
        ToolError: ``invalid_argument`` (the code fails, or makes no figure), ``timeout``, ``limit``,
            ``backend_unavailable`` (no sandbox on this machine).
    """
    ran = run_in_sandbox(code, argument="code")
    if ran.fault:
        raise ToolError(
            "invalid_argument",
            f"the code failed: {ran.fault}",
            argument="code",
            hint="fix that line",
        )
    if not ran.pictures:
        raise ToolError(
            "invalid_argument",
            "the code made no figure",
            argument="code",
            hint="solution() must return the figure",
        )
    from PIL import Image

    picture = Image.open(
        io.BytesIO(ran.pictures[0]), formats=["PNG", "JPEG"]
    )  # re-encoded by the sandbox
    return CodeFigure(
        image=save_artifact("figure.png", "plot", ran.pictures[0]),
        width_px=picture.width,
        height_px=picture.height,
        notes=()
        if len(ran.pictures) == 1
        else (f"the first of {len(ran.pictures)} pictures that the code made",),
        flags=("drawn_by_code",),
    )


MOST_EQUATIONS = 20
_LONGEST_VALUE = 4_000
_NO_EQUATION = re.compile(r"[^\w\s+\-*/^().,=<>]|__|[A-Za-z_)]\s*\.|\.\s*[A-Za-z_]|\blambda\b")
"""Characters and words that cannot occur in an equation (quotes, brackets, attributes, lambda).

This is only a first check; the sandbox protects the machine anyway.
"""
_AROUND_SIGNS = re.compile(r" ?([-+*/^(),=<>]) ?")
_OWN_NAMES = re.compile(r"^ValueError: | \(line \d+.*\Z", re.DOTALL)
"""Traces of the template code in an error message."""
_TEMPLATE = Path(__file__).with_name("equations.py.txt")
"""Code that solves the equations in the sandbox."""


class Solutions(ToolResult):
    text: str
    """the solutions in words, one to a line; or what the code returned"""
    solutions: tuple[dict[str, float | str], ...] | None
    """each solution: the unknowns and their values, as numbers where they are real; null for code and inequalities"""
    exact: tuple[dict[str, str], ...] | None
    """the same exactly: 3/2, sqrt(2)"""


def _resolve(call: Arguments, _known: ReferenceCall) -> Arguments:
    """Normalise equations and unknowns, whose order does not matter."""
    texts = cast("list[str]", call["equations"] or [])
    equations = [
        _AROUND_SIGNS.sub(r"\1", " ".join(plain_expression(each).split())) for each in texts
    ]
    return {
        **call,
        "equations": normalise_set(cast(JsonValue, equations)),
        "unknowns": normalise_set(call["unknowns"]),
    }


@tool(
    category="general",
    version="1",
    backends=(SANDBOX,),
    cacheable=False,
    significant_digits=15,
    resolves=_resolve,
)
def solve_equations(
    equations: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=500)]] | None,
        Agree("choice"),
        Field(
            min_length=1,
            max_length=MOST_EQUATIONS,
            description="equations: ['2*x + y = 7', 'x - y = -1']",
        ),
    ] = None,
    unknowns: Annotated[
        list[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z_0-9]{0,30}$")]] | None,
        Agree("choice"),
        Field(
            min_length=1,
            max_length=MOST_EQUATIONS,
            description="what to solve for; default: all names in them",
        ),
    ] = None,
    code: Annotated[
        str | None,
        Agree("text"),
        Field(
            max_length=LONGEST_CODE,
            description="instead: Python whose solution() returns the answer as text",
        ),
    ] = None,
) -> Solutions:
    """Solve equations or inequalities exactly: give equations as text, or Python code that uses SymPy.

    An equation without = is taken as equal to 0; ^ and ** are powers; pi and e are constants. Where there is no closed
    form, real solutions of a single equation are sought near 0 (flag numeric). Code defines solution() without
    arguments, which returns text; it runs in a sandbox, without network and files, for a few seconds.

    Raises:
        ToolError: ``invalid_argument`` (neither or both given, an equation or code that fails), ``timeout``,
            ``limit``, ``backend_unavailable`` (no SymPy, or no sandbox on this machine).
    """
    require_sympy()
    if (equations is None) == (code is None):
        raise ToolError("invalid_argument", "give either equations or code", argument="equations")
    if code is not None:
        ran = run_in_sandbox(code, argument="code")
        if ran.fault:
            raise ToolError(
                "invalid_argument",
                f"the code failed: {ran.fault}",
                argument="code",
                hint="fix that line",
            )
        if ran.value is None:
            raise ToolError(
                "invalid_argument",
                "solution() returned nothing",
                argument="code",
                hint="return text",
            )
        return Solutions(text=_shorten(ran.value), solutions=None, exact=None, flags=("by_code",))
    equations = [plain_expression(equation) for equation in equations or ()]
    for equation in equations:
        if _NO_EQUATION.search(equation):
            why = f"{equation[:60]!r} is not an equation"
            hint = "write numbers, names, + - * / ^ ( ) and functions such as sqrt(x); anything else goes into code"
            raise ToolError("invalid_argument", why, argument="equations", hint=hint)
    payload = json.dumps({"equations": equations, "unknowns": unknowns})
    code = _TEMPLATE.read_text("utf-8").replace("GIVEN_AS_JSON", repr(payload))
    ran = run_in_sandbox(code, argument="equations")
    if ran.fault or ran.value is None:
        why = f"the equations cannot be solved: {_OWN_NAMES.sub('', ran.fault) or 'no answer'}"
        hint = "write * for products and name the unknowns; not every equation has a solution in closed form"
        raise ToolError("invalid_argument", why, argument="equations", hint=hint)
    solution = json.loads(ran.value)
    if "condition" in solution:
        return Solutions(text=_shorten(solution["condition"]), solutions=None, exact=None)
    flags = () if solution["solutions"] else ("no_solution",)
    if solution.get("always"):
        flags = ("always_true",)
    if solution.get("numeric"):
        flags = ("numeric", "more_solutions_possible")
    return Solutions(
        text=_shorten(_in_words(solution)),
        solutions=tuple(solution["solutions"]),
        exact=tuple(solution["exact"]),
        flags=flags,
    )


def _in_words(solution: dict[str, list[dict[str, object]]]) -> str:
    if solution.get("always"):
        return "true whatever the names stand for"
    if not solution["solutions"]:
        return "no solution"
    lines: list[str] = []
    for plain, exact in zip(solution["solutions"], solution["exact"], strict=True):
        parts: list[str] = []
        for name, value in exact.items():
            number = plain[name]
            short = f"{number:.10g}" if isinstance(number, float) else str(value)
            parts.append(f"{name} = {value}" + (f" ({short})" if short != value else ""))
        lines.append(", ".join(parts))
    return "\n".join(lines)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."
