"""The memory that the manager needs for finished trials with ten results each, on the simulated executor."""

import asyncio
import gc
import time
from pathlib import Path

from harness import SPACE, answer, options, resident

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.experiment_factory import create_experiment

chosen = options()
memory: dict[int, int] = {}


def simulate(parameters: object) -> SimulatedRun:
    return SimulatedRun(final=parameters["x"], intermediate=[step / 7 for step in range(10)])


def note_memory() -> None:
    runner = manager.runner
    ended = 0 if runner is None else len(runner.trials) - len(runner.live)
    if ended not in memory and ended in (chosen.size // 3, chosen.size):
        gc.collect()
        memory[ended] = resident()


data = {
    "search_space": SPACE,
    "tuner": {"name": "Random"},
    "max_trial_number": chosen.size,
    "trial_concurrency": 20,
    "training_service": {"platform": "local"},
}
clock = VirtualClock(time.time())
manager = create_experiment(
    ExperimentConfig.from_dict(data, needs_command=False),
    directory=Path.cwd(),
    executor=SimulatedTrialExecutor(simulate, clock),
    clock=clock,
)
manager.watch(note_memory)
began = time.perf_counter()
asyncio.run(manager.run())
took = time.perf_counter() - began
early = chosen.size // 3
answer(
    bytes_per_trial=(memory[chosen.size] - memory[early]) / (chosen.size - early),
    trials_per_second=chosen.size / took,
)
