"""Warm starts: the best configurations of earlier searches, as far as they fit the search space, are tried first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from ..config import ConfigError, ConfigProblem, ExperimentConfig, Finding
from ..protocol import Objective, main_objective
from ..search_space import Parameter, SearchSpace, identity, unit_map, with_constants
from ..store.reading import flat
from .earlier_results import EarlierResult, UnreadableSource, read_earlier
from .settings import objectives_of

__all__ = ["WarmStart", "unreadable_sources", "warm_start_of"]

_MOST_OF_A_SOURCE = 3
_BEST_MODELLED = _OTHERS_MODELLED = 75  # results of a source at most
_NOTHING_SHARED = "share no parameter with it"
_SHARE = 4  # of the trials, one in so many at most


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Points to try, in order, and a note about each source: what was used, and what was left out.

    Of a source of which nothing fits, that is in `warnings` instead. `results` are what a tuner that models earlier
    searches gets: `parameter`, `value` (a loss), `source` (a number).
    """

    points: Sequence[dict[str, Any]]
    notes: Sequence[str]
    warnings: Sequence[str]
    results: Sequence[dict[str, Any]]


def warm_start_of(config: ExperimentConfig, directory: Path) -> WarmStart:
    """Return what the earlier searches of a configuration offer; raise `ConfigError` for those that cannot be read.

    Experiments that are named by their ids are in `directory`.
    """
    space = SearchSpace.parse(config.search_space, config.constraints)
    objectives = objectives_of(config)
    limits = [one for one in objectives if one.is_limited]
    fitting = _Fitting(
        space=space,
        defaults=flat(with_constants(config.search_space or {}, config.defaults or {})),
        flat=_flat_names(space),
        limits=limits,
        objective=main_objective(objectives),
    )
    results, faults = _read(config, directory)
    if faults:
        raise ConfigError([ConfigProblem(path=one.path, message=one.message) for one in faults])
    sources = [fitting.of(*one) for one in results]
    notes = [
        f"warm start from {name}: {one.note}"
        for name, one in zip(dict.fromkeys(config.warm_start), sources, strict=True)
    ]
    known = [point.parameters for point in config.starting_points]
    points = list(_chosen([one.points for one in sources], known, config.max_trial_number))
    tried = [f"warm start tries {len(points)} of these points first"] if points else []
    return WarmStart(
        points=points,
        notes=[*(note for note, one in zip(notes, sources, strict=True) if one.points), *tried],
        warnings=[note for note, one in zip(notes, sources, strict=True) if not one.points],
        results=list(_modelled(sources)) if (config.tuner.name or "").lower() == "auto" else (),
    )


def unreadable_sources(config: ExperimentConfig, directory: Path) -> list[Finding]:
    """Return which earlier searches of a configuration cannot be read; its other fields may be wrong."""
    return _read(config, directory)[1]


def _read(
    config: ExperimentConfig, directory: Path
) -> tuple[list[tuple[Sequence[EarlierResult], int]], list[Finding]]:
    """Return what `read_earlier` returns of each earlier search, once, and what is wrong with those it cannot read."""
    objective = main_objective(objectives_of(config))
    results, faults = list[tuple[Sequence[EarlierResult], int]](), list[Finding]()
    for source in dict.fromkeys(config.warm_start):
        try:
            results.append(read_earlier(source, objective, directory))
        except UnreadableSource as error:
            message = f"{source} cannot be used: {error}"
            index = config.warm_start.index(source)
            faults.append(Finding(path=("warm_start", index), message=message))
    return results, faults


