"""The dispatcher for a tuner and an assessor: which command goes to whom.

* The tuner is called on the default worker only, the assessor on the assessor worker only, and each by one command at a
  time: so neither needs a lock, and a slow tuner delays no verdict.
* `route` decides, on the main thread and in the order of the commands, which of the two queues get a command. Within a
  queue the order stays. Between the queues there is none: only what is sent to both (the end of a trial) arrives in its
  place in each, so that a trial's end overtakes none of its results.
* What a plug-in keeps between two commands is its own state and what `state_of` returns for its queue. A checkpoint
  saves the two halves at the same command, each on its worker.
* A handler calls a plug-in and sends what follows; it starts no thread and reads no clock. So the same commands give
  the same replies, queue by queue, and a dispatcher can be restored by sending it the commands again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..protocol import (
    CommandType,
    Json,
    MetricMessage,
    ParameterRecord,
    ResumeMessage,
    TrialEndMessage,
    VerdictMessage,
    dumps,
    loads,
)
from ..tuners import TrialControl
from .channel import Channel
from .judging import AssessorHalf
from .msg_dispatcher_base import MsgDispatcherBase
from .stop_rule import StopRule
from .suggesting import TunerHalf
from .workers import Worker

_SPACES = (CommandType.Initialize, CommandType.UpdateSearchSpace)

_STOPPED = ("EARLY_STOPPED", "USER_CANCELED")  # ends for which the parameters are not to blame
_CANCELED = ("USER_CANCELED", "SYS_CANCELED")

_log = logging.getLogger(__name__)


class MsgDispatcher(MsgDispatcherBase):
    """Hosts a tuner on the default worker and an assessor on the assessor worker.

    Intermediate results go to the assessor (and to a tuner that wants them), the end of a trial to both, a final result
    to the tuner (and to an assessor that wants it), everything else to the tuner. `constraints` are those of the search
    space; parameters that violate them are not sent. In reports, the metric `objective` is also called `default`. When
    the `stop_rule` has a reason, the tuner is not asked for more.
    """

    def __init__(
        self,
        tuner: Any,
        assessor: Any = None,
        channel: Channel | None = None,
        *,
        constraints: Sequence[str] = (),
        objective: str = "default",
        stop_rule: StopRule | None = None,
        **options: Any,
    ) -> None:
        super().__init__(channel, **options)
        self.tuner, self.assessor = tuner, assessor
        self.constraints = tuple(constraints)
        self.stop_rule = stop_rule
        self._suggesting = TunerHalf(tuner, self.send, self._send_now, self, objective)
        self._give_control()
        self._judging: AssessorHalf | None = None
        if assessor is not None:
            self._judging = AssessorHalf(assessor, self.send, objective, peer=self.protocol is not None)
        self._to_tuner = (self.default_worker,)
        # Without an assessor its worker sleeps: waking it for every trial costs more than the trial's results.
        self._to_assessor = () if assessor is None else (self.assessor_worker,)
        self._both = self._to_assessor + self._to_tuner

    def connect(self, channel: Channel, protocol: int | None) -> None:
        """Give the channel and the manager's version to a dispatcher that was made without them."""
        super().connect(channel, protocol)
        if self._judging is not None:
            self._judging.peer = protocol is not None

    def _give_control(self) -> None:
        """Let a tuner that can pause and resume trials do so."""
        if hasattr(self.tuner, "connect_trials"):
            control = _DispatcherControl(
                self.send, lambda: self.protocol is not None, self._suggesting.change_parameters
            )
            self.tuner.connect_trials(control)

    def state_of(self, queue: str) -> Mapping[str, object]:
        """Return the plug-in of a queue, with what the dispatcher keeps for it."""
        if queue == "default":
            return {
                "tuner": self.tuner,
                "suggesting": self._suggesting.state(),
                "recovered": (self.recovered_max_param_id, self.recovered_trial_params),
                "stop_rule": None if self.stop_rule is None else self.stop_rule.state(),
            }
        judging = None if self._judging is None else self._judging.state()
        return {"assessor": self.assessor, "judging": judging}

    def take_state(self, queue: str, state: Any) -> None:
        """Restore what `state_of` returned for a queue."""
        if queue == "default":
            self.tuner = self._suggesting.plugin.instance = state["tuner"]
            self.recovered_max_param_id, self.recovered_trial_params = state["recovered"]
            self._suggesting.take_state(state["suggesting"])
            if self.stop_rule is not None:
                self.stop_rule.take_state(state["stop_rule"])
            self._give_control()
        elif self._judging is not None:
            self.assessor = self._judging.plugin.instance = state["assessor"]
            self._judging.take_state(state["judging"])

    def _send_now(self, command: CommandType, payload: str) -> None:
        self.send(command, payload)
        self._channel.flush()

    def periodical_queues(self) -> list[str]:
        """Return the queue of an assessor, and the default one for a tuner that asks for intermediate results."""
        for_tuner = ["default"] if self._tuner_wants_periodical() else []
        return ["assessor", *for_tuner] if self.assessor is not None else for_tuner

    def any_results(self) -> list[str]:
        """Return the kinds of results that only the user's own code gets."""
        judged = [] if self._judging is None else [self._judging.plugin.is_users("assess_trial")]
        tuner = self._suggesting.plugin
        followed = [tuner.is_users("receive_intermediate_result")] if self._tuner_wants_periodical() else []
        learned = tuner.is_users("receive_trial_result")
        users = {"FINAL": learned, "PERIODICAL": all([*judged, *followed] or [learned])}
        return [kind for kind, is_users in users.items() if is_users]

    def learns(self) -> bool:
        """Return whether proposals may depend on results; a subclass of a tuner that does not learn may do so."""
        return self.stop_rule is not None or vars(type(self.tuner)).get("learns") is not False

    def _tuner_wants_periodical(self) -> bool:
        wants = getattr(self.tuner, "wants_periodical", False)
        return self.assessor is not None if wants == "with an assessor" else bool(wants)

    def _assessor_wants_finals(self) -> bool:
        return self._judging is not None and self._judging.plugin.has("receive_trial_result")

    def load_checkpoint(self) -> None:
        """Let both plug-ins restore what they wrote themselves."""
        for plugin in (self.tuner, self.assessor):
            if plugin is not None:
                plugin.load_checkpoint()

    def save_checkpoint(self) -> None:
        """Let both plug-ins write their own state."""
        for plugin in (self.tuner, self.assessor):
            if plugin is not None:
                plugin.save_checkpoint()

    # routing, on the main thread

    def route(self, command: CommandType, data: Any) -> tuple[Worker, ...]:
        """Return where a command goes: the end of a trial to both queues, so that it overtakes no result."""
        if command is CommandType.ReportMetricData and data["type"] == "PERIODICAL":
            return self._both if self._tuner_wants_periodical() else self._to_assessor
        if command is CommandType.TrialEnd or (self._assessor_wants_finals() and _is_final(command, data)):
            return self._both
        if command is CommandType.AddCustomizedTrialJob:
            # Done here, because the assessor queue needs it before the next command.
            self.recover_parameter_id(data)
        elif command in _SPACES and self._judging is not None:
            return self._both if self._judging.plugin.has("update_search_space") else self._to_tuner
        return self._to_tuner

    # on the assessor worker

    def process_assessor_command(self, command: CommandType, data: Any) -> None:
        """Pass a command to the assessor, if there is one."""
        judging = self._judging
        if judging is None:
            return
        if command is CommandType.ReportMetricData:
            if self.is_created_in_previous_exp(data.get("parameter_id")):
                return
            if data["type"] == "PERIODICAL":
                is_spared = data.get("spared", False)
                judging.metric(data["trial_job_id"], data["sequence"], data["value"], is_spared=is_spared)
            else:
                judging.final(data["trial_job_id"], data["value"])
        elif command is CommandType.TrialEnd:
            judging.trial_end(data["trial_job_id"], data["event"] == "SUCCEEDED")
        else:
            judging.plugin.call("update_search_space", data)

    # on the default worker

    def handle_initialize(self, data: Any) -> None:
        """Pass the search space to the tuner."""
        self.handle_update_search_space(data)
        self.send(CommandType.Initialized, self.capabilities())

    def handle_update_search_space(self, data: Any) -> None:
        """Pass the search space and its constraints to the tuner; raise `SearchSpaceError`."""
        self._suggesting.update_search_space(data, self.constraints)
        if self.stop_rule is not None:
            self.stop_rule.update_search_space(data)

    def handle_request_trial_jobs(self, data: int) -> None:
        """Have the tuner suggest parameters, unless the search should end."""
        reason = self.stop_rule.why_stop() if self.stop_rule is not None and data else ""
        if reason:
            self._suggesting.decline(reason)
        else:
            self._suggesting.request(data)

    def handle_import_data(self, data: list[Any]) -> None:
        """Pass results measured elsewhere to the tuner."""
        self._suggesting.import_data(data)
        if self.stop_rule is not None:
            self.stop_rule.import_data(data)

    def handle_add_customized_trial(self, data: list[Any]) -> None:
        """Do nothing: `route` has taken the records of the earlier run."""

    def handle_report_metric_data(self, data: MetricMessage) -> None:
        """Pass a final result to the tuner, and an intermediate one if it is routed here."""
        kind = data["type"]
        if "repeat" in data and (kind == "FINAL" or data["repeat"] > 0):
            return  # the tuner gets the mean of several repeats, and the intermediate results of the first
        if kind == "FINAL":
            self._suggesting.final(data)
            if self.stop_rule is not None:
                self.stop_rule.final(data)
        elif kind == "PERIODICAL":
            self._suggesting.intermediate(data)
        else:
            _log.error("A metric of type %s is not supported (trial %s)", kind, data.get("trial_job_id"))

    def handle_trial_end(self, data: TrialEndMessage) -> None:
        """Pass the end of a trial to the tuner, unless it is one of several repeats: their family ends later."""
        if "repeat" in data:
            return
        record: ParameterRecord = loads(data.get("hyper_params") or "{}")
        event = data["event"]
        cause = event if event in _CANCELED else data.get("failure_kind", "")
        if self.stop_rule is not None:
            self.stop_rule.trial_end(record, data["trial_job_id"], event == "SUCCEEDED")
        self._suggesting.trial_end(
            record, data["trial_job_id"], event == "SUCCEEDED", stopped=event in _STOPPED, cause=cause
        )


