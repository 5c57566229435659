"""Queries of the table of trials: filters, order and page, as SQL with bound values. `field_sql.py` has the fields."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from ...protocol import Objective, main_objective
from ...runner import FailureKind, TrialStatus
from ..annotations import Annotation
from .field_sql import (
    JSON_HEADS,
    NOTED,
    Clause,
    QueryError,
    field_expression,
    last_expression,
    limits_exceeded,
)
from .trial_columns import TrialTable, ValueKind, columns_in

_SYMBOLS = ("<=", ">=", "!=", "<", ">", "=", "~")
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_SUBSCRIPT = re.compile(rf"\s*\[\s*({_QUOTED})\s*\]", re.DOTALL)
_NAMES = re.compile(rf"(?:{_SUBSCRIPT.pattern}|[^,])+", re.DOTALL)
# Names in brackets may have any characters, others no sign of a comparison.
_FIELD = rf"""[^<>=!~\[\]"']+(?:{_SUBSCRIPT.pattern})+\s*|(?:(?!\[\s*["'])[^<>=!~])+"""
_CONDITION = re.compile(rf"(?P<field>{_FIELD})(?P<symbol><=|>=|!=|==|=|<|>|~)(?P<value>.+)", re.DOTALL)
# An `or`, a comma or a second comparison that would otherwise become a part of the value.
_SECOND = re.compile(r"(?:\s(?:or|and)\s|[&|]).*[<>=~]|[,;]|&&|\|\|", re.IGNORECASE)
# Numbers that JSON does not know, but people do.
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
# As tables print them, 2 min 05 s, or without spaces: 1h30m.
_DURATION = re.compile(r"(?:\d+\.?\d*\s*(?:s|min|m|h|d)\s*)+")
_PART = re.compile(r"(\d+\.?\d*)\s*([smhd])")
_SECONDS: Mapping[str, int] = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86400})
# As Python and constraints write them; in quotes they are text.
_PYTHON_WORDS: Mapping[str, str] = MappingProxyType({"None": "null", "True": "true", "False": "false"})
MARKS = ("front", "limits")
"""The columns beside the results of several objectives, or of limits."""
_ROUNDING = 1e-12  # relative: 0.1 + 0.05 is not 0.15
_AND = re.compile(rf"(?<!\w){_QUOTED}|(?P<and>\s+and\s+)", re.DOTALL | re.IGNORECASE)
_NOT = re.compile(r"not\b\s*(?=\w)", re.IGNORECASE)
_OPPOSITE: Mapping[str, str] = MappingProxyType(
    {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
)
_TURNED: Mapping[str, str] = MappingProxyType({"<": ">", "<=": ">=", ">": "<", ">=": "<="})
_TEXTS = tuple(column.name for column in columns_in(TrialTable.WHERE) if column.kind in ("text", "status"))
ORDERED = ("<", "<=", ">", ">=")
_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"status": tuple(TrialStatus), "kind": tuple(FailureKind)}
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a field with a value; `symbol` is one of < <= > >= = != ~ (contains)."""

    field: str
    symbol: str
    value: Any
    is_bare: bool = dataclasses.field(default=False, repr=False, compare=False)  # text without quotes

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read `field symbol value`; the value is JSON if possible, else text. Raise `QueryError` for anything else.

        A name may be written as in constraints, `parameters["model.min-leaf"]`.

        >>> Condition.parse("parameters.lr >= 1e-3")
        Condition(field='parameters.lr', symbol='>=', value=0.001)
        >>> Condition.parse('parameters["a=b"] ~ median')
        Condition(field='parameters.a=b', symbol='~', value='median')
        """
        found = _CONDITION.fullmatch(text.strip())
        if found is None:
            raise QueryError(
                f"'{text}' is not a condition: write FIELD < VALUE, with one of {' '.join(_SYMBOLS)}"
            )
        symbol, value = found["symbol"].replace("==", "="), found["value"].strip()
        if found["field"].lstrip().startswith("("):
            raise QueryError("conditions have no parentheses: write them one after the other, joined by and")
        _check_order(found["field"].strip(), symbol, value)
        name = plain_field(found["field"])
        if len(value) > 1 and value[0] == value[-1] == "'":
            return cls(name, symbol, value[1:-1])
        if value[0] not in '"[{' and _SECOND.search(value):
            raise QueryError(
                f"'{value}' is not one value: only and joins conditions; text with commas goes into quotes"
            )
        if symbol != "~" and value in _PYTHON_WORDS:
            raise QueryError(
                f"write {_PYTHON_WORDS[value]} for {value}, or '{value}' in quotes for that text"
            )
        read = value if symbol == "~" else _value(value)
        return cls(name, symbol, read, is_bare=read == value)

    @classmethod
    def parse_all(cls, text: str) -> list[Condition]:
        """Read conditions joined by `and`; raise `QueryError`.

        >>> [one.value for one in Condition.parse_all("parameters.lr < 0.1 and status == 'FAILED'")]
        [0.1, 'FAILED']
        """
        joints = [found.span("and") for found in _AND.finditer(text) if found["and"]]
        begins, ends = [0, *(end for _, end in joints)], [*(begin for begin, _ in joints), len(text)]
        return [cls.parse(text[begin:end]) for begin, end in zip(begins, ends, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Which trials, in which order, which page of them; by default the first 100 trials.

    `search` is text to find in the parameters, reason, error or id, or the number; None as `limit` means all. `sort` is
    a field, one of `MARKS`, or `best`: the trials that keep the limits first, among them those in `front`, by the first
    objective; then the others, the closest to the limits first. In these orders, and by an objective, trials without a
    result follow by their last intermediate one. Conditions on tags and notes look into `noted`, by the number of the
    trial, those on what marks trials beside their results into `marks`.
    """

    statuses: Sequence[str] = ()
    kinds: Sequence[str] = ()
    conditions: Sequence[Condition] = ()
    search: str = ""
    sort: str = "sequence_id"
    descending: bool = False
    offset: int = 0
    limit: int | None = 100
    noted: Mapping[int | None, Annotation] = field(default_factory=dict)
    front: Sequence[int] = ()
    marks: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @property
    def asks_notes(self) -> bool:
        """Whether a condition is about tags or notes, which are not in the database."""
        return any(condition.field in NOTED for condition in self.conditions)

    @property
    def may_find_all(self) -> bool:
        """Whether every trial meets a condition on a name that no trial has."""
        return any(condition.symbol == "!=" or condition.value is None for condition in self.conditions)

    def where(self, main: str = "default") -> Clause:
        """Return the WHERE clause over `trials t`, with its values; raise `QueryError` for an unknown field.

        `main` is the name of the objective that `value` and `last` mean.
        """
        clauses, values = ["1"], list[Any]()
        for column, chosen in (("t.status", self.statuses), ("t.kind", self.kinds)):
            if chosen:
                clauses.append(f"{column} IN ({', '.join('?' * len(chosen))})")
                values += chosen
        for condition in map(_in_seconds, map(_upper, self.conditions)):
            is_noted = condition.field in NOTED
            expression = self._expression(condition.field, main) if not is_noted else ("", [])
            clause, bound = (
                _about_notes(condition, self.noted) if is_noted else _comparison(condition, *expression)
            )
            clauses.append(clause)
            values += bound
        if self.search:
            clause, bound = _contains(self.search)
            clauses.append(clause)
            values += bound
        return " AND ".join(clauses), values

    def order(self, objectives: Sequence[Objective] = (Objective(),)) -> Clause:
        """Return the ORDER BY clause, with its values: trials without a value come last in both directions."""
        if self.sort == "sequence_id":
            return f"t.sequence_id {'DESC' if self.descending else 'ASC'}", []
        main = main_objective(objectives).name
        if self.sort == "best":
            goal = next(one for one in objectives if one.direction is not None)
            value, values = field_expression(f"value.{goal.name}", main)
            excess, bound = limits_exceeded(objectives)
            excess = f"(SELECT {excess} FROM objective_values WHERE sequence_id = t.sequence_id)"
            direction = "DESC" if goal.direction == "maximize" else "ASC"
            is_behind = "t.sequence_id NOT IN (SELECT value FROM json_each(?))"
            order = f"{value} IS NULL, {excess}, {is_behind}, {value} {direction}"
            bound = [*values, *bound, json.dumps(list(self.front)), *values]
            return _then_by_last(order, bound, f"value.{goal.name}", main, direction)
        expression, values = self._expression(self.sort, main)
        direction = "DESC" if self.descending else "ASC"
        order = f"{expression} {direction} NULLS LAST"
        if self.sort.partition(".")[0] == "value":
            return _then_by_last(order, values, self.sort, main, direction)
        return f"{order}, t.sequence_id", values

    def _expression(self, field: str, main: str) -> Clause:
        if field not in MARKS:
            return field_expression(field, main)
        compared = "coalesce(family_of(t.record), t.sequence_id)"
        marks = json.dumps(self.marks.get(field, {}))
        return f"(SELECT value FROM json_each(?) WHERE CAST(key AS INTEGER) = {compared})", [marks]

    def page(self) -> Clause:
        """Return the LIMIT clause, with its values."""
        return "LIMIT ? OFFSET ?", [-1 if self.limit is None else self.limit, self.offset]


def _then_by_last(order: str, values: Sequence[Any], field: str, main: str, direction: str) -> Clause:
    """Return an order by an objective in which trials without a result follow by their last intermediate one."""
    result, bound = field_expression(field, main)
    last, in_last = last_expression(field.partition(".")[2] or main, main)
    then = f"CASE WHEN {result} IS NULL THEN ({last}) END {direction} NULLS LAST"
    return f"{order}, {then}, t.sequence_id", [*values, *bound, *in_last]


def _upper(condition: Condition) -> Condition:
    """Return a condition on a status or a kind in capitals; raise `QueryError` for one that no trial has."""
    words = _WORDS.get(condition.field)
    if words is None or condition.symbol not in ("=", "!=") or condition.value is None:
        return condition
    word = str(condition.value).upper()
    if word not in words:
        raise QueryError(f"'{condition.value}' is not a {condition.field}: write one of {', '.join(words)}")
    return replace(condition, value=word)


def _in_seconds(condition: Condition) -> Condition:
    """Return a condition with the number that its text means, on a column of durations or of times.

    Raise `QueryError` for text that is compared by order with a column of numbers.
    """
    value, kind = condition.value, _KINDS.get(condition.field.partition(".")[0], "json")
    if not isinstance(value, str) or condition.symbol == "~" or kind in ("text", "status"):
        return condition
    if kind == "duration" and _DURATION.fullmatch(value):
        return replace(
            condition, value=sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(value))
        )
    if kind == "moment":
        with suppress(ValueError):
            return replace(condition, value=datetime.fromisoformat(value).timestamp())
    if condition.symbol in ORDERED and (kind != "json" or condition.is_bare):
        what, hint = _EXAMPLES.get(kind, ("number", ""))
        why = f"'{value}' is not a {what}, so it cannot be compared by {condition.symbol}"
        raise QueryError(f"{why}; {hint}" if hint else why)
    return condition


_KINDS: Mapping[str, ValueKind] = MappingProxyType(
    {
        **{column.name: column.kind for column in columns_in(TrialTable.WHERE)},
        "value": "number",
        "last": "number",
    }
)
_EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "duration": ("duration", "write 90s, 5 min or 1.5h"),
        "moment": ("time", "write 2026-01-31 or 2026-01-31 14:30"),
        "json": ("number", "text goes into quotes"),
    }
)


def plain_field(text: str) -> str:
    """Return a field with its names in brackets as other names; without brackets it is the text.

    >>> plain_field("parameters['model']['lr']"), plain_field('parameters["model"]["min.leaf"]')
    ('parameters.model.lr', 'parameters.model/min.leaf')
    """
    text = text.strip()
    if (first := _SUBSCRIPT.search(text)) is None:
        return text
    head, *names = text[: first.start()].strip().split(".")
    names += [_unquoted(found[1]) for found in _SUBSCRIPT.finditer(text, first.start())]
    is_nested = len(names) > 1 and any("." in name or "/" in name for name in names)
    slashes = (count * "/" for count in itertools.count(1))
    between = next(one for one in slashes if not any(one in name for name in names)) if is_nested else "."
    return f"{head}.{between.join(names)}"


def spelled_field(field: str) -> str:
    """Return a field as a condition has to spell it, with a name in brackets if the name needs them.

    >>> spelled_field("parameters.min-leaf"), spelled_field("parameters.a=b")
    ('parameters.min-leaf', 'parameters["a=b"]')
    """
    head, _, name = field.partition(".")
    is_plain = re.fullmatch(r"[\w./-]*", name)
    return field if is_plain else f"{head}[{json.dumps(name, ensure_ascii=False)}]"


def split_names(text: str) -> list[str]:
    """Return the names of columns in a text, which commas separate; a name in brackets may have commas.

    >>> split_names('status, train_loss, metrics["a,b"]')
    ['status', 'train_loss', 'metrics["a,b"]']
    """
    return [name for found in _NAMES.finditer(text) if (name := found[0].strip())]


def _unquoted(text: str) -> str:
    """Return the text of a name in quotes: JSON, or with backslashes before quotes and backslashes only."""
    try:
        return json.loads(text)
    except ValueError:
        return re.sub(r"""\\(["'\\])""", r"\1", text[1:-1])


def _check_order(field: str, symbol: str, value: str) -> None:
    """Raise `QueryError` for a condition that begins with its value or with `not`, with what to write."""
    if negated := _NOT.match(field):
        opposite = _OPPOSITE.get(symbol)
        how = f": write {field[negated.end() :]} {opposite} {value}" if opposite else ""
        raise QueryError(f"conditions have no not{how}")
    if (isinstance(_value(field), str) and field[0] not in "\"'") or symbol == "~":
        return
    if re.search("[<>=~]", _SUBSCRIPT.sub("", value)):
        raise QueryError(f"'{value}' is not one value: write two conditions, joined by and")
    raise QueryError(f"write the field first: {value} {_TURNED.get(symbol, symbol)} {field}")


def _comparison(condition: Condition, expression: str, values: list[Any]) -> Clause:
    symbol, value = condition.symbol, _bound(condition.value)
    if symbol not in _SYMBOLS:
        raise QueryError(f"'{symbol}' is not a comparison: use one of {' '.join(_SYMBOLS)}")
    if symbol == "~":
        return f"instr(lower({expression}), lower(?)) > 0", [*values, str(value)]
    if value != value:
        raise QueryError(f"nothing equals NaN: write {condition.field} {symbol} null")
    if symbol in ORDERED:
        kinds = _kinds_to_order(condition)  # SQLite has an order between numbers and texts, too
        order, bound = _rounded(f"{expression} {symbol} ?", [*values, value], expression, condition, values)
        return f"(typeof({expression}) IN ({kinds}) AND ({order}))", [*values, *bound]
    if value is None:
        return f"{expression} {'IS NULL' if symbol == '=' else 'IS NOT NULL'}", values
    if isinstance(value, bool) and condition.field.partition(".")[0] in JSON_HEADS:
        value = str(value).lower().encode()
    equality = f"{expression} {'=' if symbol == '=' else 'IS NOT'} ?"
    equality, bound = _rounded(equality, [*values, value], expression, condition, values)
    return f"({equality})", bound


def _rounded(
    clause: str, bound: list[Any], expression: str, condition: Condition, values: list[Any]
) -> Clause:
    """Return a comparison in which fractions that differ by rounding alone are equal, with its values."""
    value = condition.value
    is_exact = isinstance(value, int) and abs(value) >= 2**53
    if is_exact or isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return clause, bound
    near = f"(typeof({expression}) = 'real' AND abs({expression} - ?) <= ?)"
    joint = "OR" if condition.symbol in ("=", "<=", ">=") else "AND NOT"
    return f"{clause} {joint} {near}", [*bound, *values, *values, float(value), _ROUNDING * abs(value)]


def _kinds_to_order(condition: Condition) -> str:
    """Return the types in SQL of what a condition by order compares; raise `QueryError` for what has no order."""
    field, value = condition.field, condition.value
    if field in _TEXTS:
        raise _no_order(field)
    if value is None or not isinstance(value, str | int | float) or isinstance(value, bool):
        word = json.dumps(value)
        raise QueryError(f"{word} has no order: write {field} = {word} or != {word}")
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _no_order(field: str) -> QueryError:
    return QueryError(f"{field} has no order: write {field} = TEXT, != TEXT or ~ TEXT")


def _about_notes(condition: Condition, noted: Mapping[int | None, Annotation]) -> Clause:
    """Return the SQL expression for a condition on tags or notes, with its values; `=` finds one of the tags."""
    symbol, value = condition.symbol, condition.value
    if symbol not in ("=", "!=", "~"):
        raise _no_order(condition.field)

    def matches(text: str) -> bool:
        text, wanted = text.lower(), str(value).lower()
        return bool(text) and (value is None or (wanted in text if symbol == "~" else wanted == text))

    texts = {n: one.tags if condition.field == "tags" else (one.note,) for n, one in noted.items()}
    found = [number for number, known in texts.items() if number is not None and any(map(matches, known))]
    within = "IN" if (symbol == "!=") == (value is None) else "NOT IN"
    return f"t.sequence_id {within} (SELECT value FROM json_each(?))", [json.dumps(found)]


def _contains(search: str) -> Clause:
    escaped = json.dumps(search)[1:-1]  # the text of JSON values has other letters escaped
    places = ("t.record", "t.reason", "coalesce(t.error, '')", "t.trial_id")
    found = " OR ".join(f"instr(lower({place}), lower(?)) > 0" for place in places)
    values = [escaped, search, search, search]
    if search.isdecimal():
        return f"({found} OR t.sequence_id = ?)", [*values, min(int(search), 2**62)]
    return f"({found})", values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if _DECIMAL.fullmatch(text) else text


def _bound(value: Any) -> Any:
    """Return a value as SQLite compares it: a list or an object as text, an integer of more than 64 bits as a float."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return float(str(value)) if isinstance(value, int) and abs(value) >= 2**63 else value
