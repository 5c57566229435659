"""Warm starts: the best configurations of earlier searches, as far as they fit the search space, are tried first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypedDict

from ..config import ConfigError, ConfigProblem, ExperimentConfig, Finding
from ..protocol import Json, Objective, Parameters, main_objective, number_in
from ..search_space import Parameter, SearchSpace, identity, separators, unit_map
from ..store.reading import cell_value, flat
from .earlier_results import EarlierResult, UnreadableSource, read_earlier
from .run_settings import objectives_of

_MOST_OF_A_SOURCE = 3
_BEST_MODELLED = _OTHERS_MODELLED = 75  # results of a source at most
_NOTHING_SHARED = "share no parameter with it"
_SHARE = 4  # at most one trial in four


class ModelledResult(TypedDict):
    """A result of an earlier search for a tuner that models them: its loss, and the number of its source."""

    parameter: Parameters
    value: float
    source: int


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Points to try, in order, and a note about each source: what was used, and what was left out.

    A source without any fitting result has a warning in place of its note.
    """

    points: Sequence[Parameters]
    notes: Sequence[str]
    warnings: Sequence[str]
    results: Sequence[ModelledResult]


def warm_start_of(config: ExperimentConfig, directory: Path) -> WarmStart:
    """Return what the earlier searches of a configuration offer; raise `ConfigError` for those that cannot be read.

    Experiments that are named by their ids are in `directory`.
    """
    space = SearchSpace.parse(config.search_space, config.constraints)
    objectives = objectives_of(config)
    limits = [objective for objective in objectives if objective.is_limited]
    slots = _slots(space)
    known = _names(name for slot in slots for name in slot.names)
    fitting = _Fitting(
        space=space,
        slots=slots,
        known=known,
        defaults=_whole(flat(config.defaults or {}), slots, known),
        limits=limits,
        objective=main_objective(objectives),
    )
    results, faults = _read(config, directory)
    if faults:
        raise ConfigError([ConfigProblem(path=fault.path, message=fault.message) for fault in faults])
    names = dict.fromkeys(config.warm_start)
    sources = [fitting.of(*earlier) for earlier in results]
    used, unused = list[str](), list[str]()
    for name, source in zip(names, sources, strict=True):
        (used if source.points else unused).append(f"warm start from {name}: {source.note}")
    own_points = [point.parameters for point in config.starting_points]
    points = list(_chosen([source.points for source in sources], own_points, config.max_trial_number))
    tried = [f"warm start tries {len(points)} of these points first"] if points else []
    return WarmStart(
        points=points,
        notes=[*used, *tried],
        warnings=unused,
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
    rankings: Iterable[Sequence[Parameters]], known: Iterable[Parameters], most: int | None
) -> Iterator[Parameters]:
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


