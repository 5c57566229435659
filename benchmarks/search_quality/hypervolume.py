"""How much the trials of a search dominate, with several objectives.

Not that of `numerics/`: it runs in environments that have a peer and no Pitchpipe, and what is measured is not its own
yardstick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Front", "excesses", "hypervolume"]


class Front:
    """The trials that keep the limits and that no other one dominates, and the volume below the references they do.

    Every objective is minimised; one without a `reference` is only limited (`"<= 20"`).
    """

    def __init__(self, objectives: Iterable[Mapping[str, Any]]) -> None:
        self._objectives = tuple(objectives)
        goals = [one for one in self._objectives if "reference" in one]
        self._names = [one.get("name", "default") for one in goals]
        self._reference = np.array([one["reference"] for one in goals])
        self._points = np.empty((0, len(goals)))
        self.volume = 0.0

    def add(self, values: Any) -> None:
        """Add the values of a trial, by objective; NaN is a failed one."""
        if not isinstance(values, Mapping) or max(excesses(self._objectives, values), default=0.0) > 0:
            return
        point = np.array([[values[name] for name in self._names]])
        if np.all(point < self._reference) and not np.all(self._points <= point, axis=1).any():
            known = hypervolume(np.maximum(self._points, point), self._reference)
            self.volume += hypervolume(point, self._reference) - known
            self._points = np.concatenate([self._points[~np.all(point <= self._points, axis=1)], point])


def excesses(objectives: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> list[float]:
    """Return by how much values exceed each of the limits."""
    limited = [one for one in objectives if "constraint" in one]
    return [values[one["name"]] - float(one["constraint"].removeprefix("<=")) for one in limited]


def hypervolume(points: np.ndarray, reference: np.ndarray) -> float:
    """Return the volume that points dominate: of each one what those after it do not (While et al., WFG, 2012)."""
    points = _front(points)
    if len(reference) == 2:
        steps = np.append(reference[1], points[:-1, 1]) - points[:, 1]
        return float(np.sum((reference[0] - points[:, 0]) * steps))
    total = 0.0
    for place, point in enumerate(points):
        total += float(np.prod(reference - point))
        total -= (
            hypervolume(np.maximum(points[place + 1 :], point), reference) if place + 1 < len(points) else 0.0
        )
    return total


def _front(points: np.ndarray) -> np.ndarray:
    """Return the points that no other one dominates, once each, sorted by their first objective."""
    points = np.unique(points, axis=0)
    worse = np.all(points[:, None] >= points[None], axis=2).sum(axis=1) > 1
    return points[~worse]
