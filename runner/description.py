"""The state of an experiment as a few lines of text for people."""

from __future__ import annotations

from collections.abc import Iterator

from .trial import Trial
from .trial_runner import TrialRunner
from .verdicts import TUNE_SOMETHING, TUNES_NOTHING

_MOST = 20


def describe(runner: TrialRunner) -> str:
    """Return the state of the experiment, how many trials have each status, and the first 20 live trials."""
    return "\n".join(_lines(runner))


def warnings_of(runner: TrialRunner) -> Iterator[str]:
    """Yield the present warnings of the runner, as sentences: what the scripts do wrong, silent agents."""
    if runner.unread_result:
        yield f"results that are not numbers are kept, but neither assessor nor tuner gets them: {runner.unread_result}"
    if runner.tunes_nothing:
        yield f"{TUNES_NOTHING}: {TUNE_SOMETHING}"
    for agent in runner.silent_agents:
        runs = [trial for trial in runner.live.values() if trial.agent == agent and trial.is_assigned]
        what = f"trial {runs[0].sequence_id} runs there" if runs else "it gets nothing new to do"
        yield f"agent {agent} gives no sign of life: {what}"


def _lines(runner: TrialRunner) -> Iterator[str]:
    most = runner.limits.max_trial_number
    of = "" if most is None else f" of {most}"
    yield f"experiment {runner.experiment_id} is {runner.status}" + (
        f": {runner.reason}" if runner.reason else ""
    )
    yield f"{runner.created}{of} trials made, {runner.requested} asked for"
    yield f"{len(runner.orders())} of {runner.limits.trial_concurrency} slots taken"
    yield (
        ", ".join(f"{count} {status}" for status, count in sorted(runner.counts.items()) if count)
        or "no trials"
    )
    live = list(runner.live.values())
    yield from (_line(runner, trial) for trial in live[:_MOST])
    if len(live) > _MOST:
        yield f"... and {len(live) - _MOST} more"


def _line(runner: TrialRunner, trial: Trial) -> str:
    if trial in runner.waiting:
        return f"{trial.trial_id} {trial.status}: {runner.why_waiting(trial)}"
    where = f" on agent {trial.agent}" if trial.is_assigned else ""
    return f"{trial.trial_id} {trial.status}{where}, attempt {trial.attempt}, {trial.next_sequence} results"
