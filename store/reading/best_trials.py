"""The best trials, among those that keep the limits, and how they came to be the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...numerics import Point, added, front_of, hypervolume, knee_of, reference_of
from ...protocol import Objective
from ..errors import understood
from .database import Database
from .families import outcomes_of, read_families, read_outcomes
from .field_sql import Clause, QueryError, limit_broken, limits_exceeded
from .read_model import HistoryEntry, ParetoFront, TrialRow, VolumeEntry

# Of so many moments the hypervolume is computed: with more objectives each one takes longer.
_MOMENTS = {2: 200, 3: 50}
_FEWEST_MOMENTS = 10


def read_best(db: Database, count: int, by: str | None = None) -> list[TrialRow]:
    """Return the best `count` trials by one objective (of equals, the earlier), or the Pareto front of several.

    The front is in the order of the first objective. With `by`, the best `count` trials of the front by an objective,
    or its knee. Raise `QueryError` for an unknown one.
    """
    goals = _goals(db)
    if by is not None:
        return read_outcomes(db, _chosen(db, goals, by)[:count])
    if len(goals) > 1:
        return read_outcomes(db, _chosen(db, goals, goals[0].name))
    keeps, bound = _keeps_limits(db)
    order = "DESC" if goals[0].direction == "maximize" else "ASC"
    statement = f"{_values(db)} AND {keeps} ORDER BY value {order}, sequence_id LIMIT ?"
    return read_outcomes(db, [row[0] for row in db.rows(statement, (goals[0].name, *bound, count))])


def _values(db: Database) -> str:
    """Return the SQL query of the results for one metric."""
    return f"SELECT sequence_id, end_time, value FROM ({outcomes_of(db)}) WHERE name = ?"


def read_history(db: Database) -> list[HistoryEntry]:
    """Return the results of the first objective in the order in which the trials ended, each with the best so far.

    The best is None until a trial keeps the limits.
    """
    goal = _goals(db)[0]
    keeps, bound = _keeps_limits(db)
    best = f"{'max' if goal.direction == 'maximize' else 'min'}(CASE WHEN {keeps} THEN value END)"
    rows = db.rows(
        f"SELECT sequence_id, end_time, value, {best} OVER (ORDER BY end_time, sequence_id ROWS UNBOUNDED"
        f" PRECEDING) FROM ({_values(db)}) ORDER BY end_time, sequence_id",
        (*bound, goal.name),
    )
    return [HistoryEntry(*row) for row in rows]


def read_front(db: Database) -> ParetoFront:
    """Return the front of several objectives, with its thinned history; with one objective the best trial alone."""
    goals, points = _goals(db), _points(db)
    infeasible, limits = _infeasible(db), limits_of(db)
    if len(goals) < 2:
        best = [row.sequence_id for row in read_best(db, 1)]
        return ParetoFront(infeasible=infeasible, limits=limits, trials=best)
    front = front_of(points)
    signs = [one.sign for one in goals]
    given = [None if one.reference is None else one.sign * one.reference for one in goals]
    reference = reference_of(front.values(), given)
    return ParetoFront(
        infeasible=infeasible,
        limits=limits,
        trials=list(front),
        knee=knee_of(front),
        hypervolume=hypervolume(front.values(), reference) if front else None,
        reference={one.name: sign * bound for one, sign, bound in zip(goals, signs, reference, strict=True)},
        history=list(_volumes(db, points, reference)),
    )


def read_front_trials(db: Database) -> list[int]:
    """Return the numbers of the trials on the front of several objectives, with repeats all of a family on it."""
    front = list(front_of(_points(db))) if len(_goals(db)) > 1 else []
    if db.repeats() < 2:
        return front
    return [number for family in read_families(db, front) for number in family.repeats.trials]


def limits_of(db: Database) -> dict[str, str]:
    """Return the limits of the metrics, in words, by name."""
    return {one.name: one.limits_text for one in db.objectives() if one.is_limited}


def closest_to_limits(db: Database) -> int | None:
    """Return the number of the trial that exceeds the limits least (of equals, the better, then the earlier)."""
    return next(iter(_infeasible(db)), None)


def _goals(db: Database) -> list[Objective]:
    return [one for one in db.objectives() if one.direction is not None]


def _keeps_limits(db: Database) -> Clause:
    """Return the SQL condition for trials that keep the limits, with its values."""
    broken, bound = limit_broken(db.objectives())
    return f"sequence_id NOT IN (SELECT sequence_id FROM ({outcomes_of(db)}) WHERE {broken})", bound


def _infeasible(db: Database) -> list[int]:
    """Return the numbers of the trials that violate a limit, the closest to the limits first, of equals the better."""
    keeps, bound = _keeps_limits(db)
    excess, ends = limits_exceeded(db.objectives())
    main = _goals(db)[0]
    rows = db.rows(
        f"SELECT sequence_id FROM ({outcomes_of(db)}) WHERE NOT {keeps}"
        f" GROUP BY sequence_id ORDER BY {excess}, total((name = ?) * ? * value), sequence_id",
        (*bound, *ends, main.name, main.sign),
    )
    return [number for (number,) in rows]


def _points(db: Database) -> dict[int, Point]:
    """Return the losses of the trials that keep the limits, in the order in which they ended."""
    goals = _goals(db)
    keeps, bound = _keeps_limits(db)
    points: dict[int, Point] = {}
    with understood(db.path, "objective_values"):
        for one in goals:
            statement = f"{_values(db)} AND {keeps} ORDER BY end_time, sequence_id"
            for sequence_id, _, value in db.rows(statement, (one.name, *bound)):
                points[sequence_id] = (*points.get(sequence_id, ()), one.sign * value)
    return {number: point for number, point in points.items() if len(point) == len(goals)}


def _chosen(db: Database, goals: Sequence[Objective], by: str) -> list[int]:
    places = {one.name: place for place, one in enumerate(goals)}
    front = front_of(_points(db))
    if by in places:
        place = places[by]
        return sorted(front, key=lambda number: (front[number][place], front[number], number))
    if by == "knee" and len(goals) > 1:
        knee = knee_of(front)
        return [] if knee is None else [knee]
    known = [*places, *(["knee"] if len(goals) > 1 else [])]
    raise QueryError(f"'{by}' is not an objective to choose the best by: use {' or '.join(known)}")


def _volumes(db: Database, points: dict[int, Point], reference: Point) -> Iterator[VolumeEntry]:
    fronts: list[tuple[int, list[Point]]] = []
    front: list[Point] = []
    for number, point in points.items():
        if (grown := added(front, point)) is not None:
            front = grown
            fronts.append((number, grown))
    most = _MOMENTS.get(len(reference), _FEWEST_MOMENTS)
    thin = max(1, -(-len(fronts) // most))
    times = dict(db.rows(f"SELECT DISTINCT sequence_id, end_time FROM ({outcomes_of(db)})"))
    for number, known in fronts[::-1][::thin][::-1]:
        yield VolumeEntry(number, times[number], hypervolume(known, reference))
