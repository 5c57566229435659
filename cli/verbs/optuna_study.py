"""An experiment as a study of Optuna: its trials, with the distributions that its search space has there."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...manager import optuna_storage
from ...protocol import Json, MetricError, Objective, Parameters, metric_value, objectives_of, require_extra
from ...runner import TrialStatus
from ...search_space import Parameter, SearchSpace, SearchSpaceError, ends_of, identity
from ...store import ExperimentFolder
from ...store.reading import ExperimentView, TrialRow, to_json
from ..failures import FAILED, Failure

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

# What becomes of a trial in an Optuna study.
_STATES = {
    TrialStatus.SUCCEEDED: "COMPLETE",
    TrialStatus.EARLY_STOPPED: "PRUNED",
    TrialStatus.FAILED: "FAIL",
    TrialStatus.USER_CANCELED: "FAIL",
    TrialStatus.SYS_CANCELED: "FAIL",
}
# Optuna has no normal distribution: a uniform one over this many standard deviations replaces it.
_SIGMAS = 10.0


def write_study(folder: ExperimentFolder, path: Path) -> int:
    """Write a new SQLite file with a study named after the experiment; return how many trials it has.

    Trials that have not ended are left out. Raises `Failure` if `path` exists or cannot be written, and
    `MissingExtraError` without Optuna.
    """
    require_extra("--format optuna needs", "optuna")
    import optuna
    from optuna.study import StudyDirection

    if path.exists():
        raise Failure(f"{path} exists already: choose another FILE")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with ExperimentView(folder) as view:
        space = _space(view)
        name, objectives = view.experiment().id, view.objectives()
        directions = [StudyDirection[objective.direction.upper()] for objective in objectives]
        try:
            path.touch(exist_ok=False)
        except OSError as error:
            raise Failure(f"{path} cannot be written: {error.strerror}", FAILED) from error
        with optuna_storage(f"sqlite:///{path}") as studies:
            study = optuna.create_study(storage=studies, study_name=name, directions=directions)
            study.set_user_attr("pitchpipe:config", to_json(view.config()).decode())
            made = 0
            for trial in _frozen_trials(view, space, [objective.name for objective in objectives]):
                study.add_trial(trial)
                made += 1
    return made


def _space(view: ExperimentView) -> SearchSpace:
    try:
        return SearchSpace.parse(view.config().get("searchSpace") or {})
    except SearchSpaceError as error:
        raise Failure(f"--format optuna needs a search space in the usual form: {error}") from error


def _frozen_trials(view: ExperimentView, space: SearchSpace, names: Sequence[str]) -> Iterator[FrozenTrial]:
    from optuna.trial import TrialState, create_trial

    parameters = _Parameters(space)
    main = view.main_objective()
    objectives = objectives_of(view.config().get("objectives") or ())
    limits = [objective for objective in objectives if objective.is_limited]
    for trial, results in view.with_results():
        if trial.status not in _STATES:
            continue
        state = TrialState[_STATES[TrialStatus(trial.status)]]
        record = trial.parameters
        values, distributions = parameters.of(record)
        limited = {limit.name: trial.values[limit.name] for limit in limits if limit.name in trial.values}
        facts = {"trial_id": trial.trial_id, "reason": trial.reason, "parameters": record}
        yield _with_times(
            trial,
            create_trial(
                state=state,
                values=[trial.values[name] for name in names] if state is TrialState.COMPLETE else None,
                params=values,
                distributions=distributions,
                intermediate_values=_curve(results, main),
                user_attrs={**limited, **facts},
                system_attrs=_constraints(limits, limited),
            ),
        )


def _constraints(limits: Sequence[Objective], values: Mapping[str, float]) -> dict[str, list[float]]:
    """Return the limits in Optuna's form, a number above 0 where one is broken; none unless all values are known."""
    if not limits or len(values) < len(limits):
        return {}
    return {"constraints": [limit.excess_of(values[limit.name]) for limit in limits]}


