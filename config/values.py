"""The values of fields: numbers with a unit, paths, names; what users may write, and what it becomes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ..runner import FailureKind
from .problems import did_you_mean, shown
from .units import UnitError, parse_duration, parse_gpu_indices, parse_memory

__all__ = [
    "Directory",
    "Duration",
    "Environment",
    "ExistingFile",
    "GpuIndices",
    "GpuNumber",
    "LogLevel",
    "MaxFailures",
    "Memory",
    "PositiveDuration",
    "Storage",
    "Text",
    "Texts",
    "WorkingDirectory",
    "absolute_path",
    "as_tuple",
    "directory_path",
    "file_path",
    "is_number",
    "system_text",
]


def _not_zero(seconds: float) -> float:
    if seconds <= 0:
        raise UnitError(f"must be more than 0 seconds, not {seconds:g}")
    return seconds


def absolute_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path; relative ones start from the folder `info.context["base"]`."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise UnitError(f"must be a path, not {shown(value)}")
    text = os.path.expanduser(system_text(os.fspath(value)))
    first = text.partition(os.sep)[0]
    # A default is a `Path`; it is not used where there is no home directory.
    if first == "~" and isinstance(value, str):
        raise UnitError(
            f"there is no home directory for {shown(value)}", "set HOME, or write an absolute path"
        )
    if first.startswith("~") and isinstance(value, str):
        raise UnitError(f"there is no user {first[1:]}, named by {shown(value)}", "write an absolute path")
    base = (info.context or {}).get("base")
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


def _existing(kind: str, exists: Any) -> Any:
    def check(path: Path, info: ValidationInfo) -> Path:
        if (info.context or {}).get("check_files") and not exists(path):
            raise UnitError(f"no such {kind}: {path}")
        return path

    return check


def directory_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path of a folder, which exists if the files of this config are checked."""
    return _existing("directory", os.path.isdir)(absolute_path(value, info), info)


def file_path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path of a file, which exists if the files of this config are checked."""
    return _existing("file", os.path.isfile)(absolute_path(value, info), info)


def _working_directory(value: Any, info: ValidationInfo) -> Path:
    path = absolute_path(value, info)
    if (info.context or {}).get("check_files") and os.path.exists(path) and not os.path.isdir(path):
        raise UnitError(f"is not a directory: {path}")
    return path


def _gpu_number(value: Any) -> Any:
    if isinstance(value, float) and value > 1 and value != int(value):
        raise UnitError(f"must be a whole number or less than 1, not {shown(value)}")
    return value


def _log_level(value: Any) -> Any:
    level = value.lower() if isinstance(value, str) else value
    return "fatal" if level == "critical" else level


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def _environment_name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise UnitError(f"{shown(name)} is not the name of an environment variable")
    return system_text(name)


def _environment_value(value: Any) -> Any:
    return str(value) if is_number(value) else system_text(value) if isinstance(value, str) else value


def _max_failures(value: Any) -> Any:
    """Check a count for all kinds of failure together, or one for each kind."""
    hint = "an integer for all kinds together, or a mapping such as {INFRA: 3, OOM: 1}"
    if not isinstance(value, Mapping):
        if not _is_count(value):
            raise UnitError(
                f"must be an integer of at least 0, -1 for no limit, or a mapping, not {shown(value)}", hint
            )
        return value
    for kind, count in value.items():
        if not isinstance(kind, str) or kind.upper() not in FailureKind.__members__:
            known = ", ".join(FailureKind)
            raise UnitError(
                f"{shown(kind)} is not a kind of failure",
                did_you_mean(str(kind).upper(), FailureKind.__members__) or f"the kinds are {known}",
            )
        if not _is_count(count):
            raise UnitError(
                f"{kind} must be an integer of at least 0, or -1 for no limit, not {shown(count)}", hint
            )
    return {kind.upper(): count for kind, count in value.items()}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= -1


def _storage(value: Any, info: ValidationInfo) -> Any:
    """Return a URL as it is, or the absolute path of a folder."""
    if isinstance(value, str) and "://" in value:
        return value
    return str(absolute_path(value, info))


def is_number(value: Any) -> bool:
    """Return whether a value is a number, not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


Duration = Annotated[float, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[float, BeforeValidator(lambda value: _not_zero(parse_duration(value)))]
Memory = Annotated[int, BeforeValidator(parse_memory), Field(gt=0)]
Directory = Annotated[Path, BeforeValidator(directory_path)]
ExistingFile = Annotated[Path, BeforeValidator(file_path)]
WorkingDirectory = Annotated[Path, BeforeValidator(_working_directory)]
GpuNumber = Annotated[float, BeforeValidator(_gpu_number), Field(ge=0)]
GpuIndices = Annotated[tuple[int, ...], BeforeValidator(parse_gpu_indices)]
Text = Annotated[str, Field(min_length=1), AfterValidator(system_text)]
Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
Environment = dict[
    Annotated[str, AfterValidator(_environment_name)], Annotated[str, BeforeValidator(_environment_value)]
]
MaxFailures = Annotated[int | dict[str, int], BeforeValidator(_max_failures)]
Storage = Annotated[str, BeforeValidator(_storage)]
LogLevel = Annotated[
    Literal["fatal", "error", "warning", "info", "debug", "trace"], BeforeValidator(_log_level)
]
