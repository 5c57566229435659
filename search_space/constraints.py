"""Constraints between parameters: `warmup < epochs`, `layer.kernel * 2 <= width` and the like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .expressions import ExpressionError, InactiveParameter, Names, Run, parse_expression
from .problems import Problem, show

__all__ = ["Constraint", "evaluation_error", "read_constraints"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One condition that every point of the space must meet."""

    text: str
    run: Run

    def holds(self, point: Mapping[str, Any]) -> bool:
        """Return whether a point meets the condition; one on an inactive parameter is met.

        Raise `ExpressionError` if the condition cannot be evaluated at this point (such as a division by zero).
        """
        try:
            return bool(self.run(point))
        except InactiveParameter:
            return True
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ExpressionError(str(error)) from error

    def met(self, point: Mapping[str, Any]) -> bool:
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
            Problem(("constraints",), f"expected a list of conditions, not {show(constraints)}", hint)
        ]
    read: list[Constraint] = []
    problems: list[Problem] = []
    for i, text in enumerate(constraints):
        if not isinstance(text, str):
            problems.append(Problem(("constraints", i), f"a condition is a string, not {show(text)}"))
            continue
        run, faults = parse_expression(text, names)
        read.append(Constraint(text, run))
        problems += [Problem(("constraints", i), message, hint) for message, hint in faults]
    return tuple(read), problems


def evaluation_error(constraint: Constraint, points: list[dict[str, Any]]) -> str:
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
