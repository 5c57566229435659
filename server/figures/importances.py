"""Parameter importance: how much of the results' variance each parameter explains, and how reliable that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...numerics import grow_tree, main_effects, predicted
from .dimensions import Dimension, Numbers
from .figure_parts import base_figure, is_wide, labels, note, nothing, short, value_name, write
from .shown import shown_of
from .tables import ExperimentTable, Objective, TrialRecord
from .theme import BLUE, GREY, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Parameter importance"
_FEWEST = 8
_LEAF = 3  # trials in a leaf, at least; with many trials a hundredth: finer trees would explain the noise
_RESAMPLES = 12
_TREES = 5  # for each resample
_SAMPLE = 1000  # the most trials that a tree is grown on, and that it then predicts
_STOPPED = "EARLY_STOPPED"
_WORST = 90.0  # percentile of the finished results, from the best, that stopped trials without any result are given
_LAST_POWER = 300.0  # of ten, that a predicted result may have
_ERRORS = {"thickness": 1.5, "width": 4, "color": GREY}
_METHOD = "functional ANOVA of a forest of random trees"


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """The share of the variance that each parameter explains alone, the largest first.

    `low` and `high` are the 10th and the 90th percentile of a share when the trials are resampled (bootstrap);
    `interactions` is the share that only several parameters together explain. `fit` is the R² of the forest on trials
    that a tree has not seen: 1 is perfect, at 0 the shares mean nothing. `why_not` says why there are no shares. Of the
    `trials`, so many were `stopped` early.
    """

    names: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    interactions: float = 0.0
    fit: float = 0.0
    trials: int = 0
    method: str = _METHOD
    why_not: str = ""
    stopped: int = 0

    @property
    def confidence(self) -> str:
        """The reliability of the shares in a word: `high`, `medium`, `low` or `none`."""
        grades = ((0.7, "high"), (0.4, "medium"), (0.1, "low"))
        return next((word for bound, word in grades if self.fit >= bound), "none")

    @property
    def warning(self) -> str:
        """What a low confidence means; empty otherwise."""
        return {"none": "the order is chance", "low": "the order may change"}.get(self.confidence, "")


def importance(
    table: ExperimentTable, objective: str | None = None, *, stopped: bool = True, seed: int = 0
) -> Importance:
    """Return how much each parameter matters for an objective over the whole search space; deterministic by `seed`.

    A forest of random trees is fitted to the results. In each tree, the variance of the mean over all other parameters
    is computed exactly (functional ANOVA; Hutter, Hoos, Leyton-Brown 2014). Where a nested parameter does not exist, it
    gets random values, so that it explains nothing there. Results over more than three orders of magnitude count by
    their logarithm; outliers are clipped at three interquartile ranges. Early-stopped trials count, unless `stopped` is
    False, as leaving them out would hide what made them bad: with the result that they were heading for, by the curves
    of the others, or, without any result, as bad as the worst tenth of the others. `objective` may be any metric that
    trials report. Raise `KeyError` for an unknown one.

    >>> from pitchpipe.server.figures import example_table
    >>> importance(example_table(200)).names[0]
    'lr'
    """
    trials, values = _learned(table, table.metric(objective), stopped=stopped)
    points = [trial.parameters for trial in trials]
    dimensions = [one for one in table.dimensions if one.varies and _differs(one.units(points))]
    if len(trials) < _FEWEST:
        why = f"{len(trials)} trials have a finite result; importance needs {_FEWEST}."
        return Importance(trials=len(trials), why_not=why)
    if not dimensions or np.ptp(values) == 0.0:
        what = "All results are equal." if dimensions else "No parameter varies."
        return Importance(trials=len(trials), why_not=what)
    units = np.stack([one.units(points) for one in dimensions], axis=1)
    forest = _forest(units, _tamed(values), dimensions, np.random.default_rng(seed))
    found = _summary(forest, [one.name for one in dimensions], len(trials))
    return replace(found, stopped=sum(trial.status == _STOPPED for trial in trials))


def _learned(table: ExperimentTable, goal: Objective, *, stopped: bool) -> tuple[list[TrialRecord], Numbers]:
    """Return the finished and the early-stopped trials, and the values to learn from."""
    shown = shown_of(table, goal, stopped=stopped)
    trials, values = shown.trials, shown.values
    if not stopped or table.step is not None:
        return trials, values
    is_stopped = np.array([trial.status == _STOPPED for trial in trials], dtype=bool)
    ended = values[~is_stopped]
    if is_stopped.any():
        counts = np.array([trial.reports for trial in trials])[is_stopped]
        values = values.copy()
        values[is_stopped] = _expected(table, goal, values, is_stopped, counts)
    known = {trial.number for trial in trials}
    silent = [one for one in table.configurations if one.status == _STOPPED and one.number not in known]
    if not silent or not ended.size or goal.direction is None:
        return trials, values
    bad = np.percentile(ended, _WORST if goal.direction == "minimize" else 100.0 - _WORST)
    return trials + silent, np.concatenate([values, np.full(len(silent), bad)])


def _expected(
    table: ExperimentTable,
    goal: Objective,
    values: Numbers,
    is_stopped: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> Numbers:
    """Return what stopped trials would have reached, after so many results each, `counts`, shape (n,).

    As the tuner `Auto` does: what a trial had reached, and the median changes of those that came further, from there to
    the next number of results at which a trial was stopped, and so on, and from the last of these to the end. Changes
    are factors where the values are over more than three orders of magnitude.
    """
    wide = is_wide(values)
    stages = np.unique(counts)
    reached = _at_stages(table, goal, stages, wide=wide)
    ahead = np.zeros(len(stages) + 1)
    for stage in range(len(stages) - 1, -1, -1):
        changes = reached[:, stage + 1] - reached[:, stage]
        changes = changes[np.isfinite(changes)]
        ahead[stage] = ahead[stage + 1] + (np.median(changes) if changes.size else 0.0)
    change = ahead[np.searchsorted(stages, counts)]
    last = values[is_stopped]
    return 10.0 ** np.clip(np.log10(last) + change, -_LAST_POWER, _LAST_POWER) if wide else last + change


def _at_stages(table: ExperimentTable, goal: Objective, stages: NDArray[np.int64], *, wide: bool) -> Numbers:
    """Return where the trials with curves were after so many results, and at their end, shape (m, stages + 1).

    It is NaN where a trial did not come. Logarithms if `wide`.
    """
    ends = {trial.number: trial.value(goal.name) for trial in table.trials}
    curves = table.curves if table.curve_metric == goal.name else ()
    reached = np.full((len(curves), len(stages) + 1), np.nan)
    for row, curve in zip(reached, curves, strict=True):
        usable = np.isfinite(curve.values)
        steps, values = np.asarray(curve.steps)[usable], np.asarray(curve.values)[usable]
        came = stages <= steps[-1] + 1 if steps.size else np.zeros(len(stages), dtype=bool)
        places = np.searchsorted(steps, stages - 1, side="right") - 1
        row[:-1][came & (places >= 0)] = values[places[came & (places >= 0)]]
        end = ends.get(curve.number)
        row[-1] = math.nan if end is None else end
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(reached > 0, np.log10(reached), np.nan) if wide else reached


def _differs(units: Numbers) -> bool:
    active = units[np.isfinite(units)]
    return bool(active.size and (np.ptp(active) > 0.0 or active.size < units.size))


def scaled(values: Numbers) -> Numbers:
    """Return numbers times a power of two, such that the largest is about 1 and their squares are finite.

    >>> scaled(np.array([3e200, 1e200, np.inf])).round(2).tolist()
    [0.98, 0.33, inf]
    """
    sizes = np.abs(values[np.isfinite(values)])
    return np.ldexp(values, -int(np.frexp(sizes.max())[1])) if sizes.size else values


def _tamed(values: Numbers) -> Numbers:
    """Return the values without any that dominates the others: on a fitting scale, and clipped."""
    shown = np.log10(values) if is_wide(values) else scaled(values)
    first, third = np.percentile(shown, [25, 75])
    reach = 3.0 * (third - first)
    return scaled(np.clip(shown, first - reach, third + reach)) if reach > 0 else shown


@dataclass(frozen=True, slots=True)
class _Forest:
    """The main effects (trees, d) and the interactions (trees,) of the trees, and the fit of all of them."""

    effects: Numbers
    interactions: Numbers
    fit: float


def _forest(
    units: Numbers, values: Numbers, dimensions: list[Dimension], rng: np.random.Generator
) -> _Forest:
    """Grow the trees on resampled trials; each predicts trials that it has not seen."""
    count = len(values)
    effects, rest = [], []
    sums, votes = np.zeros(count), np.zeros(count)
    for _ in range(_RESAMPLES):
        drawn = rng.integers(0, count, min(count, _SAMPLE))
        for _ in range(_TREES):
            shown = _shuffled(units, dimensions, rng)
            tree = grow_tree(shown[drawn], values[drawn], rng, max(_LEAF, len(drawn) // 100))
            alone, together = main_effects(tree)
            effects.append(alone)
            rest.append(together)
            unseen = np.setdiff1d(np.arange(count), drawn)
            if unseen.size > _SAMPLE:
                unseen = rng.choice(unseen, _SAMPLE, replace=False)
            if unseen.size:
                sums[unseen] += predicted(tree, shown[unseen])
                votes[unseen] += 1.0
    voted = votes > 0
    error = float(((sums[voted] / votes[voted] - values[voted]) ** 2).mean()) if voted.any() else math.inf
    return _Forest(np.array(effects), np.array(rest), 1.0 - error / float(values.var()))


def _shuffled(units: Numbers, dimensions: list[Dimension], rng: np.random.Generator) -> Numbers:
    """Return the points as one tree sees them: options in random order, inactive parameters at random places."""
    shown = units.copy()
    for axis, dimension in enumerate(dimensions):
        if dimension.categorical:
            count = len(dimension.options)
            order = rng.permutation(count)
            is_active = np.isfinite(shown[:, axis])
            index = np.minimum((shown[is_active, axis] * count).astype(int), count - 1)
            shown[is_active, axis] = (order[index] + 0.5) / count
        absent = ~np.isfinite(shown[:, axis])
        shown[absent, axis] = rng.random(int(absent.sum()))
    return shown


def _summary(forest: _Forest, names: list[str], trials: int) -> Importance:
    shares = forest.effects.mean(axis=0)
    by_resample = forest.effects.reshape(_RESAMPLES, _TREES, -1).mean(axis=1)
    low, high = np.percentile(by_resample, [10, 90], axis=0)
    order = np.argsort(-shares, kind="stable")
    return Importance(
        names=tuple(names[place] for place in order),
        shares=tuple(shares[order].tolist()),
        low=tuple(low[order].tolist()),
        high=tuple(high[order].tolist()),
        interactions=float(forest.interactions.mean()),
        fit=max(forest.fit, 0.0),
        trials=trials,
    )


def plot_importance(
    table: ExperimentTable | Importance,
    objective: str | None = None,
    *,
    stopped: bool = True,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw how much of the variance each parameter explains, with the spread between resamples and the fit.

    A result of `importance` may be given in place of the table, which saves computing it again.
    """
    name = value_name(table.metric(objective)) if isinstance(table, ExperimentTable) else ""
    result = importance(table, objective, stopped=stopped) if isinstance(table, ExperimentTable) else table
    if result.why_not:
        return nothing(theme, _TITLE, result.why_not)
    figure = base_figure(theme, f"{_TITLE} for {short(name)}" if name not in ("", "result") else _TITLE)
    _add_bars(figure, result, GREY if result.warning else BLUE)
    if result.warning:
        warning = f"<b>confidence {result.confidence}: {result.warning}</b>"
        write(figure, warning, 1.0, 1.0, xanchor="right", yanchor="bottom")
    share = {"title": {"text": "share of the variance"}, "tickformat": ".0%", "rangemode": "tozero"}
    rows = len(result.names) + 1
    figure.update_layout(
        xaxis=share, yaxis={"type": "category"}, height=max(300, 170 + 26 * rows), bargap=0.35
    )
    early = f", {result.stopped:,} of them stopped early" if result.stopped else ""
    note(
        figure,
        result.method,
        f"{result.trials:,} trials{early}",
        "lines: 80 % of resamples",
        f"confidence {result.confidence}: the forest explains",
        f"{result.fit:.0%} of the variance of unseen results",
    )
    return figure


def _add_bars(figure: go.Figure, result: Importance, color: str) -> None:
    names = [*labels(result.names), "<i>interactions</i>"][::-1]
    shares = np.array([*result.shares, result.interactions])[::-1]
    low, high = (np.array([*ends, result.interactions])[::-1] for ends in (result.low, result.high))
    figure.add_bar(
        x=shares,
        y=names,
        orientation="h",
        marker={"color": [GREY] + [color] * len(result.names)},
        error_x={"array": high - shares, "arrayminus": shares - low, **_ERRORS},
        text=[f"{share:.0%}" for share in shares],
        textposition="none",
        hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        showlegend=False,
    )
