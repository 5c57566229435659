"""A runner that a test drives in place of the dispatcher and the executor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pitchpipe.protocol import CommandType, Objective
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import SendCommand, StartTrial
from pitchpipe.runner.experiment_state import Limits
from pitchpipe.runner.family_rules import Repeats
from pitchpipe.runner.ledger import Ledger, Request, Totals
from pitchpipe.runner.trial import Trial, TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

from .invariants import broken_invariants

__all__ = ["EVENT_KINDS", "Driver", "lost_and_retried", "of_type", "paused_trial", "running_trial", "sent"]

EVENT_KINDS = {
    kind for kind in vars(happened).values() if isinstance(kind, type) and issubclass(kind, happened.Event)
}
EVENT_KINDS -= {happened.Event, happened.TrialEvent, happened.AttemptEvent}


class Driver:
    """A runner, its clock, and all effects so far; every event checks the invariants."""

    def __init__(
        self,
        request: Request | None = None,
        totals: Totals | None = None,
        objectives: Sequence[Objective] = (Objective(),),
        repeats: Repeats | None = None,
        **limits: Any,
    ) -> None:
        limits.setdefault("trial_concurrency", 2)
        made = Limits(**limits), Ledger(totals or Totals()), request, objectives
        self.runner = TrialRunner("test", *made, repeats=repeats)
        self.now = 1000.0
        self.parameter_id = 0
        self.effects: list[Any] = []

    def handle(self, event: happened.Event) -> list[Any]:
        effects = self.runner.handle(event)
        assert broken_invariants(self.runner) == []
        self.effects += effects
        return effects

    def ready(self, **facts: Any) -> list[Any]:
        return self.handle(happened.DispatcherReady(self.now, **facts))

    def propose(self, **parameters: Any) -> list[Any]:
        record = json.dumps({"parameter_id": self.parameter_id, "parameters": parameters})
        self.parameter_id += 1
        return self.handle(happened.ParametersArrived(self.now, self.parameter_id - 1, record))

    def proposed(self, count: int = 1) -> list[Trial]:
        """Start the experiment with so many proposals; return all trials."""
        self.ready()
        for _ in range(count):
            self.propose(x=1)
        return self.runner.get_trials()

    def start(self, trial: Trial) -> list[Any]:
        return self.handle(happened.AttemptStarted(self.now, trial.trial_id, trial.attempt, 4711))

    def report(
        self, trial: Trial, value: Any, kind: str = "intermediate", sequence: int | None = None
    ) -> list[Any]:
        if sequence is None:
            sequence = trial.next_sequence if kind == "intermediate" else trial.finals
        key = self.now, trial.trial_id, trial.attempt
        return self.handle(happened.Reported(*key, kind=kind, sequence=sequence, value=json.dumps(value)))  # type: ignore[arg-type]

    def end(self, trial: Trial, **how: Any) -> list[Any]:
        return self.handle(
            happened.AttemptEnded(self.now, trial.trial_id, trial.attempt, **{"exit_code": 0, **how})
        )

    def save(self, trial: Trial) -> list[Any]:
        """Report a checkpoint after the trial's last result."""
        name = f"{trial.attempt}-{trial.next_sequence}"
        return self.handle(
            happened.CheckpointSaved(
                self.now, trial.trial_id, trial.attempt, name=name, sequence=trial.next_sequence
            )
        )

    def running_trial(self, **facts: Any) -> Trial:
        """Return a new running trial; start the experiment before, if it has not started."""
        self.ready(**facts)
        self.propose(x=1)
        trial = self.runner.get_trials()[-1]
        self.start(trial)
        return trial

    def restart(self) -> None:
        """Replace the runner by one that the next manager restores."""
        old = self.runner
        made = old.limits, Ledger(Totals()), None, old.objectives
        self.runner = TrialRunner("test", *made, repeats=old.families.repeats)
        self.runner.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), 0.0)

    def succeed(self, trial: Trial, value: Any = 0.5) -> list[Any]:
        self.report(trial, value, "final")
        return self.end(trial)


def sent(effects: list[Any], command: CommandType) -> list[Any]:
    """Return the payloads of the commands of one kind."""
    return [
        json.loads(effect.payload)
        for effect in effects
        if isinstance(effect, SendCommand) and effect.command is command
    ]


def of_type(effects: list[Any], kind: Any) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def running_trial(*resources: Any, **limits: Any) -> tuple[Driver, Trial]:
    driver = Driver(*resources, **limits)
    return driver, driver.running_trial()


def lost_and_retried(*reports: float, checkpoint: int | None = None) -> tuple[Driver, Trial, StartTrial]:
    """Return a driver, a trial whose agent was lost after some reports, and the start of its second attempt."""
    driver, trial = running_trial(trial_concurrency=1)
    for number, value in enumerate(reports):
        if number == checkpoint:
            driver.save(trial)
        driver.report(trial, value)
    (start,) = of_type(driver.end(trial, exit_code=None, lost=True, error="its agent is gone"), StartTrial)
    return driver, trial, start


def paused_trial(checkpoint: bool = True, **limits: Any) -> tuple[Driver, Trial]:
    driver, trial = running_trial(trial_concurrency=1, **limits)
    driver.report(trial, 0.5)
    driver.report(trial, 0.4)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 2"))
    if checkpoint:
        driver.save(trial)
    driver.end(trial, paused=True)
    assert trial.status is TrialStatus.PAUSED
    return driver, trial