def _with_times(trial: TrialRow, frozen: FrozenTrial) -> FrozenTrial:
    """Set both times, which Optuna requires: a trial that never started gets the time of its end."""
    end = trial.end_time or trial.created
    frozen.datetime_start = datetime.fromtimestamp(trial.start_time or end)
    frozen.datetime_complete = datetime.fromtimestamp(end)
    return frozen


def _curve(results: Mapping[int, Json], main: str) -> dict[int, float]:
    """Return the numbers of the main objective in intermediate results, by sequence number."""
    numbers = {sequence: _number(value, main) for sequence, value in results.items()}
    return {sequence: number for sequence, number in numbers.items() if number is not None}


def _number(value: Json, main: str) -> float | None:
    try:
        return metric_value(value, main)
    except MetricError:
        return None


class _Parameters:
    """The parameters of a search space by Optuna's names: those of nested ones contain the options above them."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        named = dict[str, Parameter]()
        for parameter in sorted(space.parameters, key=lambda parameter: len(parameter.key)):
            plain, exact = (_name_of(parameter, space, spelled) for spelled in (str, json.dumps))
            spellings = (plain, exact, f"{exact} ({len(named)})")
            named[next(name for name in spellings if name not in named)] = parameter
        places = {parameter.key: name for name, parameter in named.items()}
        self._named = [(places[parameter.key], parameter) for parameter in space.parameters]

    def of(self, record: Parameters) -> tuple[dict[str, Json], dict[str, BaseDistribution]]:
        """Return values and distributions of a trial's parameters; those outside the space are left out."""
        values: dict[str, Json] = {}
        distributions: dict[str, BaseDistribution] = {}
        for name, parameter in self._active(record):
            value = _value_of(parameter, record)
            values[name], distributions[name] = value, _distribution(parameter, value)
        return values, distributions

    def _active(self, record: Parameters) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters that a trial has; outside the space, only the valid ones that are not nested."""
        outside = {problem.path[:1] for problem in self._space.validate(record)}
        if outside:
            for name, parameter in self._named:
                if parameter.parent is None and (name,) not in outside:
                    yield name, parameter
            return
        active = self._space.active(self._space.encode(record))
        yield from (named for named, is_active in zip(self._named, active, strict=True) if is_active)


def _name_of(parameter: Parameter, space: SearchSpace, spelled: Callable[[Json], str]) -> str:
    """Return the path of a parameter: `layer.Conv.kernel`."""
    if parameter.parent is None:
        return parameter.name
    index, option = parameter.parent
    above = space.parameters[index]
    return f"{_name_of(above, space, spelled)}.{spelled(above.options[option])}.{parameter.name}"


def _value_of(parameter: Parameter, record: Parameters) -> Json:
    value: Json = record
    for part in parameter.key:
        if isinstance(part, str):
            value = value[part]
    value = value["_name"] if parameter.nested else value
    return _options(parameter)[identity(value)] if parameter.categorical else value


def _options(parameter: Parameter) -> dict[Hashable, Json]:
    """Return the options as Optuna can store them: as JSON text lists, dicts, and what it would mix up (1 and True)."""
    stored = dict[Hashable, Json]()
    for option in parameter.options:
        value = (
            option if option is None or isinstance(option, bool | int | float | str) else json.dumps(option)
        )
        while identity(option) not in stored and value in stored.values():
            value = json.dumps(value)
        stored.setdefault(identity(option), value)
    return stored


def _distribution(parameter: Parameter, value: Json) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.categorical:
        return CategoricalDistribution([*_options(parameter).values()])
    low, high = ends_of(parameter, _SIGMAS)
    if parameter.integer:
        return IntDistribution(int(low), int(high) - 1, log=parameter.log)
    # A study has one scale for a parameter, and multiples of q below a lognormal number include 0.
    log = parameter.log and not (parameter.normal and parameter.q is not None)
    # Rounding to q can move a value beyond a bound.
    return FloatDistribution(min(low, value), max(high, value), log=log)