def _modelled(sources: Iterable[_Fitted]) -> Iterator[ModelledResult]:
    """Yield the results of all sources; a large source gives its best ones, and others evenly by rank."""
    for number, source in enumerate(sources):
        step = max(len(source.points) - _BEST_MODELLED, 0) // _OTHERS_MODELLED + 1
        for rank, (point, loss) in enumerate(zip(source.points, source.losses, strict=True)):
            if rank < _BEST_MODELLED or (rank - _BEST_MODELLED) % step == 0:
                yield {"parameter": point, "value": loss, "source": number}


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The results of a source that are points of the space, best first, each point once, and what was left out."""

    points: Sequence[Parameters]
    losses: Sequence[float]
    note: str


class _Slot:
    """A parameter of the space; `names` are those that the flat values of an earlier search may have for it."""

    def __init__(self, parameter: Parameter, name: str, leaf: str) -> None:
        self.parameter = parameter
        self.names = [f"{name}._name"] * parameter.nested + [name, leaf]
        self.unit = unit_map(parameter)
        exact = {identity(_parts(option)): option for option in parameter.options}
        alike = dict[Hashable, list[Any]]()
        for option in exact.values():
            alike.setdefault(identity(_said(_parts(option))), []).append(option)
        self._options = {key: several[0] for key, several in alike.items() if len(several) == 1} | exact

    def given(self, *several: Mapping[str, Json]) -> list[Any]:
        """Return, in a list, the first value found in these results, or the only possible value; empty without either.

        Only a choice can be null.
        """
        for values in several:
            for name in self.names:
                if name in values and (values[name] is not None or self.parameter.categorical):
                    return [values[name]]
        return [*self.parameter.options] if len(self.parameter.options) == 1 else []

    def value(self, given: Any) -> list[Any]:
        """Return the value that a text or number in an earlier result stands for; an empty list if there is none.

        An option is equal to it, or is the only one that looks like it in a table, such as `"0.1"` for 0.1.
        """
        if self.parameter.categorical:
            forms = [_parts(given), _said(_parts(given))]
            if isinstance(given, str):  # people write spaces around the commas of a table
                forms += [given.strip(), _said(given.strip())]
            keys = map(identity, forms)
            return [self._options[key] for key in keys if key in self._options][:1]
        given = _said(given)
        if self.parameter.integer and isinstance(given, float) and given.is_integer():
            given = int(given)
        return [] if self.unit.fault(given) else [given]


def _slots(space: SearchSpace) -> list[_Slot]:
    """Return the parameters with the names that `flat` and a search without nested choices may give them."""
    parameters = space.parameters
    between = separators([parameter.key for parameter in parameters])
    names = [
        between[parameter.key].join(part for part in parameter.key if isinstance(part, str))
        for parameter in parameters
    ]
    leaves = dict(zip(names, (parameter.name for parameter in parameters), strict=True))
    count = Counter(leaves.values())
    return [
        _Slot(parameter, name, leaves[name] if count[leaves[name]] == 1 else name)
        for parameter, name in zip(parameters, names, strict=True)
    ]


def _whole(values: Mapping[str, Json], slots: Sequence[_Slot], known: set[str]) -> Mapping[str, Json]:
    """Return flat values in which each option that is an object is one value again."""
    for slot in slots:
        if slot.parameter.nested or not any(isinstance(option, dict) for option in slot.parameter.options):
            continue
        for name in slot.names:
            inner = (f"{name}.", f"{name}/")
            parts = [key for key in values if key.startswith(inner) and key not in known]
            if parts:
                whole = {key[len(name) + 1 :]: values[key] for key in parts}
                values = {key: value for key, value in values.items() if key not in parts} | {name: whole}
    return values


def _parts(option: Any) -> Any:
    """Return the columns that a table has for an option that is an object."""
    return flat(option) if isinstance(option, dict) else option


def _said(value: Any) -> Any:
    """Return the value that a table's cell shows: `1` for `"1"`."""
    if isinstance(value, dict):
        return {name: _said(inner) for name, inner in value.items()}
    return cell_value(value) if value and isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting:
    """Maps flat parameters of earlier searches to points of the space; missing ones come from `defaults` (flat).

    `known` are the names that the parameters of the space may have in them.
    """

    space: SearchSpace
    slots: Sequence[_Slot]
    known: set[str]
    defaults: Mapping[str, Json]
    limits: Sequence[Objective]
    objective: Objective

    def of(self, results: Sequence[EarlierResult], unmeasured: int) -> _Fitted:
        """Return the results of one source as points; `unmeasured` of its rows have none."""
        points, reasons = dict[Hashable, tuple[Parameters, float]](), Counter[str]()
        results = [
            replace(result, parameters=_whole(result.parameters, self.slots, self.known))
            for result in results
        ]
        for result in sorted(results, key=lambda result: result.loss):
            # Without a parameter of the space, the defaults alone would fit.
            has_any = not self.known.isdisjoint(_names(result.parameters))
            point = self._point(result.parameters) if has_any else _NOTHING_SHARED
            point = self._broken(result) or point
            if isinstance(point, str):
                reasons[point] += 1
            else:
                points.setdefault(identity(point), (point, result.loss))
        fitting, losses = zip(*points.values(), strict=True) if points else ((), ())
        return _Fitted(fitting, losses, self._note(results, unmeasured, reasons))

    def _note(self, results: Sequence[EarlierResult], unmeasured: int, reasons: Counter[str]) -> str:
        """Return what was used and what was left out."""
        fit = len(results) - reasons.total()
        parts = [f"{fit} of {len(results)} results fit this search space"]
        for reason, count in reasons.most_common():
            parts.append(f"{count} {_of_one(reason) if count == 1 else reason}")
        if unmeasured:
            parts.append(f"{unmeasured} without a result")
        named = {name for result in results for name in _names(result.parameters)}
        filled = [slot.parameter.path for slot in self.slots if self._is_filled(slot, named)]
        if fit and filled:
            parts.append(f"from your defaults: {', '.join(filled)}")
        if unknown := named - self.known - {limit.name for limit in self.limits}:
            parts.append(f"ignored, because this space does not have them: {', '.join(sorted(unknown))}")
        theirs, ours = results[0].direction, self.objective.direction
        if theirs is not None and ours is not None and theirs != ours:
            good = "lowest" if theirs == "minimize" else "highest"
            parts.append(f"it {theirs}s {self.objective.name}, so its {good} results count as good here, too")
        return "; ".join(parts)

    def _is_filled(self, slot: _Slot, named: set[str]) -> bool:
        """Return whether no result names a parameter, so that the defaults decide its value."""
        names = _names(slot.names)
        is_constant = len(slot.parameter.options) == 1
        return bool(names & _names(self.defaults)) and not names & named and not is_constant

    def _broken(self, result: EarlierResult) -> str:
        """Return which limit on outcomes a result breaks; empty for none, or if its metric is not known.

        A column of a CSV file may have the plain name of the metric.
        """
        metrics = {**result.parameters, **result.metrics}
        measured = [limit for limit in self.limits if limit.name in metrics and limit.name not in self.known]
        broken = [limit for limit in measured if limit.violation(number_in(metrics, limit.name)) > 0]
        return f"break the limit {broken[0].name} {broken[0].limits_text}" if broken else ""

    def _point(self, values: Mapping[str, Json]) -> Parameters | str:
        """Return a point of the space, or why there is none."""
        point: Parameters = {}
        chosen = dict[int, Any]()
        for index, slot in enumerate(self.slots):
            parameter = slot.parameter
            if parameter.parent is not None and chosen.get(parameter.parent[0]) != parameter.parent[1]:
                continue
            given = slot.given(values, self.defaults)
            if not given:
                return f"have no value for {parameter.path}"
            fitting = slot.value(given[0])
            if not fitting:
                return f"have a value of {parameter.path} that this space does not have"
            if parameter.nested:
                chosen[index] = slot.unit.from_unit(slot.unit.to_unit(fitting[0]))
            _put(point, parameter, fitting[0])
        return f"violate {broken[0]}" if (broken := self.space.violations(point)) else point


def _names(names: Iterable[str]) -> set[str]:
    return {name.removesuffix("._name") for name in names}


def _of_one(reason: str) -> str:
    """Return a reason in the singular.

    >>> _of_one("have no value for lr"), _of_one("violate a < b")
    ('has no value for lr', 'violates a < b')
    """
    verb, _, rest = reason.partition(" ")
    return f"{'has' if verb == 'have' else f'{verb}s'} {rest}"


def _put(point: Parameters, parameter: Parameter, value: Any) -> None:
    """Set the value of a parameter in a point; the choices that contain the parameter are set already."""
    *above, name = (part for part in parameter.key if isinstance(part, str))
    for part in above:
        point = point[part]
    point[name] = {"_name": value} if parameter.nested else value
