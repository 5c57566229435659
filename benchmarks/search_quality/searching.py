"""One search: an optimiser on a task, one trial after the other or several at a time on a simulated clock."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypervolume import Front
from optimisers import Optimiser
from tasks import Task

__all__ = ["Search", "search"]


@dataclass(frozen=True)
class Search:
    """`truths` holds the noise-free value of the incumbent after each trial; `seconds` the CPU time of each proposal.

    The incumbent is the trial with the lowest reported value: that is all that a user sees. With several objectives,
    minus the hypervolume of all trials takes the place of its value.
    """

    truths: list[float]
    seconds: list[float]


def search(task: Task, optimiser: Optimiser, budget: int, seed: int, workers: int = 1) -> Search:
    """Run `budget` trials; with several workers, durations are drawn from a log-normal distribution."""
    rng = np.random.default_rng([seed, 77])
    running: list[tuple[float, int, Any, Any]] = []  # until when, key, reported, truth
    truths, seconds = list[float](), list[float]()
    lowest, incumbent, now = math.inf, math.nan, 0.0
    front = Front(task.objectives)
    for key in range(budget + workers):
        if key < budget:
            began = time.process_time()
            parameters = optimiser.ask(key)
            seconds.append(time.process_time() - began)
            reported, truth = task.objective(parameters, rng), task.truth(parameters)
            heapq.heappush(running, (now + float(rng.lognormal()), key, reported, truth))
        if running and (len(running) >= workers or key >= budget):
            now, ended, reported, truth = heapq.heappop(running)
            began = time.process_time()
            optimiser.tell(ended, reported)
            seconds[ended] += time.process_time() - began
            if task.objectives:
                front.add(truth)
                incumbent = -front.volume
            elif reported < lowest or math.isnan(incumbent):
                lowest, incumbent = (reported, truth) if reported < lowest else (lowest, truth)
            truths.append(incumbent)
    return Search(truths, seconds)
