"""Families: the trials of one configuration, which is run several times because its result is noisy.

The tuner proposes one configuration and learns one result, the mean. A family is known by the number of its first
trial; each trial's record says which repeat of which family it is, and the first trial's how the family ended. So the
trials in the store restore all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ..numerics import is_clearly_worse, mean
from ..protocol import Objective, dumps, family_end_of, repeat_of, repeated, with_family_end
from .trial import Trial, TrialStatus

_BEFORE_THE_RACE = 2  # repeats of each configuration


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often each configuration is run."""

    count: int = 1
    seeds: Sequence[int] = ()  # of the first repeats; the others have none
    race: bool = True  # configurations that are clearly worse than the best get fewer repeats

    @property
    def fewest(self) -> int:
        """How many repeats every configuration gets."""
        return min(_BEFORE_THE_RACE, self.count) if self.race else self.count


class FamilyEnd(StrEnum):
    """How a family ended, as the record of its first trial says."""

    COMPLETE = "complete"  # all repeats have ended, and some succeeded
    RACED = "raced"  # clearly worse than the best: it gets no further repeats
    STOPPED = "stopped"  # a repeat was stopped early
    FAILED = "failed"  # none of its repeats succeeded
    REOPENED = "reopened"  # it had ended, and a failed repeat is retried


class Family:
    """The trials of one configuration, by the number of their repeat."""

    def __init__(self, first: Trial) -> None:
        self.first = first  # the oldest trial, even after another one has replaced it in `trials`
        # The last trial of each repeat: it replaces one that the end of the experiment cancelled.
        self.trials: dict[int, Trial] = {}
        end = family_end_of(first.record)
        # With an `end`, no repeat is live and none will be added. The first trial's record has both for a restart.
        # If it is late, the tuner has received its end already, and a failed repeat is retried since then.
        self.is_late = end == FamilyEnd.REOPENED
        self.end = None if end is None or self.is_late else FamilyEnd(end)

    @property
    def number(self) -> int:
        """The number of its first trial."""
        return self.first.sequence_id

    @property
    def ended(self) -> list[Trial]:
        """The repeats that have ended, except those that the end of the experiment cancelled."""
        cancelled = TrialStatus.SYS_CANCELED
        return [
            trial for trial in self.trials.values() if trial.status.is_final and trial.status is not cancelled
        ]

    @property
    def results(self) -> list[tuple[float, ...]]:
        """The values of the repeats that succeeded, in the order of the repeats."""
        return [
            trial.values
            for _, trial in sorted(self.trials.items())
            if trial.status is TrialStatus.SUCCEEDED and trial.values is not None
        ]

    @property
    def means(self) -> tuple[float, ...] | None:
        """The mean of each metric over the repeats that succeeded; None without one."""
        means = tuple(map(mean, zip(*self.results, strict=True)))
        return None if not means or any(map(math.isnan, means)) else means

    @property
    def is_live(self) -> bool:
        """Whether a repeat has not ended."""
        return any(not trial.status.is_final for trial in self.trials.values())

    @property
    def was_stopped(self) -> bool:
        """Whether a repeat was stopped early."""
        return any(trial.status is TrialStatus.EARLY_STOPPED for trial in self.trials.values())

    @property
    def outcome(self) -> Trial | None:
        """The first trial with the means as its values; None without a result."""
        if self.end in (None, FamilyEnd.STOPPED) or (means := self.means) is None:
            return None
        return replace(self.first, values=means)

    @property
    def status(self) -> TrialStatus:
        """How the tuner sees a family that has ended."""
        if self.was_stopped:
            return TrialStatus.EARLY_STOPPED
        if self.means is not None:
            return TrialStatus.SUCCEEDED
        killed = TrialStatus.USER_CANCELED
        return killed if all(trial.status is killed for trial in self.ended) else TrialStatus.FAILED


