"""The plan of one experiment of the campaign, drawn from the seed and the experiment's number alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "hooks"))

from crash_points import POINTS  # noqa: E402

__all__ = ["POINTS", "STEPS", "TRIALS", "Kill", "Plan", "Round", "plan_for", "possible_points"]

TRIALS = 6
STEPS = 10  # of each trial
VICTIMS = ("manager", "dispatcher", "agent", "trial", "watchdog")
VICTIMS_ON_RAY = (*VICTIMS, "supervisor")


@dataclass(frozen=True)
class Kill:
    """A process with this role is killed after this many seconds."""

    role: str
    after: float


@dataclass(frozen=True)
class Round:
    """One life of the manager: where processes kill themselves, and which are killed."""

    crashes: Sequence[tuple[str, int]] = ()
    kills: Sequence[Kill] = ()


@dataclass(frozen=True)
class Plan:
    """One experiment."""

    number: int
    kind: str
    place: str
    seed: int
    assessor: bool
    slow_tuner: bool
    favoured: str = ""
    rounds: Sequence[Round] = field(default_factory=tuple)

    def config(self, python: str = sys.executable) -> dict[str, Any]:
        """Return the config of the experiment."""
        service: dict[str, Any] = {"platform": self.place}
        if self.place == "ray":
            service["idle_timeout"] = 5
        tuner: dict[str, Any] = {"name": "Random"}
        if self.slow_tuner:
            tuner = {"className": "slow_tuner.SlowTuner", "codeDirectory": str(HERE)}
        config: dict[str, Any] = {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "max_trial_number": TRIALS,
            "trial_concurrency": 2,
            "seed": self.seed,
            "tuner": tuner,
            "max_identical_failures": 0,
            "max_failures": {"INFRA": 20, "KILLED": 20},
            "kill_grace": 1,
            "training_service": service,
        }
        if self.assessor:
            config["assessor"] = {"name": "Medianstop", "class_args": {"optimize_mode": "minimize"}}
        if self.kind == "command":
            config["trial_command"] = f"{python} -P {HERE / 'trial.py'}"
        return config


def kind_of(number: int) -> str:
    """Return the kind of trials that an experiment has."""
    return ("command", "function")[number % 2]


def possible_points(number: int, place: str) -> list[str]:
    """Return the points that can be reached in an experiment, if its tuner is slow enough."""
    kind = kind_of(number)
    return [name for name, point in POINTS.items() if kind in point.kinds and place in point.places]


def plan_for(seed: int, number: int, place: str = "local", favoured: str = "") -> Plan:
    """Make the plan of an experiment; crash points take turns, so that each is hit about as often as any other.

    Not all that is planned happens, and some points are rare: `favoured` is one with few hits so far.
    """
    draw = random.Random(f"{seed}/{place}/{number}")
    kind = kind_of(number)
    slow_tuner = number % 5 == 4 or (favoured != "" and POINTS[favoured].needs == "slow tuner")
    allowed = [
        name for name in possible_points(number, place) if slow_tuner or POINTS[name].needs != "slow tuner"
    ]
    turn = number // 2
    lives = [_crashes(allowed, seed, 3 * turn + life, draw, life) for life in range(3)]
    if favoured:  # in a life that resumes, so that any point can be reached
        lives[1][favoured.partition(":")[0]] = (
            favoured,
            draw.randint(1, max(1, POINTS[favoured].often // 2)),
        )
    if slow_tuner:  # a checkpoint takes time
        lives[0] = {"dispatcher": ("dispatcher:checkpoint-written", 1)}
    rounds = [Round(list(crashes.values()), _kills(draw, place, spared="dispatcher")) for crashes in lives]
    if slow_tuner:
        rounds[0] = Round(rounds[0].crashes, [Kill("manager", draw.uniform(4.0, 8.0))])
    rounds.append(Round([("manager:before-the-end", 1)], _kills(draw, place) if draw.random() < 0.5 else ()))
    return Plan(
        number, kind, place, draw.randrange(2**31), number % 3 == 0, slow_tuner, favoured, [*rounds, Round()]
    )


def _crashes(
    allowed: list[str], seed: int, turn: int, draw: random.Random, life: int
) -> dict[str, tuple[str, int]]:
    """Return the next point of each role, and how often it is passed before.

    The manager dies early in its first life. A dispatcher that dies three times at one command ends the
    experiment, so it is not killed in other ways.
    """
    chosen = {}
    for role in ("manager", "dispatcher", "agent", "trial"):
        names = [name for name in allowed if name.startswith(f"{role}:")]
        names = [
            name for name in names if not POINTS[name].needs or (life and POINTS[name].needs == "resume")
        ]
        if names:
            shuffled = random.Random(f"{seed}/{role}/{turn // len(names)}").sample(names, len(names))
            name = shuffled[turn % len(names)]
            chosen[role] = (
                name,
                draw.randint(1, max(1, POINTS[name].often // (2 if role == "manager" else 1))),
            )
    return chosen


def _kills(draw: random.Random, place: str, spared: str = "") -> list[Kill]:
    """Return the kill of one process at a random moment; with a private Ray, processes start some seconds later."""
    on_ray = place == "ray"
    victims = [role for role in (VICTIMS_ON_RAY if on_ray else VICTIMS) if role != spared]
    return [Kill(draw.choice(victims), draw.uniform(0.3, 8.0 if on_ray else 2.0))]
