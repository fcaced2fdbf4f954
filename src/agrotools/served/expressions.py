"""Expressions in a binding: our own (:mod:`agrotools.text.expressions`), with paths such as ``traits.area.value``."""

import ast
from collections.abc import Mapping
from typing import Any

from agrotools.core import UsageError
from agrotools.text.expressions import evaluate

_LACKING = "there is no value of "


class NoValue(Exception):
    """An expression uses a value that a call or a result lacks, or that is null there."""


def names_in(expression: str) -> set[str]:
    """Return the names of the values that an expression uses; UsageError if it is none."""
    called = {
        node.func.id
        for node in ast.walk(_tree(expression))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    used = {node.id for node in ast.walk(_tree(expression)) if isinstance(node, ast.Name)}
    return used - called - {"true", "false", "pi", "e"}


def value_of(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression over the values of a call, or over a result.

    Raises:
        NoValue: a name that it uses has none.
        ExpressionError: it cannot be evaluated.
    """
    if expression in values:
        if values[expression] is None:
            raise NoValue(_LACKING + expression)
        return values[expression]
    tree = _Paths().visit(_tree(expression))
    used = names_in(expression)
    for name in used:
        if values.get(name) is None:
            raise NoValue(_LACKING + name)
    return evaluate(ast.unparse(tree), {name: values[name] for name in used})


def is_true(expression: str, values: Mapping[str, Any]) -> bool:
    """Return whether a condition holds; a name without a value counts as false."""
    known = {
        name: False if values.get(name) is None else values[name] for name in names_in(expression)
    }
    return bool(value_of(expression, known))


def _tree(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"{expression!r} is no expression", hint="e.g. count, traits.area.value, cover * 100"
        ) from error


class _Paths(ast.NodeTransformer):
    """Writes ``a.b`` as ``a['b']``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = self.visit(node.value)
        return ast.Subscript(inner, ast.Constant(node.attr), ast.Load())
