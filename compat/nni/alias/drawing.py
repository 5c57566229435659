"""NNI's random parameters: one value of each type (its `parameter_expressions`), and whole points of a space.

Points are in the terms of formatted search spaces, or in the form that NNI's evolution tuner uses. In that form a
choice is `{"_index": 1, "_value": "relu"}`, and a place in the space a name such as `root[op]-choice`. In the functions
for one value, `random_state` is a numpy RandomState (or anything with its methods).

>>> import numpy as np
>>> state = np.random.RandomState(0)
>>> choice(["a", "b"], state), randint(0, 10, state)
('a', 5)
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from ....protocol import dumps
from ....search_space import finite_exp
from .hpo_utils import FormattedParameters, FormattedSearchSpace, ParameterSpec, deformat_parameters
from .utils import NodeType

_DRAWS = 1000
Option = TypeVar("Option")


def choice(options: Sequence[Option], random_state: Any) -> Option:
    """Return one of the options."""
    return options[random_state.randint(len(options))]


def randint(lower: int, upper: int, random_state: Any) -> int:
    """Return an integer from `lower` to `upper` - 1."""
    return int(random_state.randint(lower, upper))


def uniform(low: float, high: float, random_state: Any) -> float:
    """Return a number from `low` to `high`."""
    if high <= low:
        raise ValueError(f"the upper bound {high} is not above the lower bound {low}")
    return float(random_state.uniform(low, high))


def quniform(low: float, high: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q`, moved between `low` and `high`."""
    return _between(low, high, _rounded(uniform(low, high, random_state), q))


def loguniform(low: float, high: float, random_state: Any) -> float:
    """Return a number from `low` to `high` whose logarithm is uniform."""
    if low <= 0:
        raise ValueError(f"the lower bound {low} of loguniform is not above 0")
    return math.exp(uniform(math.log(low), math.log(high), random_state))


