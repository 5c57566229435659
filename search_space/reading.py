"""Reads the parameters of a search space from its JSON, and collects every problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .json_values import MAX_DEPTH, identity, json_problems, plain_copy
from .numeric import read_numbers
from .parameter import TYPES, Parameter, dotted
from .problems import Path, Problem, nearest, show, spec_hint

__all__ = ["Parent", "read", "with_constants"]

Parent = tuple[int, int] | None
_SYNONYMS = {
    "categorical": "choice",
    "int": "randint",
    "integer": "randint",
    "float": "uniform",
    "double": "uniform",
    "log": "loguniform",
    "gaussian": "normal",
}


def read(space: Any) -> tuple[tuple[Parameter, ...], frozenset[str], list[Problem]]:
    """Return the parameters, parents before children; the dotted names that could not be read; all problems.

    >>> parameters, unread, problems = read({"lr": {"_type": "unifrom", "_value": [0, 1]}})
    >>> problems[0].hint
    "did you mean 'uniform'?"
    """
    reader = _Reader()
    if isinstance(space, dict):
        reader.read_group(space, (), (), None)
    else:
        hint = 'write {"lr": {"_type": "loguniform", "_value": [0.0001, 0.1]}}'
        reader.problem((), f"a search space is an object of parameters, not {show(space)}", hint)
    return tuple(reader.parameters), frozenset(reader.unread), reader.problems


def with_constants(space: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with the constants of a valid search space, which users need not write.

    >>> with_constants({"lr": {"_type": "uniform", "_value": [0, 1]}, "epochs": 5}, {"lr": 0.1})
    {'epochs': 5, 'lr': 0.1}
    """
    found = {name: spec for name, spec in space.items() if isinstance(spec, str | int | float)} | dict(point)
    for name, value in point.items():
        spec = space.get(name)
        if isinstance(spec, dict) and isinstance(value, dict) and "_name" in value:
            wanted = identity(value["_name"])
            for option in spec.get("_value", ()):
                if isinstance(option, dict) and "_name" in option and identity(option["_name"]) == wanted:
                    found[name] = with_constants(option, value)
    return found


class _Reader:
    """Collects parameters and problems while it walks down the document."""

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.unread: set[str] = set()
        self.problems: list[Problem] = []

    def problem(self, path: Path, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path, message, hint))

    def read_group(self, group: dict[Any, Any], path: Path, key: Path, parent: Parent) -> None:
        """Read the parameters of the top level, or those of one option of a nested choice."""
        if len(key) > 2 * MAX_DEPTH:
            self.problem(path, f"choices are nested more than {MAX_DEPTH} levels deep")
            return
        for name, spec in group.items():
            if parent is not None and name == "_name":
                continue
            if not isinstance(name, str):
                self.problem(path, f"the parameter name {show(name)} is not a string", "put it in quotes")
            elif not name:
                self.problem(path, "a parameter has an empty name")
            else:
                count = len(self.parameters)
                self.read_parameter(name, spec, (*path, name), (*key, name), parent)
                if len(self.parameters) == count:
                    self.unread.add(dotted((*key, name)))

    def read_parameter(self, name: str, spec: Any, path: Path, key: Path, parent: Parent) -> None:
        """Read one `{"_type": ..., "_value": ...}`, or a constant."""
        if isinstance(spec, str | int | float):  # a constant
            spec = {"_type": "choice", "_value": [spec]}
        if not isinstance(spec, dict):
            self.problem(path, f"expected an object with _type and _value, not {show(spec)}", spec_hint(spec))
            return
        self.check_keys(spec, path)
        type_name, values = spec.get("_type"), spec.get("_value")
        known = self.check_type(type_name, path) if "_type" in spec else False
        if "_value" not in spec:
            return
        if not isinstance(values, list | tuple):
            self.problem((*path, "_value"), f"_value must be a list, not {show(values)}")
        elif known and type_name == "choice":
            self.read_choice(name, list(values), (*path, "_value"), key, parent)
        elif known:
            fields, problems = read_numbers(str(type_name), list(values), (*path, "_value"))
            self.problems += problems
            self.parameters.append(
                Parameter(key=key, name=name, type=str(type_name), parent=parent, **fields)
            )

    def check_keys(self, spec: dict[Any, Any], path: Path) -> None:
        unknown = [key for key in spec if key not in ("_type", "_value")]
        for wanted in ("_type", "_value"):
            if wanted not in spec:
                similar = [
                    key for key in unknown if isinstance(key, str) and key.strip("_") == wanted.strip("_")
                ]
                self.problem(
                    path, f"{wanted} is missing", f"rename {similar[0]!r} to {wanted!r}" if similar else ""
                )
                unknown = [key for key in unknown if key not in similar]
        for key in unknown:
            self.problem(path, f"unknown key {show(key)}", "a parameter has _type and _value, nothing else")

    def check_type(self, type_name: Any, path: Path) -> bool:
        if isinstance(type_name, str) and type_name in TYPES:
            return True
        word = type_name.lower() if isinstance(type_name, str) else ""
        synonym = _SYNONYMS.get(word, word if word in TYPES else "")
        hint = f"did you mean {synonym!r}?" if synonym else nearest(word, TYPES)
        self.problem(
            (*path, "_type"), f"unknown type {show(type_name)}", hint or f"known types: {', '.join(TYPES)}"
        )
        return False

    def read_choice(self, name: str, options: list[Any], path: Path, key: Path, parent: Parent) -> None:
        """Read a choice; it is nested when every option is an object with a `_name`."""
        if not options:
            self.problem(path, "a choice needs at least one option")
        nested = bool(options) and all(isinstance(option, dict) and "_name" in option for option in options)
        index = len(self.parameters)
        labels = self.read_names(options, path) if nested else self.read_options(options, path)
        size = len({identity(label) for label in labels})
        self.parameters.append(
            Parameter(
                key=key,
                name=name,
                type="choice",
                parent=parent,
                options=tuple(labels),
                nested=nested,
                size=size,
            )
        )
        for i, option in enumerate(options if nested else ()):
            self.read_group(option, (*path, i), (*key, i), (index, i))

    def read_names(self, options: list[dict[Any, Any]], path: Path) -> list[Any]:
        """Return the `_name`s of the options of a nested choice."""
        seen: dict[Any, int] = {}
        names = [option["_name"] for option in options]
        for i, label in enumerate(names):
            here = (*path, i, "_name")
            if isinstance(label, dict | list | tuple) or json_problems(label, here):
                self.problem(here, f"_name must be a string, not {show(label)}")
                continue
            first = seen.setdefault(identity(label), i)
            if first != i:
                self.problem(
                    here, f"the name {show(label)} is already that of option {first}", "give each its own"
                )
        return [None if isinstance(label, dict | list | tuple) else label for label in names]

    def read_options(self, options: list[Any], path: Path) -> list[Any]:
        """Return copies of the options of a plain choice."""
        sound = []
        for i, option in enumerate(options):
            problems = json_problems(option, (*path, i))
            if not problems and _holds_parameters(option):
                lacks = "other options have" if isinstance(option, dict) and "_name" in option else "has"
                hint = 'give every option of this choice a "_name"'
                problems = [Problem((*path, i), f"the option holds parameters but {lacks} no _name", hint)]
            self.problems += problems
            if not problems:
                sound.append(plain_copy(option))
        return sound


def _holds_parameters(value: Any) -> bool:
    """Return whether there is a parameter in an option of a plain choice, where nothing would sample it."""
    if isinstance(value, dict):
        return {"_type", "_value"} <= value.keys() or any(map(_holds_parameters, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_parameters, value))
