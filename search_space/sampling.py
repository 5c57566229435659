"""Functions that write the parameters of a search space: `uniform(0, 1)` for `{"_type": "uniform", "_value": [0, 1]}`.

They check nothing: a space is checked as a whole, so that problems are shown with the names of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol import Json, JsonObject


def choice(options: Iterable[Json]) -> JsonObject:
    """Return a parameter with one of these options; dicts with a `_name` may hold parameters of their own.

    >>> choice(["relu", "tanh"])
    {'_type': 'choice', '_value': ['relu', 'tanh']}
    """
    return _spec("choice", *options)


def randint(low: int, high: int) -> JsonObject:
    """Return a parameter with the integers from `low` to `high` - 1.

    >>> randint(1, 5)
    {'_type': 'randint', '_value': [1, 5]}
    """
    return _spec("randint", low, high)


def lograndint(low: int, high: int) -> JsonObject:
    """Return a parameter with the integers from `low` > 0 to `high` - 1, on a logarithmic scale.

    >>> lograndint(8, 1025)
    {'_type': 'lograndint', '_value': [8, 1025]}
    """
    return _spec("lograndint", low, high)


def uniform(low: float, high: float) -> JsonObject:
    """Return a parameter with the numbers from `low` to `high`.

    >>> uniform(0, 0.5)
    {'_type': 'uniform', '_value': [0, 0.5]}
    """
    return _spec("uniform", low, high)


def quniform(low: float, high: float, q: float) -> JsonObject:
    """Return a parameter with the multiples of `q` from `low` to `high`, as floats.

    >>> quniform(0, 1, 0.1)
    {'_type': 'quniform', '_value': [0, 1, 0.1]}
    """
    return _spec("quniform", low, high, q)


def loguniform(low: float, high: float) -> JsonObject:
    """Return a parameter with the numbers from `low` > 0 to `high`, on a logarithmic scale.

    >>> loguniform(1e-5, 0.1)
    {'_type': 'loguniform', '_value': [1e-05, 0.1]}
    """
    return _spec("loguniform", low, high)


def qloguniform(low: float, high: float, q: float) -> JsonObject:
    """Return a parameter with the multiples of `q` on a logarithmic scale, as floats; `lograndint` gives integers.

    >>> qloguniform(0.5, 64, 0.5)
    {'_type': 'qloguniform', '_value': [0.5, 64, 0.5]}
    """
    return _spec("qloguniform", low, high, q)


def normal(mu: float, sigma: float) -> JsonObject:
    """Return a normally distributed parameter.

    >>> normal(0, 1)
    {'_type': 'normal', '_value': [0, 1]}
    """
    return _spec("normal", mu, sigma)


def qnormal(mu: float, sigma: float, q: float) -> JsonObject:
    """Return a normally distributed parameter, rounded to multiples of `q`.

    >>> qnormal(10, 5, 2)
    {'_type': 'qnormal', '_value': [10, 5, 2]}
    """
    return _spec("qnormal", mu, sigma, q)


def lognormal(mu: float, sigma: float) -> JsonObject:
    """Return a parameter whose logarithm is normally distributed.

    >>> lognormal(0, 1)
    {'_type': 'lognormal', '_value': [0, 1]}
    """
    return _spec("lognormal", mu, sigma)


def qlognormal(mu: float, sigma: float, q: float) -> JsonObject:
    """Return a parameter whose logarithm is normally distributed, rounded to multiples of `q`.

    >>> qlognormal(2, 1, 1)
    {'_type': 'qlognormal', '_value': [2, 1, 1]}
    """
    return _spec("qlognormal", mu, sigma, q)


def _spec(kind: str, *values: Json) -> JsonObject:
    return {"_type": kind, "_value": list(values)}
