"""A Gaussian process in which few coordinates matter: what it expects after a change tells whether the change matters.

It differs on purpose from `gaussian_process`, which proposes points and fits all length-scales by their gradient. Here
a coordinate has an effect only if the evidence for it is worth another length-scale, so that what has none changes no
prediction at all; the length-scales and the noise come from short lists. It is for a few hundred points.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006 (chapters 2 and 5)
Schwarz, Estimating the Dimension of a Model, Annals of Statistics 6(2), 1978 (the price of a length-scale)
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import Bools, Floats
from .gaussian_process import matern

# Length-scales of a parameter that has an effect, in the unit interval. An option that only adds a little needs a long
# one: the rest of the function is nearly the same with it.
_LENGTHS = (8.0, 2.0, 0.7, 0.25)
_NOISES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the variance of the results
_ROUNDS = 2
# What is inactive lies beside the middle of the unit interval, at a distance of 1 from its ends. These are distances of
# points in space: with others, the covariances may have no Cholesky factor.
_APART = 0.75


def differences(units: Floats, point: Floats, choices: Bools) -> Floats:
    """Return how far each parameter of units (n, d) is from that of a point (d,): 1 for another option of a choice.

    A parameter that only one of the two has counts 0: the choice above it differs.
    """
    apart = np.nan_to_num(np.abs(units - point))
    return np.where(choices, apart > 1e-9, np.where(apart > 1e-9, apart, 0.0))


class Effects:
    """A Gaussian process of targets (n,) at units (n, d), NaN where inactive.

    A parameter has an effect if the evidence for it is worth the extra length-scale.

    >>> units = np.random.default_rng(0).random((40, 2))
    >>> effects = Effects(units, (units[:, 0] - 0.3) ** 2, np.array([False, False]))
    >>> low, high = effects.predicted(np.array([[0.3, 0.5], [0.9, 0.5]]))
    >>> bool(abs(low) < 0.02 and abs(high - 0.36) < 0.02)
    True
    """

    def __init__(self, units: Floats, targets: Floats, choices: Bools) -> None:
        self._units, self._choices = units, choices
        self._mean, self._spread = float(targets.mean()), float(targets.std()) or 1.0
        self._targets = (targets - self._mean) / self._spread
        squares = self._squares(units)
        self._weights, self._noise = self._fitted(squares)
        self._alpha = self._solved(squares, self._weights, self._noise)[1]

    def predicted(self, units: Floats) -> Floats:
        """Return the expected targets at points, shape (m,)."""
        covariances = _correlations(self._weights, self._squares(units))
        return self._mean + self._spread * (covariances @ self._alpha)

    def _squares(self, units: Floats) -> Floats:
        """Return the squared distances between points and those that the process knows, shape (d, m, n)."""
        here, there = units.T[:, :, None], self._units.T[:, None, :]
        is_apart = np.isnan(here) != np.isnan(there)
        squares = (np.nan_to_num(here, nan=0.5) - np.nan_to_num(there, nan=0.5)) ** 2
        is_other = is_apart | (squares > 1e-18)
        return np.where(self._choices[:, None, None], is_other, squares + _APART * is_apart)

    def _fitted(self, squares: Floats) -> tuple[Floats, float]:
        """Return the weights of the parameters, 0 without an effect, and the noise: the pair with most evidence.

        Each noise has weights of its own: those found with much noise lack small effects, so that much noise fits best.
        """
        pairs = [(self._weights_for(squares, noise), noise) for noise in _NOISES]
        return max(pairs, key=lambda pair: self._evidence(squares, *pair))

    def _weights_for(self, squares: Floats, noise: float) -> Floats:
        """Return the weights with most evidence for a noise, by coordinate ascent."""
        weights = np.ones(len(squares))
        for _ in range(_ROUNDS):
            for axis in range(len(squares)):
                options = [_with(weights, axis, length**-2) for length in _LENGTHS]
                options.append(_with(weights, axis, 0.0))
                weights = max(options, key=lambda option: self._evidence(squares, option, noise))
        return weights

    def _evidence(self, squares: Floats, weights: Floats, noise: float) -> float:
        """Return the log marginal likelihood (R&W eq. 2.30), less the price of the length-scales, up to a constant."""
        factor, alpha = self._solved(squares, weights, noise)
        price = 0.5 * math.log(len(self._targets)) * int((weights > 0).sum())
        return float(-0.5 * self._targets @ alpha - np.log(factor.diagonal()).sum()) - price

    def _solved(self, squares: Floats, weights: Floats, noise: float) -> tuple[Floats, Floats]:
        """Return the Cholesky factor of the covariance, and the inverse of the covariance times the targets."""
        covariance = _correlations(weights, squares) + noise * np.eye(len(self._targets))
        alpha = np.asarray(np.linalg.solve(covariance, self._targets), dtype=np.float64)
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64), alpha


def _with(weights: Floats, axis: int, value: float) -> Floats:
    changed = weights.copy()
    changed[axis] = value
    return changed


def _correlations(weights: Floats, squares: Floats) -> Floats:
    """Return Matern-5/2 correlations for squared distances (d, m, n)."""
    return matern(np.tensordot(weights, squares, axes=1))
