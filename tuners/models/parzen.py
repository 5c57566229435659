"""Parzen estimators over a tree-shaped search space, in batches.

Every density here is relative to the sampling distribution of the space, which is uniform on the unit cube:
1 means "as likely as in random search". So a parameter that is inactive, or that a component does not have,
contributes the factor 1, and branches of a nested choice with different parameters stay comparable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...numerics import Bools, Floats, Ints
from ..base import History, Layout

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Product kernels around k observations, and the sampling distribution itself as the last component.

    A numeric parameter has a normal kernel truncated to [0, 1], with one bandwidth for all observations; a
    choice keeps its option except with probability `flip`, when it takes any (Aitchison and Aitken 1976).
    `features` are those of `features_of`, shape (k, 4 p); `weights` has k + 1 entries that add up to 1.
    """

    layout: Layout
    features: Floats
    codes: Ints
    weights: Floats
    bandwidth: Floats
    flip: float

    @classmethod
    def of(
        cls, layout: Layout, units: Floats, bandwidth: Floats, *, flip: float, prior_weight: float
    ) -> Mixture:
        """Return the mixture of equal kernels at points (k, d); `prior_weight` is in observations."""
        return cls(
            layout=layout,
            features=features_of(layout, units, bandwidth),
            codes=layout.codes(units),
            weights=np.append(np.ones(len(units)), prior_weight) / (len(units) + prior_weight),
            bandwidth=bandwidth,
            flip=flip,
        )

    def log_density(self, units: Floats, codes: Ints) -> Floats:
        """Return the logarithm of the density at points of shape (m, d); shape (m,)."""
        exponents = self._numeric_exponents(units)
        for column, count in enumerate(self.layout.options):
            # flip / n for another option, 1 - flip + flip / n for the same; times n, relative to the prior.
            known = (codes[:, column, None] >= 0) & (self.codes[None, :, column] >= 0)
            same = codes[:, column, None] == self.codes[None, :, column]
            agreed, differs = math.log(count * (1 - self.flip) + self.flip), math.log(self.flip)
            exponents += np.where(same, agreed, differs) * known
        return _log_sum(exponents, self.weights)

    def _numeric_exponents(self, units: Floats) -> Floats:
        """Return the log kernels of the numeric parameters, shape (m, k), by one matrix product.

        -(x - c)^2 / 2 h^2 - log Z(c) is linear in the features (1, c, c^2, log Z) of a component.
        """
        x = units[:, self.layout.numeric]
        active = ~np.isnan(x)
        x = np.where(active, x, 0.0)
        precision = 0.5 * active / self.bandwidth**2
        left = np.concatenate(
            [-precision * x * x, 2 * precision * x, -precision, -active.astype(float)], axis=1
        )
        return left @ self.features.T

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw points, shape (count, d), NaN where inactive."""
        units = rng.random((count, self.layout.dimension))
        component = np.searchsorted(np.cumsum(self.weights), rng.random(count) * self.weights.sum(), "right")
        k = len(self.codes)
        known = component < k
        component = np.minimum(component, max(k - 1, 0))
        if k:
            self._place_numbers(units, known, component)
            self._place_options(rng, units, known, component)
        return self.layout.deactivate(units)

    def _place_numbers(self, units: Floats, known: Bools, component: Ints) -> None:
        """Turn uniform numbers into truncated normal ones where the component knows the parameter."""
        from scipy.special import ndtr, ndtri

        p = len(self.layout.numeric)
        features = self.features[component]
        centre, observed = features[:, p : 2 * p], (features[:, :p] > 0) & known[:, None]
        below, above = ndtr(-centre / self.bandwidth), ndtr((1 - centre) / self.bandwidth)
        u = units[:, self.layout.numeric]
        x = centre + self.bandwidth * ndtri(below + u * (above - below))
        units[:, self.layout.numeric] = np.where(observed, np.clip(x, 0.0, 1.0), u)

    def _place_options(self, rng: np.random.Generator, units: Floats, known: Bools, component: Ints) -> None:
        codes = self.codes[component]
        keep = (codes >= 0) & known[:, None] & (rng.random(codes.shape) >= self.flip)
        columns = self.layout.choices
        units[:, columns] = np.where(keep, (codes + 0.5) / self.layout.options, units[:, columns])


def by_ratio(good: Mixture, others: Mixture, units: Floats) -> Floats:
    """Return points (m, d) in the order of the ratio of two densities, the highest first."""
    codes = good.layout.codes(units)
    ratio = good.log_density(units, codes) - others.log_density(units, codes)
    return units[np.argsort(-ratio, kind="stable")]


class ParzenHistory(History):
    """A history that stores the features of every point for the kernels."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._codes = np.empty((0, len(layout.choices)), dtype=np.int64)
        self._features = np.empty((0, 4 * len(layout.numeric)))
        self._bandwidth: Floats | None = None  # that of the features; none was asked for yet

    def add(self, units: Floats) -> int:
        """Add a point without a loss, shape (d,), NaN where inactive; returns its row."""
        row = super().add(units)
        self._codes[row] = self.layout.codes(units[None])
        self._features[row] = features_of(self.layout, units[None], self._bandwidth)
        return row

    def codes(self, rows: Ints) -> Ints:
        """Return the option indices of rows, shape (k, c)."""
        return self._codes[rows]

    def features(self, rows: Ints, bandwidth: Floats) -> Floats:
        """Return the features of rows for the kernels of this bandwidth, shape (k, 4 p)."""
        if self._bandwidth is None or not np.array_equal(bandwidth, self._bandwidth):
            # Kept from call to call: the bandwidth of a large set changes rarely.
            p = len(self.layout.numeric)
            known = self._features[: self.count]
            known[:, 3 * p :] = known[:, :p] * log_normaliser(known[:, p : 2 * p], bandwidth)
            self._bandwidth = bandwidth
        return self._features[rows]

    def _arrays(self) -> tuple[str, ...]:
        return *super()._arrays(), "_codes", "_features"


def features_of(layout: Layout, units: Floats, bandwidth: Floats | None) -> Floats:
    """Return (1, c, c^2, log Z) of the numeric columns, 0 where inactive; shape (k, 4 p).

    Without a bandwidth log Z is 0: the first suggestion does not wait for the import of scipy.
    """
    centre = units[:, layout.numeric]
    active = ~np.isnan(centre)
    centre = np.where(active, centre, 0.0)
    normaliser = np.zeros_like(centre) if bandwidth is None else log_normaliser(centre, bandwidth) * active
    return np.concatenate([active.astype(float), centre, centre * centre, normaliser], axis=1)


def log_normaliser(centre: Floats, bandwidth: Floats) -> Floats:
    """Return log Z of normal kernels truncated to [0, 1]."""
    from scipy.special import ndtr

    inside = ndtr((1 - centre) / bandwidth) - ndtr(-centre / bandwidth)
    return np.log(inside * bandwidth) + _LOG_SQRT_2PI


def _log_sum(exponents: Floats, weights: Floats) -> Floats:
    """Return log(sum_k w_k exp(e_k) + w_prior), row by row."""
    highest = np.maximum(exponents.max(axis=1, initial=0.0), 0.0)
    total = (np.exp(exponents - highest[:, None]) * weights[:-1]).sum(axis=1) + weights[-1] * np.exp(-highest)
    return np.log(total) + highest
