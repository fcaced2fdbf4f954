"""Expressions as the published Calculator takes them: Python with the names of its module ``math``.

They are evaluated by our own evaluator, which runs no code. What Python takes and it does not is written in other
words first; what is left (comprehensions, tuples, gcd, lcm, gamma, erf...) is refused with a hint.
"""

import ast
import math
from typing import ClassVar

from agrotools.core import ToolError
from agrotools.text.expressions import evaluate
from agrotools.text.function_arguments import ExpressionError

_ALIKE = {"fabs": "abs", "trunc": "int", "fsum": "sum", "ln": "log"}


def calculated(expression: str) -> str:
    """The value of an expression as Python prints it.

    Raises:
        ToolError: ``invalid_argument``: it cannot be read, has no value, or would cost too much.
    """
    try:
        return str(evaluate(_in_our_words(expression)))
    except ExpressionError as error:
        raise ToolError("invalid_argument", error.message, argument="expression", hint=error.hint) from None


def _in_our_words(expression: str) -> str:
    """The expression without ``math.``, and with functions that we have under other names or not at all rewritten."""
    text = expression.strip()
    if len(text) > 500:
        return text  # which the evaluator refuses with its own words
    try:
        tree = ast.parse(text, mode="eval")
        rewritten = _Rewriting().visit(tree)
        return ast.unparse(rewritten) if _Rewriting.changed(text) else text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


class _Rewriting(ast.NodeTransformer):
    _NAMES: ClassVar[tuple[str, ...]] = (
        "math.",
        "fabs",
        "trunc",
        "fsum",
        "pow",
        "perm",
        "isqrt",
        "sinh",
        "cosh",
        "tanh",
        "fmod",
        "tau",
        "0x",
        "dist",
    )

    @classmethod
    def changed(cls, text: str) -> bool:
        """Whether anything in the text is rewritten: what is not is evaluated exactly as it was written."""
        return any(name in text for name in cls._NAMES)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "math":
            return self.visit(ast.Name(node.attr, ast.Load()))
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(math.tau) if node.id == "tau" else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.keywords:
            return node
        name, given = node.func.id, [ast.unparse(each) for each in node.args]
        if name in _ALIKE:
            return ast.Call(ast.Name(_ALIKE[name], ast.Load()), node.args, [])
        match name, given:
            case "pow", [base, power]:
                written = f"float(({base}) ** ({power}))"
            case "perm", [n, k]:
                written = f"comb({n}, {k}) * factorial({k})"
            case "isqrt", [n]:
                written = f"floor(sqrt({n}))"
            case "sinh", [x]:
                written = f"(exp({x}) - exp(-({x}))) / 2"
            case "cosh", [x]:
                written = f"(exp({x}) + exp(-({x}))) / 2"
            case "tanh", [x]:
                written = f"(exp(2 * ({x})) - 1) / (exp(2 * ({x})) + 1)"
            case "fmod", [x, y]:
                written = f"float(abs({x}) % abs({y})) * (1 if ({x}) >= 0 else -1)"
            case _:
                return node
        return ast.parse(f"({written})", mode="eval").body