class Families:
    """All families of one experiment; decides which repeat is next and when a family ends."""

    def __init__(self, repeats: Repeats, objectives: Sequence[Objective]) -> None:
        self.repeats = repeats
        self.fewest = repeats.fewest
        self.are_on = repeats.count > 1  # configurations are repeated
        self._names = tuple(objective.name for objective in objectives)
        placed = tuple(enumerate(objectives))
        self._goals = tuple((place, objective.sign) for place, objective in placed if objective.direction)
        self._limits = tuple((place, objective) for place, objective in placed if objective.is_limited)
        # By the number of the first trial, in the order in which they began. No trial is in two families.
        self._all: dict[int, Family] = {}
        self._open: dict[int, Family] = {}  # those of `_all` without an end, and no others

    def __iter__(self) -> Iterator[Family]:
        return iter(self._all.values())

    def of(self, trial: Trial) -> Family | None:
        """Return the family of a trial; None if it is not repeated."""
        place = self._place_of(trial)
        return None if place is None else self._all.get(place[0])

    def begins_with(self, trial: Trial) -> bool:
        """Return whether a trial is the first of its configuration, or the only one."""
        family = self.of(trial)
        return family is None or family.first is trial

    def first_record(self, record: str, number: int) -> str:
        """Return the record of the first trial of a new configuration, which gets this number."""
        return self._record(record, number, 0) if self.are_on else record

    def _record(self, record: str, family: int, repeat: int) -> str:
        seeds = self.repeats.seeds
        return repeated(record, family, repeat, seeds[repeat] if repeat < len(seeds) else None)

    def add(self, trial: Trial) -> None:
        """Add a trial, new or restored, to its family; the first trial of a family comes first."""
        place = self._place_of(trial)
        if place is None:
            return
        number, repeat = place
        family = self._all.get(number)
        if family is None:
            family = self._all[number] = Family(trial)
            if family.end is None:
                self._open[family.number] = family
        family.trials[repeat] = trial

    def _place_of(self, trial: Trial) -> tuple[int, int] | None:
        """Return the number of a trial's family and that of its repeat."""
        return repeat_of(trial.record) if self.are_on else None

    def reopen(self, trial: Trial) -> Trial | None:
        """Let a family continue whose failed repeat is retried; return its first trial if it had ended."""
        family = self.of(trial)
        if family is None or family.end is None:
            return None
        family.is_late, family.end = True, None
        self._open[family.number] = family
        family.first.record = with_family_end(family.first.record, FamilyEnd.REOPENED)
        return family.first

    def take_ended(self, rivals: Iterable[Trial]) -> list[Family]:
        """Return the families that end now; `rivals` are the best outcomes. Their records say how they ended."""
        best = self._losses_of(rivals)
        ended = []
        for family in [*self._open.values()]:
            if (end := self._end_of(family, best)) is not None:
                family.end = end
                family.first.record = with_family_end(family.first.record, end)
                del self._open[family.number]
                ended.append(family)
        return ended

    def _end_of(self, family: Family, best: _Losses) -> FamilyEnd | None:
        if family.is_live:
            return None
        if family.was_stopped:
            return FamilyEnd.STOPPED
        ended = len(family.ended)
        if ended >= self.fewest and family.means is None:
            return FamilyEnd.FAILED
        if ended >= self.repeats.count:
            return FamilyEnd.COMPLETE
        return FamilyEnd.RACED if self._is_lost(family, best) else None

    def take_next(self, rivals: Iterable[Trial]) -> tuple[int | str | None, str] | None:
        """Return the parameter id and the record of the next repeat: of the oldest family that may continue."""
        best = self._losses_of(rivals)
        for family in self._open.values():
            repeat = self._missing(family)
            if repeat is not None and self._may_run(family, repeat, best):
                first = family.first
                return first.parameter_id, self._record(first.record, family.number, repeat)
        return None

    def _missing(self, family: Family) -> int | None:
        """Return the first repeat that never ran, or that the end of the experiment cancelled."""
        for repeat in range(self.repeats.count):
            trial = family.trials.get(repeat)
            if trial is None or trial.status is TrialStatus.SYS_CANCELED:
                return repeat
        return None

    def _may_run(self, family: Family, repeat: int, best: _Losses) -> bool:
        if family.was_stopped:
            return False
        if repeat < self.fewest:
            return True
        has_begun = len(family.ended) >= self.fewest and family.means is not None
        return has_begun and not self._is_lost(family, best)

    def _is_lost(self, family: Family, best: _Losses) -> bool:
        """Return whether a rival, all of which keep the limits, is clearly better in every objective or in a limit."""
        if not self.repeats.race or len(family.ended) < self.fewest or not family.results:
            return False
        own = self._losses(family)
        if any(all(map(is_clearly_worse, own, other)) for other in best):
            return True
        return bool(best) and any(is_clearly_worse(excesses, [0.0]) for excesses in self._excesses(family))

    def _losses_of(self, rivals: Iterable[Trial]) -> _Losses:
        return [
            self._losses(self._all[rival.sequence_id]) for rival in rivals if rival.sequence_id in self._all
        ]

    def _losses(self, family: Family) -> list[list[float]]:
        """Return the losses of a family's repeats, by objective."""
        return [[sign * values[place] for values in family.results] for place, sign in self._goals]

    def _excesses(self, family: Family) -> list[list[float]]:
        """Return by how much a family's repeats exceed the limits, by limit."""
        return [
            [objective.excess_of(values[place]) for values in family.results]
            for place, objective in self._limits
        ]

    def report(self, family: Family) -> tuple[str, list[str]] | None:
        """Return the mean as a trial would report it, and the repeats' results likewise; None without a result."""
        outcome = family.outcome
        if outcome is None or outcome.values is None:
            return None
        return self._report_of(outcome.values), [self._report_of(values) for values in family.results]

    def _report_of(self, values: Sequence[float]) -> str:
        names = self._names
        return dumps(values[0] if len(names) == 1 else dict(zip(names, values, strict=True)))


_Losses = Sequence[Sequence[Sequence[float]]]  # of families, by objective, of each repeat
