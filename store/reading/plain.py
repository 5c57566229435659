"""Values of the store as values that every JSON reader takes."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import orjson

__all__ = ["parsed", "plain", "to_json"]


def plain(value: Any) -> Any:
    """A value in which everything can be written as JSON: NaN and infinities become None.

    Half a character (a lone surrogate), which JSON can hold and UTF-8 cannot, becomes its escape.

    >>> plain({"default": float("nan"), "curve": [1.0, float("inf")], "note": "\\ud800"})
    {'default': None, 'curve': [1.0, None], 'note': '\\\\ud800'}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return _writable(value)
    if isinstance(value, dict):
        return {_writable(str(key)): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _writable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_json(value: Any) -> bytes:
    """A value as JSON text; dataclasses are objects, NaN and infinities null.

    >>> to_json({"x": float("nan"), "n": 2**70})
    b'{"x":null,"n":1180591620717411303424}'
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):  # a number of more than 64 bits, a text that is no Unicode
        plainer = plain(value)
        return json.dumps(plainer, allow_nan=False, separators=(",", ":"), default=_plainest).encode()


def _plainest(value: Any) -> Any:
    return plain(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else str(value)


def parsed(text: str | None) -> Any:
    """JSON text of the store as a plain value; None stays None."""
    return None if text is None else plain(json.loads(text))
