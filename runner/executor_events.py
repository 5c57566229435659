"""Handlers of the executor's events: an attempt started, reported, saved a checkpoint or ended; resources changed.

Events of an attempt that is not the trial's current one come too late and change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..protocol import (
    CommandType,
    Objective,
    import_payload,
    is_default,
    is_starting_point,
    main_objective,
    metric_payload,
    repeat_number,
)
from . import events as happened
from .attempts import ends_rung, note_checkpoint
from .effects import MetricRow
from .experiment_rules import ExperimentRules
from .trial import Cause, FailureKind, Trial, TrialStatus, Verdict
from .verdicts import check_final, fault_of_intermediate, judge_end


class ExecutorEvents:
    """Handles the events that come from executors."""

    def __init__(self, rules: ExperimentRules, objectives: Sequence[Objective]) -> None:
        self._rules = rules
        self._trials = rules.trials
        self._state = rules.state
        self._pending = rules.pending
        self._names = tuple(objective.name for objective in objectives)
        self._main = main_objective(objectives).name

    def started(self, event: happened.AttemptStarted) -> None:
        """Handle the start of an attempt."""
        trial = self._trials.current(event)
        if trial is not None and trial.status is TrialStatus.WAITING:
            self._trials.started(trial, event.pid)

    def refused(self, event: happened.StartRefused) -> None:
        """Handle a start that is not possible at present."""
        trial = self._trials.current(event)
        if trial is None or trial.status is not TrialStatus.WAITING:
            return
        if trial.verdict is not None:
            self._conclude(trial, trial.verdict)
            return
        self._trials.refused(trial, event.devices)

    def reported(self, event: happened.Reported) -> None:
        """Handle a result, unless a stopper has ended the trial and the trial does not know it yet."""
        trial = self._trials.current(event)
        if trial is None or (trial.verdict is not None and trial.verdict.cause is Cause.ENDED_WELL):
            return
        if event.kind == "final":
            self.take_final(trial, event)
        elif event.sequence >= trial.next_sequence:
            self._take_intermediate(trial, event)

    def _take_intermediate(self, trial: Trial, event: happened.Reported) -> None:
        trial.next_sequence = event.sequence + 1
        self._pending.note(trial)
        self._keep(trial, event, "PERIODICAL")
        if self._is_judged(trial) and event.sequence >= trial.next_unsent:
            trial.next_unsent = event.sequence + 1
            if self._is_readable(trial, event):
                self._send(trial, "PERIODICAL", event.sequence, event.value)

    def _is_readable(self, trial: Trial, event: happened.Reported) -> bool:
        """Return whether what judges intermediate results can read this one; keep the first that it cannot."""
        is_any = "PERIODICAL" in self._state.any_results
        fault = "" if is_any else fault_of_intermediate(event.value, self._main, self._names)
        if fault and not self._state.unread_result:
            where = f"intermediate result {event.sequence} of trial {trial.sequence_id}"
            self._state.unread_result = f"{where}: {fault}"
        return not fault

    def _is_judged(self, trial: Trial) -> bool:
        """Return whether the dispatcher gets the trial's intermediate results."""
        verdict = trial.verdict
        return self._state.wants_periodical and (verdict is None or verdict.cause is Cause.PAUSED)

    def take_final(self, trial: Trial, event: happened.Reported) -> None:
        """Take a final result of a trial; the first one counts."""
        if event.sequence < trial.finals:
            return  # repeated after a restart
        trial.finals = event.sequence + 1
        self._pending.note(trial)
        self._keep(trial, event, "FINAL")
        if trial.finals > 1:
            return
        judged = check_final(event.value, self._names)
        if isinstance(judged, Verdict):
            if judged.kind is FailureKind.NAN or not self._may_be_anything(trial):
                self._trials.stop_attempt(trial, judged)
                return
            judged = None  # the tuner gets it as it is
        if ends_rung(trial, event.value):
            self._reach_rung(trial, event.value)
            return
        trial.final, trial.values = event.value, judged
        # For the dispatcher, a trial that users retry has ended already; it does not know the starting points.
        if self._rules.families.of(trial) is not None:
            self._send(trial, "FINAL", 0, event.value)
        elif trial.user_retries or (trial.parameter_id is None and is_starting_point(trial.record)):
            self._pending.send(CommandType.ImportData, import_payload(trial.record, event.value))
            if not trial.user_retries and self._is_judged(trial):
                self._send(trial, "FINAL", 0, event.value, is_imported=True)
        else:
            self._send(trial, "FINAL", 0, event.value)

    def _may_be_anything(self, trial: Trial) -> bool:
        """Return whether a final result may be anything: the tuner takes it as it is, and no mean is made of it."""
        return "FINAL" in self._state.any_results and self._rules.families.of(trial) is None

    def _reach_rung(self, trial: Trial, value: str) -> None:
        """Send a final result as the last intermediate one of the budget, unless that was sent."""
        last = int(trial.budget or 0) - 1
        if self._is_judged(trial) and last >= trial.next_unsent:
            trial.next_unsent = last + 1
            self._send(trial, "PERIODICAL", last, value)

    def bad(self, event: happened.BadReport) -> None:
        """Handle an invalid report: its trial fails, unless the machine is at fault and the final result is there."""
        trial = self._trials.current(event)
        if trial is None or (event.infra and trial.final is not None):
            return
        kind = FailureKind.INFRA if event.infra else FailureKind.USER_ERROR
        self._trials.stop_attempt(trial, Verdict(Cause.ENDED_BADLY, event.message, kind))

    def saved(self, event: happened.CheckpointSaved) -> None:
        """Handle a checkpoint."""
        trial = self._trials.current(event)
        if trial is not None:
            note_checkpoint(trial, event)
            self._pending.note(trial)

    def ended(self, event: happened.AttemptEnded) -> None:
        """Handle the end of an attempt: the trial is paused, runs again, or ends."""
        trial = self._trials.current(event)
        if trial is None:
            return
        trial.exit_code = event.exit_code if event.signal is None else -event.signal
        trial.error = event.error
        if event.exported:
            exports = [(trial.sequence_id, name, path) for name, path in event.exported.items()]
            self._pending.changes.exports.extend(exports)
        if event.lost:
            self._trials.lose_agent(trial.agent)
        trial.code = event.code or trial.code
        if event.code and event.loaded:
            self._pending.changes.code[event.code] = json.dumps(event.loaded)
        verdict = judge_end(trial, event)
        if verdict.cause is Cause.ENDED_WELL:  # one trial that asks shows that the search tunes something
            self._state.has_asked = self._state.has_asked or not event.unasked
        self._conclude(trial, verdict)

    def _conclude(self, trial: Trial, verdict: Verdict) -> None:
        if verdict.cause is Cause.PAUSED:
            self._trials.paused(trial, verdict)
        elif self._rules.may_run_again(trial, verdict):
            self._trials.run_again(trial, verdict)
        else:
            self._rules.end(trial, verdict)
        self._rules.proceed()

    def agent_silent(self, event: happened.AgentSilent) -> None:
        """Start nothing on an agent while it is silent."""
        silent = self._trials.silent_agents
        (silent.discard if event.is_over else silent.add)(event.agent)

    def agent_lost(self, event: happened.AgentLost) -> None:
        """Handle the loss of an agent that ran nothing; one that runs a trial has been started again since."""
        if all(trial.agent != event.agent for trial in self._trials.assigned()):
            self._trials.lose_agent(event.agent)

    def resources_changed(self, event: happened.ResourcesChanged) -> None:
        """Handle a change of the GPUs that others hold."""
        self._trials.ledger.set_busy_elsewhere(frozenset(event.busy_devices))
        self._trials.start_waiting()

    def totals_changed(self, event: happened.TotalsChanged) -> None:
        """Handle a node that joined or left."""
        self._trials.ledger.set_totals(event.totals)
        self._trials.start_waiting()

    def _keep(self, trial: Trial, event: happened.Reported, kind: str) -> None:
        self._pending.changes.metrics.append(
            MetricRow(trial, event.attempt, kind, event.sequence, event.value, event.time)
        )

    def _send(self, trial: Trial, kind: str, sequence: int, value: str, *, is_imported: bool = False) -> None:
        repeat = repeat_number(trial.record)
        is_spared = kind == "PERIODICAL" and trial.parameter_id is None and is_default(trial.record)
        payload = metric_payload(
            trial.parameter_id,
            trial.trial_id,
            kind,
            sequence,
            value,
            repeat=repeat,
            is_imported=is_imported,
            is_spared=is_spared,
        )
        self._pending.send(CommandType.ReportMetricData, payload, is_periodical=kind == "PERIODICAL")
