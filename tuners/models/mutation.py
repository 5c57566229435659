"""Small changes of points, for hill-climbing and for the model-free steps of `Auto`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...numerics import Bools, Floats
from ..base import Embedding

_EXPECTED_CHANGES = (1.0, 2.0, 4.0, 100.0)
LOG_STEPS = (-2.3, -0.3)  # powers of ten, of the unit interval


def mutants(
    rng: np.random.Generator,
    embedding: Embedding,
    points: Floats,
    count: int,
    log_steps: tuple[float, float] = LOG_STEPS,
    expected_changes: Sequence[float] = _EXPECTED_CHANGES,
) -> Floats:
    """Return `count` changed copies of each point, shape (m count, d), NaN where inactive.

    At least one parameter changes, on average one of the `expected_changes`: a number by a normal step, at least to the
    next value, whose width is a power of ten with an exponent between the `log_steps`; a choice to another option, or
    to a neighbouring one if ordered. The children of a changed choice are drawn at random.
    """
    units = np.repeat(points, count, axis=0)
    inactive = np.isnan(units)
    units[inactive] = rng.random(int(inactive.sum()))
    changed = _columns_to_change(rng, ~inactive, expected_changes)
    before = units.copy()
    _move_numbers(rng, embedding, units, changed, log_steps)
    _move_choices(rng, embedding, units, changed)
    embedding.snap(units)
    _leave_the_cell(rng, embedding, units, before, changed)
    return units


def _columns_to_change(rng: np.random.Generator, active: Bools, expected_changes: Sequence[float]) -> Bools:
    rows = len(active)
    wanted = rng.choice(expected_changes, rows)
    probability = np.minimum(wanted / np.maximum(active.sum(axis=1), 1), 1.0)
    changed = (rng.random(active.shape) < probability[:, None]) & active
    one = np.argmax(rng.random(active.shape) * active, axis=1)
    changed[np.arange(rows), one] = True
    return changed


def _move_numbers(
    rng: np.random.Generator,
    embedding: Embedding,
    units: Floats,
    changed: Bools,
    log_steps: tuple[float, float],
) -> None:
    columns = embedding.layout.numeric
    width = 10 ** rng.uniform(*log_steps, (len(units), 1))
    step = rng.standard_normal((len(units), len(columns))) * width
    moved = np.abs(units[:, columns] + np.where(changed[:, columns], step, 0.0))  # reflected at 0 ...
    units[:, columns] = np.clip(np.where(moved > 1, 2 - moved, moved), 0.0, 1.0)  # ... and at 1


def _move_choices(rng: np.random.Generator, embedding: Embedding, units: Floats, changed: Bools) -> None:
    columns, options = embedding.layout.choices, embedding.layout.options
    if not len(columns):
        return
    code = np.minimum((units[:, columns] * options).astype(np.int64), options - 1)
    other = (code + 1 + (rng.random(code.shape) * (options - 1)).astype(np.int64)) % options
    units[:, columns] = (np.where(changed[:, columns], other, code) + 0.5) / options
    for column, _, places in embedding.lines:
        step = changed[:, column] & (rng.random(len(units)) < 0.5)
        place = np.argsort(places)
        index = np.searchsorted(columns, column)
        rank = np.round(places[code[:, index]] * (len(places) - 1)).astype(np.int64)
        near = np.clip(rank + np.where(rng.random(len(units)) < 0.5, 1, -1), 0, len(places) - 1)
        units[step, column] = (place[near[step]] + 0.5) / len(places)


def _leave_the_cell(
    rng: np.random.Generator, embedding: Embedding, units: Floats, before: Floats, changed: Bools
) -> None:
    """Move discrete numbers that a step left where they were to the next value."""
    for column, edges in enumerate(embedding.edges):
        if edges is None or len(edges) < 3:
            continue
        stuck = np.flatnonzero(changed[:, column] & (np.abs(units[:, column] - before[:, column]) < 1e-9))
        if not len(stuck):
            continue
        cell = np.searchsorted(edges, units[stuck, column], "right") - 1
        step = np.where(rng.random(len(stuck)) < 0.5, 1, -1)
        target = cell + step
        target = np.where((target < 0) | (target > len(edges) - 2), cell - step, target)
        units[stuck, column] = 0.5 * (edges[target] + edges[target + 1])
