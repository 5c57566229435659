"""JSON text for the values that tuners, assessors and trials exchange.

Plain values (dict, list, tuple, str, int, float, bool, None, and numpy scalars) are written by the standard
library, whose text for them equals json_tricks'; others (arrays, sets, dates, complex numbers ...) goes
through json_tricks, which is imported only then because that is slow. NaN and the infinities survive.

Class instances and enums are refused both ways: reading them would import whatever module the text names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from reprlib import repr as short_repr
from typing import Any

from .errors import JsonError

_SCALARS: dict[str, Callable[[Any], Any]] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_MARKER = '"__'  # every encoding of json_tricks is an object with a key that begins with it


def dumps(value: Any) -> str:
    """Return the JSON text of a value; raise `JsonError`, naming the value, for one that JSON cannot hold.

    >>> dumps({"lr": 0.1, "layers": (32, 16), "best": float("inf")})
    '{"lr": 0.1, "layers": [32, 16], "best": Infinity}'
    """
    try:
        return _encode(value)
    except TypeError:
        pass  # no plain value
    except (ValueError, RecursionError) as error:
        raise JsonError(_not_json(value, error)) from error
    try:
        return _tricks_dumps()(value)
    except Exception as error:  # encoders of json_tricks raise their own errors, of several kinds
        raise JsonError(_not_json(value, error)) from error


def loads(text: str) -> Any:
    """Return the value of a JSON text, with plain dicts; raise `JsonError`, showing the text, for anything else.

    >>> loads('{"default": NaN, "tags": {"__set__": ["a"]}}')
    {'default': nan, 'tags': {'a'}}
    """
    try:
        value = _decode(text)
    except Exception as error:
        raise JsonError(f"not JSON: {short_repr(text)} ({error})") from error
    if _MARKER not in text:
        return value
    try:
        return _tricks_loads()(text)
    except Exception:  # noqa: BLE001  (json_tricks raises KeyError, TypeError ...)
        return value  # no encoding, but the user's own key that begins with two underscores


def _plain_scalar(value: Any) -> Any:
    """Return the Python number of a numpy scalar that has one, and any other value unchanged."""
    numpy = sys.modules.get("numpy")  # no numpy scalar exists before numpy is imported
    if numpy is not None and isinstance(value, numpy.generic):
        convert = _SCALARS.get(value.dtype.kind)
        return value if convert is None else convert(value)
    return value


def _default(value: Any) -> Any:
    scalar = _plain_scalar(value)
    if scalar is value:
        raise TypeError(type(value).__name__)
    return scalar


_encode = json.JSONEncoder(default=_default).encode
_decode = json.JSONDecoder().decode


def _not_json(value: Any, error: BaseException) -> str:
    why, _, _list_of_encoders = str(error).partition(" could not be encoded")
    return f"{short_repr(value)} cannot be written as JSON ({why})"


@cache
def _tricks_dumps() -> Callable[[Any], str]:
    import json_tricks
    from json_tricks import encoders

    # This one first: json_tricks warns for each numpy scalar.
    wanted = [_plain_encoder, *json_tricks.nonp.DEFAULT_ENCODERS]
    refused = (encoders.class_instance_encode, encoders.enum_instance_encode)
    chosen = [encoder for encoder in wanted if encoder not in refused]
    return lambda value: str(json_tricks.dumps(value, obj_encoders=chosen, allow_nan=True))


def _plain_encoder(value: Any, **_options: Any) -> Any:
    return _plain_scalar(value)


@cache
def _tricks_loads() -> Callable[[str], Any]:
    from functools import partial

    import json_tricks
    from json_tricks import decoders

    refused = (decoders.ClassInstanceHook, decoders.EnumInstanceHook)
    hooks = [hook for hook in json_tricks.nonp.DEFAULT_HOOKS if not isinstance(hook, refused)]
    return partial(json_tricks.loads, obj_pairs_hooks=hooks, preserve_order=False, ignore_comments=False)
