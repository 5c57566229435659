"""A tuner so slow that its checkpoints are worth their cost."""

import random
import time

from pitchpipe import Tuner


class SlowTuner(Tuner):
    """Draws at random, and takes 0.6 s for it."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def update_search_space(self, search_space: dict) -> None:  # type: ignore[type-arg]
        """Ignore the space."""

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, float]:
        time.sleep(0.6)
        return {"x": self.random.random()}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs) -> None:  # type: ignore[no-untyped-def]
        """Learn nothing."""
