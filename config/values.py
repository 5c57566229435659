"""The values of fields: quantities with a unit, paths, names; what users may write, and what it becomes.

Nothing here needs pydantic, which verbs that only read a duration do not wait for.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol import brief_json
from ..runner import FailureKind
from .problems import did_you_mean

if TYPE_CHECKING:
    from pydantic import ValidationInfo

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_WORDS = {
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hr": "h",
    "hour": "h",
    "day": "d",
    "byte": "b",
    "k": "kb",
    "m": "mb",
    "g": "gb",
    "t": "tb",
    "kib": "kb",
    "mib": "mb",
    "gib": "gb",
    "tib": "tb",
}
_QUANTITY = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
_BARE_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)


class UnitError(ValueError):
    """A value that is not a quantity of its kind; `hint` says how to write one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message.encode("utf-8", "backslashreplace").decode())  # pydantic takes no other text
        self.hint = hint

    def with_hint(self) -> str:
        """Return the message and, in brackets, the hint."""
        return f"{self} ({self.hint})" if self.hint else str(self)


def parse_duration(value: Any) -> float:
    """Return the seconds of a duration: a number of seconds, or text with the unit s, m, h or d.

    Raises `UnitError`.

    >>> parse_duration("1.5h"), parse_duration(90)
    (5400.0, 90.0)
    """
    hint = "a number of seconds, or text such as 30s, 10m, 1.5h, 2d"
    if isinstance(value, str) and _BARE_NUMBER.fullmatch(value):
        number = value.strip()
        raise UnitError(
            f"{brief_json(value)} has no unit", f"write {number} without quotes for seconds, or {number}s"
        )
    return _finite(_quantity(value, _SECONDS, "a duration", hint), value, "a duration", hint)


def positive_duration(value: Any) -> float:
    """Return the seconds of a duration that is longer than nothing, or raise `UnitError`."""
    seconds = parse_duration(value)
    if seconds <= 0:
        raise UnitError(f"must be more than 0 seconds, not {seconds:g}")
    return seconds


def parse_memory(value: Any) -> int:
    """Return the bytes of a memory size: a whole number, or text in b, kb, mb, gb or tb (powers of 1024).

    Raises `UnitError`.

    >>> parse_memory("4gb"), parse_memory("1.5 KB")
    (4294967296, 1536)
    """
    hint = "text such as 512mb, 4gb, or a whole number of bytes"
    if isinstance(value, float):
        raise UnitError(f"must be a memory size, not {brief_json(value)}", hint)
    return math.ceil(_finite(_quantity(value, _BYTES, "a memory size", hint), value, "a memory size", hint))


def parse_gpu_indices(value: Any) -> tuple[int, ...]:
    """Return GPU indices from one index, text such as "0,1", or a list; raises `UnitError`.

    >>> parse_gpu_indices("0, 2"), parse_gpu_indices(1)
    ((0, 2), (1,))
    """
    hint = 'an index, a list of them, or text such as "0,1"'
    indices = _split(value)
    if not indices or not all(isinstance(index, int) and not isinstance(index, bool) for index in indices):
        raise UnitError(f"must be GPU indices, not {brief_json(value)}", hint)
    if min(indices) < 0:
        raise UnitError(f"GPU index {min(indices)} is negative", hint)
    if len(set(indices)) < len(indices):
        raise UnitError(f"names a GPU twice: {brief_json(value)}", hint)
    return tuple(indices)


def _quantity(value: Any, units: dict[str, int], noun: str, hint: str) -> float | int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        meant = _written_out(match, units)
        raise UnitError(
            f"must be {noun}, not {brief_json(value)}", f"did you mean {meant}?" if meant else hint
        )
    return float(match[1]) * unit


def _written_out(match: re.Match[str] | None, units: dict[str, int]) -> str:
    """Return the accepted form of a quantity whose unit is a word, or nothing.

    >>> _written_out(_QUANTITY.fullmatch("2 hours"), _SECONDS)
    '2h'
    """
    meant = _WORDS.get(match[2].lower().removesuffix("s")) if match else None
    return f"{match[1]}{meant}" if match and meant in units else ""


def _finite(number: float | int, value: Any, noun: str, hint: str) -> float:
    # float() of a huge int overflows: both ends of the range get the same sentence.
    try:
        amount = float(number)
    except OverflowError:
        amount = math.inf
    if not math.isfinite(amount):
        raise UnitError(f"must be {noun}, not {brief_json(value)}", hint)
    if amount < 0:
        raise UnitError(f"must not be negative, but is {brief_json(value)}", hint)
    return amount


