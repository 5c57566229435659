"""The ingredients of the `Auto` tuner: one number or switch each, so that each can be left out and measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Warping:
    """One way to warp the losses: those above `quantile` are compressed; `length_scale` is the prior's median."""

    quantile: float | None = 0.5
    length_scale: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The ingredients of `AutoTuner`; docs/lab/search-quality.md says what each is worth.

    They are not part of the public interface: users do not need them, and they may change. Shares are fractions of the
    suggestions after the initial design.
    """

    design_points: int = 8  # suggestions before the model
    centre_first: bool = True  # start with the middle of every range
    warpings: tuple[Warping, ...] = (Warping(0.5), Warping(0.25), Warping(0.1))
    compare_warpings: bool = True  # use the one with the highest evidence; otherwise they take turns
    ordered_choices: bool = True  # choices between numbers are ordered, too
    shared_names: bool = True  # parameters with one name in different branches share what is learned
    largest_set: int = 250  # results that the model is fitted to
    near_set: int = 150  # the same in the trust region: the nearest to the best
    length_scale_spread: float = 0.8  # of the logarithm, as are the other spreads
    trend: float = 0.0  # of the prior: how much of the targets may be a quadratic function
    near_trend: float = 0.1  # the same in the trust region
    noises: tuple[float, ...] = (1e-3, 1e-2)  # they take turns: exact results, and noisy ones
    noise_spread: float = 2.0
    least_gain: float = 0.5  # where the best results tie: what counts, in steps to the next result
    plateau_share: float = 0.25  # of the results: where as many share the best level, suggestions are random
    model_free_share: float = 0.15  # small changes of the best results
    branch_share: float = 0.12  # the best expected of a branch that was visited less
    nested_only: bool = True  # only branches of choices that have nested parameters
    early_branches: float = 8.0  # divided by the number of suggestions: a higher share of branches at first
    local_share: float = 0.25  # inside the trust region
    late_local_share: float = 0.6  # the same beyond 200 suggestions
    descend_after: int = 200  # suggestions; later ones in the trust region may minimise the expected loss
    random_share_when_stopped: float = 0.25  # approached as more trials are stopped early
    scalarised_share: float = 0.5  # of several objectives: one random weighting of them, not the volume
    beyond: tuple[float, ...] = (
        0.1,
        1.0,
    )  # they take turns: the reference point beyond the front, in its ranges
    failure_model: bool = True  # weigh by the probability that a trial does not fail
    climbers: int = 6  # best results to search around
    climb_rounds: int = 4
