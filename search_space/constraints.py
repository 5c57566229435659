"""Constraints between parameters: `warmup < epochs`, `layer.kernel * 2 <= width` and the like.

Their small expression language is parsed with `ast`, restricted to a whitelist, and turned into closures.

Python itself neither compiles nor evaluates anything, and the length and depth of an expression and the size of its
numbers are bounded: an expression from an untrusted source can at worst be wrong.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from keyword import iskeyword
from numbers import Real
from typing import Any

from ..protocol import Parameters, brief
from .json_checks import Problem, nearest

MAX_LENGTH = 1000  # characters
MAX_DEPTH = 100  # levels of the syntax tree; a + b + c has three
_MAX_BITS = 4096  # of an integer power
_MAX_DIGITS = 300  # second argument of round()
_ROUNDING = 1e-14  # of numbers that count as equal, such as 0.1 * 3 and 0.3

Run = Callable[[Parameters], Any]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One condition that every point of the space must meet."""

    text: str
    run: Run

    def holds(self, point: Parameters) -> bool:
        """Return whether a point meets the condition; one on an inactive parameter is met.

        Raise `ExpressionError` if the condition cannot be evaluated at this point (such as a division by zero).
        """
        try:
            return bool(self.run(point))
        except InactiveParameter:
            return True
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ExpressionError(str(error)) from error

    def met(self, point: Parameters) -> bool:
        """Return whether a point meets the condition; one that cannot be evaluated is not met."""
        try:
            return self.holds(point)
        except ExpressionError:
            return False


def read_constraints(constraints: Any, names: Names) -> tuple[tuple[Constraint, ...], list[Problem]]:
    """Return the constraints over these dotted parameter names, and all problems.

    >>> _, problems = read_constraints(["widht > 8"], Names({"width": ("width",)}))
    >>> print(problems[0])
    constraints[0]: there is no parameter 'widht' (did you mean 'width'?)
    """
    if not isinstance(constraints, list | tuple):
        hint = "put it in a list" if isinstance(constraints, str) else ""
        return (), [
            Problem(("constraints",), f"expected a list of conditions, not {brief(constraints)}", hint)
        ]
    read: list[Constraint] = []
    problems: list[Problem] = []
    for i, text in enumerate(constraints):
        if not isinstance(text, str):
            problems.append(Problem(("constraints", i), f"a condition is a string, not {brief(text)}"))
            continue
        run, faults = parse_expression(text, names)
        read.append(Constraint(text, run))
        problems += [Problem(("constraints", i), message, hint) for message, hint in faults]
    return tuple(read), problems


def evaluation_error(constraint: Constraint, points: list[Parameters]) -> str:
    """Return why a condition cannot be evaluated at any of these points; an empty string if it can at one."""
    message = ""
    for point in points:
        try:
            constraint.holds(point)
        except ExpressionError as error:
            message = str(error)
        else:
            return ""
    return message


@dataclass(frozen=True, slots=True)
class Names:
    """The parameters an expression may use: dotted name to keys, `a.b` to `("a", "b")`.

    `unread` are parameters that could not be read: nothing below them is reported as unknown.
    """

    known: dict[str, tuple[str, ...]]
    unread: frozenset[str] = frozenset()

    def find(self, name: str) -> tuple[str, ...] | None:
        """Return the keys that lead to a parameter, or None if there is no such parameter."""
        parts = name.split(".")
        if any(".".join(parts[:end]) in self.unread for end in range(1, len(parts) + 1)):
            return tuple(parts)
        return self.known.get(name)


class ExpressionError(ValueError):
    """Raised when a value cannot be computed: a division by zero, a string minus a number, a huge power."""


class InactiveParameter(LookupError):
    """Raised when an expression reaches a parameter that the point does not have."""


def parse_expression(text: str, names: Names) -> tuple[Run, list[tuple[str, str]]]:
    """Return a function from a point to the value of the expression, and all (message, hint) against it.

    If there are problems, the function must not be used.

    >>> run, problems = parse_expression("low + 1 < high", Names({"low": ("low",), "high": ("high",)}))
    >>> run({"low": 1, "high": 3}), problems
    (True, [])
    """
    translator = _Translator(names)
    tree, problem = _tree(text, names)
    if tree is None:
        return _nothing, [problem]
    run = translator.translate(tree, 0)
    if not translator.problems and not isinstance(tree, _TRUTHS):
        translator.problem("the expression compares nothing", "write a condition, such as a + b <= 10")
    return run, translator.problems


def _tree(text: str, names: Names) -> tuple[ast.expr | None, tuple[str, str]]:
    if len(text) > MAX_LENGTH:
        return None, (f"the expression is longer than {MAX_LENGTH} characters", "split it into several")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape in a string
            return ast.parse(text.strip(), mode="eval").body, ("", "")
    except SyntaxError as error:
        return None, (f"not an expression: {error.msg}", _syntax_hint(text, names))
    except (ValueError, RecursionError, MemoryError):
        return None, ("not an expression that can be parsed", "")


