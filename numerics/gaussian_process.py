"""Exact Gaussian-process regression: a Matern kernel with a length-scale per coordinate, and a quadratic trend.

    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006 (chapters 2, 4 and 5; 4.2.1: the kernels)
    Hvarfner et al., Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024 (length-scale prior)

Hyper-parameters are those of the highest posterior density, found by L-BFGS from the last fit on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .arrays import Floats, Ints

SMOOTHNESSES = (0.5, 1.5, 2.5, math.inf)
_NEAREST = 1e-5
_JITTER = 1e-8
_NOISE_FLOOR = 1e-6
_LOG_NONE = -30.0
_SHARES = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Log-normal priors: medians, and standard deviations of the logarithms; `nu` is the smoothness of the kernel."""

    length_scale: float = 0.5
    length_scale_spread: float = 0.8
    signal_spread: float = 1.0
    trend: float = 0.0  # variance of the coefficients of a quadratic; 0 is none
    trend_spread: float = 1.5
    noise: float = 1e-3
    noise_spread: float = 2.0
    nu: float = 2.5

    def start(self, scales: int) -> Floats:
        """Return the start of the first search: logs of length-scales and of the variances of signal, trend, noise."""
        return np.append(np.full(scales, math.log(self.length_scale)), [0.0, self._log_trend, math.log(1e-2)])

    def bounds(self, scales: int) -> list[tuple[float, float]]:
        """Return the limits of the hyper-parameters."""
        trend = (_LOG_NONE, math.log(10.0)) if self.trend else (_LOG_NONE, _LOG_NONE)
        limits = [(-3.0, 3.0), trend, (math.log(_NOISE_FLOOR), 0.0)]
        return [(math.log(0.03), math.log(30.0))] * scales + limits

    def moments(self, scales: int) -> tuple[Floats, Floats]:
        """Return the means and the standard deviations of the logarithms of the hyper-parameters."""
        means = [0.0, self._log_trend, math.log(self.noise)]
        spreads = [self.signal_spread, self.trend_spread, self.noise_spread]
        return (
            np.append(np.full(scales, math.log(self.length_scale)), means),
            np.append(np.full(scales, self.length_scale_spread), spreads),
        )

    @property
    def _log_trend(self) -> float:
        return math.log(self.trend) if self.trend else _LOG_NONE


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Posterior:
    """The posterior distribution of the objective given targets, for the hyper-parameters `theta`."""

    theta: Floats
    weights: Floats
    features: Floats  # (n, f)
    scaled: Floats  # features over length-scales
    alpha: Floats
    whitener: Floats  # the inverse of the Cholesky factor of the covariance
    groups: Ints
    nu: float = 2.5

    def log_evidence(self, targets: Floats) -> float:
        """Return the log density of the targets that the posterior is conditioned on (R&W eq. 2.30)."""
        half_determinant = -float(np.log(np.diag(self.whitener)).sum())
        return -0.5 * (float(targets @ self.alpha) + len(targets) * math.log(2 * math.pi)) - half_determinant

    def mean(self, features: Floats) -> Floats:
        """Return the mean at features of shape (m, f)."""
        return self._covariance(features) @ self.alpha

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the noise-free objective (R&W eqs. 2.25 and 2.26)."""
        covariance = self._covariance(features)
        white = covariance @ self.whitener.T
        trend = _quadratic((features * features).sum(axis=1))
        prior = math.exp(self.theta[-3]) + math.exp(self.theta[-2]) * trend
        variance = prior - np.einsum("ij,ij->i", white, white)
        return covariance @ self.alpha, np.sqrt(np.maximum(variance, 1e-12))

    def covariance(self, left: Floats, right: Floats) -> Floats:
        """Return the covariances of the noise-free objective at features (m, f) and (k, f), shape (m, k)."""
        squared = squared_distances(left * self.weights, right * self.weights)
        prior = math.exp(self.theta[-3]) * matern(squared, self.nu)
        if self.theta[-2] > _LOG_NONE:
            prior += math.exp(self.theta[-2]) * _quadratic(left @ right.T)
        explained = self._covariance(left) @ self.whitener.T @ self.whitener @ self._covariance(right).T
        return prior - explained

    @property
    def noise(self) -> float:
        """The variance of the noise."""
        return math.exp(self.theta[-1])

    def _covariance(self, features: Floats) -> Floats:
        covariance = matern(squared_distances(features * self.weights, self.scaled), self.nu)
        covariance *= math.exp(self.theta[-3])
        if self.theta[-2] > _LOG_NONE:
            covariance += math.exp(self.theta[-2]) * _quadratic(features @ self.features.T)
        return covariance


def _quadratic(products: Floats) -> Floats:
    """Return the kernel of all polynomials of degree two (R&W section 4.2.2); features are at most about 1 apart."""
    root = 4 * products
    root += 1
    return np.square(root, out=root)


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Return the squared distances between points (m, f) and (n, f), shape (m, n)."""
    squared = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1)
    squared -= 2 * left @ right.T
    return np.maximum(squared, 0.0, out=squared)


def fit(
    features: Floats,
    targets: Floats,
    groups: Ints,
    prior: Prior,
    start: Floats | None = None,
    iterations: int = 12,
) -> Floats:
    """Return the hyper-parameters of the highest posterior density near `start`.

    `features` (n, f), `targets` (n,) standardised, `groups` the length-scale of each feature.
    """
    from scipy.optimize import minimize

    scales = int(groups.max(initial=-1)) + 1
    theta = prior.start(scales) if start is None else start
    result = minimize(
        _negative_log_posterior,
        theta,
        args=(features, targets, groups, prior.nu, prior.moments(scales), _quadratic(features @ features.T)),
        jac=True,
        method="L-BFGS-B",
        bounds=prior.bounds(scales),
        options={"maxiter": iterations},
    )
    return np.asarray(result.x)


