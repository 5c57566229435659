"""Population-based training: members train side by side; the worst continue from the checkpoints of the best.

Jaderberg et al., Population Based Training of Neural Networks, arXiv 1711.09846, 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ..plugins import as_json, integer, number
from ..protocol import Parameters
from ..search_space import SearchSpace
from .base import Member, ScheduledTuner, ready
from .tuner import NoMoreTrialError, Suggestion

_TRIES = 100


@dataclass(frozen=True, slots=True)
class Legacy:
    """What one of the worst continues with: parameters, the trial whose checkpoint it takes, and its member."""

    parameters: Parameters
    source: str | None
    model: Member | None


class PBTTuner(ScheduledTuner[Member]):
    """Trains `population_size` members in generations of `interval` intermediate results, all at the same pace.

    After each generation the worst `fraction` of the members continue from the checkpoints of some of the best, with
    their parameters varied: each one is drawn again with `resample_probability`, else moved by `factor` of its range
    (by one value where there are few). With `generations` None they train until the scripts end. With
    `all_checkpoint_dir` a generation is a whole trial, as in NNI: the script finds `load_checkpoint_dir` and
    `save_checkpoint_dir` below that folder among its parameters, and `interval` has no effect. Raises
    ValueError for other arguments.

    >>> tuner = PBTTuner(population_size=2, interval=5, seed=1)
    >>> tuner.update_search_space({"lr": {"_type": "loguniform", "_value": [0.001, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(2)]
    [5, 5]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        population_size: int = 10,
        factor: float = 0.2,
        resample_probability: float = 0.25,
        fraction: float = 0.2,
        interval: int = 10,
        generations: int | None = None,
        seed: int | None = None,
        all_checkpoint_dir: str | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._size = integer("population_size", population_size, 2)
        self._factor = number("factor", factor, 0, 1.0)
        self._resample = number("resample_probability", resample_probability, 0, 1.0)
        self._fraction = number("fraction", fraction, 0, 0.5)
        self._interval = integer("interval", interval, 1)
        self._last = math.inf if generations is None else integer("generations", generations, 1)
        self._folder = _folder(all_checkpoint_dir)
        self._stage_is_a_trial = self._folder is not None
        self._generation = 1
        self._members: list[Member] = []
        self._sources: list[int] = []  # of each: the place of the member whose checkpoint it took last

    def _compare_now(self) -> None:
        """Make do with the members that there are."""
        self._size = min(self._size, len(self._members))
        self._look()

    def _new_member(self) -> Member:
        if len(self._members) >= self._size:
            raise NoMoreTrialError("the population is complete")
        member = Member(parameters=self._draw(), target=self._interval)
        self._sources.append(len(self._members))
        self._members.append(member)
        return member

    def _draw(self) -> Parameters:
        return ready(self._explored).space.sample(self._rng)

    def _is_paused_at(self, member: Member) -> bool:
        return self._generation < self._last and not self._stage_is_a_trial

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Suggestion:
        """Return a member that continues as a new trial, or a new member."""
        suggestion = super().generate_parameters(parameter_id, **kwargs)
        if self._folder is None:
            return suggestion
        return Suggestion({**suggestion.parameters, **self._checkpoint_folders(self._running[parameter_id])})

    def _checkpoint_folders(self, member: Member) -> dict[str, str]:
        """Return where a script loads a checkpoint, if there is one, and saves its own; the names are NNI's."""
        own = self._members.index(member)
        source, folder = self._sources[own], self._folder or "."
        return {
            "load_checkpoint_dir": str(PurePath(folder, str(source), str(self._generation - 1))),
            "save_checkpoint_dir": str(PurePath(folder, str(own), str(self._generation))),
        }

    def _arrived(self, member: Member) -> None:
        self._look()

    def _look(self) -> None:
        """Begin the next generation when all members have arrived, unless it was the last."""
        going = [member for member in self._members if not member.complete]
        if len(self._members) < self._size or not going or not all(member.waits for member in self._members):
            return
        if self._generation >= self._last:
            return
        self._note_generation()
        self._generation += 1
        ranked = sorted(self._members, key=lambda member: member.loss)
        count = min(math.ceil(self._fraction * len(ranked)), len(ranked) // 2)
        best = [member for member in ranked[: len(ranked) - count] if member.loss < math.inf][: max(count, 1)]
        # All that failed start over, too: they have no checkpoint to continue from.
        worst = {id(member) for member in ranked[len(ranked) - count :]} | {id(m) for m in ranked if m.failed}
        heirs = [member for member in going if id(member) in worst]
        legacies = [self._legacy(best) for _ in heirs]  # before any parameters change
        self._sources = list(range(len(self._members)))
        for member in going:
            if id(member) not in worst:
                self._continue(member, member.count + self._interval)
        for member, legacy in zip(heirs, legacies, strict=True):
            # A new trial counts from where the checkpoint was saved, a resumed one from its own last result.
            count = legacy.model.count if legacy.model is not None else 0
            reached = count if member.ended else member.count
            self._continue(member, reached + self._interval, legacy.parameters, legacy.source)
            self._take_over(member, legacy)

    def _left_space(self, member: Member) -> None:
        member.parameters = self._draw()
        self._continued.append(member)

    def _take_over(self, member: Member, legacy: Legacy) -> None:
        """Record which member another takes over from."""
        if legacy.model is not None:
            self._sources[self._members.index(member)] = self._members.index(legacy.model)

    def _note_generation(self) -> None:
        """Learn from a finished generation; all its members wait, with the parameters that they had in it."""

    def _legacy(self, best: list[Member]) -> Legacy:
        """Return what one of the worst exploits: varied parameters, a checkpoint, and its progress."""
        if not best:
            return Legacy(self._draw(), None, None)
        model = best[int(self._rng.integers(len(best)))]
        return Legacy(self._explore(model), model.trial_id, model)

    def _explore(self, model: Member) -> Parameters:
        """Return varied parameters for continuing from a member's checkpoint."""
        space = ready(self._explored).space
        if space.validate(model.parameters):
            return self._draw()  # the space has changed
        for _ in range(_TRIES):
            parameters = self._vary(space, model.parameters)
            if not space.violations(parameters):
                return parameters
        return model.parameters

    def _vary(self, space: SearchSpace, parameters: Parameters) -> Parameters:
        """Explore: move every parameter a little in the unit cube, or draw it again."""
        old, fresh = space.encode(parameters), self._rng.random(len(space.parameters))
        steps = np.array(
            [1.0 / p.size if p.size and p.size < 1 / self._factor else self._factor for p in space.parameters]
        )
        moved = np.clip(old + self._rng.choice([-1.0, 1.0], len(old)) * steps, 0.0, 1.0)
        resampled = (self._rng.random(len(old)) < self._resample) | np.isnan(old)
        return space.decode(np.where(resampled, fresh, moved))


def _folder(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"all_checkpoint_dir must be a path, not {as_json(value)}")
