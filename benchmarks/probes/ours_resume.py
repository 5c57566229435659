"""An experiment with very many trials is stopped and resumed: how soon does its next trial run?"""

import asyncio
import time
from pathlib import Path

from harness import SPACE, answer, options

from pitchpipe.manager.config import ExperimentConfig
from pitchpipe.manager.experiments import create_experiment, resume_experiment
from pitchpipe.manager.folder import ExperimentFolder
from pitchpipe.manager.manager import Manager
from pitchpipe.manager.trial import TrialStatus


def trial(parameters: dict) -> float:
    return parameters["x"]


def run_until(manager: Manager, number: int) -> float:
    """Run until so many trials have succeeded, stop, and tell when it was so far."""
    reached: list[float] = []

    def look() -> None:
        runner = manager.runner
        if runner is not None and runner.counts[TrialStatus.SUCCEEDED] >= number and not reached:
            reached.append(time.perf_counter())
            manager.stop()

    manager.on_tick = look
    asyncio.run(manager.run())
    manager.store.close()
    manager.folder.disown()
    return reached[0]


chosen = options()
data = {
    "search_space": SPACE,
    "tuner": {"name": "Random"},
    "max_trial_number": 2 * chosen.size,
    "trial_concurrency": 2,
    "seed": 1,
    "training_service": {"platform": "local"},
}
config = ExperimentConfig.from_dict(data, needs_command=False)
manager = create_experiment(config, directory=Path.cwd(), function=trial)
folder: ExperimentFolder = manager.folder
began = time.perf_counter()
made = run_until(manager, chosen.size) - began
succeeded = manager.runner.counts[TrialStatus.SUCCEEDED] if manager.runner is not None else 0
began = time.perf_counter()
manager = resume_experiment(folder)
answer(seconds=run_until(manager, succeeded + 1) - began, trials_per_second=succeeded / made)
