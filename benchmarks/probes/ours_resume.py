"""A large experiment is stopped, or its manager killed, and resumed: how soon does its next trial end?

Its first trials are simulated, which needs no agents; the store holds the same. A killed manager leaves no final
checkpoint of the dispatcher.
"""

import asyncio
import os
import time
from pathlib import Path

from harness import SPACE, answer, options

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.trial import TrialStatus


def trial(parameters: dict) -> float:
    return parameters["x"]


def succeeded(manager: Manager) -> int:
    """Return how many trials have succeeded so far."""
    return 0 if manager.runner is None else manager.runner.counts[TrialStatus.SUCCEEDED]


def make(directory: Path, size: int, tuner: str, killed: bool) -> int:
    """Run an experiment in its own process until `size` trials have succeeded."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    data = {
        "search_space": SPACE,
        "tuner": {"name": tuner},
        "max_trial_number": 2 * size,
        "trial_concurrency": min(32, size // 10),
        "seed": 1,
        "training_service": {"platform": "local"},
    }
    clock = VirtualClock(time.time())
    manager = create_experiment(
        ExperimentConfig.from_dict(data, needs_command=False),
        directory=directory,
        experiment_id="made",
        function=trial,
        executor=SimulatedTrialExecutor(lambda parameters: SimulatedRun(final=parameters["x"]), clock),
        clock=clock,
    )

    def look() -> None:
        if succeeded(manager) >= size:
            if killed:
                os._exit(0)
            manager.stop()

    manager.watch(look)
    asyncio.run(manager.run())
    manager.store.close()
    manager.folder.disown()
    os._exit(0)


def resume(directory: Path) -> float:
    """Return the seconds from here to the end of the next trial."""
    from pitchpipe.store.folder import ExperimentFolder

    began = time.perf_counter()
    manager = resume_experiment(ExperimentFolder.find(directory, "made"))
    before: list[int] = []
    reached: list[float] = []

    def look() -> None:
        before.append(succeeded(manager))
        if before[-1] > before[0] and not reached:
            reached.append(time.perf_counter())
            manager.stop()

    manager.watch(look)
    asyncio.run(manager.run())
    manager.store.close()
    manager.folder.disown()
    return reached[0] - began


chosen = options(tuner="Random", ending="stopped")
began = time.perf_counter()
if make(Path.cwd(), chosen.size, chosen.tuner, chosen.ending == "killed") != 0:
    raise SystemExit("the experiment could not be made")
made = time.perf_counter() - began
answer(seconds=resume(Path.cwd()), trials_per_second=chosen.size / made)
