"""Copies Python data as JSON: what a config from Python may contain."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .problems import Finding, Path, shown
from .sections import Section

__all__ = ["plain"]


def plain(data: Any) -> tuple[Any, list[Finding]]:
    """Return a deep copy of dicts, lists and JSON scalars, and a finding for everything that is not JSON.

    >>> plain({"tuner": {"class_args": {"sizes": (1, 2)}}})
    ({'tuner': {'class_args': {'sizes': [1, 2]}}}, [])
    """
    findings: list[Finding] = []
    return _copy(data, (), findings), findings


def _copy(value: Any, path: Path, findings: list[Finding]) -> Any:
    if isinstance(value, Mapping):
        return _copy_mapping(value, path, findings)
    if isinstance(value, list | tuple):
        return [_copy(item, (*path, index), findings) for index, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return _scalar(value)
    if isinstance(value, Section):
        return _copy(value.canonical(), path, findings)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _copy(value.tolist(), path, findings)
    findings.append(_not_json(value, path))
    return None


def _not_json(value: Any, path: Path) -> Finding:
    if (
        path[:1] == ("search_space",)
        and not isinstance(value, type)
        and (name := getattr(value, "__name__", ""))
    ):
        return Finding(path=path, message=f"the function {name} is not a value", hint=f"call it: {name}(...)")
    if path in (("tuner",), ("assessor",)):
        name = (value if isinstance(value, type) else type(value)).__name__
        example = f'{{"class_name": "FILE.{name}", "code_directory": "FOLDER", "class_args": {{...}}}}'
        return Finding(path=path, message="a class of your own is named by its file", hint=f"write {example}")
    return Finding(path=path, message=f"{type(value).__name__} cannot be stored as JSON")


def _copy_mapping(value: Mapping[Any, Any], path: Path, findings: list[Finding]) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        if isinstance(key, str):
            result[str(key)] = _copy(item, (*path, key), findings)
        else:
            findings.append(Finding(path=path, message=f"the key {shown(key)} is not text"))
    return result


def _scalar(value: Any) -> Any:
    # numpy.float64 is a float and numpy.str_ is a str: their own JSON form is the plain one.
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None
