"""The parameters of a search space as axes: nested choices side by side, options as labels."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocol import Json
from ...search_space import Parameter, SearchSpace, SearchSpaceError, ends_of, separators
from ...telling import is_bare

_LOG_SPAN = 1000.0  # numbers without a space that differ by this factor are drawn on a logarithmic axis
_LARGEST = 1e300  # so that differences of two numbers, and ten times these, are finite
_LARGEST_OF_LOG = 1e305  # on a logarithmic axis: its powers of ten are finite
_ENDS = 3.0  # standard deviations at which the axis of a normal parameter ends

Points = Sequence[Mapping[str, Json]]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One parameter as an axis.

    `name` is its label, `key` its path in the parameters of a trial, written with the `separator`. It exists where the
    nested choices in `conditions` were made: (path of the choice, name of the option). A categorical parameter has
    `options`, which are labels; a number has the bounds `low` and `high`, None while they are unknown. An `unbounded`
    one may have values beyond them.
    """

    name: str
    key: tuple[str, ...]
    separator: str = "."
    options: tuple[str, ...] = ()
    categorical: bool = False
    nested: bool = False
    low: float | None = None
    high: float | None = None
    log: bool = False
    integer: bool = False
    unbounded: bool = False
    conditions: tuple[tuple[tuple[str, ...], str], ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """The path of the values in the parameters of a trial; that of a nested choice leads to the option's name."""
        return (*self.key, "_name") if self.nested else self.key

    @property
    def field(self) -> str:
        """The name of the values in queries of trials."""
        return f"parameters.{self.separator.join(self.path)}"

    @property
    def varies(self) -> bool:
        """Whether there is more than one value."""
        if self.categorical:
            return len(self.options) > 1 or bool(self.conditions)
        return self.low is not None and (self.low != self.high or bool(self.conditions))

    def value(self, parameters: Mapping[str, Json]) -> float | str | None:
        """Return the number, or the label of the option, that a trial has here; None if it has none.

        >>> kernel = Dimension(name="k", key=("layer", "kernel"), conditions=((("layer",), "conv"),))
        >>> kernel.value({"layer": {"_name": "conv", "kernel": 3}}), kernel.value({"layer": {"_name": "none"}})
        (3.0, None)
        """
        if any(_label_at(parameters, (*path, "_name")) != option for path, option in self.conditions):
            return None
        if self.categorical:
            return _label_at(parameters, self.path)
        return number_or_none(_at(parameters, self.path), _LARGEST_OF_LOG if self.log else _LARGEST)

    def column(self, points: Points) -> list[float | str | None]:
        """Return the values of many trials."""
        return [self.value(point) for point in points]

    def positions(self, points: Points) -> Numbers:
        """Return positions on the axis, shape (n,): the number or the index of the option; NaN where inactive."""
        index = {option: number for number, option in enumerate(self.options)}
        placed = [
            math.nan if value is None else index[value] if isinstance(value, str) else value
            for value in self.column(points)
        ]
        return np.array(placed, dtype=np.float64)

    def units(self, points: Points) -> Numbers:
        """Return positions between the ends of the axis, shape (n,), in [0, 1]; NaN where inactive."""
        places = self.positions(points)
        if self.categorical:
            return (places + 0.5) / max(len(self.options), 1)
        low, high = self.bounds
        if self.log:
            places, low, high = np.log(places), math.log(low), math.log(high)
        return np.clip((places - low) / (high - low), 0.0, 1.0) if high > low else places * 0.0 + 0.5

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of a numeric axis, (0, 1) while nothing is known."""
        return (0.0, 1.0) if self.low is None or self.high is None else (self.low, self.high)


_MISSING = object()


def number_or_none(value: Any, largest: float = _LARGEST) -> float | None:
    """Return a number that can be drawn as a float; None for everything else, `True` included.

    Numbers larger than `largest` are None as well; those smaller than its inverse become 0.

    >>> number_or_none(3), number_or_none(True), number_or_none(float("nan")), number_or_none(10**400)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not abs(number) <= largest:
        return None
    return number if abs(number) >= 1.0 / largest else 0.0


def drawable(values: Sequence[float | None] | Numbers) -> Numbers:
    """Return numbers as `number_or_none` does, NaN for None.

    >>> drawable([1.0, None, 1e308, 5e-324]).tolist()
    [1.0, nan, nan, 0.0]
    """
    numbers = np.array(values, dtype=np.float64)
    size = np.abs(numbers)
    return np.where(size <= _LARGEST, np.where(size >= 1.0 / _LARGEST, numbers, 0.0), np.nan)


def _at(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _label_at(value: Any, path: Iterable[str]) -> str | None:
    option = _at(value, path)
    return None if option is _MISSING else label(option)


def label(option: Any) -> str:
    """Return the text of an option: text unchanged if it is bare, everything else as JSON.

    >>> label("relu"), label(True), label(0.1), label([64, 32]), label("0.1")
    ('relu', 'true', '0.1', '[64, 32]', '"0.1"')
    """
    if isinstance(option, str) and is_bare(option):
        return option
    return json.dumps(option, ensure_ascii=False, default=str)


def dimensions_of(space: Any, constraints: Any = ()) -> list[Dimension]:
    """Return the dimensions of a search space in NNI's form; none if it is invalid.

    >>> space = {"layer": {"_type": "choice", "_value": [
    ...     {"_name": "none"}, {"_name": "conv", "kernel": {"_type": "randint", "_value": [1, 6]}}]}}
    >>> [(one.name, one.options, one.low, one.high) for one in dimensions_of(space)]
    [('layer', ('none', 'conv'), None, None), ('layer.kernel', (), 1.0, 5.0)]
    """
    try:
        parameters = SearchSpace.parse(space, constraints).parameters
    except SearchSpaceError:
        return []  # a custom tuner may read the space its own way: the trials show what there is
    between = separators([one.key for one in parameters])
    counts = Counter((one.path, between[one.key]) for one in parameters)
    return [
        _dimension(one, parameters, separator, ambiguous=counts[one.path, separator] > 1)
        for one in parameters
        for separator in [between[one.key]]
    ]


def _dimension(
    parameter: Parameter, all_of_them: Sequence[Parameter], separator: str, *, ambiguous: bool
) -> Dimension:
    low, high = (None, None) if parameter.categorical else _ends(parameter)
    conditions = _conditions(parameter, all_of_them)
    name = separator.join(_names(parameter))
    if ambiguous and conditions:
        name += f" ({', '.join(option for _, option in conditions)})"
    return Dimension(
        name=name,
        key=_names(parameter),
        separator=separator,
        options=tuple(dict.fromkeys(label(option) for option in parameter.options)),
        categorical=parameter.categorical,
        nested=parameter.nested,
        low=low,
        high=high,
        log=parameter.log,
        integer=parameter.integer,
        unbounded=parameter.normal,
        conditions=conditions,
    )


def _names(parameter: Parameter) -> tuple[str, ...]:
    return tuple(part for part in parameter.key if isinstance(part, str))


def _conditions(
    parameter: Parameter, all_of_them: Sequence[Parameter]
) -> tuple[tuple[tuple[str, ...], str], ...]:
    conditions: list[tuple[tuple[str, ...], str]] = []
    while parameter.parent is not None:
        choice, option = all_of_them[parameter.parent[0]], parameter.parent[1]
        conditions.append((_names(choice), label(choice.options[option])))
        parameter = choice
    return tuple(reversed(conditions))


def _ends(parameter: Parameter) -> tuple[float, float]:
    """Return the ends of the axis of a number, as far as there is something to draw."""
    low, high = ends_of(parameter, _ENDS)
    ends = low, high - 1.0 if parameter.integer else high
    if parameter.log:
        first, last = (min(max(end, 1 / _LARGEST_OF_LOG), _LARGEST_OF_LOG) for end in ends)
    else:
        first, last = (number_or_none(min(max(end, -_LARGEST), _LARGEST)) or 0.0 for end in ends)
    return first, last


def completed(dimension: Dimension, points: Points) -> Dimension:
    """Return the dimension, widened to cover all points: the space may have changed, or a user added trials."""
    values = [value for value in dimension.column(points) if value is not None]
    if dimension.categorical:
        options = dict.fromkeys([*dimension.options, *map(str, values)])
        return replace(dimension, options=tuple(options))
    numbers = [value for value in values if isinstance(value, float)]
    ends = [end for end in (dimension.low, dimension.high) if end is not None] + numbers
    if not ends:
        return dimension
    if dimension.log and not min(ends) > 0:
        high = min(dimension.bounds[1], _LARGEST)
        return completed(replace(dimension, low=0.0, high=high, log=False), points)
    return replace(dimension, low=min(ends), high=max(ends))


def existing_together(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Return the first two that exist in the same trials, else the first two.

    >>> unit = {"_type": "uniform", "_value": [0, 1]}
    >>> net = {"_type": "choice", "_value": [{"_name": "deep", "k": unit}, {"_name": "flat"}]}
    >>> space = {"net": net, "lr": unit}
    >>> [one.name for one in existing_together(dimensions_of(space))]
    ['net', 'lr']
    """
    groups: dict[Any, list[Dimension]] = {}
    for one in dimensions:
        groups.setdefault(one.conditions, []).append(one)
    return next((group for group in groups.values() if len(group) > 1), list(dimensions))[:2]


def inferred(points: Points) -> list[Dimension]:
    """Return dimensions that cover points for which no space is known.

    >>> [(one.name, one.categorical, one.log) for one in inferred([{"a": 1e-6, "b": True}, {"a": 1.0, "b": False}])]
    [('a', False, True), ('b', True, False)]
    """
    flat: dict[tuple[str, ...], list[Any]] = {}
    for point in points:
        for key, value in _leaves(point):
            flat.setdefault(key, []).append(value)
    between = separators(flat)
    return [_inferred(key, between[key], values, points) for key, values in flat.items()]


def _inferred(key: tuple[str, ...], separator: str, values: list[Any], points: Points) -> Dimension:
    categorical = any(isinstance(value, bool) or not isinstance(value, int | float) for value in values)
    is_name = key[-1] == "_name" and len(key) > 1
    path = key[:-1] if is_name else key
    dimension = completed(
        Dimension(
            name=separator.join(path), key=path, separator=separator, categorical=categorical, nested=is_name
        ),
        points,
    )
    low, high = dimension.bounds
    numbers = [number for value in values if (number := number_or_none(value)) is not None]
    integer = not categorical and all(number.is_integer() for number in numbers)
    dimension = replace(dimension, integer=integer)
    is_wide = not categorical and 0 < low <= high / _LOG_SPAN
    return completed(replace(dimension, log=True), points) if is_wide else dimension


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, Mapping) or not value:
        if path:
            yield path, value
        return
    for name, inner in value.items():
        yield from _leaves(inner, (*path, str(name)))
