"""What must be true of a runner between any two events."""

from __future__ import annotations

from collections import Counter

from pitchpipe.runner.trial import TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

__all__ = ["broken_invariants"]


def broken_invariants(runner: TrialRunner) -> list[str]:
    """Return what is wrong with the runner's state, as sentences."""
    trials, live, slots = runner.trials.values(), runner.live, runner.slots
    assigned = [trial for trial in live.values() if trial.is_assigned]
    ran_before = [trial.attempt > 0 for trial in runner.waiting]
    wrong = []
    if Counter(trial.status for trial in trials) != +runner.counts:
        wrong.append("the counts are not those of the trials")
    if {trial.trial_id for trial in trials if not trial.status.is_final} != set(live):
        wrong.append("live trials are not the trials without a final status")
    if len({trial.slot for trial in assigned}) != len(slots):
        wrong.append("the taken slots are not those of the live trials, one for each")
    if len(slots) > max(runner.limits.trial_concurrency, len(runner.orders())):
        wrong.append("more slots taken than trial_concurrency allows")
    if set(runner._trials.ledger._held) != {
        trial.trial_id for trial in assigned if slots.before(trial) is None
    }:
        wrong.append("resources are not held by those that hold a slot")
    if any(trial.is_assigned for trial in runner.waiting):
        wrong.append("a trial that waits has a slot")
    if len(runner.waiting) + len(assigned) + runner.counts[TrialStatus.PAUSED] != len(live):
        wrong.append("a live trial neither waits, nor runs, nor is paused")
    if ran_before != sorted(ran_before, reverse=True):
        wrong.append("a trial that ran before waits after one that never did")
    if runner.created + runner.requested > (runner.limits.max_trial_number or float("inf")):
        wrong.append("more trials are asked for than max_trial_number allows")
    return wrong
