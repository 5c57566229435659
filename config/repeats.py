"""Repeats of each configuration, for trials whose results are noisy: the field, and what users should know about it."""

from __future__ import annotations

from pydantic import Field

from ..runner import Repeats
from .sections import Section

__all__ = ["RepeatsConfig", "repeats_note", "warnings_about_repeats"]


class RepeatsConfig(Section):
    """How often each configuration is run, and on what conditions."""

    count: int = Field(ge=1, description="How often each configuration is run.")
    seed: bool = Field(
        default=True,
        description="Give each repeat a seed: `pitchpipe.get_seed()`, or the variable `PITCHPIPE_SEED`. Repeat n has"
        " the same seed in every configuration.",
    )
    race: bool = Field(
        default=True,
        description="Give up a configuration that is clearly worse than the best after 2 or more repeats.",
    )

    @property
    def fewest(self) -> int:
        """How many repeats every configuration gets, if none fails or is stopped."""
        return Repeats(self.count, race=self.race).fewest


def repeats_note(repeats: RepeatsConfig | None, most: int | None) -> str:
    """Return a sentence about the repeats, for the start of a run; `most` is the largest number of trials.

    It is empty if each configuration runs once.

    >>> repeats_note(RepeatsConfig(count=5, race=False), 20)
    '5 repeats of each configuration, with a seed for each; max_trial_number counts trials: 20 are 4 configurations'
    """
    if repeats is None or repeats.count == 1:
        return ""
    seeds = ", with a seed for each" if repeats.seed else ""
    note = f"{repeats.count} repeats of each configuration{seeds}"
    if repeats.fewest < repeats.count:
        note += f", fewer of one that is clearly worse than the best (at least {repeats.fewest})"
    if most is None:
        return note
    least, at_best = most // repeats.count, -(-most // repeats.fewest)
    number = str(least) if least == at_best else f"{least} to {at_best}"
    return f"{note}; max_trial_number counts trials: {most} are {number} configurations"


def warnings_about_repeats(repeats: RepeatsConfig | None, most: int | None) -> list[str]:
    """Return what is probably a mistake: one repeat, or fewer trials than repeats.

    >>> warnings_about_repeats(RepeatsConfig(count=1), 20)
    ['repeats has no effect: with count 1 each configuration runs once']
    """
    if repeats is None:
        return []
    if repeats.count == 1:
        return ["repeats has no effect: with count 1 each configuration runs once"]
    if most is not None and most < repeats.count:
        return [f"max_trial_number ({most}) counts trials: no configuration gets its {repeats.count} repeats"]
    return []
