"""Validates a draft with the models, and words their errors as sentences that show the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from .problems import MISSING, Finding, did_you_mean, shown
from .root_fields import ConfigFields
from .units import UnitError

__all__ = ["Fields", "validate_fields"]

Fields = TypeVar("Fields", bound=ConfigFields)

_KINDS = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
# What the fields that hold others look like.
_EXAMPLES = {
    "objectives": "[{name: accuracy, direction: maximize}]",
    "defaults": "{lr: 0.1, layers: 2}",
    "initial_points": "[{lr: 0.1, layers: 2}]",
    "priors": "{lr: {centre: 0.1}}",
    "warm_start": "[k3x9a2bq, earlier.csv]",
    "repeats": "{count: 5}",
}
# The field that a section written as one word probably means.
_FIRST_FIELDS = {"training_service": "platform"}


def validate_fields(
    model: type[Fields], values: Mapping[str, Any], context: Mapping[str, Any]
) -> tuple[Fields, list[Finding]]:
    """Return the model and the problems; a malformed top-level field gets its default."""
    try:
        return model.model_validate(dict(values), context=dict(context)), []
    except ValidationError as error:
        findings = [_finding(item) for item in error.errors(include_url=False)]
    wrong = {finding.path[0] for finding in findings}
    rest = {name: value for name, value in values.items() if name not in wrong}
    return model.model_validate(rest, context=dict(context)), findings


def _finding(error: Mapping[str, Any]) -> Finding:
    path = tuple(error["loc"])
    if path[:1] == ("training_service",):
        # The union of training services adds the platform to the path.
        path = path[:1] + path[2:]
    if path[-1] == "[key]":
        path = path[:-1]
    message, hint = _sentence(error)
    return Finding(path=path, message=message, hint=hint)


def _sentence(error: Mapping[str, Any]) -> tuple[str, str]:
    kind, value, details = error["type"], error.get("input"), error.get("ctx", {})
    cause = details.get("error")
    if isinstance(cause, UnitError):
        return str(cause), cause.hint
    if kind == "missing":
        return MISSING, ""
    if kind in ("string_too_short", "too_short"):
        return "must not be empty", ""
    if kind == "literal_error":
        choices = details["expected"].replace("'", "")
        return f"must be {choices}, not {shown(value)}", did_you_mean(value, _words(choices))
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**details)}, not {shown(value)}", ""
    if kind in _KINDS:
        field = str(error["loc"][0])
        is_whole = len(error["loc"]) == 1 and field in _EXAMPLES
        hint = f"such as {_EXAMPLES[field]}" if is_whole else _type_hint(kind, value, field)
        return f"must be {_KINDS[kind]}, not {shown(value)}", hint
    return f"{error['msg']}, not {shown(value)}", ""


def _words(choices: str) -> list[str]:
    return choices.replace(" or ", ", ").split(", ")


def _type_hint(kind: str, value: Any, field: str) -> str:
    if kind == "string_type" and isinstance(value, int | float):
        return "put it in quotes"
    if kind in ("model_type", "model_attributes_type", "dict_type") and isinstance(value, str):
        return f"{_FIRST_FIELDS[field]}: {value}" if field in _FIRST_FIELDS else ""
    if kind in ("int_type", "float_type") and isinstance(value, str) and _is_number_text(value):
        return f"write {value} without quotes"
    if kind == "bool_type" and isinstance(value, str):
        meant = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
        return f"write {meant[value.lower()]}" if value.lower() in meant else ""
    return ""


def _is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
