"""Asynchronous successive halving that pauses and promotes: no trial waits for a rung to fill.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020. This is the form of the paper; the one
that stops trials is the assessor of the same name. New configurations come from another tuner, which receives all
results; with one that learns, this is a model-based ASHA (Klein et al., Model-based Asynchronous Hyperparameter and
Neural Architecture Search, arXiv 2003.10865, 2020).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plugins import as_json, integer
from ..protocol import Json
from .base import Member, ScheduledTuner
from .registry import REGISTRY


@dataclass(slots=True, eq=False, kw_only=True)
class _Climber(Member):
    """A member, the rung that it trains for or waits at, and its parameter id in the tuner that proposed it."""

    rung: int = 0
    proposal: int = 0


@dataclass(slots=True)
class _Rung:
    """The members that reached a budget, as (loss, order of arrival), ascending, and those that wait there."""

    budget: int
    results: list[tuple[float, int]] = field(default_factory=list)
    waiting: list[tuple[float, int, _Climber]] = field(default_factory=list)  # a heap

    def arrive(self, member: _Climber) -> None:
        """Take a member that has reached the budget; a failed or complete one is not promoted."""
        place = (member.loss, len(self.results))
        insort(self.results, place)
        if not (member.failed or member.complete):
            heapq.heappush(self.waiting, (*place, member))

    def take_promotable(self, eta: int) -> _Climber | None:
        """Take out the best waiting member if it is among the best 1 / eta (Li et al. 2020, algorithm 2)."""
        if not self.waiting:
            return None
        rank = bisect_left(self.results, self.waiting[0][:2])
        return heapq.heappop(self.waiting)[-1] if rank < len(self.results) // eta else None


class ASHATuner(ScheduledTuner[_Climber]):
    """Trains new configurations on a small budget, and promotes from each rung the best 1 / `eta` so far.

    Budgets are intermediate results: `grace_period`, `grace_period` eta, and so on, and `R` for a full run. At
    the end of a rung a trial is paused. Whenever a rung has grown, those that wait there and are now among its best
    1 / `eta` continue from their checkpoints; other free places go to new configurations. These come from the tuner
    named `tuner`, whose class_args are `tuner_args`, `optimize_mode` and `seed`. Raises ValueError for
    other arguments.

    >>> tuner = ASHATuner(R=9, eta=3, tuner="Random", seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(3)]
    [1, 1, 1]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        R: int = 60,
        eta: int = 3,
        grace_period: int = 1,
        tuner: str = "Auto",
        tuner_args: Mapping[str, Json] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        R, self._eta = integer("R", R, 1), integer("eta", eta, 2)
        budget = integer("grace_period", grace_period, 1)
        self._rungs: list[_Rung] = []
        while budget < R:
            self._rungs.append(_Rung(budget))
            budget *= self._eta
        self._rungs.append(_Rung(R))
        self._source = REGISTRY.create_inner(tuner, tuner_args, optimize_mode=optimize_mode, seed=seed)
        if isinstance(self._source, ScheduledTuner):
            raise ValueError(
                f"tuner must be the name of a tuner that does not run trials in stages itself, not {as_json(tuner)}"
            )
        self._proposals = 0

    def update_constraints(self, constraints: Sequence[str]) -> None:
        """Take the constraints of the search space that comes next."""
        super().update_constraints(constraints)
        self._source.update_constraints(constraints)

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; running members continue."""
        super().update_search_space(search_space)
        self._source.update_search_space(search_space)

    def import_data(self, data: list[Any]) -> None:
        """Hand results measured elsewhere to the tuner that proposes."""
        self._source.import_data(data)

    def receive_intermediate_result(
        self, parameter_id: int, parameters: Any, value: Any, *, trial_job_id: str, sequence: int
    ) -> None:
        """Pass the result on to the tuner that proposed the parameters; pause a member that has reached its target."""
        member = self._running.get(parameter_id)
        if member is not None:
            self._pass_intermediate(member, value, sequence, trial_job_id)
        super().receive_intermediate_result(
            parameter_id, parameters, value, trial_job_id=trial_job_id, sequence=sequence
        )

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Take the final result of a member's trial; if the trial only obeyed its budget, it is an intermediate one."""
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        member = self._running.get(parameter_id)
        if member is None:
            return
        if member.rung == len(self._rungs) - 1:
            self._source.receive_trial_result(member.proposal, member.parameters, value)
        elif member.reports == 0:
            self._pass_intermediate(member, value, member.target - 1, str(member.trial_id))

    def _pass_intermediate(self, member: _Climber, value: Any, sequence: int, trial_job_id: str) -> None:
        if self._source.wants_periodical:
            self._source.receive_intermediate_result(
                member.proposal, member.parameters, value, trial_job_id=trial_job_id, sequence=sequence
            )

    def trial_stopped(self, parameter_id: int) -> None:
        """Pass on that the trial was stopped and did not fail."""
        member = self._running.get(parameter_id)
        if member is not None:
            self._source.trial_stopped(member.proposal)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Update the member whose trial ended, and pass the end on."""
        member = self._running.get(parameter_id)
        if member is not None and (not success or member.rung == len(self._rungs) - 1):
            self._source.trial_end(member.proposal, success)
        super().trial_end(parameter_id, success)

    def _new_member(self) -> _Climber:
        self._proposals += 1
        parameters = self._source.generate_parameters(self._proposals)
        return _Climber(parameters=parameters, target=self._rungs[0].budget, proposal=self._proposals)

    def _is_paused_at(self, member: _Climber) -> bool:
        return member.rung < len(self._rungs) - 1

    def _arrived(self, member: _Climber) -> None:
        rung = self._rungs[member.rung]
        rung.arrive(member)
        if rung is self._rungs[-1]:
            return
        while (promoted := rung.take_promotable(self._eta)) is not None:
            self._promote(promoted)

    def _compare_now(self) -> None:
        """Promote the best of the highest rung with waiting members, so that one gets the full budget."""
        for rung in reversed(self._rungs[:-1]):
            if rung.waiting:
                if not self._rungs[-1].results:
                    self._promote(heapq.heappop(rung.waiting)[-1])
                return

    def _promote(self, member: _Climber) -> None:
        member.rung += 1
        self._continue(member, self._rungs[member.rung].budget)