def _chosen(
    rankings: Iterable[Sequence[dict[str, Any]]], known: Iterable[dict[str, Any]], most: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the best of each source, then the second best of each and so on, each point once."""
    seen, left = set(map(identity, known)), None if most is None else max(most // _SHARE, 1)
    best = [ranking[:_MOST_OF_A_SOURCE] for ranking in rankings]
    for point in chain.from_iterable(zip_longest(*best)):
        if point is None or (key := identity(point)) in seen:
            continue
        if left is not None:
            if not left:
                return
            left -= 1
        seen.add(key)
        yield point


def _modelled(sources: Iterable[_Fitted]) -> Iterator[dict[str, Any]]:
    """Yield the results of all sources: of a large one the best, and others evenly by rank."""
    for number, one in enumerate(sources):
        step = max(len(one.points) - _BEST_MODELLED, 0) // _OTHERS_MODELLED + 1
        for rank, (point, loss) in enumerate(zip(one.points, one.losses, strict=True)):
            if rank < _BEST_MODELLED or (rank - _BEST_MODELLED) % step == 0:
                yield {"parameter": point, "value": loss, "source": number}


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The results of a source that are points of the space, best first, each point once, and what was left out."""

    points: Sequence[dict[str, Any]]
    losses: Sequence[float]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting:
    """Maps flat parameters of other searches to points of the space; `defaults` (flat) fill in what they lack.

    `flat` has the name that a search without nested choices may give each parameter, by its path.
    """

    space: SearchSpace
    defaults: Mapping[str, Any]
    flat: Mapping[str, str]
    limits: Sequence[Objective]
    objective: Objective

    def of(self, results: Sequence[EarlierResult], unmeasured: int) -> _Fitted:
        """Return the results of one source as points; `unmeasured` of its rows have none."""
        points, reasons = dict[Any, tuple[dict[str, Any], float]](), Counter[str]()
        for result in sorted(results, key=lambda result: result.loss):
            point = self._point(result.parameters) if self._shares(result.parameters) else _NOTHING_SHARED
            point = self._broken(result) or point
            if isinstance(point, str):
                reasons[point] += 1
            else:
                points.setdefault(identity(point), (point, result.loss))
        found, losses = zip(*points.values(), strict=True) if points else ((), ())
        return _Fitted(found, losses, self._note(results, unmeasured, reasons))

    def _note(self, results: Sequence[EarlierResult], unmeasured: int, reasons: Counter[str]) -> str:
        """Return what was used and what was left out."""
        fit = len(results) - reasons.total()
        parts = [f"{fit} of {len(results)} results fit this search space"]
        parts += [
            f"{count} {_of_one(reason) if count == 1 else reason}" for reason, count in reasons.most_common()
        ]
        if unmeasured:
            parts.append(f"{unmeasured} without a result")
        named = {name for result in results for name in _names(result.parameters)}
        filled = [one.path for one in self.space.parameters if self._is_filled(one, named)]
        if fit and filled:
            parts.append(f"from your defaults: {', '.join(filled)}")
        if unknown := named - {*self.flat, *self.flat.values(), *(one.name for one in self.limits)}:
            parts.append(f"ignored, because this space does not have them: {', '.join(sorted(unknown))}")
        theirs, ours = results[0].direction, self.objective.direction
        if theirs is not None and ours is not None and theirs != ours:
            good = "lowest" if theirs == "minimize" else "highest"
            parts.append(f"it {theirs}s {self.objective.name}, so its {good} results count as good here, too")
        return "; ".join(parts)

    def _is_filled(self, parameter: Parameter, named: set[str]) -> bool:
        """Return whether no result names a parameter, so that the defaults decide its value."""
        is_constant = parameter.categorical and len(parameter.options) == 1
        is_named = parameter.path in named or self.flat[parameter.path] in named
        return parameter.path in _names(self.defaults) and not is_named and not is_constant

    def _shares(self, values: Mapping[str, Any]) -> bool:
        """Return whether a result has a parameter of the space; without one, the defaults alone would fit."""
        return any(name in self.flat or name in self.flat.values() for name in _names(values))

    def _broken(self, result: EarlierResult) -> str:
        """Return which limit on outcomes a result breaks; empty for none, or if its metric is not known.

        A column of a CSV file may have the plain name of the metric.
        """
        columns = {name: value for name, value in result.parameters.items() if isinstance(value, int | float)}
        metrics = {**columns, **result.metrics}
        known = [one for one in self.limits if one.name in metrics and one.name not in self.flat]
        broken = [one for one in known if one.violation(metrics[one.name]) > 0]
        return f"break the limit {broken[0].name} {broken[0].limits_text}" if broken else ""

    def _point(self, values: Mapping[str, Any]) -> dict[str, Any] | str:
        """Return a point of the space, or why there is none."""
        point: dict[str, Any] = {}
        chosen = dict[int, Any]()
        for index, parameter in enumerate(self.space.parameters):
            if parameter.parent is not None and chosen.get(parameter.parent[0]) != parameter.parent[1]:
                continue
            value = self._value(parameter, values)
            if value is None:
                return f"have no value for {parameter.path}"
            if unit_map(parameter).fault(value):
                return f"have a value of {parameter.path} that this space does not have"
            if parameter.nested:
                chosen[index] = unit_map(parameter).from_unit(unit_map(parameter).to_unit(value))
            _put(point, parameter, value)
        return f"violate {broken[0]}" if (broken := self.space.violations(point)) else point

    def _value(self, parameter: Parameter, values: Mapping[str, Any]) -> Any:
        """Return the value of a parameter: a number for a number, and an option that is written alike for a choice."""
        names = (parameter.path, self.flat[parameter.path])
        names = (f"{parameter.path}._name", *names) if parameter.nested else names
        given = (known.get(name) for known in (values, self.defaults) for name in names)
        found = next((value for value in given if value is not None), None)
        if parameter.integer and isinstance(found, float) and found.is_integer():
            return int(found)
        if found is None or not parameter.categorical:
            return found
        options = {str(option): option for option in parameter.options}
        return found if not unit_map(parameter).fault(found) else options.get(str(found), found)


def _flat_names(space: SearchSpace) -> dict[str, str]:
    """Return the name of each parameter without the choices above it; the whole path if several share that name."""
    leaves = {one.path: one.path.rpartition(".")[2] if one.parent else one.path for one in space.parameters}
    count = Counter(leaves.values())
    return {path: leaf if count[leaf] == 1 else path for path, leaf in leaves.items()}


def _names(values: Mapping[str, Any]) -> set[str]:
    return {name.removesuffix("._name") for name in values}


def _of_one(reason: str) -> str:
    """Return a reason in the singular.

    >>> _of_one("have no value for lr"), _of_one("violate a < b")
    ('has no value for lr', 'violates a < b')
    """
    verb, _, rest = reason.partition(" ")
    return f"{'has' if verb == 'have' else f'{verb}s'} {rest}"


def _put(point: dict[str, Any], parameter: Parameter, value: Any) -> None:
    """Set the value of a parameter in a point that has the values of the choices above it."""
    *above, name = (part for part in parameter.key if isinstance(part, str))
    for part in above:
        point = point[part]
    point[name] = {"_name": value} if parameter.nested else value
