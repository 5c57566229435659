"""The plan of one experiment of the campaign, drawn from the seed and the experiment's number alone."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "hooks"))

from crash_points import POINTS  # noqa: E402
from system_calls import Call  # noqa: E402

__all__ = [
    "DEEDS",
    "FULL_DISK",
    "POINTS",
    "PUT_BACK",
    "STEPS",
    "TRIALS",
    "Full",
    "Kill",
    "Plan",
    "PutBack",
    "Round",
    "plan_for",
    "possible_points",
]

TRIALS = 6
STEPS = 10
VICTIMS = ("manager", "dispatcher", "agent", "trial", "watchdog")
VICTIMS_ON_RAY = (*VICTIMS, "supervisor")
# What is done to an experiment from outside of its processes, on this machine.
PUT_BACK, FULL_DISK = "database:put-back", "disk:full"
DEEDS = (PUT_BACK, FULL_DISK)


@dataclass(frozen=True)
class Kill:
    """A process with this role is killed after this many seconds."""

    role: str
    after: float


@dataclass(frozen=True)
class Full:
    """After this many results of a life the disk is full, for so many seconds."""

    after: int
    seconds: float


@dataclass(frozen=True)
class PutBack:
    """After so many results of a life the database is copied; after more, the manager dies, and it is put back."""

    after: int
    killed_after: int


@dataclass(frozen=True)
class Round:
    """One life of the manager: where processes kill themselves, which are killed, and what else happens.

    If it is `orphaned`, an agent is killed when the manager is dead. A `call` to the kernel fails, or is the last.
    """

    crashes: Sequence[tuple[str, int]] = ()
    kills: Sequence[Kill] = ()
    put_back: PutBack | None = None
    orphaned: bool = False
    full: Full | None = None
    call: Call | None = None


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
    small_disk: bool = False
    rounds: Sequence[Round] = field(default_factory=tuple)
    trials: int = TRIALS
    steps: int = STEPS  # of each trial
    durability: str = "process"

    def config(self) -> dict[str, Any]:
        """Return the config of the experiment."""
        service: dict[str, Any] = {"platform": self.place}
        if self.place == "ray":
            service["idle_timeout"] = 5
        tuner: dict[str, Any] = {"name": "Random"}
        if self.slow_tuner:
            tuner = {"className": "slow_tuner.SlowTuner", "codeDirectory": str(HERE)}
        config: dict[str, Any] = {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "max_trial_number": self.trials,
            "trial_concurrency": 2,
            "seed": self.seed,
            "tuner": tuner,
            "max_identical_failures": 0,
            "max_failures": {"INFRA": 20, "KILLED": 20},
            "kill_grace": 1,
            "durability": self.durability,
            "training_service": service,
        }
        if self.assessor:
            config["assessor"] = {"name": "Medianstop", "class_args": {"optimize_mode": "minimize"}}
        if self.kind == "command":
            config["trial_command"] = shlex.join([sys.executable, "-P", str(HERE / "trial.py")])
        return config


def kind_of(number: int) -> str:
    """Return the kind of trials that an experiment has."""
    return ("command", "function")[number % 2]


def possible_points(number: int, place: str) -> list[str]:
    """Return the points that can be reached in an experiment that is planned for them, and the deeds."""
    kind = kind_of(number)
    points = [name for name, point in POINTS.items() if kind in point.kinds and place in point.places]
    return [*points, *(DEEDS if place == "local" else ())]


def plan_for(seed: int, number: int, place: str = "local", favoured: str = "") -> Plan:
    """Make the plan of an experiment; crash points take turns, so that each is hit about as often as any other.

    Not all that is planned happens, and some points are rare: `favoured` is one with few hits so far.
    """
    draw = random.Random(f"{seed}/{place}/{number}")
    kind = kind_of(number)
    needs = POINTS[favoured].needs if favoured in POINTS else ""
    slow_tuner = number % 5 == 4 or needs == "slow tuner"
    allowed = [
        name
        for name in possible_points(number, place)
        if name in POINTS and (slow_tuner or POINTS[name].needs != "slow tuner")
    ]
    turn = number // 2
    lives = [_crashes(allowed, seed, 3 * turn + life, draw, life) for life in range(3)]
    if favoured in POINTS:
        role = favoured.partition(":")[0]
        crash = favoured, draw.randint(1, max(1, POINTS[favoured].often // 2))
        # A manager in a life that resumes, so that any point can be reached; others live longer than a manager.
        for life in {"start": [0], "": [1] if role == "manager" else [0, 1]}.get(needs, [1]):
            lives[life][role] = crash
    if slow_tuner:  # a checkpoint takes time
        lives[0] = {"dispatcher": ("dispatcher:checkpoint-written", 1)}
    rounds = [Round(list(crashes.values()), _kills(draw, place, spared="dispatcher")) for crashes in lives]
    if slow_tuner:
        rounds[0] = Round(rounds[0].crashes, [Kill("manager", draw.uniform(4.0, 8.0))])
    if needs == "dead agent" or draw.random() < 0.2:
        rounds[0] = replace(rounds[0], orphaned=True)
    small_disk = place == "local" and (favoured == FULL_DISK or number % 5 == 1)
    if small_disk:
        rounds[0] = replace(rounds[0], full=Full(draw.randint(1, 10), draw.uniform(0.2, 2.0)))
    if place == "local" and (favoured == PUT_BACK or number % 5 == 3):
        copied = draw.randint(1, 8)
        back = Round(put_back=PutBack(copied, copied + draw.randint(1, 12)))
        rounds[1 if favoured in (PUT_BACK, "") else 2] = back
    rounds.append(Round([("manager:before-the-end", 1)], _kills(draw, place) if draw.random() < 0.5 else ()))
    rounds.append(Round())
    if needs == "end" or draw.random() < 0.5:  # any life may be the last one
        closing = [("manager:closing-store", 1)]
        rounds = [replace(each, crashes=[*each.crashes, *closing]) for each in rounds]
    return Plan(
        number=number,
        kind=kind,
        place=place,
        seed=draw.randrange(2**31),
        assessor=number % 3 == 0,
        slow_tuner=slow_tuner,
        favoured=favoured,
        small_disk=small_disk,
        rounds=rounds,
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
        can_be = ("", "resume") if life else ("", "start")
        names = [name for name in names if POINTS[name].needs in can_be]
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
