"""Short notes on how a search went: did the model help, is a range too narrow, does a parameter matter?

A note is a sentence, and it appears only when the results speak for it: where nothing is wrong, each note appears in at
most 5 % of all searches. docs/use/figures.md has the measurements. With several objectives there are no notes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...telling import number_text
from .dimensions import Dimension, Numbers
from .figure_parts import written
from .importances import Importance, importance, scaled
from .tables import ExperimentTable, TrialRecord

_FIRST = 10  # trials that tuners suggest before they learn
_CHANCE = 0.3  # later trials that are better than the first ones by chance have this p-value or a lower one
_FURTHER = 0.35  # of the way from the first trials' median to their best: what a best may gain by chance
_FEWEST_FIRST = 5  # of the first trials that succeeded
_TOPS = (8, 4)  # the best eighth, and the best quarter
_EDGE, _CROWD = 0.05, 0.8  # of a range; of the best trials
_LEAST_SHARE = 0.02  # of the variance, which a parameter that matters explains
_HIGHEST_SHARE, _LEAST_FIT, _MOST_TOGETHER = 0.03, 0.5, 0.3
_NEAR = 0.05  # of the way from the best loss to the worst tenth: no difference worth a parameter
_SPAN = 0.5  # of a range, which nearly best trials span if it does not matter where they are
_ROWS_PER_TERM = 4
_DRAWS, _OUTLIERS, _SURE = 200, 0.9, 0.95
_WIDER = 0.25  # of a range, on its own scale: what it is widened by
_LIKE_RANDOM = (
    "random search would have done as well; check that the metric depends on these parameters, and average out its"
    " noise with `repeats`"
)


def health_notes(table: ExperimentTable, *, learns: bool = True, fewest: int = 40) -> list[str]:
    """Return the notes on a search in which at least `fewest` trials succeeded and kept the limits.

    `learns` says that the tuner draws its first trials at random and then learns from the results.
    """
    trials = [one for one in table.configurations if one.status in ("SUCCEEDED", "EARLY_STOPPED")]
    losses = scaled(np.array([_loss(table, trial) for trial in trials]))
    if len(table.objectives) > 1 or np.isfinite(losses).sum() < fewest:
        return []
    found = importance(table)
    narrow = [*_narrow(table.dimensions, trials, losses, found)]
    # Where the best trials crowd at an end, the metric depends on the parameters: the search found it early.
    like_random = learns and not narrow and _is_like_random(table)
    return [*([_LIKE_RANDOM] if like_random else narrow), *_useless(table.dimensions, trials, losses, found)]


def _loss(table: ExperimentTable, trial: TrialRecord) -> float:
    """Return the lower the better; infinite for a trial that was stopped early or violates a limit."""
    objective = table.objectives[0]
    value = trial.value(objective.name)
    return objective.sign * value if value is not None and table.keeps_limits(trial) else math.inf


def _is_like_random(table: ExperimentTable) -> bool:
    """Return whether what the tuner suggested after its first trials is no better than them, nor is its best.

    Three questions, because a tuner that learns also explores on purpose, where results are bad: are the later results
    better (the rank test of Mann and Whitney, 1947, in the normal approximation), are most of the best ones later
    (Fisher's exact test), and is the best far below the first ones? Any yes means that the search improved. Failed
    trials have no result but are suggestions, too: a tuner learns after its first ones, however many fail. Trials
    stopped early do not count, as a strict assessor stops more of them later.
    """
    suggested = [one for one in table.configurations if one.source == "algorithm"]
    losses = np.array([_loss(table, one) if one.status == "SUCCEEDED" else math.inf for one in suggested])
    losses = scaled(losses)
    own, firsts = losses[np.isfinite(losses)], int(np.isfinite(losses[:_FIRST]).sum())
    first, later = own[:firsts], own[len(own) // 2 :]
    if firsts < _FEWEST_FIRST or len(own) < 2 * _FIRST:
        return False
    pairs = len(first) * len(later)
    better = (later[:, None] < first).sum() + 0.5 * (later[:, None] == first).sum()
    deviation = math.sqrt(pairs * (len(first) + len(later) + 1) / 12)
    chances = [0.5 * math.erfc((better - 0.5 * pairs) / (deviation * math.sqrt(2)))]
    chances += [_chance_of_top(own, early, top) for early in (firsts, len(own) // 2) for top in _TOPS]
    middle, least = float(np.median(first)), float(first.min())
    return min(chances) > _CHANCE and own.min() >= least - _FURTHER * (middle - least)


def _chance_of_top(losses: Numbers, early: int, share: int) -> float:
    """Return how likely the first `early` losses have so few of the best ones, or fewer, in a random order."""
    count = max(5, len(losses) // share)
    among = int((np.argsort(losses, kind="stable")[:count] < early).sum())
    ways = (math.comb(early, one) * math.comb(len(losses) - early, count - one) for one in range(among + 1))
    return sum(ways) / math.comb(len(losses), count)


def _narrow(
    dimensions: Sequence[Dimension], trials: Sequence[TrialRecord], losses: Numbers, found: Importance
) -> Iterator[str]:
    """Yield a note for each parameter that matters and whose best values crowd at an end of its range."""
    best = np.argsort(losses, kind="stable")[: min(max(5, int(np.isfinite(losses).sum()) // 10), 20)]
    matters = {name for name, low in zip(found.names, found.low, strict=True) if low >= _LEAST_SHARE}
    for one in dimensions:
        units = one.units([trial.parameters for trial in trials])
        if one.categorical or one.unbounded or one.name not in matters or _values(units) < 3:
            continue
        for end, bound, distance in (("lower", one.low, units[best]), ("upper", one.high, 1.0 - units[best])):
            if (distance <= _EDGE).mean() >= _CROWD:
                what = f"the best trials crowd at its {end} end, {number_text(bound)}"
                advice = f"widen it to {number_text(_widened(one, end))} if such values make sense"
                yield f"the range of {one.name} may be cut off: {what}; {advice}"


def _widened(one: Dimension, end: str) -> float:
    """Return an end about a quarter of the range further out, in round numbers."""
    low, high = one.bounds
    if one.log:
        factor = high**_WIDER / low**_WIDER
        further = float(f"{low / factor if end == 'lower' else high * factor:.2g}")
        return max(round(further), 1) if one.integer else further
    step = float(f"{(high - low) * _WIDER:.1g}")
    step = math.ceil(step) if one.integer else step
    return low - step if end == "lower" else high + step


def _values(units: Numbers) -> int:
    """Return how many values there are."""
    return len(np.unique(units[np.isfinite(units)]))


def _useless(
    dimensions: Sequence[Dimension], trials: Sequence[TrialRecord], losses: Numbers, found: Importance
) -> Iterator[str]:
    """Yield a note for each parameter that explains nothing while the others explain much.

    A forest alone cannot tell: a tuner that moves parameters together makes those that matter and others look alike. A
    regression of the losses on all parameters tells them apart, and the forest guards against shapes that it misses.
    Both speak of the whole space, in which a parameter that decides between good and best may explain next to nothing:
    it must not matter among the nearly best trials either.
    """
    if found.why_not or found.fit < _LEAST_FIT or found.interactions > _MOST_TOGETHER:
        return
    known = np.isfinite(losses)
    points = [trial.parameters for trial, is_known in zip(trials, known, strict=True) if is_known]
    good = [points[place] for place in _nearly_best(losses[known])]
    varied = [one for one in dimensions if one.varies and _values(one.units(points)) > 1]
    highest = _highest_shares(varied, [one.units(points) for one in varied], losses[known])
    low = dict(zip(found.names, found.low, strict=True))
    for one, share in zip(varied, highest, strict=False):
        is_low = share < _HIGHEST_SHARE and low[one.name] < _LEAST_SHARE
        if not one.conditions and not one.nested and is_low and _is_anywhere(one, one.units(good)):
            explained = f"it explains at most {share:.1%} of the variance"
            value = written(one.value(good[0]))
            yield f"{one.name} does not matter: {explained}; fix it at {value}, and the search is smaller"


def _nearly_best(losses: Numbers) -> NDArray[np.intp]:
    """Return the places of losses that are nearly as good as the best, the best first."""
    least = losses.min()
    near = losses <= least + _NEAR * (np.quantile(losses, _OUTLIERS) - least)
    return np.argsort(losses, kind="stable")[: near.sum()]


def _is_anywhere(one: Dimension, units: Numbers) -> bool:
    """Return whether values are all over a range: each option is among them, or they span half of the range."""
    if one.categorical:
        return len(np.unique(units)) == len(one.options)
    return bool(np.ptp(units) >= _SPAN)


def _highest_shares(
    dimensions: Sequence[Dimension], units: Sequence[Numbers], losses: Numbers
) -> list[float]:
    """Return the highest share that each parameter may have in the variance over the whole range, at 95 %.

    By an additive regression, with a quadratic of each number and a step for each option; empty if that fits badly. The
    worst tenth of the losses is cut: a quadratic cannot describe both a cliff and the ground below.
    """
    parts = [_terms(one, column) for one, column in zip(dimensions, units, strict=True)]
    design = np.column_stack([np.ones(len(losses)), *parts])
    rows, terms = design.shape
    if rows < _ROWS_PER_TERM * terms:
        return []
    targets = np.minimum(losses, np.quantile(losses, _OUTLIERS))
    inverse = np.linalg.inv(design.T @ design + 1e-6 * np.eye(terms))
    found = inverse @ design.T @ targets
    unexplained = float(((targets - design @ found) ** 2).sum()) / (rows - terms)
    if not unexplained < (1.0 - _LEAST_FIT) * targets.var():
        return []
    root = np.linalg.cholesky(inverse) * math.sqrt(unexplained)
    drawn = found + np.random.default_rng(0).standard_normal((_DRAWS, terms)) @ root.T
    ends = np.cumsum([1, *(part.shape[1] for part in parts)])
    grids = [_terms(one, np.linspace(0.0, 1.0, 60, endpoint=False) + 1 / 120) for one in dimensions]
    variances = np.column_stack(
        [
            (drawn[:, first:last] @ grid.T).var(axis=1)
            for grid, first, last in zip(grids, ends, ends[1:], strict=False)
        ]
    )
    total = np.maximum(variances.sum(axis=1, keepdims=True), 1e-300)
    return np.quantile(variances / total, _SURE, axis=0).tolist()


def _terms(dimension: Dimension, units: Numbers) -> Numbers:
    """Return the terms of a parameter in the regression, shape (n, terms); 0 where it is inactive."""
    if dimension.categorical:
        count = len(dimension.options)
        chosen = np.minimum(np.where(np.isfinite(units), units * count, -1.0).astype(np.int64), count - 1)
        return (chosen[:, None] == np.arange(1, count)).astype(np.float64)
    place = np.where(np.isfinite(units), 2.0 * units - 1.0, 0.0)
    return np.column_stack([place, place * place])
