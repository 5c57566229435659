"""The common half of Hyperband and population-based training: members that are paused, compared, and go on.

A member runs until it has made as many intermediate results as its target says; then it is paused. So is one that
obeys its budget and ends there by itself. A script that ends before its target has done all it can: its member is
complete.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...protocol import metric_value
from ...search_space import SearchSpace
from .arguments import one_of, seed_of
from .explored import Explored, measurements, ready
from .requests import Suggestion
from .tuner import Tuner


@dataclass(slots=True, eq=False)
class Member:
    """One configuration that is trained in stages; `count` are its intermediate results so far."""

    parameters: dict[str, Any]
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
    waits: bool = False  # has it reached its target?
    ended: bool = False  # is its trial over?
    failed: bool = False
    complete: bool = False  # has it done all it can?


class ScheduledTuner(Tuner):
    """Keeps track of members; a subclass makes new ones and says what happens when one has arrived at its target."""

    wants_periodical = True
    _stage_is_a_trial = False  # does every trial end by itself at the end of its stage?

    def __init__(self, optimize_mode: str, seed: int | None) -> None:
        one_of("optimize_mode", optimize_mode, ("minimize", "maximize"))
        self._sign = 1.0 if optimize_mode == "minimize" else -1.0
        self._rng = np.random.default_rng(seed_of(seed))
        self._explored: Explored | None = None
        self._running: dict[int, Member] = {}  # by parameter id, until their trials have ended
        self._continued: deque[Member] = deque()  # go on as new trials

    # what a subclass says

    def _new_member(self) -> Member:
        """Make a member; raise NoMoreTrialError when there is none to make now."""
        raise NotImplementedError

    def _is_paused_at(self, member: Member) -> bool:
        """Whether a member is paused at its target, or left to run to its end."""
        raise NotImplementedError

    def _arrived(self, member: Member) -> None:
        """A member has reached its target, or its trial is over."""
        raise NotImplementedError

    def _compare_now(self) -> None:
        """Go on with the members that there are: no new trial can be made any more."""
        raise NotImplementedError

    # what it is told

    def trials_stalled(self) -> None:
        """Compare what there is: members that would need another trial get none."""
        for member in self._continued:
            member.complete = member.waits = True
        self._continued.clear()
        self._compare_now()

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; members that run go on."""
        self._explored = Explored(SearchSpace.parse(search_space, self.constraints), self._explored)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Suggestion:
        """Return a member that goes on as a new trial, or a new member, with its budget."""
        member = self._next_continued() or self._new_member()
        member.parameter_id, member.ended, member.pauses = parameter_id, False, self._is_paused_at(member)
        self._running[parameter_id] = member
        source, member.trial_id = member.source or member.trial_id, None
        return Suggestion(member.parameters, member.target, source, member.pauses)

    def _next_continued(self) -> Member | None:
        """Return the next that goes on as a new trial and is a point of the space, which may have changed."""
        while self._continued:
            member = self._continued.popleft()
            if not ready(self._explored).space.validate(member.parameters):
                return member
            self._left_space(member)
        return None

    def _left_space(self, member: Member) -> None:
        """See what becomes of a member that would go on as a new trial and is no point of the space any more."""
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
        """See what the end of a trial means for its member."""
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

    def import_data(self, data: list[Any]) -> None:
        """Remember configurations that were measured before, so that new members are others."""
        explored = ready(self._explored)
        for parameters, _ in measurements(explored, data):
            explored.add(parameters)

    # what a subclass lets members do

    def _let_go_on(
        self, member: Member, target: int, parameters: dict[str, Any] | None = None, source: str | None = None
    ) -> None:
        """Let a member that waits go on to its next target, perhaps with other parameters and another's checkpoint."""
        member.target, member.waits, member.source = target, False, source
        member.reported_before, member.reports = member.reported_before or member.reports > 0, 0
        member.began_at = member.count
        if parameters is not None:
            member.parameters = parameters
        if member.failed:
            member.trial_id, member.failed = None, False  # it begins anew
        if member.ended or member.trial_id is None:
            self._continued.append(member)
            return
        member.pauses = self._is_paused_at(member)
        self.resume_trial(member.trial_id, parameters, source, target, member.pauses)

    def _end(self, member: Member, reason: str) -> None:
        """Let a member that waits go no further."""
        if not member.ended and member.trial_id is not None:
            self.stop_trial(member.trial_id, reason)
        if member.parameter_id is not None:
            self._running.pop(member.parameter_id, None)

    def _sample(self) -> dict[str, Any]:
        explored = ready(self._explored)
        return explored.new_point(lambda: explored.space.sample(self._rng))

    def _loss(self, value: Any) -> float:
        loss = self._sign * metric_value(value)
        return math.inf if math.isnan(loss) else loss