def condition(
    theta: Floats,
    features: Floats,
    targets: Floats,
    groups: Ints,
    nu: float = 2.5,
) -> Posterior:
    """Return the posterior for given hyper-parameters; raises LinAlgError if the covariance is singular."""
    potrs, trtri = _lapack("potrs"), _lapack("trtri")
    weights = np.exp(-theta[:-3])[groups]
    scaled = features * weights
    covariance = matern(squared_distances(scaled, scaled), nu)
    covariance *= math.exp(theta[-3])
    if theta[-2] > _LOG_NONE:
        covariance += math.exp(theta[-2]) * _quadratic(features @ features.T)
    # Rounding may make it singular where many features are alike: then more of the variance is taken for noise.
    spare = float(np.trace(covariance)) / max(len(targets), 1)
    attempts = (_cholesky(covariance, _noise(theta) + share * spare) for share in _SHARES)
    factor = next((attempt for attempt in attempts if attempt is not None), None)
    if factor is None:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    alpha, _ = potrs(factor, targets, lower=1)
    whitener, _ = trtri(factor, lower=1)
    return Posterior(
        theta=theta,
        weights=weights,
        features=features,
        scaled=scaled,
        alpha=alpha.ravel(),
        whitener=np.tril(whitener),
        groups=groups,
        nu=nu,
    )


@cache
def _lapack(name: str) -> Any:
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(name, dtype=np.float64)


def _noise(theta: Floats) -> float:
    return math.exp(theta[-1]) + _JITTER


def _cholesky(covariance: Floats, noise: float) -> Floats | None:
    noisy = covariance.copy(order="F")  # as LAPACK reads it
    noisy.flat[:: len(noisy) + 1] += noise
    factor, info = _lapack("potrf")(noisy, lower=1, overwrite_a=1)
    return factor if info == 0 else None


def _negative_log_posterior(
    theta: Floats,
    features: Floats,
    targets: Floats,
    groups: Ints,
    nu: float,
    prior: tuple[Floats, Floats],
    quadratic: Floats,
) -> tuple[float, Floats]:
    """Return minus the log of marginal likelihood (R&W eq. 5.8) and prior up to a constant, and its gradient."""
    potri, potrs = _lapack("potri"), _lapack("potrs")
    scaled = features * np.exp(-theta[:-3])[groups]
    correlation, fall = correlation_and_slope(squared_distances(scaled, scaled), nu)
    signal, trend = math.exp(theta[-3]), math.exp(theta[-2])
    factor = _cholesky(signal * correlation + trend * quadratic, _noise(theta))
    if factor is None:
        return 1e10, np.zeros_like(theta)
    mean, spread = prior
    z = (theta - mean) / spread
    alpha, _ = potrs(factor, targets, lower=1)
    alpha = alpha.ravel()
    value = 0.5 * float(targets @ alpha) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(z @ z)
    gradient = z / spread
    lower, _ = potri(factor, lower=1, overwrite_c=1)
    # R&W eq. 5.9: d value / d K = (K^-1 - alpha alpha^T) / 2.
    slope = np.add(lower, lower.T, order="C")  # above the diagonal, LAPACK leaves the zeros of the factor
    slope.flat[:: len(slope) + 1] = np.diag(lower)
    slope -= np.outer(alpha, alpha)
    slope *= 0.5
    # d k / d squared distance = -fall / 2, and d squared / d log l_j = -2 squared_j.
    b = slope * signal
    b *= fall
    per_feature = 2 * (b.sum(axis=1) @ (scaled * scaled)) - 2 * np.einsum("ij,ij->j", scaled, b @ scaled)
    gradient[:-3] += np.bincount(groups, per_feature, minlength=len(theta) - 3)
    gradient[-3] += float((slope * correlation).sum()) * signal
    gradient[-2] += float((slope * quadratic).sum()) * trend
    gradient[-1] += float(np.trace(slope)) * math.exp(theta[-1])
    return value, gradient


def matern(squared: Floats, nu: float = 2.5) -> Floats:
    """Return the correlation at squared distances, for a smoothness of `SMOOTHNESSES` (R&W eqs. 4.17 and 4.9).

    >>> matern(np.array([0.0, 1.0])).round(3).tolist()
    [1.0, 0.524]
    """
    return correlation_and_slope(squared, nu)[0]


def correlation_and_slope(squared: Floats, nu: float = 2.5) -> tuple[Floats, Floats]:
    """Return the correlation k at squared distances, and -2 dk / d squared."""
    if nu == math.inf:
        correlation = np.exp(-0.5 * squared)
        return correlation, correlation
    # In place: new arrays of this size cost more than the arithmetic.
    distance = np.sqrt(squared)
    distance *= math.sqrt(2 * nu)
    decay = np.negative(distance)
    np.exp(decay, out=decay)
    if nu == 0.5:
        # The slope is infinite at a distance of 0, where it does not count.
        return decay, np.where(distance > _NEAREST, decay / np.maximum(distance, _NEAREST), 0.0)
    linear = np.add(distance, 1, out=distance)
    if nu == 1.5:
        linear *= decay
        return linear, 3 * decay
    slope = (5 / 3) * linear
    slope *= decay
    linear += (5 / 3) * squared
    linear *= decay
    return linear, slope
