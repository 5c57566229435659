"""The tuner's half of a dispatcher: the parameters that it suggested, and their results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..protocol import (
    STARTING_POINTS,
    CommandType,
    Json,
    JsonError,
    MetricMessage,
    ParameterRecord,
    dumps,
    loads,
    with_default,
)
from ..tuners import Suggestion
from .checkpointing import Checkpointed
from .errors import PluginReturnedInvalid
from .msg_dispatcher_base import Recoverable
from .plugin import Plugin

MAX_INFEASIBLE = 100
"""How many suggestions in a row may violate the constraints."""

_DROPPED = object()
_OWN_TUNERS = f"{__name__.partition('.')[0]}.tuners."
_log = logging.getLogger(__name__)


class TunerHalf(Checkpointed):
    """Lets a tuner suggest and learn; all but the callback runs on the default worker only."""

    KEPT: ClassVar = ("violations", "_next_id", "_parameters", "_reported", "_ids", "_held")

    def __init__(
        self,
        tuner: Any,
        send: Callable[[CommandType, str], None],
        send_now: Callable[[CommandType, str], None],
        earlier: Recoverable,
        objective: str = "default",
    ) -> None:
        self.plugin = Plugin("tuner", tuner)
        self.violations: Callable[[Any], Sequence[str]] | None = None  # which constraints parameters break
        self._watch: _OutsideWatch | None = None
        self._send, self._send_now = send, send_now  # with the rest of a command's output, or at once
        self._earlier = earlier  # knows the parameters of an earlier run
        self._objective = objective
        self._next_id = 0
        self._parameters: dict[Any, Any] = {}  # suggested, and no final result yet
        # Final result delivered, and not ended yet: parameter ids (numbers), and the ids of trials that the user added.
        self._reported: set[int | str] = set()
        self._ids: dict[str, int | str | None] = {}  # of the trials that reported to a tuner that listens
        self._held: dict[str, Json] = {}  # results of trials that the user added: their parameters come later

    # suggestions

    def update_search_space(self, space: Any, constraints: Sequence[str]) -> None:
        """Pass the search space (its JSON form) and its constraints to the tuner; raise `SearchSpaceError`."""
        if constraints:
            from ..search_space import SearchSpace  # needs numpy, and most experiments have no constraints

            self.violations = SearchSpace.parse(space, constraints).violations
            if self.plugin.has("update_constraints"):
                self.plugin.call("update_constraints", list(constraints))
        self.plugin.call("update_search_space", space)
        is_own = type(self.plugin.instance).__module__.startswith(_OWN_TUNERS)  # they stay inside the space
        self._watch = None if is_own else _OutsideWatch(space)

    def request(self, count: int) -> None:
        """Send parameters for `count` trials, and NoMoreTrialJobs when the tuner has fewer.

        A request for none says that all trials are paused and no new one may start.
        """
        if count == 0:
            if self.plugin.has("trials_stalled"):
                self.plugin.call("trials_stalled")
            return
        ids = [self._new_id() for _ in range(count)]
        suggestions = self._suggest(ids)
        sent = [self._send_feasible(*pair) for pair in zip(ids, suggestions, strict=False)]
        if sum(sent) < count:
            self._send(CommandType.NoMoreTrialJobs, dumps(_record(ids[0], Suggestion(""))))

    def decline(self, reason: str) -> None:
        """Send NoMoreTrialJobs without asking the tuner."""
        record = _record(self._new_id(), Suggestion(""))
        record["reason"] = reason
        self._send(CommandType.NoMoreTrialJobs, dumps(record))

    def _new_id(self) -> int:
        parameter_id = max(self._next_id, self._earlier.recovered_max_param_id + 1)
        self._next_id = parameter_id + 1
        return parameter_id

    def _suggest(self, ids: list[int]) -> Sequence[Any]:
        method = "generate_multiple_parameters"
        try:
            suggestions = self.plugin.call(method, list(ids), st_callback=self._on_callback)
        except Exception as error:
            if _means_no_more(error.__cause__):
                return []
            raise
        if not isinstance(suggestions, list | tuple):
            raise self.plugin.invalid(method, suggestions, "not a list")
        if len(suggestions) > len(ids):
            raise self.plugin.invalid(method, suggestions, f"more than the {len(ids)} asked for")
        return suggestions

    def _send_feasible(self, parameter_id: int, parameters: Any) -> bool:
        """Send parameters, or others in place of infeasible ones; return whether there were any."""
        asked = 0
        while broken := self._broken(parameters):
            if asked == MAX_INFEASIBLE:
                raise self._infeasible(parameters, broken, f", and so did all {asked} before it")
            self.plugin.call("trial_end", parameter_id, False)
            parameter_id = self._new_id()
            again = self._suggest([parameter_id])
            if not again:
                return False
            parameters, asked = again[0], asked + 1
        self._send_parameters(self._send, parameter_id, parameters)
        return True

    def _broken(self, parameters: Any) -> Sequence[str]:
        if self.violations is None:
            return ()
        if isinstance(parameters, Suggestion):
            parameters = parameters.parameters
        if not isinstance(parameters, dict):
            raise self.plugin.invalid("generate_parameters", parameters, "not a dict of parameters")
        return self.violations(parameters)

    def _infeasible(self, parameters: Any, broken: Sequence[str], also: str) -> PluginReturnedInvalid:
        why = f"violates {' and '.join(map(repr, broken))}{also}"
        return self.plugin.invalid("generate_parameters", parameters, why)

    def _send_parameters(
        self, send: Callable[[CommandType, str], None], parameter_id: int, proposed: Any
    ) -> None:
        suggestion = proposed if isinstance(proposed, Suggestion) else Suggestion(proposed)
        parameters = suggestion.parameters
        if parameters is None:
            raise self.plugin.invalid("generate_parameters", None, "not parameters; is a `return` missing?")
        try:
            record = dumps(_record(parameter_id, suggestion))
        except JsonError as error:
            raise self.plugin.invalid("generate_parameters", parameters, str(error)) from error
        if self._watch is not None:
            self._watch.look(parameters)
        self._parameters[parameter_id] = parameters
        send(CommandType.NewTrialJob, record)

    def _on_callback(self, parameter_id: int, parameters: Any) -> None:
        """Send parameters for an id that had none when it was requested: the `st_callback` of tuners."""
        if broken := self._broken(parameters):
            raise self._infeasible(parameters, broken, "")
        self._send_parameters(self._send_now, parameter_id, parameters)

    # results

    def final(self, data: MetricMessage) -> None:
        """Take a FINAL metric record; a second one for the same parameters is dropped."""
        parameter_id, trial_job_id = data.get("parameter_id"), data.get("trial_job_id")
        value = self._value(data)
        if value is _DROPPED:
            return
        if parameter_id is None:
            self._final_of_customized(data, value)
        elif parameter_id in self._parameters:
            parameters = self._parameters.pop(parameter_id)
            self._reported.add(parameter_id)
            if "repeats" in data and self.plugin.has("receive_repeats"):
                results = [with_default(result, self._objective) for result in data["repeats"]]
                self.plugin.call("receive_repeats", parameter_id, parameters, results)
            self._deliver(parameter_id, parameters, value, customized=False, trial_job_id=trial_job_id)
        elif parameter_id in self._reported:
            _log.info("Trial %s reported its final result again; only the first counts", trial_job_id)
        elif self._earlier.is_created_in_previous_exp(parameter_id):
            parameters = self._earlier.get_previous_param(parameter_id)
            if parameters is not None:
                self.plugin.call("import_data", [{"parameter": parameters, "value": value}])
        else:
            _log.warning("No parameters with id %s are waiting for a result", parameter_id)

    def intermediate(self, data: MetricMessage) -> None:
        """Take a PERIODICAL metric record, for a tuner that wants them."""
        parameter_id, value = data.get("parameter_id"), self._value(data)
        if parameter_id not in self._parameters or value is _DROPPED:
            return
        self._ids[str(data.get("trial_job_id"))] = parameter_id
        self.plugin.call(
            "receive_intermediate_result",
            parameter_id,
            self._parameters[parameter_id],
            value,
            trial_job_id=data.get("trial_job_id"),
            sequence=data.get("sequence"),
        )

    def trial_end(
        self,
        record: ParameterRecord,
        trial_job_id: str,
        success: bool,
        stopped: bool = False,
        cause: str = "",
    ) -> None:
        """Take the end of the trial that ran a parameter record; the tuner receives each end once.

        `stopped` says that the assessor, the tuner or the user ended it: `trial_stopped` of the tuner is called first,
        unless there is a final result. So is its `trial_end_cause` with the kind of failure, or the status of a trial
        that was cancelled.
        """
        parameter_id = record.get("parameter_id")
        if record.get("parameter_source") in STARTING_POINTS:
            # The tuner has imported its result, if it has one.
            if cause and self.plugin.has("starting_point_failed"):
                self.plugin.call("starting_point_failed", record.get("parameters"), cause)
            return
        if parameter_id is None:
            self._end_of_customized(record, trial_job_id, success)
        elif parameter_id in self._parameters or parameter_id in self._reported:
            if stopped and parameter_id in self._parameters and self.plugin.has("trial_stopped"):
                self.plugin.call("trial_stopped", parameter_id)
            if cause and parameter_id in self._parameters and self.plugin.has("trial_end_cause"):
                self.plugin.call("trial_end_cause", parameter_id, cause)
            self._parameters.pop(parameter_id, None)
            self._reported.discard(parameter_id)
            self._ids.pop(trial_job_id, None)
            self.plugin.call("trial_end", parameter_id, success)

    def import_data(self, data: list[Any]) -> None:
        """Take results measured elsewhere; a `value` that is text is JSON.

        Results with a `source` are losses of earlier searches, on other scales: only `update_earlier` gets them. Items
        without a value are starting points that run already: only `update_running` gets them.
        """
        kinds: dict[str, list[Any]] = {"earlier": [], "running": [], "measured": []}
        for item in data:
            kinds[_kind_of(item)].append(item)
        if kinds["earlier"] and self.plugin.has("update_earlier"):
            self.plugin.call("update_earlier", kinds["earlier"])
        if kinds["running"] and self.plugin.has("update_running"):
            self.plugin.call("update_running", [item["parameter"] for item in kinds["running"]])
        if kinds["measured"] or not data:
            self.plugin.call(
                "import_data", [_with_value(item, self._objective) for item in kinds["measured"]]
            )

    def change_parameters(self, trial_job_id: str, parameters: Any) -> None:
        """Note that a trial continues with other parameters, to which its later reports belong."""
        parameter_id = self._ids.get(trial_job_id)
        if parameter_id in self._parameters:
            self._parameters[parameter_id] = dict(parameters)

    def _value(self, data: MetricMessage) -> Any:
        """Return what the trial reported; when it is not JSON, log that and return `_DROPPED`."""
        try:
            return with_default(loads(data["value"]), self._objective)
        except JsonError as error:
            _log.warning("A result of trial %s is dropped: %s", data.get("trial_job_id"), error)
            return _DROPPED

    def _deliver(self, parameter_id: Any, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.plugin.call("receive_trial_result", parameter_id, parameters, value, **kwargs)

    # trials that the user added: they have no parameter id, and only a tuner that asked for them gets their results

    def _takes_customized(self, trial_job_id: Any) -> bool:
        if getattr(self.plugin.instance, "_accept_customized", False):
            return True
        _log.info("Customized trial job %s ignored by tuner", trial_job_id)
        return False

    def _final_of_customized(self, data: MetricMessage, value: Json) -> None:
        trial_job_id = data.get("trial_job_id")
        if not self._takes_customized(trial_job_id) or trial_job_id in self._reported:
            return
        if "parameters" not in data:
            self._held.setdefault(str(trial_job_id), value)
            return
        self._reported.add(trial_job_id)
        self._deliver(None, data["parameters"], value, customized=True, trial_job_id=trial_job_id)

    def _end_of_customized(self, record: ParameterRecord, trial_job_id: str, success: bool) -> None:
        if not self._takes_customized(trial_job_id):
            return
        self._reported.discard(trial_job_id)
        if trial_job_id in self._held:
            value = self._held.pop(trial_job_id)
            parameters = record.get("parameters")
            self._deliver(None, parameters, value, customized=True, trial_job_id=trial_job_id)
        self.plugin.call("trial_end", None, success)


def _record(parameter_id: int, suggestion: Suggestion) -> ParameterRecord:
    record: ParameterRecord = {
        "parameter_id": parameter_id,
        "parameter_source": "algorithm",
        "parameters": suggestion.parameters,
        "parameter_index": 0,
    }
    if suggestion.budget is not None:
        record["budget"] = suggestion.budget
    if suggestion.checkpoint_of is not None:
        record["checkpoint_of"] = suggestion.checkpoint_of
    if suggestion.pauses_at_budget:
        record["pauses_at_budget"] = True
    return record


def _kind_of(item: Any) -> str:
    """Return what an imported item is: a result, a result of an earlier search, or a point that runs already."""
    if not isinstance(item, dict):
        return "measured"
    return "earlier" if "source" in item else "running" if item.keys() == {"parameter"} else "measured"


def _with_value(item: Any, objective: str) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("value"), str):
        return item
    try:
        return {**item, "value": with_default(loads(item["value"]), objective)}
    except JsonError:
        return item


def _means_no_more(error: BaseException | None) -> bool:
    """Return whether an error says that the search is over; any library may define a class of this name."""
    return error is not None and any(cls.__name__ == "NoMoreTrialError" for cls in type(error).__mro__)


class _OutsideWatch:
    """Warns once of a proposal outside `search_space` (its JSON form): allowed, but rarely intended."""

    def __init__(self, search_space: Any) -> None:
        self._json = search_space
        self._space: Any = None
        self._looks = True

    def look(self, parameters: Any) -> None:
        """Warn once if parameters are not a point of the space."""
        if not self._looks:
            return
        from ..search_space import SearchSpace, SearchSpaceError  # needs numpy, which a tuner may not need

        try:
            self._space = self._space or SearchSpace.parse(self._json)
        except SearchSpaceError:
            self._looks = False  # the tuner has its own format of search spaces
            return
        if problems := self._space.validate(parameters):
            self._looks = False
            where = ".".join(map(str, problems[0].path))
            _log.warning(
                "The tuner proposes a point outside the search space (logged once): %s%s",
                f"{where}: " if where else "",
                problems[0].message,
            )
