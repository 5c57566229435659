"""Reads the parameters of a search space from its JSON, and collects every problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol import Config, Json, JsonPath, Parameters, brief
from .json_checks import MAX_DEPTH, Problem, identity, json_problems, nearest, number, plain_copy
from .parameter import NUMERIC, TYPES, Kind, Parameter, dotted
from .units import MAX_LOG, grid_range

MAX_STEPS = 2**40  # multiples of q: beyond it doubles in the unit cube cannot tell neighbours apart
MAX_INTEGER = 2**49  # bounds of randint, for the same reason; those of lograndint end at MAX_STEPS
Parent = tuple[int, int] | None
_HUGE = 1e300  # no end of a range that anybody means
_SYNONYMS = {
    "categorical": "choice",
    "int": "randint",
    "integer": "randint",
    "float": "uniform",
    "double": "uniform",
    "log": "loguniform",
    "gaussian": "normal",
}
_OF_ARCHITECTURES = frozenset(
    ("layer_choice", "input_choice", "mutable_layer", "mutable_type", "value_choice")
)


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
        reader.problem((), f"a search space is an object of parameters, not {brief(space)}", hint)
    return tuple(reader.parameters), frozenset(reader.unread), reader.problems


def with_constants(space: Config, point: Mapping[str, Json]) -> Parameters:
    """Return a point with the constants of a valid search space, which users need not write.

    >>> with_constants({"lr": {"_type": "uniform", "_value": [0, 1]}, "epochs": 5}, {"lr": 0.1})
    {'epochs': 5, 'lr': 0.1}
    """
    filled = {name: spec for name, spec in space.items() if isinstance(spec, str | int | float)} | dict(point)
    for name, value in point.items():
        spec = space.get(name)
        if isinstance(spec, dict) and isinstance(value, dict) and "_name" in value:
            wanted = identity(value["_name"])
            for option in spec.get("_value", ()):
                if isinstance(option, dict) and "_name" in option and identity(option["_name"]) == wanted:
                    filled[name] = with_constants(option, value)
    return filled


class _Reader:
    """Collects parameters and problems while it walks down the document."""

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.unread: set[str] = set()
        self.problems: list[Problem] = []

    def problem(self, path: JsonPath, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path, message, hint))

    def read_group(self, group: dict[Any, Any], path: JsonPath, key: JsonPath, parent: Parent) -> None:
        """Read the parameters of the top level, or those of one option of a nested choice."""
        if len(key) > 2 * MAX_DEPTH:
            self.problem(path, f"choices are nested more than {MAX_DEPTH} levels deep")
            return
        for name, spec in group.items():
            if parent is not None and name == "_name":
                continue
            if not isinstance(name, str):
                self.problem(path, f"the parameter name {brief(name)} is not a string", "put it in quotes")
            elif not name:
                self.problem(path, "a parameter has an empty name")
            else:
                count = len(self.parameters)
                self.read_parameter(name, spec, (*path, name), (*key, name), parent)
                if len(self.parameters) == count:
                    self.unread.add(dotted((*key, name)))

    def read_parameter(self, name: str, spec: Any, path: JsonPath, key: JsonPath, parent: Parent) -> None:
        """Read one `{"_type": ..., "_value": ...}`, or a constant."""
        if isinstance(spec, str | int | float):  # a constant
            spec = {"_type": "choice", "_value": [spec]}
        if not isinstance(spec, dict):
            self.problem(
                path, f"expected an object with _type and _value, not {brief(spec)}", _spec_hint(spec)
            )
            return
        self.check_keys(spec, path)
        type_name, values = spec.get("_type"), spec.get("_value")
        known = self.check_type(type_name, path) if "_type" in spec else False
        if "_value" not in spec:
            return
        if not isinstance(values, list | tuple):
            self.problem((*path, "_value"), f"_value must be a list, not {brief(values)}")
        elif known and type_name == "choice":
            self.read_choice(name, list(values), (*path, "_value"), key, parent)
        elif known:
            self.read_numbers(name, str(type_name), values, (*path, "_value"), key, parent)

    def read_numbers(
        self, name: str, type_name: str, values: Sequence[Any], path: JsonPath, key: JsonPath, parent: Parent
    ) -> None:
        """Read a parameter whose values are numbers; it has no bounds if there are problems."""
        kind = NUMERIC[type_name]
        problems = _problems_of_numbers(type_name, kind, values, path)
        self.problems += problems
        numbers = {} if problems else _numbers(kind, values)
        self.parameters.append(
            Parameter(
                key=key,
                name=name,
                type=type_name,
                parent=parent,
                low=numbers.get("low"),
                high=numbers.get("high"),
                mu=numbers.get("mu"),
                sigma=numbers.get("sigma"),
                q=numbers.get("q"),
                size=_size(kind, numbers) if numbers else None,
            )
        )

    def check_keys(self, spec: dict[Any, Any], path: JsonPath) -> None:
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
            self.problem(path, f"unknown key {brief(key)}", "a parameter has _type and _value, nothing else")

    def check_type(self, type_name: Any, path: JsonPath) -> bool:
        if isinstance(type_name, str) and type_name in TYPES:
            return True
        word = type_name.lower() if isinstance(type_name, str) else ""
        synonym = _SYNONYMS.get(word, word if word in TYPES else "")
        if word in _OF_ARCHITECTURES:
            what, hint = "belongs to NNI's architecture search", "write a choice between your layers"
            self.problem((*path, "_type"), f"{word} {what}, which is not supported", hint)
            return False
        hint = f"did you mean {synonym!r}?" if synonym else nearest(word, TYPES)
        self.problem(
            (*path, "_type"), f"unknown type {brief(type_name)}", hint or f"known types: {', '.join(TYPES)}"
        )
        return False

    def read_choice(
        self, name: str, options: list[Any], path: JsonPath, key: JsonPath, parent: Parent
    ) -> None:
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

    def read_names(self, options: list[dict[Any, Any]], path: JsonPath) -> list[Any]:
        """Return the `_name`s of the options of a nested choice."""
        seen: dict[Any, int] = {}
        names = [option["_name"] for option in options]
        for i, label in enumerate(names):
            here = (*path, i, "_name")
            if isinstance(label, dict | list | tuple) or json_problems(label, here):
                self.problem(here, f"_name must be a string, not {brief(label)}")
                continue
            first = seen.setdefault(identity(label), i)
            if first != i:
                self.problem(
                    here, f"the name {brief(label)} is already that of option {first}", "give each its own"
                )
        return [None if isinstance(label, dict | list | tuple) else label for label in names]

    def read_options(self, options: list[Any], path: JsonPath) -> list[Any]:
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


def _spec_hint(spec: object) -> str:
    """Return what to write in place of a parameter that is not an object.

    >>> _spec_hint(["relu", "tanh"])
    'for one of these options write {"_type": "choice", "_value": [...]}, in Python pitchpipe.choice([...])'
    """
    if isinstance(spec, list | tuple):
        if len(spec) == 2 and all(type(end) in (int, float) and abs(end) < _HUGE for end in spec):
            low, high = sorted(spec)
            spelled = f'{{"_type": "uniform", "_value": [{low}, {high}]}}, in Python pitchpipe.uniform({low}, {high})'
            return f'for a range write {spelled}; for two options "choice"'
        return 'for one of these options write {"_type": "choice", "_value": [...]}, in Python pitchpipe.choice([...])'
    if spec is None:
        return 'for a constant write {"_type": "choice", "_value": [null]}'
    return ""


def _holds_parameters(value: Any) -> bool:
    """Return whether there is a parameter in an option of a plain choice, where nothing would sample it."""
    if isinstance(value, dict):
        return {"_type", "_value"} <= value.keys() or any(map(_holds_parameters, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_parameters, value))


def _problems_of_numbers(type_name: str, kind: Kind, values: Sequence[Any], path: JsonPath) -> list[Problem]:
    """Return what is wrong with the numbers of a type; they are compared only if each is sound."""
    problems = _problems_of_length(type_name, kind, values, path)
    for i, value in enumerate(values):
        problems += _problems_of_number(type_name, kind, value, (*path, i))
    return problems or _problems_of_fields(
        type_name, kind, dict(zip(kind.arguments, values, strict=True)), path
    )


def _numbers(kind: Kind, values: Sequence[float]) -> dict[str, float]:
    """Return sound numbers by their names."""
    return {
        name: value if kind.integer else float(value)
        for name, value in zip(kind.arguments, values, strict=True)
    }


def _problems_of_length(type_name: str, kind: Kind, values: Sequence[Any], path: JsonPath) -> list[Problem]:
    if len(values) == len(kind.arguments):
        return []
    form = f"[{', '.join(kind.arguments)}]"
    hint = f"q{type_name} has a step" if len(values) == 3 and f"q{type_name}" in NUMERIC else ""
    return [Problem(path, f"{type_name} needs {form}, not {len(values)} values", hint)]


def _problems_of_number(type_name: str, kind: Kind, value: Any, path: JsonPath) -> list[Problem]:
    if isinstance(value, str):
        return [Problem(path, f"{brief(value)} is a string, not a number", _string_hint(value))]
    plain = number(value)
    if plain is None or type(value) not in (int, float):
        finite = " finite" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        return [Problem(path, f"{brief(value)} is not a{finite} number")]
    if not kind.integer:
        return []
    limit = MAX_STEPS if kind.log else MAX_INTEGER
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) <= limit
        fractions = "loguniform or qloguniform" if kind.log else "uniform or quniform"
        hint = f"write {int(value)}" if whole else f"use {fractions} for fractions"
        return [Problem(path, f"{type_name} needs integers, not {value!r}", hint)]
    if abs(value) > limit:
        return [Problem(path, f"{brief(value)} is beyond the limit of {limit} for {type_name}")]
    return []


def _string_hint(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return ""
    if not math.isfinite(value):
        return "bounds must be finite"
    mantissa, mark, exponent = text.strip().lower().partition("e")
    # YAML 1.1 reads a number with an exponent but without a dot as text.
    if mark and "." not in mantissa:
        return f"YAML reads it as text: write {mantissa}.0e{exponent}"
    return f"write {text.strip()} without quotes"


def _problems_of_fields(
    type_name: str, kind: Kind, fields: dict[str, float], path: JsonPath
) -> list[Problem]:
    problems = []
    if "q" in fields and fields["q"] <= 0:
        problems.append(Problem((*path, 2), f"q must be greater than 0, not {brief(fields['q'])}"))
    if kind.normal:
        problems += _problems_of_bell(kind, fields, path)
    else:
        problems += _problems_of_bounds(type_name, kind, fields, path)
    if not problems and kind.quantised:
        problems += _problems_of_steps(kind, fields, path)
    return problems


def _problems_of_bell(kind: Kind, fields: dict[str, float], path: JsonPath) -> list[Problem]:
    mu, sigma = fields["mu"], fields["sigma"]
    problems = []
    if sigma <= 0:
        problems.append(Problem((*path, 1), f"sigma must be greater than 0, not {brief(sigma)}"))
    if kind.log and abs(mu) > MAX_LOG:
        hint = "mu and sigma are those of the logarithm of the value"
        problems.append(
            Problem((*path, 0), f"mu must be from {-MAX_LOG:g} to {MAX_LOG:g}, not {brief(mu)}", hint)
        )
    elif not math.isfinite(abs(float(mu)) + 10 * float(sigma)):
        problems.append(Problem(path, "mu and sigma are too large"))
    return problems


def _problems_of_bounds(
    type_name: str, kind: Kind, fields: dict[str, float], path: JsonPath
) -> list[Problem]:
    low, high = fields["low"], fields["high"]
    problems = []
    for i, bound in enumerate((low, high) if kind.log else ()):
        if bound <= 0:
            hint = "use a small positive number" if bound == 0 else ""
            problems.append(Problem((*path, i), f"{type_name} needs bounds > 0, not {brief(bound)}", hint))
    if low > high:
        message = f"low {brief(low)} is greater than high {brief(high)}"
        problems.append(Problem(path, message, f"swap them: [{brief(high)}, {brief(low)}]"))
    elif kind.integer and low == high:
        hint = f"the upper bound is exclusive: write [{low}, {low + 1}] for the one value {low}"
        problems.append(Problem(path, f"{type_name} from {low} to {high} is empty", hint))
    elif not math.isfinite(float(high) - float(low)):
        problems.append(Problem(path, "high - low is too large"))
    return problems


def _problems_of_steps(kind: Kind, fields: dict[str, float], path: JsonPath) -> list[Problem]:
    q = float(fields["q"])
    if kind.normal and kind.log:
        furthest = math.exp(fields["mu"])
    elif kind.normal:
        furthest = abs(float(fields["mu"])) + float(fields["sigma"])
    else:
        furthest = max(abs(float(fields["low"])), abs(float(fields["high"])))
    # Written as a product, so that a tiny q does not overflow.
    if furthest <= q * MAX_STEPS:
        return []
    return [Problem((*path, 2), f"q {brief(fields['q'])} is too small for values up to {furthest:g}")]


def _size(kind: Kind, fields: dict[str, float]) -> int | None:
    if kind.normal:
        return None
    if kind.integer:
        return int(fields["high"] - fields["low"])
    if fields["low"] == fields["high"]:
        return 1
    if not kind.quantised:
        return None
    first, last = grid_range(fields["low"], fields["high"], fields["q"])
    return last - first + 1
