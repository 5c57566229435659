"""Effects name the cause of the event that they follow from."""

from __future__ import annotations

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import SendCommand, StartTrial, StopTrial

from .driver import Driver


def test_effects_carry_the_cause_of_their_event() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=2)
    asked = driver.handle(happened.DispatcherReady(1.0))
    started = driver.handle(happened.ParametersArrived(2.0, 0, "{}", cause="reply 1"))
    (trial,) = driver.runner.get_trials()
    stopped = driver.handle(happened.TrialKillRequested(3.0, trial.trial_id, cause="user: kill"))
    assert [(type(effect), effect.cause) for effect in [*asked, *started, *stopped]] == [
        (SendCommand, ""),
        (StartTrial, "reply 1"),
        (StopTrial, "user: kill"),
    ]
