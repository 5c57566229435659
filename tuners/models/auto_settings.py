"""What the `Auto` tuner is made of: one number or switch per ingredient, so that each can be left out and measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at the results: losses above `quantile` are compressed, `length_scale` is the prior's median."""

    quantile: float | None = 0.5
    length_scale: float = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """The ingredients of :class:`~pitchpipe.tuners.auto.AutoTuner`; docs/notes/search-quality.md says their worth.

    These are no part of the public interface: users need none of them, and they may change. Shares are those of all
    suggestions after the design.
    """

    design_points: int = 8  # suggestions before the model
    centre_first: bool = True  # begin with the middle of every range
    views: tuple[View, ...] = (View(0.5), View(0.25), View(0.1))
    compare_views: bool = True  # use the view with the highest evidence; otherwise they take turns
    ordered_choices: bool = True  # choices between numbers have an order as well
    shared_names: bool = True  # parameters with one name in different branches share what is learned
    largest_set: int = 250  # results that the model is fitted to
    near_set: int = 150  # the same in the trust region: those nearest to the best
    length_scale_spread: float = 0.8  # of the logarithm, and so the others
    trend: float = 0.0  # of the prior: how much of the targets may be a quadratic function ...
    near_trend: float = 0.1  # ... and the same in the trust region
    noises: tuple[float, ...] = (1e-3, 1e-2)  # they take turns: trust in single results, and doubt
    noise_spread: float = 2.0
    model_free_share: float = 0.15  # small changes of the best results
    branch_share: float = 0.12  # the best that is expected of a branch that was visited less
    nested_only: bool = True  # no branches of choices that nothing is nested in
    early_branches: float = 8.0  # over the number of suggestions: a higher share of these at first
    local_share: float = 0.25  # inside the trust region
    late_local_share: float = 0.6  # the same beyond 200 suggestions
    random_share_when_stopped: float = 0.25  # the more trials are stopped early, the nearer to this
    climbers: int = 6  # best results whose surroundings are searched
    climb_rounds: int = 4