def _split(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return [int(part) if re.fullmatch(r"-?[0-9]{1,9}", part) else part for part in parts]
    return value if isinstance(value, list | tuple) else [value]


def absolute_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path; relative ones start from the folder of the config."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise UnitError(f"must be a path, not {brief_json(value)}")
    text = os.path.expanduser(system_text(os.fspath(value)))
    first = text.partition(os.sep)[0]
    # A default is a `Path`; it is not used where there is no home directory.
    if first == "~" and isinstance(value, str):
        raise UnitError(
            f"there is no home directory for {brief_json(value)}", "set HOME, or write an absolute path"
        )
    if first.startswith("~") and isinstance(value, str):
        raise UnitError(
            f"there is no user {first[1:]}, named by {brief_json(value)}", "write an absolute path"
        )
    base = _base(info)
    if base is None:
        return Path(text)
    joined = os.path.join(base, text)
    try:
        return Path(os.path.realpath(joined))
    except FileNotFoundError:  # the working directory was deleted; nothing may need this path
        return Path(joined)


def system_text(text: str) -> str:
    """Return a text that the system takes: as a path, an argument, or a variable of the environment."""
    if "\0" in text:
        raise UnitError("must not contain a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        if 0xD800 <= ord(error.object[error.start]) < 0xE000:
            raise UnitError("must not contain half of a surrogate pair") from error
        wrong = f"contains {error.object[error.start]!r}, which the locale of this process cannot encode"
        raise UnitError(wrong, "set LC_ALL=C.UTF-8") from error
    return text


def directory_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path of a folder, which must exist unless the config is a stored one."""
    path = absolute_path(value, info)
    if _base(info) is not None and not os.path.isdir(path):
        raise UnitError(f"no such directory: {path}")
    return path


def file_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path of a file, which must exist unless the config is a stored one."""
    path = absolute_path(value, info)
    if _base(info) is not None and not os.path.isfile(path):
        raise UnitError(f"no such file: {path}")
    return path


def working_directory(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path of a folder, which is made when it is needed."""
    path = absolute_path(value, info)
    if _base(info) is not None and os.path.exists(path) and not os.path.isdir(path):
        raise UnitError(f"is not a directory: {path}")
    return path


def _base(info: ValidationInfo) -> str | os.PathLike[str] | None:
    """Return the folder that relative paths start from; None in a stored config, whose files are not checked."""
    return (info.context or {}).get("base")


def gpu_number(value: Any) -> Any:
    """Return a number of GPUs; only one GPU can be shared."""
    if isinstance(value, float) and value > 1 and value != int(value):
        raise UnitError(f"must be a whole number or less than 1, not {brief_json(value)}")
    return value


def log_level(value: Any) -> Any:
    """Return the level in lower case; `critical` is Python's name of `fatal`."""
    level = value.lower() if isinstance(value, str) else value
    return "fatal" if level == "critical" else level


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def environment_name(name: str) -> str:
    """Return the name of an environment variable, or raise `UnitError`."""
    if not name or "=" in name or "\0" in name:
        raise UnitError(f"{brief_json(name)} is not the name of an environment variable")
    return system_text(name)


def environment_value(value: Any) -> Any:
    """Return a number as text, and text as it is."""
    return str(value) if is_number(value) else system_text(value) if isinstance(value, str) else value


def max_failures(value: Any) -> Any:
    """Return how many failures are allowed: one number for all kinds together, or one for each kind."""
    hint = "an integer for all kinds together, or a mapping such as {INFRA: 3, OOM: 1}"
    if not isinstance(value, Mapping):
        if not _is_count(value):
            raise UnitError(
                f"must be an integer of at least 0, -1 for no limit, or a mapping, not {brief_json(value)}",
                hint,
            )
        return value
    for kind, count in value.items():
        if not isinstance(kind, str) or kind.upper() not in FailureKind.__members__:
            known = ", ".join(FailureKind)
            raise UnitError(
                f"{brief_json(kind)} is not a kind of failure",
                did_you_mean(str(kind).upper(), FailureKind.__members__) or f"the kinds are {known}",
            )
        if not _is_count(count):
            raise UnitError(
                f"{kind} must be an integer of at least 0, or -1 for no limit, not {brief_json(count)}", hint
            )
    return {kind.upper(): count for kind, count in value.items()}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= -1


def storage_url(value: Any, info: ValidationInfo) -> str:
    """Return a URL as it is, or the absolute path of a folder."""
    if isinstance(value, str) and "://" in value:
        return value
    return str(absolute_path(value, info))


def is_number(value: Any) -> bool:
    """Return whether a value is a number, not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
