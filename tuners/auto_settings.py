"""What the `Auto` tuner is made of: one number or switch per ingredient, so that each can be left out and measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The ingredients of :class:`~pitchpipe.tuners.auto.AutoTuner`; docs/search-quality.md says what each is worth.

    These are no part of the public interface: users need none of them, and they may change.
    """

    design_points: int = 8  # suggestions before the model
    centre_first: bool = True  # begin with the middle of every range
    design_spread: float = 1.0  # of the design around the middle; 1 is the whole range
    output_transform: str = "logmed"
    model_free_share: float = 0.15
    random_candidates: int = 400
    climbers: int = 6  # best results whose surroundings are searched
    climb_rounds: int = 4
    ordered_choices: bool = True  # choices between numbers have an order as well
    shared_names: bool = True  # parameters with one name in different branches share what is learned
    largest_set: int = 250  # results that the model is fitted to
    length_scale: float = 0.5
    length_scale_spread: float = 0.8
    noise: float = 1e-3
    noise_spread: float = 2.0
    branch_visits: int = 2  # each option of a nested choice is tried so often ...
    branch_deadline: int = 40  # ... before so many results
