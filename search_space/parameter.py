"""One dimension of a search space, and the table of the types it can have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

_WIDE = 20.0  # times its lower bound, at least, is the upper bound of a wide range
_MANY = 30  # values of a wide range
_LOWEST = 0.5  # what a lower bound of 0 counts as
_OF_SHARES = 1e-3  # at least, is the lower bound of shares, which are at most 1 and have a scale


@dataclass(frozen=True, slots=True)
class Kind:
    """What a `_type` is: the names of the numbers in its `_value`, and how they are read.

    `log`: the logarithm of the value is uniform or normal. `normal`: normal rather than uniform.
    """

    arguments: tuple[str, ...]
    log: bool = False
    normal: bool = False
    integer: bool = False

    @property
    def quantised(self) -> bool:
        """Whether the values are rounded to multiples of q."""
        return "q" in self.arguments


_BOUNDS = ("low", "high")
_BELL = ("mu", "sigma")

NUMERIC: dict[str, Kind] = {
    "randint": Kind(_BOUNDS, integer=True),
    "lograndint": Kind(_BOUNDS, log=True, integer=True),
    "uniform": Kind(_BOUNDS),
    "quniform": Kind((*_BOUNDS, "q")),
    "loguniform": Kind(_BOUNDS, log=True),
    "qloguniform": Kind((*_BOUNDS, "q"), log=True),
    "normal": Kind(_BELL, normal=True),
    "qnormal": Kind((*_BELL, "q"), normal=True),
    "lognormal": Kind(_BELL, log=True, normal=True),
    "qlognormal": Kind((*_BELL, "q"), log=True, normal=True),
}
TYPES: tuple[str, ...] = ("choice", *NUMERIC)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One dimension of a search space.

    `key` is the path of the parameter, with the option index of every choice it is nested in:
    `("layer", 1, "kernel")`; `parent` is (index of the choice it is nested in, option index).
    `options` holds the options of a choice, and their `_name`s when it is `nested`. `low` and `high` are the
    bounds as written (never logarithms; `high` is exclusive for integers), `mu` and `sigma` those of the
    logarithm for lognormal types; what a type does not have is None. `size` counts the distinct values; None
    means continuous or unbounded. A `bend` above 0 gives low values more of the unit interval than sampling does.
    """

    key: tuple[str | int, ...]
    name: str
    type: str
    parent: tuple[int, int] | None = None
    options: tuple[Any, ...] = ()
    nested: bool = False
    low: float | None = None
    high: float | None = None
    mu: float | None = None
    sigma: float | None = None
    q: float | None = None
    size: int | None = None
    bend: float = 0.0

    @property
    def categorical(self) -> bool:
        """Whether the values are options without an order (choice)."""
        return self.type == "choice"

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers."""
        return self.type != "choice"

    @property
    def integer(self) -> bool:
        """Whether the values are Python integers (randint, lograndint)."""
        return self.ordered and NUMERIC[self.type].integer

    @property
    def even(self) -> bool:
        """Whether the values are integers that share the unit interval equally."""
        return self.integer and not self.log and not self.bend

    @property
    def log(self) -> bool:
        """Whether the logarithm of the value is uniform or normal, instead of the value."""
        return self.ordered and NUMERIC[self.type].log

    @property
    def normal(self) -> bool:
        """Whether the value, or its logarithm, is normally distributed."""
        return self.ordered and NUMERIC[self.type].normal

    def bent(self, bend: float) -> Parameter:
        """Return this with its low values spread out, if it is uniform from about 0 over a wide range.

        >>> Parameter(("n",), "n", "uniform", low=0.0, high=1000.0).bent(4.0).bend
        4.0
        >>> Parameter(("n",), "n", "uniform", low=100.0, high=1000.0).bent(4.0).bend
        0.0
        """
        if self.categorical or self.log or self.low is None or self.high is None or self.low < 0:
            return self
        is_share = self.high <= 1 and self.low >= _OF_SHARES
        is_wide = self.high >= _WIDE * (self.low or _LOWEST) and (self.size or _MANY) >= _MANY
        return replace(self, bend=bend) if is_wide and not is_share else self

    @property
    def path(self) -> str:
        """The dotted name without option indices, as constraints write it: `layer.kernel`."""
        return dotted(self.key)


def dotted(key: tuple[str | int, ...]) -> str:
    """Return a key without its option indices, joined by dots.

    >>> dotted(("layer", 1, "kernel"))
    'layer.kernel'
    """
    return ".".join(part for part in key if isinstance(part, str))


def separators(keys: Collection[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], str]:
    """Return what joins the names in each key in tables: a slash where an outer parameter has the dotted name.

    >>> separators([("lr",), ("model", 0, "lr"), ("model.lr",)])
    {('lr',): '.', ('model', 0, 'lr'): '/', ('model.lr',): '.'}
    """
    alike: dict[str, list[tuple[str | int, ...]]] = {}
    for key in keys:
        alike.setdefault(dotted(key), []).append(key)
    return {key: "/" if any(_is_outer(other, key) for other in alike[dotted(key)]) else "." for key in keys}


def _is_outer(outer: tuple[str | int, ...], key: tuple[str | int, ...]) -> bool:
    """Return whether a parameter exists wherever another does that is deeper below the same choices."""
    return len(outer) < len(key) and key[: len(outer) - 1] == outer[:-1]
