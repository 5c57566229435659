"""Each parameter's map between its values and the unit interval: the CDF of its sampling distribution.

A discrete value is encoded as the middle of the interval of units that decode to it, so the way back is exact if
its probability is above 1e-15. Normal types end at 8.2 sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from ..protocol import brief
from .json_checks import identity, json_problems, nearest, number, plain_copy
from .parameter import Parameter

Curve = Callable[[float], float]

MAX_LOG = 700.0  # exp() of up to 709.78 is a finite double; models and figures need some room
_EDGE = 2.0**-53  # the smallest and, from 1, the largest unit a normal type tells apart
_MAX_GRID = 2.0**53
_TOLERANCE = 1e-9
_inverse_bell = NormalDist().inv_cdf
_TIE = 1e-9  # steps; 0.15 / 0.1 is 1.4999999999999998


@dataclass(frozen=True, slots=True)
class UnitMap:
    """`from_unit(u)` gives a value for u in [0, 1]; `to_unit(value)` the unit of a value without a `fault`.

    A nested choice is identified by its option index. `fault(value)` says why it is not a value of the
    parameter, and is empty if it is one.
    """

    from_unit: Callable[[float], Any]
    to_unit: Callable[[Any], float]
    fault: Callable[[Any], str]


def unit_map(parameter: Parameter) -> UnitMap:
    """Return the map of a parameter.

    >>> layers = unit_map(Parameter(("layers",), "layers", "randint", low=1, high=5, size=4))
    >>> layers.from_unit(0.3), layers.to_unit(2), layers.fault(5)
    (2, 0.375, '5 is outside 1..4')
    """
    if parameter.categorical:
        return _choice(parameter)
    if parameter.integer:
        return _randint(parameter) if parameter.even else _uneven_randint(parameter)
    return _grid(parameter) if parameter.q is not None else _continuous(parameter)


def _choice(parameter: Parameter) -> UnitMap:
    count = len(parameter.options)
    index_of: dict[Any, int] = {}
    for i, option in enumerate(parameter.options):
        index_of.setdefault(identity(option), i)

    def index(u: float) -> int:
        return min(int(u * count), count - 1)

    def fault(value: Any) -> str:
        sound = not isinstance(value, dict | list | tuple) or not json_problems(value, ())
        if sound and identity(value) in index_of:
            return ""
        hint = nearest(value, [option for option in parameter.options if isinstance(option, str)])
        if value == "None" and None in parameter.options:
            hint = "write null for None"
        message = f"{brief(value)} is not one of {_show_options(parameter.options)}"
        return f"{message}, {hint}" if hint else message

    from_unit = index if parameter.nested else _option_of_unit(parameter.options)
    return UnitMap(from_unit, lambda value: (index_of[identity(value)] + 0.5) / count, fault)


def _option_of_unit(options: tuple[Any, ...]) -> Callable[[float], Any]:
    count, last = len(options), len(options) - 1
    if not any(isinstance(option, dict | list) for option in options):
        return lambda u: options[i if (i := int(u * count)) < count else last]
    return lambda u: plain_copy(options[min(int(u * count), last)])


def _show_options(options: tuple[Any, ...]) -> str:
    first = ", ".join(brief(option) for option in options[:8])
    return f"{first} ..." if len(options) > 8 else first


def _randint(parameter: Parameter) -> UnitMap:
    low, high = int(parameter.low or 0), int(parameter.high or 0)
    count, last = high - low, high - 1

    def from_unit(u: float) -> int:
        value = low + int(u * count)
        return value if value < last else last

    return UnitMap(from_unit, lambda value: (int(value) - low + 0.5) / count, _integer_fault(low, last))


def _uneven_randint(parameter: Parameter) -> UnitMap:
    """Return the map of the integer below a log-uniform or bent number: k has the share of [k, k + 1)."""
    cdf, quantile = _curves(parameter)
    low, last = int(parameter.low or 0), int(parameter.high or 0) - 1

    def from_unit(u: float) -> int:
        value = int(quantile(u))
        return value if value < last else last

    def to_unit(value: Any) -> float:
        return 0.5 * (cdf(int(value)) + cdf(int(value) + 1))

    return UnitMap(from_unit, to_unit, _integer_fault(low, last))


def _integer_fault(low: int, last: int) -> Callable[[Any], str]:
    def fault(value: Any) -> str:
        plain = number(value)
        if plain is None or plain != int(plain):
            return f"{brief(value)} is not an integer"
        return "" if low <= plain <= last else f"{brief(value)} is outside {low}..{last}"

    return fault


def _continuous(parameter: Parameter) -> UnitMap:
    cdf, quantile = _curves(parameter)

    def to_unit(value: Any) -> float:
        return min(max(cdf(float(value)), 0.0), 1.0)

    return UnitMap(quantile, to_unit, _range_fault(parameter))


def _range_fault(parameter: Parameter) -> Callable[[Any], str]:
    """Return the check of a number against the bounds, which allows for rounding in the last digits."""
    low, high = _support(parameter)
    least, most = low - _TOLERANCE * abs(low), high + _TOLERANCE * abs(high)
    if parameter.log and parameter.normal and parameter.q is None:
        least = math.ulp(0.0)  # exp() is above 0

    def fault(value: Any) -> str:
        plain = number(value)
        if plain is None:
            return f"{brief(value)} is not a finite number"
        return "" if least <= plain <= most else f"{brief(value)} is outside [{low:g}, {high:g}]"

    return fault


def ends_of(parameter: Parameter, deviations: float) -> tuple[float, float]:
    """Return the bounds of a number, those of a normal type so many standard deviations from its middle; all finite.

    >>> [f"{end:.3g}" for end in ends_of(Parameter(("x",), "x", "lognormal", mu=512.0, sigma=128.0), 3)]
    ['3.89e+55', '1.01e+304']
    """
    if not parameter.normal:
        return _support(parameter)
    middle, width = float(parameter.mu or 0), deviations * float(parameter.sigma or 1)
    low, high = middle - width, middle + width
    return (finite_exp(low), finite_exp(high)) if parameter.log else (low, high)


def finite_exp(value: float) -> float:
    """Return a power of e, or the last one in the range of floats."""
    return math.exp(min(max(value, -MAX_LOG), MAX_LOG))


def _support(parameter: Parameter) -> tuple[float, float]:
    if not parameter.normal:
        return float(parameter.low or 0), float(parameter.high or 0)
    return (0.0 if parameter.log else -math.inf), math.inf


def _curves(parameter: Parameter) -> tuple[Curve, Curve]:
    """Return the CDF and the quantile function of the distribution before rounding to multiples of q."""
    if parameter.normal:
        return _bell(float(parameter.mu or 0), float(parameter.sigma or 1), parameter.log)
    low, high = _support(parameter)
    if low == high:
        return (lambda _: 0.5), (lambda _: low)
    if parameter.bend:
        return _bent_line(low, high, parameter.bend)
    return _log_line(low, high) if parameter.log else _line(low, high)


def _line(low: float, high: float) -> tuple[Curve, Curve]:
    width = high - low

    def quantile(u: float) -> float:
        value = low + u * width
        return value if value < high else high

    return (lambda value: (value - low) / width), quantile


def _bent_line(low: float, high: float, bend: float) -> tuple[Curve, Curve]:
    """Return curves that are straight near the lower end, and logarithmic above: the density falls by exp(bend)."""
    width, most = high - low, math.expm1(bend)

    def quantile(u: float) -> float:
        value = low + width * math.expm1(bend * u) / most
        return value if value < high else high

    return (lambda value: math.log1p(max(value - low, 0.0) / width * most) / bend), quantile


def _log_line(low: float, high: float) -> tuple[Curve, Curve]:
    log_low = math.log(low)
    log_width = math.log(high) - log_low
    exp, log = math.exp, math.log

    def cdf(value: float) -> float:
        return (log(value) - log_low) / log_width if value > low else 0.0

    def quantile(u: float) -> float:
        value = exp(log_low + u * log_width)
        return low if value < low else high if value > high else value

    return cdf, quantile


def _bell(mu: float, sigma: float, log: bool) -> tuple[Curve, Curve]:
    scale = sigma * math.sqrt(2.0)

    def cdf(value: float) -> float:
        return 0.5 * math.erfc((mu - value) / scale)

    def quantile(u: float) -> float:
        return mu + sigma * _inverse_bell(_EDGE if u < _EDGE else 1.0 - _EDGE if u > 1.0 - _EDGE else u)

    if not log:
        return cdf, quantile
    return (
        lambda value: cdf(math.log(value)) if value > 0 else 0.0,
        lambda u: finite_exp(quantile(u)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """The multiples k * q, first <= k <= last, clipped to [low, high] as NNI does: [2, 10, 5] is 2, 5, 10."""

    q: float
    low: float
    high: float
    first: float
    last: float

    @classmethod
    def of(cls, parameter: Parameter) -> _Grid:
        q = float(parameter.q or 1)
        low, high = _support(parameter)
        if not parameter.normal:
            first, last = grid_range(low, high, q)
        else:
            first, last = 0 if parameter.log else -_MAX_GRID, _MAX_GRID
        return cls(q=q, low=low, high=high, first=first, last=last)

    def step(self, value: float) -> int:
        """Return the k of the value nearest to a number."""
        k = value / self.q
        return round(self.first if k < self.first else self.last if k > self.last else k)

    def value(self, k: int) -> float:
        """Return the value of k: a float, even if q and the bounds are integers."""
        value = k * self.q
        return self.low if value < self.low else self.high if value > self.high else value


def _grid(parameter: Parameter) -> UnitMap:
    cdf, quantile = _curves(parameter)
    grid = _Grid.of(parameter)
    out_of_range = _range_fault(parameter)

    def to_unit(value: Any) -> float:
        k = grid.step(float(value))
        return 0.5 * (edge(k - 0.5, 0.0) + edge(k + 0.5, 1.0))

    def edge(steps: float, end: float) -> float:
        """Return the unit at which the rounding changes; beyond the bounds, the end of the interval."""
        value = steps * grid.q
        return cdf(value) if grid.low < value < grid.high else end

    def fault(value: Any) -> str:
        if message := out_of_range(value):
            return message
        nearest_value = grid.value(grid.step(float(value)))
        if abs(nearest_value - value) <= _TOLERANCE * max(abs(value), grid.q):
            return ""
        return f"{brief(value)} is not a multiple of {grid.q:g}, the nearest value is {nearest_value:g}"

    return UnitMap(lambda u: grid.value(grid.step(quantile(u))), to_unit, fault)


def grid_range(low: float, high: float, q: float) -> tuple[int, int]:
    """Return the first and the last k for which `round(x / q) == k` has a probability above 0 on [low, high].

    A bound half-way between two multiples rounds away only in that single point, so it does not count.

    >>> grid_range(2.0, 10.0, 5.0), grid_range(0.5, 2.5, 1.0)
    ((0, 2), (1, 2))
    """
    if low == high:
        return round(low / q), round(low / q)
    first = math.floor(low / q + 0.5 + _TIE)
    return first, max(first, math.ceil(high / q - 0.5 - _TIE))