def qloguniform(low: float, high: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a loguniform number, moved between `low` and `high`."""
    return _between(low, high, _rounded(loguniform(low, high, random_state), q))


def normal(mu: float, sigma: float, random_state: Any) -> float:
    """Return a normal number."""
    return float(random_state.normal(mu, sigma))


def qnormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a normal number."""
    return _rounded(normal(mu, sigma, random_state), q)


def lognormal(mu: float, sigma: float, random_state: Any) -> float:
    """Return a number whose logarithm is normal."""
    return finite_exp(normal(mu, sigma, random_state))


def qlognormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a number whose logarithm is normal."""
    return _rounded(lognormal(mu, sigma, random_state), q)


def _rounded(value: float, q: float) -> float:
    return round(value / q) * q


def _between(low: float, high: float, value: float) -> float:
    return min(max(value, low), high)


_NUMBERS = (randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, lognormal, qlognormal)
_BY_TYPE: Mapping[str, Callable[..., float]] = {draw.__name__: draw for draw in _NUMBERS}


def suggest(rng: Any, space: FormattedSearchSpace) -> FormattedParameters:
    """Return random parameters in the terms of the specs; `rng` is a numpy Generator."""
    parameters: FormattedParameters = {}
    for key, spec in space.items():
        if spec.is_activated_in(parameters):
            parameters[key] = _drawn(rng, spec)
    return parameters


class Deduplicator:
    """Replaces parameters that it has seen by others of the space, as long as there are any.

    >>> from .hpo_utils import format_search_space
    >>> once = Deduplicator(format_search_space({"x": {"_type": "choice", "_value": ["a", "b"]}}))
    >>> once({("x",): 1}), once({("x",): 1})
    ({('x',): 1}, {('x',): 0})
    """

    def __init__(self, formatted_search_space: FormattedSearchSpace) -> None:
        self._space = formatted_search_space
        self._seen: set[str] = set()
        dice = random.Random(0)
        self._rng = SimpleNamespace(integers=dice.randrange, uniform=dice.uniform, normal=dice.gauss)
        self._others = self._points()

    def __call__(self, formatted_parameters: FormattedParameters) -> FormattedParameters:
        """Return the parameters, or others if they were seen; raise `NoMoreTrialError` if there are no others."""
        if self._is_new(formatted_parameters):
            return formatted_parameters
        for others in filter(self._is_new, self._others):
            return others
        from ....tuners import NoMoreTrialError

        raise NoMoreTrialError("Search space fully explored")

    def add_history(self, formatted_parameters: FormattedParameters) -> None:
        """Note parameters as seen."""
        self._is_new(formatted_parameters)

    def _is_new(self, parameters: FormattedParameters) -> bool:
        text = dumps(deformat_parameters(parameters, self._space))
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new

    def _points(self) -> Iterator[FormattedParameters]:
        """Yield all points without a continuous parameter, then random ones if there is such a parameter."""
        yield from self._finite([], {})
        if any(_all_values(spec) is None for spec in self._space.values()):
            for _ in range(_DRAWS):
                yield suggest(self._rng, self._space)

    def _finite(self, keys: Sequence[Any], chosen: FormattedParameters) -> Iterator[FormattedParameters]:
        left = itertools.islice(self._space.items(), len(keys), None)
        for key, spec in left:
            if not spec.is_activated_in(chosen):
                keys = [*keys, key]
                continue
            for value in _all_values(spec) or ():
                yield from self._finite([*keys, key], {**chosen, key: value})
            return
        yield chosen


def json2space(x: Any, oldy: Any = None, name: str = NodeType.ROOT) -> list[str]:
    """Return the names of all places in a search space.

    >>> json2space({"op": {"_type": "choice", "_value": ["relu", "tanh"]}})
    ['root[op]-choice']
    """
    del oldy
    if not isinstance(x, Mapping):
        return []
    if NodeType.TYPE not in x:
        return [place for key, inner in x.items() for place in json2space(inner, None, f"{name}[{key}]")]
    own = f"{name}-{x[NodeType.TYPE]}"
    options = x[NodeType.VALUE] if x[NodeType.TYPE] == "choice" else ()
    return [
        own,
        *(place for at, inner in enumerate(options) for place in json2space(inner, None, f"{own}[{at}]")),
    ]


def json2parameter(
    x: Any,
    is_rand: Mapping[str, bool],
    random_state: Any,
    oldy: Any = None,
    Rand: bool = False,
    name: str = "root",
) -> Any:
    """Return parameters in the form of evolution: random at the places where `is_rand` is true, else as in `oldy`."""
    if not isinstance(x, Mapping):
        return x
    if NodeType.TYPE not in x:
        return {
            key: json2parameter(
                inner, is_rand, random_state, None if oldy is None else oldy[key], Rand, f"{name}[{key}]"
            )
            for key, inner in x.items()
        }
    kind, values = x[NodeType.TYPE], x[NodeType.VALUE]
    own = f"{name}-{kind}"
    old = None if Rand or oldy is None or is_rand[own] else oldy
    if kind != "choice":
        return _BY_TYPE[kind](*values, random_state) if old is None else old
    index = int(random_state.randint(len(values))) if old is None else old[NodeType.INDEX]
    before = None if old is None else old[NodeType.VALUE]
    inner = json2parameter(values[index], is_rand, random_state, before, Rand, f"{own}[{index}]")
    return {NodeType.INDEX: index, NodeType.VALUE: inner}


def _drawn(rng: Any, spec: ParameterSpec) -> float | int:
    if spec.size is not None:
        return int(rng.integers(spec.size))
    if spec.normal_distributed:
        return float(rng.normal(spec.mu, spec.sigma))
    return float(rng.uniform(spec.low, spec.high))


def _all_values(spec: ParameterSpec) -> Sequence[float] | None:
    """Return all values of a parameter in the terms of its spec; None if there is no end of them."""
    if spec.size is not None:
        return range(spec.size)
    if spec.normal_distributed:
        return [spec.mu] if spec.sigma == 0 and spec.mu is not None else None
    if spec.q is None or spec.clip is None:
        return None
    low, high = spec.clip
    steps = (min(max(at * spec.q, low), high) for at in range(round(low / spec.q), round(high / spec.q) + 1))
    return [math.log(step) if spec.log_distributed else step for step in steps]
