"""Of nearly equal trials the one that changes least from the `defaults` of the configuration, and what matters in it.

A trial is nearly equal to the best one if it loses at most 5 % of what the best one gains over the defaults. (If the
defaults have no result: of what the best one is ahead of the median.) With several objectives the knee of the front
is the best one, and the range of the front takes the place of the gain. Changes are measured in the unit interval of
each parameter; another option of a choice counts 1.

A change matters if a model of the results expects to lose more than the same 5 % without it, or to violate a limit.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...numerics import Point, front_of, knee_of
from ...protocol import Json, Objective
from ...search_space import SearchSpace, with_constants
from ..errors import understood
from .database import Database
from .families import outcomes_of, read_outcomes
from .read_model import ABSENT, ChangedParameter, ClosestTrial, TrialRow

if TYPE_CHECKING:
    from ...numerics import Effects, Floats  # and below, as numpy, where it is used: most commands do without

_TOLERANCE = 0.05
_FEWEST = 10  # results that a model needs
_MOST = 150  # results that it learns from
_FAR = 1e6  # tolerated losses: what is better by more than that would hide all others


def read_closest_to_defaults(db: Database) -> ClosestTrial | None:
    """Return, if `keep_close` is set, the trial closest to the defaults among those about as good as the best.

    Without a model, which needs 10 results, all changes count as important. None before a trial has succeeded.
    """
    config = db.config()
    if not config.get("keepClose") or config.get("defaults") is None:
        return None
    with understood(db.path, "keepClose"):
        space = SearchSpace.parse(config["searchSpace"], config.get("constraints") or ())
        defaults = with_constants(config["searchSpace"], config["defaults"])
    if space.validate(defaults):
        return None  # the search space has changed since
    objectives = db.objectives()
    values = _read_values(db, [one.name for one in objectives])
    return Closeness(space, defaults, objectives, values, lambda numbers: read_outcomes(db, numbers)).found()


class Closeness:
    """The results of an experiment: `values` by number of the trial; `rows` returns trials by their numbers."""

    def __init__(
        self,
        space: SearchSpace,
        defaults: Mapping[str, Json],
        objectives: Sequence[Objective],
        values: Mapping[int, Mapping[str, float]],
        rows: Callable[[Sequence[int]], Sequence[TrialRow]],
    ) -> None:
        import numpy as np

        self._space, self._values, self._rows = space, values, rows
        self._defaults, self._start = defaults, space.encode(dict(defaults))
        self._choices = np.array([one.categorical for one in space.parameters], dtype=bool)
        self._goals = [one for one in objectives if one.direction is not None]
        self._limits = [one for one in objectives if one.is_limited]
        self._points = {
            number: self._losses(values)
            for number, values in self._values.items()
            if all(one.violation(values[one.name]) == 0 for one in self._limits)
        }

    def _losses(self, values: Mapping[str, float]) -> Point:
        """Return the losses, a quarter of each: so their differences are finite."""
        return tuple(one.sign * values[one.name] / 4 for one in self._goals)

    def found(self) -> ClosestTrial | None:
        """Return what `read_closest_to_defaults` does."""
        if not self._points:
            return None
        (best, by), scale = self._best(), self._scale()
        units = self._units({best, *self._near(self._points[best], scale)})
        if best not in units:
            return None  # the search space has changed since
        sizes = {number: float(self._differences(place).sum()) for number, place in units.items()}
        closest = min(sizes, key=lambda number: (sizes[number], self._points[number], number))
        models = self._models(self._points[best], scale)
        rows = {row.sequence_id: row for row in self._rows([closest, best])}
        changes, unimportant = self._changes(rows[closest], models)
        best_changes, best_unimportant = self._changes(rows[best], models)
        return ClosestTrial(
            trial=rows[closest],
            best=rows[best],
            best_by=by,
            changes=changes,
            unimportant=unimportant,
            best_changes=best_changes,
            best_unimportant=best_unimportant,
        )

    def _near(self, target: Point, scale: Point) -> list[int]:
        """Return the trials that are nearly equal to the best."""
        bounds = [aim + _TOLERANCE * unit for aim, unit in zip(target, scale, strict=True)]
        return [
            number
            for number, point in self._points.items()
            if all(value <= bound for value, bound in zip(point, bounds, strict=True))
        ]

    def _best(self) -> tuple[int, str | None]:
        """Return the best trial and, of several objectives, by what: the knee or, of a front without one, the first."""
        first = min(self._points, key=lambda number: (self._points[number], number))
        if len(self._goals) == 1:
            return first, None
        knee = knee_of(front_of(self._points))
        return (first, self._goals[0].name) if knee is None else (knee, "knee")

    def _scale(self) -> Point:
        """Return, for each objective, the distance of which a twentieth makes no difference."""
        if len(self._goals) > 1:
            columns = zip(*front_of(self._points).values(), strict=True)
            return tuple(max(column) - min(column) for column in columns)
        losses = [loss for (loss,) in self._points.values()]
        first = next(iter(self._rows([0])), None)
        is_default = first is not None and first.parameter_source == "defaults"
        base = self._points[0][0] if is_default and 0 in self._points else statistics.median(losses)
        return (base - min(losses),)

    def _units(self, numbers: Iterable[int]) -> dict[int, Floats]:
        """Return the vectors of trials; those of an earlier search space may be missing."""
        return {
            row.sequence_id: self._space.encode(row.parameters)
            for row in self._rows(sorted(numbers))
            if not self._space.validate(row.parameters)
        }

    def _models(self, target: Point, scale: Point) -> list[tuple[Effects, bool]]:
        """Return a model of each objective, in units of its scale, and of each limit; True for a limit."""
        import numpy as np

        from ...numerics import Effects

        units = self._units(self._chosen())
        if len(units) < _FEWEST or not all(scale):
            return []
        points, values = np.array(list(units.values())), [self._values[number] for number in units]

        def model(numbers: Sequence[float]) -> Effects:
            return Effects(points, _compressed(np.array(numbers)), self._choices)

        losses = zip(*map(self._losses, values), strict=True)
        goals = [
            model([(loss - aim) / unit for loss in column])
            for column, aim, unit in zip(losses, target, scale, strict=True)
        ]
        limits = [model(_excesses(one, values)) for one in self._limits]
        return [*((one, False) for one in goals), *((one, True) for one in limits)]

    def _chosen(self) -> list[int]:
        """Return the trials that a model learns from: the better half of the most, and some of the others."""
        ranked = sorted(self._values, key=lambda number: self._points.get(number, (math.inf,)))
        best, others = ranked[: _MOST // 2], ranked[_MOST // 2 :]
        step = -(-len(others) // (_MOST - _MOST // 2))
        return [*best, *others[:: max(step, 1)]]

    def _changes(
        self, trial: TrialRow, models: Sequence[tuple[Effects, bool]]
    ) -> tuple[list[ChangedParameter], int]:
        """Return the changes of a trial that matter, and the number of the others."""
        point = self._space.encode(trial.parameters)
        before = self._differences(point).nonzero()[0].tolist()
        changed = self._important(point, before, models) if models else before
        described = [
            self._described(trial.parameters, place)
            for axis in changed
            for place in (axis, *self._below(axis))
            if not math.isnan(point[place])
        ]
        return described, len(before) - len(changed)

    def _differences(self, point: Floats) -> Floats:
        """Return how far each parameter is from the defaults; those below a choice that differs belong to it."""
        from ...numerics import differences

        return differences(point, self._start, self._choices)

    def _important(
        self, point: Floats, changed: list[int], models: Sequence[tuple[Effects, bool]]
    ) -> list[int]:
        """Return the changes that are left when one after the other is undone, that with the smallest effect first."""
        import numpy as np

        own = [float(model.predicted(point[None])[0]) for model, _ in models]
        # A limit may be reached; an objective may lose what makes no difference.
        bounds = [
            max(value, 0.0) if is_limit else value + _TOLERANCE
            for value, (_, is_limit) in zip(own, models, strict=True)
        ]
        while changed:
            options = np.array([self._undone(point, axis) for axis in changed])
            over = np.array(
                [model.predicted(options) - bound for (model, _), bound in zip(models, bounds, strict=True)]
            )
            smallest = int(over.max(axis=0).argmin())
            if over[:, smallest].max() > 0:
                break
            point = options[smallest]
            changed = self._differences(point).nonzero()[0].tolist()
        return changed

    def _undone(self, point: Floats, axis: int) -> Floats:
        """Return a point with the default of one parameter, and of those below it."""
        undone, axes = point.copy(), [axis, *self._below(axis)]
        undone[axes] = self._start[axes]
        return undone

    def _below(self, axis: int) -> list[int]:
        """Return the parameters nested in the options of a choice, at any depth."""
        axes = [axis]
        for place, parameter in enumerate(self._space.parameters):
            if parameter.parent is not None and parameter.parent[0] in axes:
                axes.append(place)
        return axes[1:]

    def _described(self, parameters: Mapping[str, Json], axis: int) -> ChangedParameter:
        one = self._space.parameters[axis]
        names = [name for name in one.key if isinstance(name, str)]
        return ChangedParameter(one.path, _at(self._defaults, names), _at(parameters, names))


def _read_values(db: Database, names: Sequence[str]) -> dict[int, dict[str, float]]:
    """Return the results with a finite number for every metric."""
    found = dict[int, dict[str, float]]()
    for number, name, value in db.rows(
        f"SELECT sequence_id, name, value FROM ({outcomes_of(db)}) ORDER BY sequence_id"
    ):
        found.setdefault(number, {})[name] = value
    return {
        number: values
        for number, values in found.items()
        if all(math.isfinite(values.get(name, math.nan)) for name in names)
    }


def _excesses(limit: Objective, values: Sequence[Mapping[str, float]]) -> list[float]:
    """Return by how much the trials exceed a limit, relative to the usual distance from it."""
    found = [limit.excess({limit.name: value[limit.name]}) / 4 for value in values]
    unit = min(statistics.median(map(abs, found)), sys.float_info.max) or 1.0
    return [value / unit for value in found]


def _compressed(values: Floats) -> Floats:
    import numpy as np

    values = np.clip(values, -_FAR, sys.float_info.max)
    return np.where(values > 1, 1 + np.log(np.maximum(values, 1)), values)


def _at(parameters: Json, names: Sequence[str]) -> Json:
    """Return a parameter by the names on the way to it, `ABSENT` if there is none; a nested choice is its `_name`."""
    for name in names:
        parameters = parameters.get(name, ABSENT) if isinstance(parameters, Mapping) else ABSENT
    return parameters.get("_name", parameters) if isinstance(parameters, Mapping) else parameters


def closest_object(found: ClosestTrial, row_object: Callable[[TrialRow], object]) -> dict[str, object]:
    """Return what scripts get: both trials as a function writes them, and the changes."""
    return {
        "trial": row_object(found.trial),
        "best": row_object(found.best),
        "best_by": found.best_by,
        "changes": [_change_object(one) for one in found.changes],
        "unimportant": found.unimportant,
        "best_changes": [_change_object(one) for one in found.best_changes],
        "best_unimportant": found.best_unimportant,
    }


def _change_object(changed: ChangedParameter) -> dict[str, object]:
    default = {} if changed.default is ABSENT else {"default": changed.default}
    return {"parameter": changed.parameter, **default, "value": changed.value}
