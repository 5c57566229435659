"""A tuner of one's own: random points first, then small steps away from the best point found so far."""

from typing import Any

import numpy as np

from pitchpipe import Tuner
from pitchpipe.search_space import SearchSpace


class HillClimber(Tuner):
    """Walks the unit cube that the search space is mapped to, so that every type of parameter works.

    `optimize_mode` and `seed` are filled in from the experiment's `objectives` and `seed` where the config
    does not give them; `starts` and `step` are our own class_args.
    """

    def __init__(
        self, optimize_mode: str = "minimize", seed: int | None = None, starts: int = 8, step: float = 0.1
    ) -> None:
        if optimize_mode not in ("minimize", "maximize"):
            raise ValueError(f"optimize_mode is {optimize_mode!r}; it must be 'minimize' or 'maximize'")
        self.sign = 1.0 if optimize_mode == "minimize" else -1.0
        self.rng = np.random.default_rng(seed)
        self.starts = starts
        self.step = step
        self.results = 0
        self.best_loss = float("inf")
        self.best: dict[str, Any] | None = None

    def update_search_space(self, search_space: Any) -> None:
        """Take the search space; called before anything is asked for."""
        self.space = SearchSpace.parse(search_space, self.constraints)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Give a random point as long as little is known, then a neighbour of the best one."""
        if self.best is None or self.results < self.starts:
            return self.space.sample(self.rng)
        point = self.space.encode(self.best)
        point = np.where(np.isnan(point), self.rng.random(point.shape), point)  # inactive: any value will do
        moved = point + self.rng.normal(0.0, self.step, point.shape)
        return self.space.decode(np.clip(moved, 0.0, 1.0 - 1e-9))

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Remember the parameters when they are the best so far; a dict's `default` is the result."""
        loss = self.sign * float(value["default"] if isinstance(value, dict) else value)
        self.results += 1
        if loss < self.best_loss:  # a NaN is never less
            self.best_loss, self.best = loss, parameters
