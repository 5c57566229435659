"""The trials that a figure shows for a metric: how far they have come, and how they are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Numbers
from .tables import ExperimentTable, TrialRecord, chosen_places, left_out
from .theme import STATUS_LOOKS, VIOLATES, Look

if TYPE_CHECKING:
    from ...protocol import Objective

_STOPPED = "EARLY_STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """Trials, or families, with their values of a metric, shape (n,), by number; `looks` say how they ended.

    `every` are the values of all trials, those that the table or the figure leaves out included; `count` is how many
    trials these are.
    """

    trials: list[TrialRecord]
    values: Numbers
    looks: NDArray[np.object_]
    every: Numbers
    count: int
    step: int | None

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the trials."""
        return np.array([trial.number for trial in self.trials], dtype=np.int64)

    @property
    def groups(self) -> Mapping[Look, NDArray[np.bool_]]:
        """The trials of each look, as masks, in the order of a legend."""
        order = [*STATUS_LOOKS.values(), VIOLATES]
        found = {look: np.array([one is look for one in self.looks], dtype=bool) for look in order}
        return {look: mask for look, mask in found.items() if mask.any()}

    @property
    def left_out(self) -> str:
        """How many trials are shown, if not all."""
        return left_out(len(self.trials), self.count)

    @property
    def notes(self) -> list[str]:
        """What a figure says below about its trials: how many there are, and where those stand that have not ended."""
        if self.step is not None:
            return [self.left_out, f"every trial at its intermediate result {self.step}"]
        is_stopped = STATUS_LOOKS[_STOPPED] in self.groups
        return [self.left_out, "early-stopped trials are at their last result" if is_stopped else ""]

    @property
    def nothing(self) -> str:
        """Why there is nothing to see, where there is no trial."""
        if self.step is not None:
            return f"No trial has reported its intermediate result {self.step}."
        return "No trial has a finite result yet."

    def where(self, kept: Any) -> Shown:
        """Return some of the trials, by a mask or by their places."""
        places = np.arange(len(self.trials))[kept]
        return Shown(
            trials=[self.trials[place] for place in places.tolist()],
            values=self.values[places],
            looks=self.looks[places],
            every=self.every,
            count=self.count,
            step=self.step,
        )

    def at_most(self, limit: int, goal: Objective) -> Shown:
        """Return at most `limit` trials: the best tenth of these, and others evenly over time."""
        return self.where(np.array(chosen_places(goal.sign * self.values, limit), dtype=np.int64))


def shown_of(table: ExperimentTable, goal: Objective, *, stopped: bool = True) -> Shown:
    """Return the configurations that have a value of a metric; with `stopped` the early-stopped ones as well.

    >>> from pitchpipe.server.figures import example_table
    >>> shown = shown_of(example_table(), example_table().objective())
    >>> {look.name: int(mask.sum()) for look, mask in shown.groups.items()}
    {'succeeded': 48, 'stopped early': 11}
    """
    some = [one for one in table.configurations if stopped or one.status != _STOPPED]
    pairs = [(trial, value) for trial in some if (value := table.value(trial, goal.name)) is not None]
    pairs.sort(key=lambda pair: pair[0].number)
    trials, values = [trial for trial, _ in pairs], np.array([value for _, value in pairs], dtype=np.float64)
    looks = np.empty(len(trials), dtype=object)
    looks[:] = [VIOLATES if table.violates(trial) else STATUS_LOOKS[trial.status] for trial in trials]
    every, count = values, len(trials)
    is_whole = len(table.configurations) == len(table.outcomes)
    if not is_whole and table.step is None and goal.name in table.outcomes.values:
        is_stopped = np.array([trial.status == _STOPPED for trial in trials], dtype=bool)
        ended = table.outcomes.results(goal.name)
        every = np.append(ended, values[is_stopped])
        count = len(ended) + int(is_stopped.any()) * int((table.outcomes.statuses == _STOPPED).sum())
    return Shown(trials=trials, values=values, looks=looks, every=every, count=count, step=table.step)
