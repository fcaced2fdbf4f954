"""Parser of expressions: converts text to a checked syntax tree and gives a hint for anything not allowed."""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from agrotools.text.expression_functions import ExpressionError, excerpt

MAX_CHARACTERS = 500
MAX_DEPTH = 40
"""Maximum nesting depth of brackets and calls. A chain ``a + b + c + ...`` is flat, however long it is."""
_NAMES_SHOWN = 40
"""Known names that the hint for an unknown one lists."""

_QUOTED = re.compile(r"('[^']*'|\"[^\"]*\")")
_SUPERSCRIPT = re.compile(r"⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_PLAIN_SIGNS = str.maketrans(
    {
        **dict.fromkeys("×·⋅∙∗✕✖", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("−‐‑‒–—﹣", "-"),
        **dict.fromkeys("‘’‚", "'"),
        **dict.fromkeys("“”„", '"'),
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "、": ",",
        "【": "[",
        "】": "]",
    }
)
_KEYWORD_AFTER_DIGIT = re.compile(r"(?<=[\d.])(?=(?:and|or|if|else|in|not)\b)")

_ALLOWED: frozenset[type[ast.AST]] = frozenset(
    {
        # parts of an expression
        ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Name,
        ast.Constant, ast.List, ast.Tuple, ast.Subscript, ast.Slice, ast.Load,
        # operators
        ast.And, ast.Or, ast.Not,
        ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd,
        ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    }
)  # fmt: skip

_COMPREHENSION = (
    "comprehensions are not available",
    "write out the list, or use scale, diff, count_above, pluck",
)
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.BitXor: ("^ is not a power here", "write ** for a power: 2**3"),
    ast.Attribute: (
        "attributes (a.b) are not available",
        "call a function, such as mean(a), or pass the value itself",
    ),
    ast.Starred: ("* before an argument is not available", "pass the list itself: max(values)"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _COMPREHENSION),
}
"""Syntax of Python that models write often and that is not available: why not, and what to write instead."""


def plain_expression(text: str) -> str:
    """Return ``text`` on one line, with typographic signs outside quotes (× ÷ − ² ≤, full-width) in plain form."""
    parts = _QUOTED.split(" ".join(text.split()))
    for index in range(0, len(parts), 2):
        part = _SUPERSCRIPT.sub(
            lambda match: f"**{match[0].translate(_PLAIN_DIGITS)}", parts[index]
        )
        parts[index] = _KEYWORD_AFTER_DIGIT.sub(" ", part.translate(_PLAIN_SIGNS))
    return "".join(parts)


def parse_expression(
    text: str, names: Collection[str], functions: Collection[str], most: int = MAX_CHARACTERS
) -> ast.Expression:
    """Parse ``text`` (a result of :func:`plain_expression`) and check every node, name and literal.

    ``names`` are the available variables and constants.

    Raises:
        ExpressionError: the text is too long, is not an expression, or uses something that is not available.
    """
    _check_size(text, most)
    _check_signs(text)
    tree = _parsed(text)
    # Identities of the nodes that name a called function. A call comes before its function.
    called: set[int] = set()
    for node, depth in _nodes(tree):
        if depth > MAX_DEPTH:
            raise _too_deep()
        if type(node) not in _ALLOWED:
            raise _not_available(node)
        if isinstance(node, ast.Call):
            _check_call(node, names, functions)
            called.add(id(node.func))
        elif isinstance(node, ast.Constant):
            _check_literal(node.value)
        elif isinstance(node, ast.Name) and id(node) not in called:
            _check_name(node.id, names, functions)
    return tree


def _check_size(text: str, most: int) -> None:
    if not text:
        raise ExpressionError(
            "the expression is empty", hint="write one, such as (a - b) / a * 100"
        )
    if len(text) > most:
        raise ExpressionError(
            f"the expression has {len(text)} characters, more than {most}",
            hint="pass long lists as variables, or calculate in several calls",
        )


def _parsed(text: str) -> ast.Expression:
    """Return the syntax tree of a text that is one expression, and no list without brackets."""
    # Before Python reads it, whose parser fails on deep nesting with other errors.
    if _bracket_depth(text) > MAX_DEPTH:
        raise _too_deep()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(
            f"{excerpt(text)} is not an expression", hint=_syntax_hint(text, error)
        ) from None
    if isinstance(tree.body, ast.Tuple):
        raise ExpressionError(
            "a comma separates values: this is a list, not a number",
            hint="write 1204 without thousands separator, or [1, 204] for a list",
        )
    return tree


def _not_available(node: ast.AST) -> ExpressionError:
    refused = _REFUSED.get(type(node))
    if refused is None:
        return ExpressionError(
            f"{type(node).__name__} is not available",
            hint="use numbers, variables, lists and functions",
        )
    message, hint = refused
    return ExpressionError(message, hint=hint)


def _too_deep() -> ExpressionError:
    return ExpressionError(
        f"the expression is nested more than {MAX_DEPTH} deep", hint="calculate in several calls"
    )


