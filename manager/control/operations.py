"""What a user may change while an experiment runs: the manager's side of the control socket.

A request is committed first, with the config that it makes; if that cannot be written, it is refused, and nothing has
changed. Then it is an event like any other: the runner handles it, and what follows from it is committed before the
reply. So a manager that is killed after the reply comes back with the change.

Callers use `steering.py`, which checks more than the manager has time for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from ...protocol import Json, JsonObject, Parameters, dumps, number_in, parameters_of
from ...runner import (
    DataImported,
    Event,
    ExperimentStatus,
    LimitsChanged,
    SearchSpaceChanged,
    Trial,
    TrialAddRequested,
    TrialKillRequested,
    TrialRunner,
)
from ...search_space import non_finite
from ...store import NotWritableError, StoreError
from ..experiment_factory import BY_USER
from .connection import ControlError, MeasuredResult, Operation
from .extension import LIMITS, CurrentLimits, current_limits, problems_of

if TYPE_CHECKING:
    from ...config import ExperimentConfig
    from ..manager import Manager

_CHANGEABLE = (*LIMITS, "search_space")


class TrialIds(TypedDict):
    """The number and the id of a trial."""

    sequence_id: int
    trial_id: str


class LiveChanges:
    """Carries out users' requests to a running manager; called on its event loop."""

    def __init__(self, manager: Manager, stop: Callable[[str], None] | None = None) -> None:
        self._manager = manager
        self._stop_experiment = stop or manager.stop_now

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name, for a `ControlServer`; each raises `ControlError` to refuse."""
        return {
            "update": self._update,
            "add": self._add,
            "rerun": self._rerun,
            "import": self._import,
            "kill": self._kill,
            "stop": self._stop,
        }

    def _update(self, request: JsonObject) -> CurrentLimits:
        runner, manager = self._running(), self._manager
        changes = request.get("changes")
        changes = changes if isinstance(changes, dict) else {}
        config = changed_config(manager.config, changes)
        if (why_not := _why_not(config, changes, runner, manager.now())) is not None:
            raise ControlError(why_not)
        self._apply("update", _events_of(config, changes, manager.now()), config)
        return current_limits(config)

    def _add(self, request: JsonObject) -> TrialIds | dict[str, list[TrialIds]]:
        parameters = request.get("parameters")
        several: list[Json] = parameters if isinstance(parameters, list) else [parameters]
        if not several or not all(isinstance(each, dict) for each in several):
            raise ControlError('parameters are an object, such as {"lr": 0.1}', "invalid")
        if problems := [str(problem) for each in several for problem in non_finite(each)]:
            raise ControlError("; ".join(problems), "invalid")
        made = self._begin("add", {}, several)
        return {"trials": made} if isinstance(parameters, list) else made[0]

    def _rerun(self, request: JsonObject) -> TrialIds:
        trial = self._trial(request)
        return self._begin("rerun", {"rerun_of": trial.trial_id}, [parameters_of(trial.record)])[0]

    def _import(self, request: JsonObject) -> dict[str, int]:
        self._running()
        names = [objective.name for objective in self._manager.config.objectives]
        rows = checked_import(request.get("data"), names)
        self._apply("import", [DataImported(self._manager.now(), dumps(rows))])
        return {"imported": len(rows)}

    def _kill(self, request: JsonObject) -> TrialIds:
        self._running()
        trial = self._trial(request)
        if trial.status.is_final:
            raise ControlError(f"trial {trial.trial_id} has ended already: {trial.status}")
        self._apply("kill", [TrialKillRequested(self._manager.now(), trial.trial_id)])
        return _ids_of(trial)

    def _stop(self, request: JsonObject) -> JsonObject:
        self._stop_experiment(str(request.get("reason") or BY_USER))
        return {}

    # ------------------------------------------------------------------ helpers

    def _running(self) -> TrialRunner:
        """Return the runner; raise `ControlError` if nothing can be changed now."""
        runner = self._manager.runner
        if runner is None:
            raise ControlError("the experiment is still starting: ask again in a moment")
        if runner.status is ExperimentStatus.STOPPING or runner.is_finished():
            raise ControlError(f"the experiment is {runner.status}: it can no longer be changed")
        return runner

    def _trial(self, request: JsonObject) -> Trial:
        runner, name = self._running(), request.get("trial")
        trial = runner.get_trial(name) if isinstance(name, str) else None
        if trial is None and str(name).isdecimal():
            number = int(str(name))
            trial = next((each for each in runner.trials.values() if each.sequence_id == number), None)
        if trial is None:
            raise ControlError(f"there is no trial {name}", "not found")
        return trial

    def _begin(self, verb: str, origin: Mapping[str, str], several: Sequence[Parameters]) -> list[TrialIds]:
        """Add trials, all or none."""
        runner, now = self._running(), self._manager.now()
        if why_not := _why_not_add(runner, len(several)):
            raise ControlError(f"no trial can be added: {why_not}")
        source = {"parameter_id": None, "parameter_source": "customized"}
        records = [dumps({**source, "parameters": each, "parameter_index": 0, **origin}) for each in several]
        first = runner.created
        self._apply(verb, [TrialAddRequested(now, record) for record in records])
        # Where a trial is added, other configurations may get their next repeat.
        return [
            _ids_of(trial)
            for trial in list(runner.trials.values())[first:]
            if trial.parameter_id is None and runner.families.begins_with(trial)
        ]

    def _apply(self, verb: str, events: Sequence[Event], config: ExperimentConfig | None = None) -> None:
        for event in events:
            event.cause = f"user: {verb}"
        try:
            self._manager.apply(events, config)
        except NotWritableError as error:
            raise ControlError(f"the change was not made: {error.what}; make room and try again") from error
        except StoreError as error:
            raise ControlError(f"the change was not made: {error}") from error


def _ids_of(trial: Trial) -> TrialIds:
    return {"sequence_id": trial.sequence_id, "trial_id": trial.trial_id}


def changed_config(config: ExperimentConfig, changes: Mapping[str, Json]) -> ExperimentConfig:
    """Return a configuration with changes, by the names of the config; raise `ControlError` with every problem."""
    from ...config import ConfigError, ExperimentConfig

    if not changes:
        raise ControlError(f"give what to change: {', '.join(_CHANGEABLE)}", "invalid")
    unknown = [name for name in changes if name not in _CHANGEABLE]
    if unknown:
        raise ControlError(
            f"{', '.join(unknown)} cannot be changed while an experiment runs: only {', '.join(_CHANGEABLE)}",
            "invalid",
        )
    if any(changes.get(name, "") is None for name in ("trial_concurrency", "search_space")):
        raise ControlError("trial_concurrency and search_space cannot be null", "invalid")
    if problems := problems_of(changes):
        raise ControlError("; ".join(problems), "invalid")
    kept = config.model_copy(update=dict.fromkeys(changes)).canonical()
    new = {name: value for name, value in changes.items() if value is not None}
    try:
        return ExperimentConfig.from_canonical(kept | new)
    except ConfigError as error:
        raise ControlError("; ".join(map(str, error.problems)), "invalid") from error


def checked_import(data: Json, names: Sequence[str] = ("default",)) -> list[MeasuredResult]:
    """Return results measured elsewhere as they are; raise `ControlError` for the first that is not one.

    `names` are the metrics that each value has; a bare number is enough for one.

    >>> checked_import([{"parameter": {"x": 1}, "value": 0.5}])
    [{'parameter': {'x': 1}, 'value': 0.5}]
    """
    if not isinstance(data, list) or not data:
        raise ControlError('data is a list of {"parameter": {...}, "value": NUMBER}', "invalid")
    for number, row in enumerate(data):
        is_row = isinstance(row, dict) and set(row) == {"parameter", "value"}
        if not is_row or not isinstance(row["parameter"], dict):
            wanted = '{"parameter": {...}, "value": NUMBER}'
            raise ControlError(f"results[{number}] is not {wanted}", "invalid")
        value = row["value"]
        metrics = value if isinstance(value, dict) else dict.fromkeys(names[:1], value)
        if not all(_is_finite(metrics.get(name)) for name in names):
            if len(names) == 1:
                wanted = f'neither a finite number nor an object with one as "{names[0]}"'
            else:
                wanted = f"not an object with a finite number for each of {', '.join(names)}"
            raise ControlError(f"the value of results[{number}] is {wanted}", "invalid")
    return data


def _is_finite(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(number_in(value))


def _why_not_add(runner: TrialRunner, count: int) -> str:
    """Say why so many trials cannot be added; return an empty text if they can."""
    most, made = runner.limits.max_trial_number, runner.created + runner.requested
    why_not = runner.why_not_add()
    if most is None or made + count <= most:
        return why_not
    what = f"max_trial_number ({most}) leaves room for {most - made}" if made < most else why_not
    return f"{what}: raise it first"


def _why_not(
    config: ExperimentConfig, changes: Mapping[str, Json], runner: TrialRunner, now: float
) -> str | None:
    """Say why the changed limits make no sense at present."""
    number, duration = config.max_trial_number, config.max_experiment_duration
    made = runner.created + runner.requested
    if "max_trial_number" in changes and number is not None and number < made:
        return f"{made} trials are made or asked for already: max_trial_number must be at least {made}"
    if "max_experiment_duration" in changes and duration is not None and duration <= runner.elapsed(now):
        ran = f"it has run for {runner.elapsed(now):.0f} s already"
        return f"{ran}: max_experiment_duration must be more; stop ends it now"
    return None


def _events_of(config: ExperimentConfig, changes: Mapping[str, Json], now: float) -> list[Event]:
    events: list[Event] = []
    if "search_space" in changes:
        events.append(SearchSpaceChanged(now, json.dumps(config.search_space)))
    if set(changes) & set(LIMITS):
        events.append(LimitsChanged(now, **current_limits(config)))
    return events
