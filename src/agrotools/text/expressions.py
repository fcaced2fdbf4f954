"""Evaluator of arithmetic expressions, for the ``calculate`` tool, for ``Slot.from`` and for agreement.

It limits the size of values, the available operators and the amount of work.
"""

# simpleeval has no type annotations, so the type checker knows nothing about its members.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import ast
import inspect
import keyword
import math
import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import JsonValue
from simpleeval import SimpleEval

from agrotools.core import AbstainSlot
from agrotools.core.record import (
    REF_PATTERN,
    Results,
    UnresolvedRef,
    reference_words,
    resolve_ref,
)
from agrotools.text.agronomy import AGRONOMIC_FUNCTIONS
from agrotools.text.expression_functions import (
    CONSTANTS,
    GENERAL_FUNCTIONS,
    STATISTICAL_FUNCTIONS,
    ExpressionError,
    Function,
    Number,
    excerpt,
    kind_of,
    number,
)
from agrotools.text.expression_syntax import MAX_CHARACTERS, parse_expression, plain_expression

MAX_ELEMENTS = 10_000
"""Maximum number of elements of a list, including those of nested lists."""
MAX_ELEMENTS_READ = 40_000
"""Maximum number of list elements that one evaluation may read in total, which bounds its time."""
MAX_LIST_DEPTH = 8
"""Maximum nesting depth of lists and objects."""
MAX_TEXT = 10_000
"""Maximum length of a text, in characters."""

Value = JsonValue


def checked_variables(variables: Mapping[str, Any]) -> dict[str, Value]:
    """Check variables and return them with names normalised as in Python (NFKC) and values as plain data.

    Raises:
        ExpressionError: a name is invalid or used twice, or a value is not finite, of another type or too large.
    """
    values: dict[str, Value] = {}
    budget = MAX_ELEMENTS_READ
    for written, value in variables.items():
        name = unicodedata.normalize("NFKC", written)
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            why = f"{excerpt(written)} cannot name a variable"
            raise ExpressionError(why, hint="use letters, digits and _, and begin with a letter")
        if name in values:
            raise ExpressionError(f"variable {name} is given twice", hint="use different names")
        count = element_count(value)
        if count > MAX_ELEMENTS:
            why = f"variable {name} has {count} elements, more than {MAX_ELEMENTS}"
            raise ExpressionError(why, hint="pass a shorter list")
        budget -= count
        if budget < 0:
            raise ExpressionError(
                f"the variables hold more than {MAX_ELEMENTS_READ} list elements",
                hint="pass shorter lists",
            )
        if value is None:
            raise ExpressionError(
                f"variable {name} is null", hint="pass a number, a list of numbers, or text"
            )
        values[name] = _copied(value, f"variable {name}")
    return values


