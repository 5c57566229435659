"""Function trials of Ray Tune that do nothing but report, two at once, with reused actors."""

import gc
import time
from pathlib import Path

from harness import answer, files_in, options, resident
from ray import tune
from tune_trials import fit

chosen = options(reports=0)
reports = chosen.reports
memory: dict[int, int] = {}


def trial(config: dict) -> None:
    for _ in range(reports - 1):
        tune.report({"loss": config["x"], "at": time.time()})
    tune.report({"loss": config["x"], "at": time.time()})


class Memory(tune.Callback):
    """Notes the driver's memory early and at the end."""

    ended = 0

    def on_trial_complete(self, iteration: int, trials: list, trial: object, **info: object) -> None:
        del iteration, trials, trial, info
        self.ended += 1
        if self.ended in (chosen.size // 5, chosen.size):
            gc.collect()
            memory[self.ended] = resident()


results = fit(trial, chosen.size, callbacks=[Memory()])
times = [result.metrics["at"] for result in results]
answer(
    trials_per_second=(len(times) - 1) / (max(times) - min(times)),
    bytes_per_trial=(memory[chosen.size] - memory[chosen.size // 5]) / (chosen.size - chosen.size // 5),
    files_per_trial=files_in(Path.cwd() / "tune") / chosen.size,
)