def _bracket_depth(text: str) -> int:
    depth = deepest = 0
    for sign in _QUOTED.sub("", text):
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _nodes(tree: ast.Expression) -> Iterator[tuple[ast.AST, int]]:
    """Yield all nodes in written order with their depth; a left operand has the same depth as its operator."""
    open_nodes: list[tuple[ast.AST, int]] = [(tree, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        yield node, depth
        if isinstance(node, ast.Constant) or not node._fields:
            continue
        for child in reversed([*ast.iter_child_nodes(node)]):
            flat = (
                isinstance(node, ast.BinOp) and child is node.left and isinstance(child, ast.BinOp)
            )
            open_nodes.append((child, depth if flat else depth + 1))


def _check_name(name: str, names: Collection[str], functions: Collection[str]) -> None:
    """Check that a name which is not called is one of a variable or a constant."""
    if name in names:
        return
    if name in functions:
        raise ExpressionError(f"{name} is a function", hint=f"write {name}(...)")
    hint = f"give its value as a variable; known names: {', '.join([*names][:_NAMES_SHOWN])}"
    if close := get_close_matches(name, [*names, *functions], n=3, cutoff=0.6):
        hint = f"did you mean {', '.join(close)}?"
    raise ExpressionError(f"{name} is not defined", hint=hint)


def _check_literal(value: object) -> None:
    if isinstance(value, (bytes, complex)) or value is None or value is Ellipsis:
        raise ExpressionError(
            f"{value!r} is not available", hint="use real numbers and text in quotes"
        )
    if isinstance(value, (int, float)) and abs(value) > sys.float_info.max:
        raise ExpressionError(
            "a number in the expression is too large", hint="keep numbers below 1e308"
        )


def _check_call(node: ast.Call, names: Collection[str], functions: Collection[str]) -> None:
    if any(keyword.arg is None for keyword in node.keywords):
        raise ExpressionError(
            "** before an argument is not available", hint="pass the values one by one"
        )
    if isinstance(node.func, ast.Attribute):
        raise ExpressionError(
            f"methods (.{node.func.attr}(...)) are not available",
            hint=f"known functions: {', '.join(functions)}",
        )
    if not isinstance(node.func, ast.Name):
        raise ExpressionError(
            "only a function's name can be called", hint="write * to multiply: 2*(a + b)"
        )
    name = node.func.id
    if name in functions:
        return
    if name in names:
        raise ExpressionError(
            f"{name} is a variable, not a function", hint=f"write * to multiply: {name}*(...)"
        )
    close = get_close_matches(name.lower(), functions, n=3, cutoff=0.5)
    hint = f"known functions: {', '.join(functions)}"
    if close:
        hint = f"did you mean {', '.join(close)}?"
    raise ExpressionError(f"there is no function {name}", hint=hint)


_SIGNS = {
    "#": "leave out comments",
    "\\": "write plain arithmetic, no LaTeX: (a + b) / c",
    "$": "leave out currency and LaTeX signs",
    "√": "write sqrt(x)",
    "‰": "write / 1000",
    "°": "leave out units",
    ":=": "give the value as a variable",
}


def _check_signs(text: str) -> None:
    """Refuse signs that Python does not accept or interprets differently from their common meaning."""
    bare = _QUOTED.sub("''", text)
    for sign, hint in _SIGNS.items():
        if sign in bare:
            raise ExpressionError(f"{sign} is not available", hint=hint)
    if re.search(r"(?<!\w)_", bare):
        raise ExpressionError(
            "names that start with _ are not available", hint="start the name with a letter"
        )
    if re.search(r"(?<![=<>!])=(?!=)", re.sub(r"(?<=[(,])\s*\w+\s*=(?!=)", "", bare)):
        raise ExpressionError(
            "nothing can be stored with =", hint="leave out 'x ='; write == to compare"
        )
    if re.search(r"\b0[xXoObB]", bare):
        raise ExpressionError("numbers are decimal", hint="write 31 instead of 0x1f")


def _syntax_hint(text: str, error: BaseException) -> str:
    bare = _QUOTED.sub("''", text)
    if bare.count("(") != bare.count(")"):
        return f"{bare.count('(')} opening and {bare.count(')')} closing brackets"
    if sign := re.search(r"\d\s*(?:(?P<percent>%)\s*(?:$|[-+*/),])|(?P<factorial>!)(?!=))", bare):
        return "write 35/100 for 35%" if sign["percent"] else "write factorial(5) for 5!"
    if re.search(r"\d(?:\s+\d|\s*(?!and\b|or\b|if\b|else\b|in\b|not\b)[^\W\d_])", bare):
        return "leave out units and spaces in numbers, and write * to multiply: 2*x"
    place = getattr(error, "offset", None)
    where = f"near character {place}; " if isinstance(place, int) and place > 0 else ""
    return f"{where}write one arithmetic expression, such as (a - b) / a * 100"
