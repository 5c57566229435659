"""What one simulated experiment is: its configuration, and the mix of faults and users, drawn from the seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FAULTS", "USERS", "SimulationPlan", "plan_of"]

FAULTS = (
    "manager killed",
    "manager killed at a call",
    "manager frozen",
    "agent killed",
    "agent killed at a call",
    "agent frozen",
    "agent silent",
    "trial killed",
    "dispatcher killed",
    "dispatcher killed at a call",
    "dispatcher hangs",
    "connection closed by the manager",
    "connection closed by the agent",
    "connection silent",
    "disk full",
    "disk errors",
    "clock set",
    "database put back",
)
USERS = ("adds", "reruns", "kills", "changes", "stops", "looks", "imports")


@dataclass(frozen=True)
class SimulationPlan:
    """One experiment; `faults` and `users` are what may happen, each every so many seconds on average."""

    seed: str
    kind: str
    config: Mapping[str, Any]
    steps: int
    pause: float
    faults: Mapping[str, float] = field(default_factory=dict)
    users: Mapping[str, float] = field(default_factory=dict)
    lives: int = 4
    switching: float = 0.02
    saves: bool = True  # trials save checkpoints

    @property
    def tuner(self) -> str:
        return str(self.config["tuner"].get("name", "own"))

    @property
    def forgets(self) -> bool:
        """Whether the database may be an older copy of itself: then what is newer may be lost, or be done again."""
        return "database put back" in self.faults


def plan_of(seed: int, number: int) -> SimulationPlan:
    """Draw an experiment: a random part of the faults, each as often or as seldom as the draw says (swarm)."""
    draw = random.Random(f"simulation/{seed}/{number}")
    kind = draw.choice(("command", "function"))
    steps = draw.randint(2, 8)
    config = {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trial_concurrency": draw.randint(1, 4),
        "seed": draw.randrange(1000),
        "max_identical_failures": 0,
        "max_failures": {"INFRA": -1, "KILLED": -1},
        "kill_grace": draw.choice((0.5, 2, 5)),
        "orphan_timeout": draw.choice((20, 60, 600)),
        "dispatcher_timeout": 30,
        "durability": draw.choice(("process", "process", "process", "power")),
        "trial_start": "cold",
        "training_service": {"platform": "local"},
        **_search(draw),
    }
    if kind == "command":
        config["trial_command"] = "true"
    if draw.random() < 0.15:
        config["max_trial_duration"] = 60
    is_short = kind == "function" and config["tuner"].get("name") == "Random" and draw.random() < 0.3
    if is_short:  # so short that trials queue in their agents
        config |= {"max_trial_number": 40, "trial_concurrency": 2}
        config.pop("assessor", None)
        steps = 1
    chosen = [fault for fault in FAULTS if draw.random() < (0.05 if fault == FAULTS[-1] else 0.3)]
    users = [user for user in USERS if draw.random() < 0.4]
    pace = 0.2 if is_short else draw.choice((3.0, 10.0, 30.0))
    return SimulationPlan(
        seed=f"{seed}/{number}",
        kind=kind,
        config=config,
        steps=steps,
        pause=0.0 if is_short else draw.choice((0.02, 0.3, 3.0)),
        faults={fault: pace * draw.uniform(0.5, 3.0) for fault in chosen},
        users={user: pace * draw.uniform(0.5, 3.0) for user in users},
        lives=draw.randint(1, 6),
        switching=draw.choice((0.0, 0.01, 0.05, 0.2)),
        saves=not is_short and draw.random() < 0.8,
    )


def _search(draw: random.Random) -> dict[str, Any]:
    """Draw the tuner, and what goes with it."""
    maximize = {"optimize_mode": "maximize"}
    name = draw.choice(("Random", "Random", "TPE", "Evolution", "PBT", "ASHA", "Hyperband", "Slow", "Fickle"))
    if name in ("Slow", "Fickle"):
        tuner: dict[str, Any] = {
            "className": f"{name.lower()}_tuner.{name}Tuner",
            "codeDirectory": str(Path(__file__).parent.parent),
        }
        return {"tuner": tuner, "max_trial_number": draw.randint(2, 7)}
    arguments: dict[str, Any] = {} if name == "Random" else dict(maximize)
    number = draw.randint(2, 9)
    if name == "PBT":
        number = draw.randint(3, 5)
        arguments |= {
            "population_size": number,
            "interval": 2,
            "fraction": 0.4,
            "generations": draw.randint(1, 3),
        }
    elif name in ("ASHA", "Hyperband"):
        arguments |= {"R": 4, "eta": 2}
        if name == "ASHA":
            arguments["tuner"] = "Random"
    search: dict[str, Any] = {"tuner": {"name": name, "class_args": arguments}, "max_trial_number": number}
    if name in ("Random", "TPE", "Evolution") and draw.random() < 0.4:
        search["assessor"] = {"name": "Medianstop", "class_args": maximize}
    return search