def _is_final(command: CommandType, data: Any) -> bool:
    return command is CommandType.ReportMetricData and data["type"] == "FINAL"


class _DispatcherControl(TrialControl):
    """A `TrialControl` that sends to the manager, if that `is_peer`; `changed` is called with a trial's new parameters.

    Every verdict is marked as the tuner's, because those of the assessor come from another queue.
    """

    def __init__(
        self,
        send: Callable[[CommandType, str], None],
        is_peer: Callable[[], bool],
        changed: Callable[[str, Mapping[str, Json]], None],
    ) -> None:
        self._send, self._is_peer, self._changed = send, is_peer, changed

    def pause(self, trial_job_id: str, reason: str) -> None:
        """Send Pause; raise RuntimeError if the manager does not know it."""
        self._require_peer("pause")
        self._verdict(CommandType.Pause, trial_job_id, reason)

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Json] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Send Resume; raise RuntimeError if the manager does not know it."""
        self._require_peer("resume")
        message = ResumeMessage(
            trial_job_id=trial_job_id, parameters=parameters, checkpoint_of=checkpoint_of, budget=budget
        )
        if pauses_at_budget:
            message["pauses_at_budget"] = True
        self._send(CommandType.Resume, dumps(message))
        if parameters is not None:
            self._changed(trial_job_id, parameters)

    def stop(self, trial_job_id: str, reason: str) -> None:
        """Send KillTrialJob."""
        if self._is_peer():
            self._verdict(CommandType.KillTrialJob, trial_job_id, reason)
        else:
            self._send(CommandType.KillTrialJob, dumps(trial_job_id))

    def _verdict(self, command: CommandType, trial_job_id: str, reason: str) -> None:
        message = VerdictMessage(trial_job_id=trial_job_id, reason=reason, by="tuner")
        self._send(command, dumps(message))

    def _require_peer(self, what: str) -> None:
        if not self._is_peer():
            raise RuntimeError(f"this manager cannot {what} trials")
