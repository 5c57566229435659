"""The timers of an open experiment: what they post, and when they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.hooks import Hooks
from pitchpipe.manager.timers import ExperimentTimers
from pitchpipe.runner import events as happened
from pitchpipe.runner.experiment_state import Limits
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.trial_runner import TrialRunner


class RealTime(SimulatedTrialExecutor):
    """An executor whose clock advances by itself."""

    has_virtual_clock = False


def timers_of(
    runner: TrialRunner, grace: float, post: Callable[[Sequence[happened.Event]], None]
) -> ExperimentTimers:
    clock = VirtualClock(1000.0)
    executor = RealTime(lambda parameters: SimulatedRun(0.0), clock)
    return ExperimentTimers(
        runner=runner,
        executor=executor,
        hooks=Hooks(),
        clock=clock,
        grace=grace,
        post=post,
        guarded=lambda act: act(),
    )


async def posted(runner: TrialRunner) -> list[happened.Event]:
    """Set the timers and return the events that come first."""
    done = asyncio.get_running_loop().create_future()

    def post(events: Sequence[happened.Event]) -> None:
        if not done.done():
            done.set_result(list(events))

    timers = timers_of(runner, -2.0, post)  # the margins aside, trials are given up at once
    timers.set()
    try:
        return await done
    finally:
        timers.cancel()


def running(limits: Limits) -> TrialRunner:
    runner = TrialRunner("test", limits, Ledger(Totals()))
    runner.handle(happened.DispatcherReady(1000.0))
    runner.handle(happened.ParametersArrived(1000.0, 0, '{"parameters": {"x": 1}}'))
    return runner


def test_deadline_is_a_tick() -> None:
    [event] = asyncio.run(posted(running(Limits(max_experiment_duration=0.0))))
    assert (type(event), event.cause) == (happened.Tick, "timer: deadline")


def test_trial_that_does_not_end_in_its_grace_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """First its agent is killed, so that what it has reported is read when it is gone."""
    monkeypatch.setattr("pitchpipe.manager.timers._KILL_MARGIN", 0.0)
    killed: list[str] = []
    monkeypatch.setattr(
        RealTime, "kill_agents", lambda self, orders: killed.extend(o.trial_id for o in orders)
    )
    runner = running(Limits())
    runner.handle(happened.StopRequested(1001.0))
    [trial] = runner.get_trials()
    [event] = asyncio.run(posted(runner))
    assert isinstance(event, happened.AttemptEnded)
    assert (event.trial_id, event.error) == (trial.trial_id, "did not end when killed")
    assert event.cause == "timer: end of the grace"
    assert killed == [trial.trial_id]


def test_trial_is_not_given_up_within_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = running(Limits())
    runner.handle(happened.StopRequested(1001.0))

    async def delays() -> list[float]:
        found: list[float] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda delay, *_: found.append(delay))
        timers_of(runner, 60.0, lambda events: None).set()
        return found

    [delay] = asyncio.run(delays())
    assert delay > 60.0