def _syntax_hint(text: str, names: Names) -> str:
    for name, keys in names.known.items():
        if name in text and any(not key.isidentifier() or iskeyword(key) for key in keys):
            return f'write parameters["{name}"] for that name'
    for sign, word in (("&&", "and"), ("||", "or")):
        if sign in text:
            return f"write {word}, not {sign}"
    return "use == to compare" if "=" in text and "==" not in text else ""


def _nothing(_: Parameters) -> Any:
    return None


_TRUTHS = (ast.Compare, ast.BoolOp, ast.Name, ast.Attribute, ast.Subscript, ast.UnaryOp)
_WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.IfExp: "if ... else",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "an f-string",
    ast.Dict: "a dict",
    ast.Starred: "*",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Slice: "a slice",
}


class _Translator:
    """Turns a syntax tree into closures and collects every problem instead of stopping at the first."""

    def __init__(self, names: Names):
        self.names = names
        self.problems: list[tuple[str, str]] = []

    def problem(self, message: str, hint: str = "") -> Run:
        if (message, hint) not in self.problems:
            self.problems.append((message, hint))
        return _nothing

    def translate(self, node: ast.expr, depth: int) -> Run:
        if depth > MAX_DEPTH:
            return self.problem(f"the expression is nested more than {MAX_DEPTH} levels deep")
        handler = _HANDLERS.get(type(node))
        if handler is None:
            what = _WORDS.get(type(node), f"this ({type(node).__name__})")
            return self.problem(f"{what} is not allowed in a constraint")
        return handler(self, node, depth + 1)

    def constant(self, node: ast.Constant, _depth: int) -> Run:
        value = node.value
        if value is not None and not isinstance(value, bool | int | float | str):
            return self.problem(f"{brief(value)} is not allowed in a constraint")
        return lambda _: value

    def sequence(self, node: ast.List | ast.Tuple | ast.Set, depth: int) -> Run:
        items = [self.translate(item, depth) for item in node.elts]
        return lambda point: [item(point) for item in items]

    def name(self, node: ast.Name, _depth: int) -> Run:
        return self.parameter(node.id)

    def attribute(self, node: ast.Attribute, _depth: int) -> Run:
        parts = [node.attr]
        root = node.value
        while isinstance(root, ast.Attribute):
            parts.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return self.problem(f"the attribute .{node.attr} is not allowed in a constraint")
        return self.parameter(".".join([root.id, *reversed(parts)]))

    def subscript(self, node: ast.Subscript, _depth: int) -> Run:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.value, ast.Name) and node.value.id == "parameters" and isinstance(key, str):
            return self.parameter(key)
        return self.problem("[...] is not allowed in a constraint", 'only parameters["name"] is')

    def parameter(self, name: str) -> Run:
        keys = self.names.find(name)
        if keys is None:
            return self.problem(f"there is no parameter {brief(name)}", self._meant(name))
        return lambda point: _look_up(point, keys)

    def _meant(self, name: str) -> str:
        """Return the parameter that is probably meant, as it has to be written."""
        hyphened = [known for known in self.names.known if "-" in known and name in known.split("-")]
        return f'write parameters["{hyphened[0]}"]' if hyphened else nearest(name, self.names.known)

    def unary(self, node: ast.UnaryOp, depth: int) -> Run:
        operand = self.translate(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda point: not operand(point)
        operation = {ast.USub: operator.neg, ast.UAdd: operator.pos}.get(type(node.op))
        if operation is None:
            return self.problem("~ is not allowed in a constraint")
        return lambda point: operation(_numeric(operand(point)))

    def binary(self, node: ast.BinOp, depth: int) -> Run:
        operation = _OPERATIONS.get(type(node.op))
        left, right = self.translate(node.left, depth), self.translate(node.right, depth)
        if operation is None:
            return self.problem(f"the operator {type(node.op).__name__} is not allowed in a constraint")
        return lambda point: operation(_numeric(left(point)), _numeric(right(point)))

    def boolean(self, node: ast.BoolOp, depth: int) -> Run:
        *first, last = [self.translate(operand, depth) for operand in node.values]
        decisive = isinstance(node.op, ast.Or)

        def run(point: Parameters) -> Any:
            for operand in first:
                value = operand(point)
                if bool(value) is decisive:
                    return value
            return last(point)

        return run

    def compare(self, node: ast.Compare, depth: int) -> Run:
        first = self.translate(node.left, depth)
        steps = []
        for symbol, operand in zip(node.ops, node.comparators, strict=True):
            comparison = _COMPARISONS.get(type(symbol))
            if comparison is None:
                return self.problem("`is` is not allowed in a constraint", "use ==")
            steps.append((comparison, self.translate(operand, depth)))

        def run(point: Parameters) -> bool:
            left = first(point)
            for comparison, operand in steps:
                right = operand(point)
                if not comparison(left, right):
                    return False
                left = right
            return True

        return run

    def call(self, node: ast.Call, depth: int) -> Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = _FUNCTIONS.get(name)
        arguments = [self.translate(argument, depth) for argument in node.args]
        if function is None or node.keywords:
            what = f"{name}()" if name else "this call"
            return self.problem(
                f"{what} is not allowed in a constraint", f"functions: {', '.join(_FUNCTIONS)}"
            )
        least, most, operation = function
        if not least <= len(arguments) <= most:
            return self.problem(f"{name}() does not take {len(arguments)} arguments")
        return lambda point: operation(*[argument(point) for argument in arguments])


def _look_up(point: Parameters, keys: tuple[str, ...]) -> Any:
    """Return the value of a parameter; for a nested choice, its `_name`."""
    value: Any = point
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise InactiveParameter(key)
        value = value[key]
    return value["_name"] if isinstance(value, dict) and "_name" in value else value


def _numeric(value: Any) -> Any:
    """Return a number, refuse anything else: `*` and `%` on strings could make strings of any size."""
    if not isinstance(value, Real):
        raise ExpressionError(f"{brief(value)} is not a number")
    return value


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and base.bit_length() * exponent > _MAX_BITS:
        raise ExpressionError(f"{brief(base)} ** {brief(exponent)} is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ExpressionError(f"{brief(base)} ** {brief(exponent)} is not a real number")
    return result


def _abs(value: Any) -> Any:
    return abs(_numeric(value))


def _sum(values: Any) -> Any:
    if not isinstance(values, list):
        raise ExpressionError(f"sum() needs a list, not {brief(values)}")
    return sum(_numeric(value) for value in values)


def _round(value: Any, digits: Any = None) -> Any:
    if digits is not None and not (isinstance(digits, int) and abs(digits) <= _MAX_DIGITS):
        raise ExpressionError(f"{brief(digits)} is not a number of digits")
    return round(_numeric(value), digits)


def _is_near(left: Any, right: Any) -> bool:
    """Return whether two numbers differ by rounding alone, as multiples of 0.1 and sums of them do."""
    is_exact = isinstance(left, int) and isinstance(right, int)
    if is_exact or not (isinstance(left, Real) and isinstance(right, Real)):
        return False
    try:
        return math.isclose(left, right, rel_tol=_ROUNDING)
    except OverflowError:  # an integer beyond all floats
        return False


def _apart(left: Any, right: Any) -> tuple[Any, Any]:
    """Return what decides a comparison: the first items of two lists that differ, or the values themselves.

    Those that differ by rounding alone decide nothing, so that what is left is compared as Python compares it.
    """
    if isinstance(left, list) and isinstance(right, list):
        pairs = (_apart(*pair) for pair in zip(left, right, strict=False))
        return next((pair for pair in pairs if pair[0] != pair[1]), (len(left), len(right)))
    return (left, left) if _is_near(left, right) else (left, right)


def _is_in(left: Any, right: Any) -> bool:
    return any(_equal(left, item) for item in right) if isinstance(right, list) else left in right


def _equal(left: Any, right: Any) -> bool:
    one, other = _apart(left, right)
    return one == other


_HANDLERS: dict[type[ast.expr], Callable[[_Translator, Any, int], Run]] = {
    ast.Constant: _Translator.constant,
    ast.List: _Translator.sequence,
    ast.Tuple: _Translator.sequence,
    ast.Set: _Translator.sequence,
    ast.Name: _Translator.name,
    ast.Attribute: _Translator.attribute,
    ast.Subscript: _Translator.subscript,
    ast.UnaryOp: _Translator.unary,
    ast.BinOp: _Translator.binary,
    ast.BoolOp: _Translator.boolean,
    ast.Compare: _Translator.compare,
    ast.Call: _Translator.call,
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda left, right: not _equal(left, right),
    ast.Lt: lambda left, right: operator.lt(*_apart(left, right)),
    ast.LtE: lambda left, right: operator.le(*_apart(left, right)),
    ast.Gt: lambda left, right: operator.gt(*_apart(left, right)),
    ast.GtE: lambda left, right: operator.ge(*_apart(left, right)),
    ast.In: _is_in,
    ast.NotIn: lambda left, right: not _is_in(left, right),
}
# name: (fewest arguments, most arguments, what it does)
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "abs": (1, 1, _abs),
    "min": (1, 100, min),
    "max": (1, 100, max),
    "sum": (1, 1, _sum),
    "len": (1, 1, len),
    "round": (1, 2, _round),
}