def _copied(value: object, what: str) -> Value:
    """Return a copy of ``value`` as plain data; lists and objects may contain null, which cannot be calculated with."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ExpressionError(
            f"{what} has text of more than {MAX_TEXT} characters", hint="pass shorter text"
        )
    if isinstance(value, (list, tuple)):
        return [
            item if type(item) is float and math.isfinite(item) else _copied(item, what)
            for item in cast("Sequence[object]", value)
        ]
    if isinstance(value, dict):
        return {
            str(key): _copied(item, what)
            for key, item in cast("dict[object, object]", value).items()
        }
    return checked(value, what)


def element_count(value: object, depth: int = 0) -> int:
    """Return the number of elements of a list or object, including nested ones; 0 for anything else."""
    if depth > MAX_LIST_DEPTH:
        raise ExpressionError("a list is nested too deep", hint="use flat lists of numbers")
    if isinstance(value, dict):
        return element_count(list(cast("dict[object, object]", value).values()), depth)
    if not isinstance(value, (list, tuple)):
        return 0
    items = cast("Sequence[object]", value)
    return len(items) + sum(
        element_count(item, depth + 1) for item in items if type(item) in _CONTAINERS
    )


_CONTAINERS = frozenset({list, tuple, dict})


def checked(value: object, what: str) -> Value:
    """Return ``value`` if it is valid: finite, real, not too large.

    Raises:
        ExpressionError: it is not valid; ``what`` names it in the message.
    """
    if isinstance(value, (int, float)):
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ExpressionError(f"{what} is too large", hint="keep numbers below 1e308")
        if not math.isfinite(value):
            raise ExpressionError(f"{what} is not a finite number", hint="keep numbers below 1e308")
    elif isinstance(value, complex):
        raise ExpressionError(f"{what} is no real number", hint="write cbrt(x) for a cube root")
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            if type(item) is not float or not math.isfinite(item):
                checked(item, what)
    elif not isinstance(value, (str, dict)) and value is not None:
        raise ExpressionError(
            f"{what} is {kind_of(value)}", hint="pass a number, a list of numbers, or text"
        )
    return cast(Value, value)


# --- operators -----------------------------------------------------------------------------------------------------


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1:
        if exponent * math.log2(abs(base)) > 1024:
            raise OverflowError
        return base**exponent
    return float(base) ** exponent if exponent < 0 or isinstance(base, float) else base**exponent


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Number, Number], object]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", _power),
}


def apply(op: ast.operator, left: Value, right: Value) -> object:
    sign, function = _ARITHMETIC[type(op)]
    if isinstance(left, list) or isinstance(right, list):
        why = f"{sign} works on numbers, not on lists"
        raise ExpressionError(
            why, hint="use scale(values, factor), diff(values), sum(values)..., or write [a*2, b*2]"
        )
    return function(number(left, sign), number(right, sign))


def _ordered(
    sign: str, compare: Callable[[Number, Number], bool]
) -> Callable[[Value, Value], bool]:
    return lambda left, right: compare(number(left, sign), number(right, sign))


def _contains(item: Value, container: Value) -> bool:
    if isinstance(container, list):
        return item in container
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    raise ExpressionError(
        f"'in' needs a list on its right, not {kind_of(container)}", hint="write x in [1, 2, 3]"
    )


def element(container: Value, key: object) -> Value:
    if isinstance(container, dict):
        if isinstance(key, str) and key in container:
            return container[key]
        raise ExpressionError(
            f"there is no field {excerpt(key)}", hint=f"fields: {excerpt(', '.join(container))}"
        )
    if not isinstance(container, (list, str)):
        why = f"[{excerpt(key)}] works on lists, not on {kind_of(container)}"
        raise ExpressionError(why, hint="write values[0] for the first")
    if isinstance(key, slice):
        start, stop, step = cast("tuple[object, object, object]", (key.start, key.stop, key.step))
        if (
            not all(bound is None or type(bound) is int for bound in (start, stop, step))
            or step == 0
        ):
            raise ExpressionError(
                "a slice takes whole numbers, its step not 0", hint="write values[1:3]"
            )
        return container[key]
    if type(key) is not int:
        raise ExpressionError(
            f"a position is a whole number, not {excerpt(key)}", hint="positions count from 0"
        )
    if not -len(container) <= key < len(container):
        raise ExpressionError(
            f"there is no position {key} in a list of {len(container)}",
            hint="positions count from 0, from the end -1",
        )
    return container[key]


def _lacks(item: Value, container: Value) -> bool:
    return not _contains(item, container)


def _signed(sign: str, apply_sign: Callable[[Number], Number]) -> Callable[[Value], Number]:
    return lambda value: apply_sign(number(value, sign))


OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    ast.USub: _signed("-", operator.neg),
    ast.UAdd: _signed("+", operator.pos),
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered("<", operator.lt),
    ast.LtE: _ordered("<=", operator.le),
    ast.Gt: _ordered(">", operator.gt),
    ast.GtE: _ordered(">=", operator.ge),
    ast.In: _contains,
    ast.NotIn: _lacks,
}


FUNCTIONS: dict[str, Function] = {
    **GENERAL_FUNCTIONS,
    **STATISTICAL_FUNCTIONS,
    **AGRONOMIC_FUNCTIONS,
}
"""All functions that an expression may call, by name."""
MAX_FROM_CHARACTERS = 4_000
"""Maximum length of a ``Slot.from`` including its references, which are long."""
MAX_STEP_ELEMENTS = 20
"""Parts of an expression whose value is a longer list are not recorded as steps."""

_signature = cache(inspect.signature)


class EvaluationStep(NamedTuple):
    """A part of an expression, as written, and its value."""

    expression: str
    value: Value


def evaluate(
    expression: str,
    variables: Mapping[str, Any] | None = None,
    *,
    constants: Sequence[Number] | None = None,
    functions: Mapping[str, Function] | None = None,
) -> Value:
    """Return the value of ``expression``, which may use ``variables`` (numbers, booleans, text, lists, objects).

    ``constants`` replace the numbers written in the expression, in the order of :func:`numbers_written`; ``functions``
    may be called in addition to :data:`FUNCTIONS` and take precedence over them.

    Raises:
        ExpressionError: not an expression, an unknown name, an undefined value (division by zero...), a result that is
            not finite, or more work than the limits allow.
    """
    evaluation = _Evaluation(expression, variables or {}, {**FUNCTIONS, **(functions or {})})
    for node, value in (
        zip(evaluation.number_nodes(), constants, strict=True) if constants is not None else ()
    ):
        node.value = value
    return evaluation.run()


def numbers_written(expression: str, variables: Mapping[str, Any] | None = None) -> list[Number]:
    """Return the numbers written in ``expression``, in order.

    Raises:
        ExpressionError: the expression cannot be parsed.
    """
    return [
        cast(Number, node.value) for node in _Evaluation(expression, variables or {}).number_nodes()
    ]


def evaluate_steps(
    expression: str, variables: Mapping[str, Any] | None = None
) -> list[EvaluationStep]:
    """Return all operations and calls of ``expression`` in the order of evaluation, last the whole expression.

    Raises:
        ExpressionError: see :func:`evaluate`.
    """
    evaluation = _Evaluation(expression, variables or {})
    value = evaluation.run()
    steps = evaluation.steps
    if not steps or steps[-1].expression != evaluation.text:
        steps.append(EvaluationStep(evaluation.text, value))
    return steps


def evaluate_from(expression: str, results: Results) -> JsonValue:
    """Return the value of a ``Slot.from``, an expression over ``steps[N].observation...``.

    A single reference returns the raw value.

    Raises:
        UnresolvedRef: a reference has no value or, in an expression, refers to null or a number that is not finite.
        ExpressionError: see :func:`evaluate`.
    """
    text = expression.strip()
    if REF_PATTERN.fullmatch(text):
        return resolve_ref(text, results)
    if len(text) > MAX_FROM_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters, more than {MAX_FROM_CHARACTERS}",
            hint="write a shorter one",
        )
    names: dict[str, str] = {}

    def name_of(match: re.Match[str]) -> str:
        return (
            match[0] if match["quoted"] else names.setdefault(match[0], f"ref_value_{len(names)}")
        )

    short = _REF_OR_QUOTED.sub(name_of, text)
    variables = {name: resolve_ref(ref, results) for ref, name in names.items()}
    for ref, name in names.items():
        value = variables[name]
        for item in value if isinstance(value, list) else [value]:
            if item is None or (isinstance(item, float) and not math.isfinite(item)):
                raise UnresolvedRef(
                    f"{reference_words(ref)} is {excerpt(item)}, no value to calculate with"
                )
    try:
        return _Evaluation(short, variables, most=MAX_FROM_CHARACTERS).run()
    except ExpressionError as error:
        raise ExpressionError(
            _with_refs(error.message, names), hint=_with_refs(error.hint, names)
        ) from None


def shows_no_answer(slot: AbstainSlot, results: Results) -> bool:
    """True if ``results`` show that there is no answer.

    That is if ``from`` of the slot is true or, without one, if no ``from`` of the slots that are asked for has a value.
    An empty text is no value: it stands for a label that is none of those offered.
    """
    if slot.from_ is not None:
        return _value_or_none(slot.from_, results) is True
    return all(
        each.from_ is None or _value_or_none(each.from_, results) in (None, "")
        for each in slot.asks
    )


def _value_or_none(expression: str, results: Results) -> object:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None


_REF_OR_QUOTED = re.compile(rf"(?P<quoted>'[^']*'|\"[^\"]*\")|{REF_PATTERN.pattern}")


def _with_refs(text: str, names: dict[str, str]) -> str:
    for ref, name in reversed(names.items()):
        text = text.replace(name, reference_words(ref))
    return text


class _Evaluation(SimpleEval):
    """One evaluation. simpleeval walks the tree; allowed nodes, operators and limits are defined here."""

    def __init__(
        self,
        expression: str,
        variables: Mapping[str, Any],
        functions: dict[str, Function] = FUNCTIONS,
        most: int = MAX_CHARACTERS,
    ) -> None:
        names: dict[str, Value] = {**CONSTANTS, **checked_variables(variables)}
        # SimpleEval.__init__ takes half the time of a short evaluation, for nodes and functions that are not used here.
        self.operators, self.functions, self.names = OPERATORS, functions, names
        self.text = plain_expression(expression)
        self.steps: list[EvaluationStep] = []
        self._tree = parse_expression(self.text, names, functions, most)
        self._functions = functions
        self._elements_left = MAX_ELEMENTS_READ

    def number_nodes(self) -> list[ast.Constant]:
        """Return the nodes of the numbers written in the expression, in order."""
        nodes = [node for node in ast.walk(self._tree) if isinstance(node, ast.Constant)]
        return sorted(
            (node for node in nodes if type(node.value) in (int, float)),
            key=lambda node: node.col_offset,
        )

    def run(self) -> Value:
        try:
            return self._value(self._tree.body)
        except RecursionError:
            raise ExpressionError(
                "the expression is nested too deep", hint="calculate in several calls"
            ) from None

    def _value(self, node: ast.AST) -> Value:
        return cast(Value, self._eval(node))

    def _eval(self, node: ast.AST) -> object:
        # Without simpleeval's search of values, which are plain data by construction, for forbidden functions.
        return getattr(self, f"_eval_{type(node).__name__.lower()}")(node)

    def _eval_binop(self, node: ast.BinOp) -> Value:
        # The tree of a chain a + b + c is as deep as the chain is long: follow its left side instead of recursing.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self._value(chain[-1].left)
        for part in reversed(chain):
            value = self._guarded(part, apply, part.op, value, self._value(part.right))
        return value

    def _eval_call(self, node: ast.Call) -> Value:
        name = cast(ast.Name, node.func).id
        arguments = [self._value(argument) for argument in node.args]
        by_name = {cast(str, each.arg): self._value(each.value) for each in node.keywords}
        self._read(*arguments, *by_name.values())
        function = self._functions[name]
        try:
            _signature(function).bind(*arguments, **by_name)
        except TypeError as error:
            parameters = str(_signature(function)).partition(" ->")[0].replace(": JsonValue", "")
            raise ExpressionError(f"{name}: {error}", hint=f"write {name}{parameters}") from None
        return self._guarded(node, function, *arguments, **by_name)

    def _eval_list(self, node: ast.List | ast.Tuple) -> Value:
        items: list[Value] = []
        elements = 0
        for item in node.elts:
            items.append(self._value(item))
            elements += 1 + self._read(items[-1])
            if elements > MAX_ELEMENTS:
                raise ExpressionError(
                    f"a list has more than {MAX_ELEMENTS} elements", hint="use a shorter list"
                )
        return items

    _eval_tuple = _eval_list

    def _eval_subscript(self, node: ast.Subscript) -> Value:
        container = self._value(node.value)
        key = self._eval(node.slice)
        self._read(container if isinstance(node.slice, ast.Slice) else None)
        return self._guarded(node, element, container, key)

    def _read(self, *values: object) -> int:
        """Count the elements about to be read; raise if the evaluation has read too many."""
        count = sum(element_count(value) for value in values)
        self._elements_left -= count
        if self._elements_left < 0:
            why = f"the expression reads more than {MAX_ELEMENTS_READ} list elements"
            raise ExpressionError(why, hint="use shorter lists, or calculate in several calls")
        return count

    def _guarded(
        self,
        node: ast.expr,
        operation: Callable[..., object],
        *operands: object,
        **keywords: object,
    ) -> Value:
        """Return the value of an operation; errors name the part of the expression that caused them."""
        part = self.text.encode()[node.col_offset : node.end_col_offset].decode()
        try:
            value = checked(operation(*operands, **keywords), excerpt(part))
        except ZeroDivisionError:
            raise ExpressionError(
                f"division by zero in {excerpt(part)}", hint="the divisor must not be 0"
            ) from None
        except OverflowError:
            raise ExpressionError(
                f"{excerpt(part)} is too large", hint="keep numbers below 1e308"
            ) from None
        except (ValueError, ArithmeticError) as error:
            raise ExpressionError(
                f"{excerpt(part)} does not exist: {error}", hint="check its arguments"
            ) from None
        if not isinstance(value, list) or len(value) <= MAX_STEP_ELEMENTS:
            self.steps.append(EvaluationStep(part, value))
        return value
