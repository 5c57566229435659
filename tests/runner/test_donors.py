"""A trial that continues from the checkpoint of another one waits until that one has saved it."""

from __future__ import annotations

from typing import Any

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import CopyCheckpoint
from pitchpipe.runner.invariants import broken_invariants
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.limits import Limits
from pitchpipe.runner.retries import Retries
from pitchpipe.runner.trial import Trial, TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

LIMITS = Limits(trial_concurrency=2, max_trial_number=2, retries=Retries(0))


def two_pausing(runner: TrialRunner) -> tuple[Trial, Trial]:
    """Let two trials run and have both paused; the second one is paused already and shall continue from the first."""
    runner.handle(happened.DispatcherReady(1.0))
    for number in range(2):
        runner.handle(happened.ParametersArrived(1.0, number, '{"parameters": {"x": 1}}'))
    donor, heir = runner.get_trials()
    for trial in (donor, heir):
        runner.handle(happened.AttemptStarted(1.0, trial.trial_id, 1, 4711))
        runner.handle(happened.Reported(2.0, trial.trial_id, 1, "intermediate", 0, "0.5"))
        runner.handle(happened.PauseVerdict(2.0, trial.trial_id, "end of the interval"))
    runner.handle(happened.AttemptEnded(3.0, heir.trial_id, 1, paused=True))
    asked = happened.ResumeRequested(3.0, heir.trial_id, {"x": 2}, donor.trial_id)
    assert copies(runner.handle(asked)) == []
    assert (heir.status, broken_invariants(runner)) == (TrialStatus.PAUSED, [])
    return donor, heir


def copies(effects: list[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, CopyCheckpoint)]


def test_heir_waits_for_the_last_checkpoint_of_its_donor() -> None:
    runner = TrialRunner("test", LIMITS, Ledger(Totals()))
    donor, heir = two_pausing(runner)
    runner.handle(happened.CheckpointSaved(4.0, donor.trial_id, 1, "1-1", 1))
    effects = runner.handle(happened.AttemptEnded(4.0, donor.trial_id, 1, paused=True))
    assert copies(effects) == [CopyCheckpoint("trials/0/checkpoints/1-1", "trials/1/checkpoints/2-0")]
    assert (donor.status, heir.status, heir.is_assigned) == (TrialStatus.PAUSED, TrialStatus.WAITING, True)
    assert broken_invariants(runner) == []


def test_heir_takes_what_there_is_when_its_donor_fails_instead() -> None:
    runner = TrialRunner("test", LIMITS, Ledger(Totals()))
    donor, heir = two_pausing(runner)
    runner.handle(happened.CheckpointSaved(4.0, donor.trial_id, 1, "1-1", 1))
    effects = runner.handle(happened.AttemptEnded(4.0, donor.trial_id, 1, exit_code=1))
    assert (donor.status, heir.is_assigned) == (TrialStatus.FAILED, True)
    assert [each.source for each in copies(effects)] == ["trials/0/checkpoints/1-1"]


def test_heir_still_waits_in_the_runner_of_the_next_manager() -> None:
    first = TrialRunner("test", LIMITS, Ledger(Totals()))
    donor, heir = two_pausing(first)
    runner = TrialRunner("test", LIMITS, Ledger(Totals()))
    runner.restore(first.get_trials(), first.snapshot(), 3.0)
    runner.handle(happened.DispatcherReady(5.0))
    assert heir.status is TrialStatus.PAUSED
    runner.handle(happened.AttemptEnded(6.0, donor.trial_id, 1, paused=True))
    assert heir.is_assigned


def test_heir_of_a_stopping_experiment_ends_without_its_donor() -> None:
    runner = TrialRunner("test", LIMITS, Ledger(Totals()))
    donor, heir = two_pausing(runner)
    runner.handle(happened.StopRequested(4.0))
    runner.handle(happened.AttemptEnded(5.0, donor.trial_id, 1, paused=True))
    assert (heir.status.is_final, donor.status.is_final, runner.is_finished()) == (True, True, True)
