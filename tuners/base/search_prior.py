"""Where users expect good points: a density over the unit cube, whose weight fades as results arrive.

Hvarfner et al., πBO: Augmenting Acquisition Functions with User Beliefs for Bayesian Optimization, ICLR 2022
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...numerics import Floats
from ...protocol import Config, Json
from ...search_space import Parameter, SearchSpace, unit_map

# Standard deviations of a number, in the unit interval, at confidence 0 and 1.
_WIDEST, _NARROWEST = 0.5, 0.05
_SUREST = 0.9  # of a choice at confidence 1: the probability that the centre takes from the other options
_ELSEWHERE = 0.05  # the share of the density that is uniform, so that no point is hopeless
_TRUSTED = 5.0  # results that a prior is worth before its agreement with those that arrive decides
_TELLING = 8  # results after which a prior must agree with them
_COMPARED = 200  # results at most that it is compared with
_DURATION = 10.0  # results after which the prior has its plain weight: beta of Hvarfner et al.


@dataclass(frozen=True, slots=True)
class _Bell:
    """A normal density of a number, cut off at the ends of the unit interval."""

    centre: float
    spread: float

    def density(self, values: Floats) -> Floats:
        low, high = self._ends()
        bell = np.exp(-0.5 * ((values - self.centre) / self.spread) ** 2) / np.sqrt(2 * np.pi)
        return bell / (self.spread * (high - low))

    def quantile(self, shares: Floats) -> Floats:
        from scipy.special import ndtri

        low, high = self._ends()
        return np.clip(self.centre + self.spread * ndtri(low + shares * (high - low)), 0.0, 1.0)

    def _ends(self) -> tuple[float, float]:
        from scipy.special import ndtr

        low, high = ndtr((np.array([0.0, 1.0]) - self.centre) / self.spread)
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class _Favourite:
    """A density of a choice that is high at one of its options."""

    option: int
    count: int
    extra: float  # the probability that the option has more than its share

    @property
    def centre(self) -> float:
        return (self.option + 0.5) / self.count

    def density(self, values: Floats) -> Floats:
        is_option = np.minimum(np.floor(values * self.count), self.count - 1) == self.option
        return 1 - self.extra + self.extra * self.count * is_option

    def quantile(self, shares: Floats) -> Floats:
        others = (shares - self.extra) / max(1 - self.extra, 1e-9)
        return np.where(shares < self.extra, self.centre, np.clip(others, 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class SearchPrior:
    """Independent densities of some parameters; the others are uniform.

    >>> space = SearchSpace.parse({"lr": {"_type": "loguniform", "_value": [1e-4, 1]}})
    >>> prior = SearchPrior.of(space, {"lr": {"centre": 0.01, "confidence": 0.75}})
    >>> (prior.log_density(np.array([[0.5], [0.9]])) > 0).tolist()
    [True, False]
    """

    densities: Mapping[int, _Bell | _Favourite]  # by column

    @classmethod
    def of(cls, space: SearchSpace, priors: Mapping[str, Config]) -> SearchPrior:
        """Return the prior of a configuration; what the space does not have is left out."""
        densities = {
            column: _density(parameter, **priors[parameter.path])
            for column, parameter in enumerate(space.parameters)
            if parameter.path in priors and not unit_map(parameter).fault(priors[parameter.path]["centre"])
        }
        return cls(densities)

    def __bool__(self) -> bool:
        return bool(self.densities)

    def log_density(self, units: Floats) -> Floats:
        """Return the logarithm of the density at points, shape (m, d), relative to that of a uniform one."""
        total = np.zeros(len(units))
        for column, density in self.densities.items():
            values = units[:, column]
            part = np.log(_ELSEWHERE + (1 - _ELSEWHERE) * density.density(values))
            total += np.where(np.isnan(values), 0.0, part)
        return total

    def weight(self, units: Floats, losses: Floats) -> float:
        """Return the exponent of the density in an acquisition function after losses (n,), ascending, at units (n, d).

        It falls with the number of results, and to 0 where the better results are not where the prior expects them:
        with 8 results or more at once, if they rank against it.
        """
        count = len(losses)
        if not self.densities or not count:
            return 0.0
        some = np.unique(np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64))
        agreement = rank_agreement(-self.log_density(units[some]), losses[some])
        if count >= _TELLING and agreement < 0:
            return 0.0
        trust = (_TRUSTED + agreement * count) / (_TRUSTED + count)
        return max(trust, 0.0) * _DURATION / count

    def drawn(self, units: Floats) -> Floats:
        """Return uniform points, shape (m, d), as points of the prior: units become quantiles."""
        return self._replaced(units, {c: d.quantile(units[:, c]) for c, d in self.densities.items()})

    def centred(self, units: Floats) -> Floats:
        """Return points with the centres of the prior in place of their own values."""
        return self._replaced(units, {column: density.centre for column, density in self.densities.items()})

    def _replaced(self, units: Floats, columns: Mapping[int, Floats | float]) -> Floats:
        changed = units.copy()
        for column, values in columns.items():
            changed[:, column] = values
        return changed

    def mixed(self, design: Floats) -> Floats:
        """Return a uniform design with every second point drawn from the prior instead, and the centre as the first."""
        if not self.densities or not len(design):
            return design
        mixed = design.copy()
        mixed[::2] = self.drawn(design[::2])
        mixed[:1] = self.centred(design[:1])
        return mixed


def rank_agreement(first: Floats, second: Floats) -> float:
    """Return Kendall's rank correlation of two rows of numbers, shape (n,); ties count as 0."""
    first, second = (np.nan_to_num(row, posinf=np.finfo(np.float64).max) for row in (first, second))
    signs = np.sign(first[:, None] - first[None]) * np.sign(second[:, None] - second[None])
    return float(signs.sum()) / max(len(first) * (len(first) - 1), 1)


def _density(parameter: Parameter, centre: Json, confidence: float) -> _Bell | _Favourite:
    unit = float(unit_map(parameter).to_unit(centre))
    if parameter.categorical:
        count = len(parameter.options)
        return _Favourite(int(unit * count), count, _SUREST * confidence)
    return _Bell(unit, _WIDEST * (_NARROWEST / _WIDEST) ** confidence)
