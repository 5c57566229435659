"""NNI's helpers for tuners (`nni.common.hpo_utils`): a search space as flat specs, and parameters in their terms.

A *key* is the path of a parameter, with the number of the option that contains it: `("layer", 1, "kernel")`. In
formatted parameters a choice is the number of the option, a randint the distance from its lower bound, and a parameter
with a logarithmic distribution the logarithm of its value.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....protocol import JsonObject, Parameters
from ....search_space import check, finite_exp

Key: TypeAlias = tuple[str | int, ...]
FormattedParameters: TypeAlias = dict[Key, float | int]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ParameterSpec:
    """One parameter; fields that do not apply to its type are None. With `log_distributed`, bounds are logarithms."""

    name: str
    type: str
    values: list[Any]
    key: Key
    categorical: bool
    size: int | None = None
    low: float | None = None
    high: float | None = None
    normal_distributed: bool | None = None
    mu: float | None = None
    sigma: float | None = None
    q: float | None = None
    clip: tuple[float, float] | None = None
    log_distributed: bool | None = None

    def is_activated_in(self, partial_parameters: FormattedParameters) -> bool:
        """Return whether the choice that contains it has the option that it belongs to."""
        return len(self.key) < 2 or partial_parameters.get(self.key[:-2]) == self.key[-2]


FormattedSearchSpace: TypeAlias = dict[Key, ParameterSpec]


def validate_search_space(
    search_space: Any, support_types: Iterable[str] | None = None, raise_exception: bool = False
) -> bool:
    """Return whether a search space is valid and of the supported types; log what is wrong, or raise ValueError."""
    problems = [str(problem) for problem in check(search_space)]
    if not problems and support_types is not None:
        known = set(support_types)
        used = {spec.type for spec in format_search_space(search_space).values()}
        problems = [f"the type {name} is not supported" for name in sorted(used - known)]
    if problems and raise_exception:
        raise ValueError("; ".join(problems))
    for problem in problems:
        _log.error("search space: %s", problem)
    return not problems


def format_search_space(search_space: JsonObject) -> FormattedSearchSpace:
    """Return a spec for each parameter of a search space, those within an option after their choice.

    >>> space = format_search_space({"lr": {"_type": "loguniform", "_value": [0.01, 1]}})
    >>> space["lr",].high, space["lr",].log_distributed
    (0.0, True)
    """
    return {spec.key: spec for spec in _specs((), search_space)}


def deformat_parameters(
    formatted_parameters: FormattedParameters, formatted_search_space: FormattedSearchSpace
) -> Parameters:
    """Return the parameters for a trial.

    >>> space = format_search_space({"x": {"_type": "quniform", "_value": [0, 1, 0.5]}})
    >>> deformat_parameters({("x",): 0.6}, space)
    {'x': 0.5}
    """
    parameters: Parameters = {}
    for key, value in formatted_parameters.items():
        spec = formatted_search_space[key]
        level = parameters
        for name in key[:-1:2]:
            level = level[str(name)]
        level[spec.name] = _value(spec, value)
    return parameters


def format_parameters(
    parameters: Parameters, formatted_search_space: FormattedSearchSpace
) -> FormattedParameters:
    """Return the parameters of a trial in the terms of the specs.

    Raise KeyError for one that is missing, and ValueError for a value that is none of the options.
    """
    formatted: FormattedParameters = {}
    for key, spec in formatted_search_space.items():
        if spec.is_activated_in(formatted):
            level: Any = parameters
            for name in key[:-1:2]:
                level = level[name]
            formatted[key] = _formatted(spec, level[spec.name])
    return formatted


def _specs(at: Key, space: JsonObject) -> Iterator[ParameterSpec]:
    for name, form in space.items():
        if name == "_name":
            continue
        is_constant = not isinstance(form, Mapping)
        kind, values = ("choice", [form]) if is_constant else (form["_type"], form["_value"])
        key = (*at, name)
        if kind == "choice":
            yield ParameterSpec(
                name=name, type=kind, values=values, key=key, categorical=True, size=len(values)
            )
            if _is_nested(values):
                for number, option in enumerate(values):
                    yield from _specs((*key, number), option)
        elif kind == "randint":
            low, high = (math.ceil(value) for value in values)
            yield ParameterSpec(
                name=name, type=kind, values=[low, high], key=key, categorical=True, size=high - low
            )
        else:
            yield _number(name, kind, [float(value) for value in values], key)


def _number(name: str, kind: str, values: list[float], key: Key) -> ParameterSpec:
    first, second, *step = values
    is_normal, is_log = kind.endswith("normal"), "log" in kind
    bounds = (None, None) if is_normal else (math.log(first), math.log(second)) if is_log else (first, second)
    return ParameterSpec(
        name=name,
        type=kind,
        values=values,
        key=key,
        categorical=False,
        low=bounds[0],
        high=bounds[1],
        normal_distributed=is_normal,
        mu=first if is_normal else None,
        sigma=second if is_normal else None,
        q=step[0] if step else None,
        clip=(first, second) if step and not is_normal else None,
        log_distributed=is_log,
    )


def _is_nested(options: Sequence[Any]) -> bool:
    return all(isinstance(option, dict) and "_name" in option for option in options)


def _value(spec: ParameterSpec, value: float) -> Any:
    if spec.type == "choice":
        option = spec.values[int(value)]
        return {"_name": option["_name"]} if _is_nested(spec.values) else option
    if spec.type == "randint":
        return int(value) + spec.values[0]
    number = finite_exp(value) if spec.log_distributed else value
    if spec.type == "lograndint":
        return min(int(number), int(spec.values[1]) - 1)
    if spec.q is not None:
        number = round(number / spec.q) * spec.q
    return number if spec.clip is None else min(max(number, spec.clip[0]), spec.clip[1])


def _formatted(spec: ParameterSpec, value: Any) -> float | int:
    if spec.type == "choice":
        if _is_nested(spec.values):
            return [option["_name"] for option in spec.values].index(value["_name"])
        return spec.values.index(value)
    if spec.type == "randint":
        return value - spec.values[0]
    if spec.log_distributed:
        return math.log(value) if value > 0 else -math.inf  # qlognormal rounds to 0
    return value
