"""A tuner whose proposals are never the same twice: no replay brings it to the state in which it was."""

import os

from slow_tuner import SlowTuner


class FickleTuner(SlowTuner):
    """Draws from what no seed determines."""

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, float]:
        return {"x": int.from_bytes(os.urandom(4), "big") / 2**32}
