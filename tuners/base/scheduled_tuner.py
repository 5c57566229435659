"""The base class of schedulers, whose members train in stages: they are paused, compared, and continued.

A member runs until it has as many intermediate results as its target, and is paused. So is one that obeys its budget
and ends there. If a script ends before its target, its member is complete.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ...plugins import loss_sign, seed_of
from ...protocol import Parameters, metric_value
from ..tuner import Suggestion
from .explored import NonRepeatingTuner, ready


@dataclass(slots=True, eq=False, kw_only=True)
class Member:
    """One configuration that is trained in stages; `count` is the number of its intermediate results so far."""

    parameters: Parameters
    target: int
    parameter_id: int | None = None
    trial_id: str | None = None
    count: int = 0
    loss: float = math.inf
    source: str | None = None  # the trial whose checkpoint it started from last, if not its own
    began_at: int = 0  # its count at the beginning of this stage
    pauses: bool = False  # at its target
    reports: int = 0  # in this stage
    reported_before: bool = False  # in an earlier stage
    waits: bool = False  # reached its target
    ended: bool = False  # its trial is over
    failed: bool = False
    complete: bool = False  # has no more stages to run


AnyMember = TypeVar("AnyMember", bound=Member)


class ScheduledTuner(NonRepeatingTuner, Generic[AnyMember]):
    """Tracks members; a subclass creates them and decides what happens when one reaches its target."""

    wants_periodical = True
    _stage_is_a_trial = False  # every trial ends by itself at the end of its stage

    def __init__(self, optimize_mode: str, seed: int | None) -> None:
        self._sign = loss_sign(optimize_mode)
        self._rng = np.random.default_rng(seed_of(seed))
        self._running: dict[int, AnyMember] = {}  # by parameter id, until their trials end
        self._continued: deque[AnyMember] = deque()  # to continue as new trials

    # for subclasses to override

    def _new_member(self) -> AnyMember:
        """Make a member, or raise `NoMoreTrialError` if there is none to make now."""
        raise NotImplementedError

    def _is_paused_at(self, member: AnyMember) -> bool:
        """Return whether a member is paused at its target, instead of running to its end."""
        raise NotImplementedError

    def _arrived(self, member: AnyMember) -> None:
        """Handle a member that has reached its target, or whose trial is over."""
        raise NotImplementedError

    def _compare_now(self) -> None:
        """Compare the existing members: no new trial can be made."""
        raise NotImplementedError

    # called by the dispatcher

    def trials_stalled(self) -> None:
        """Compare the existing members; those that need another trial do not get one."""
        for member in self._continued:
            member.complete = member.waits = True
        self._continued.clear()
        self._compare_now()

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Suggestion:
        """Return a member to continue as a new trial, or a new member, with its budget."""
        member = self._next_continued() or self._new_member()
        member.parameter_id, member.ended, member.pauses = parameter_id, False, self._is_paused_at(member)
        self._running[parameter_id] = member
        source, member.trial_id = member.source or member.trial_id, None
        return Suggestion(member.parameters, member.target, source, member.pauses)

    def _next_continued(self) -> AnyMember | None:
        """Return the next member to continue that is still a point of the space."""
        while self._continued:
            member = self._continued.popleft()
            if not ready(self._explored).space.validate(member.parameters):
                return member
            self._left_space(member)
        return None

    def _left_space(self, member: AnyMember) -> None:
        """Complete a member that is no longer a point of the space."""
        member.complete = member.waits = True
        self._arrived(member)

    def receive_intermediate_result(
        self, parameter_id: int, parameters: Any, value: Any, *, trial_job_id: str, sequence: int
    ) -> None:
        """Pause a member that has reached its target."""
        member = self._running.get(parameter_id)
        if member is None:
            return
        member.trial_id, member.count, member.reports = trial_job_id, sequence + 1, member.reports + 1
        if member.waits or member.count < member.target or not member.pauses:
            return
        member.loss, member.waits = self._loss(value), True
        self.pause_trial(trial_job_id, f"has made {member.count} of {member.target} intermediate results")
        self._arrived(member)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Take the final result of a member's trial."""
        member = self._running.get(parameter_id)
        if member is not None:
            member.trial_id = kwargs.get("trial_job_id", member.trial_id)
            member.loss = self._loss(value)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Update the member whose trial ended."""
        member = self._running.pop(parameter_id, None)
        if member is None:
            return
        member.ended, member.failed = True, not success
        if not success:
            member.loss = math.inf
        if member.waits:
            member.complete = success  # it was done before the pause came
            return
        # Counted by stage: a script that saves before it reports repeats a number after each checkpoint.
        stopped_short = not self._stage_is_a_trial and member.reports < member.target - member.began_at
        member.complete = success and stopped_short and (member.reports > 0 or member.reported_before)
        member.waits = True
        self._arrived(member)

    # for subclasses to call

    def _continue(
        self, member: AnyMember, target: int, parameters: Parameters | None = None, source: str | None = None
    ) -> None:
        """Continue a waiting member to its next target, perhaps with new parameters and another checkpoint."""
        member.target, member.waits, member.source = target, False, source
        member.reported_before, member.reports = member.reported_before or member.reports > 0, 0
        member.began_at = member.count
        if parameters is not None:
            member.parameters = parameters
        if member.failed:
            member.trial_id, member.failed = None, False  # it starts over
        if member.ended or member.trial_id is None:
            self._continued.append(member)
            return
        member.pauses = self._is_paused_at(member)
        self.resume_trial(member.trial_id, parameters, source, target, member.pauses)

    def _end(self, member: AnyMember, reason: str) -> None:
        """Stop a waiting member."""
        if not member.ended and member.trial_id is not None:
            self.stop_trial(member.trial_id, reason)
        if member.parameter_id is not None:
            self._running.pop(member.parameter_id, None)

    def _sample(self) -> Parameters:
        explored = ready(self._explored)
        return explored.new_point(lambda: explored.space.sample(self._rng))

    def _loss(self, value: Any) -> float:
        loss = self._sign * metric_value(value)
        return math.inf if math.isnan(loss) else loss
