"""Stored values as Python values, and as JSON that every reader accepts (docs/reference/store.md, "Numbers")."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from ...protocol import Json

if TYPE_CHECKING:
    import sqlite3  # which most commands do without

_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|Infinity')


def parsed(text: str | None) -> Json:
    """Return the value of JSON text of the store, None for None; raise `ValueError` if it is not JSON text.

    >>> parsed('{"default": NaN, "curve": [1, Infinity]}')
    {'default': nan, 'curve': [1, inf]}
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__} instead of JSON text")
    value = json.loads(text)
    return (
        value if text.isascii() and "\\u" not in text else printable(value)
    )  # only these have other letters


def printable(value: Json) -> Json:
    """Return a value in which every text can be written as UTF-8: half a character becomes its escape.

    >>> printable({"note": ["\\ud800", 1]})
    {'note': ['\\\\ud800', 1]}
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {printable(str(key)): printable(inner) for key, inner in value.items()}
    return [printable(inner) for inner in value] if isinstance(value, list | tuple) else value


def plain(value: Json) -> Json:
    """Return a value in which every number can be written as JSON: NaN and infinities become None.

    >>> plain({"default": float("nan"), "curve": [1.0, float("inf")]})
    {'default': None, 'curve': [1.0, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def flat(value: object, name: str = "") -> dict[str, Json]:
    """Return nested parameters as one level, with dots; a name that is one of the outer levels' has slashes.

    >>> flat({"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}})
    {'lr': 0.1, 'solver._name': 'sgd', 'solver.momentum': 0.9}
    >>> flat({"solver": {"_name": "sgd", "lr": 0.9}, "solver.lr": 0.1})
    {'solver._name': 'sgd', 'solver/lr': 0.9, 'solver.lr': 0.1}
    """
    if not isinstance(value, Mapping) or not value:
        return {name: value} if name else {}
    leaves, prefix = dict(_leaves(value)), f"{name}." if name else ""
    found = {prefix + ".".join(path): leaf for path, leaf in leaves.items()}
    if len(found) == len(leaves):
        return found
    paths = dict[str, tuple[str, ...]]()
    for path in sorted(leaves, key=len):
        spellings = (("/" * number or ".").join(path) for number in itertools.count())
        paths[next(one for one in spellings if one not in paths)] = path
    names = {path: prefix + name for name, path in paths.items()}
    return {names[path]: leaf for path, leaf in leaves.items()}


def numbers_in(report: object, main: str = "default") -> dict[str, float]:
    """Return the numbers in a result by name, nested ones with dots as in `flat`.

    A bare number is the `main` objective, which is also called `default`; true is 1. What no float can hold is left
    out.

    >>> numbers_in({"default": 0.5, "loss": {"train": 1, "note": "low"}}, "accuracy")
    {'accuracy': 0.5, 'loss.train': 1.0}
    """
    found = dict[str, float]()
    for name, value in flat(report if isinstance(report, Mapping) else {main: report}).items():
        if isinstance(value, bool | int | float):
            with contextlib.suppress(OverflowError):
                found.setdefault(main if name == "default" else name, float(value))
    return found


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path, value


def named_values(reported: Json) -> dict[str, Json]:
    """Return the values that a result has under names, nested ones with dots; a result without names has none.

    >>> named_values({"default": 0.9, "eval": {"loss": 0.1, "by_class": [3, 5]}}), named_values(0.9)
    ({'default': 0.9, 'eval.loss': 0.1, 'eval.by_class': [3, 5]}, {})
    """
    if not isinstance(reported, dict):
        return {}
    return {name: value for name, value in flat(reported).items() if name and not isinstance(value, dict)}


def to_json(value: Any) -> bytes:
    """Return a value as JSON text; dataclasses are objects, NaN and infinities null.

    A path that is not UTF-8 is written as `json.dumps` does: `json.loads` and `os.fsencode` return its bytes.

    >>> to_json({"x": float("nan"), "n": 2**70})
    b'{"x":null,"n":1180591620717411303424}'
    """
    import orjson  # here, since every command needs this module, and few write JSON

    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):  # an integer of more than 64 bits, a path that is not UTF-8
        return json.dumps(plain(value), allow_nan=False, separators=(",", ":"), default=_plainest).encode()


def _plainest(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return str(value)


def add_json_functions(db: sqlite3.Connection) -> None:
    """Let statements use `sql_json(text)`, `inner_json(text, names)` and `reported_json(text, name)`.

    The latter two are for names that paths cannot have, the last one for those of `named_values`.

    >>> import sqlite3
    >>> db = sqlite3.connect(":memory:")
    >>> add_json_functions(db)
    >>> db.execute("SELECT inner_json(?, ?)", ('{"\\u00e9": {"a=\\\\"": 3}}', '["\u00e9", "a=\\\\""]')).fetchone()
    ('3',)
    """
    db.create_function("sql_json", 1, sql_json, deterministic=True)
    db.create_function("inner_json", 2, _inner_json, deterministic=True)
    db.create_function("reported_json", 2, _reported_json, deterministic=True)


def _inner_json(text: str | None, names: str) -> str | None:
    """Return the value at the end of a JSON list of names as JSON text that SQLite reads; None if there is none."""
    try:
        value = parsed(text)
        for name in json.loads(names):
            value = value[name]
    except (ValueError, LookupError, TypeError):
        return None
    return sql_json(json.dumps(value, ensure_ascii=False))


def _reported_json(text: str | None, name: str) -> str | None:
    """Return what a reported result has under a name, as JSON text that SQLite reads; None if it has nothing there."""
    try:
        named = named_values(parsed(text))
    except ValueError:
        return None
    return sql_json(json.dumps(named[name], ensure_ascii=False)) if name in named else None


def sql_json(text: str | None) -> str | None:
    """Return JSON text that SQLite reads, with null for NaN and 9e999 for Infinity; None for anything else.

    >>> sql_json('{"loss": NaN, "note": "NaN", "low": -Infinity}')
    '{"loss": null, "note": "NaN", "low": -9e999}'
    """
    try:
        json.loads(text or "")
    except ValueError:
        return None
    words = {"NaN": "null", "Infinity": "9e999"}
    return _STRING_OR_NUMBER.sub(lambda found: words.get(found[0], found[0]), text or "")
