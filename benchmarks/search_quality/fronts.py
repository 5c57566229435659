"""Tasks with several objectives: formulas whose Pareto front is known.

Where the volume below the front is a bare number, it was computed on a fine grid of the parameters that objectives
trade, with the others at their best. All objectives are minimised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypervolume import hypervolume
from tasks import Parameters, Task, space_of

__all__ = ["bowls", "families", "four_goals", "gaps", "inference", "network", "three_goals"]


def _goals(**references: float) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": name, "direction": "minimize", "reference": reference}
        for name, reference in references.items()
    )


def _best(objectives: tuple[dict[str, Any], ...], front: np.ndarray) -> float:
    """Return minus the hypervolume of a front, shape (n, m)."""
    return -hypervolume(front, np.array([one["reference"] for one in objectives]))


def bowls() -> Task:
    """Two rotated bowls with different centres: the front is a bent line between them."""
    rng = np.random.default_rng(4)
    centres = rng.uniform(-3, 3, (2, 6))
    turns = [np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(2)]
    bowls = [turn.T @ np.diag(np.logspace(0, 1.5, 6)) @ turn for turn in turns]

    def values(x: np.ndarray) -> tuple[float, float]:
        first, second = (
            math.sqrt((x - centre) @ bowl @ (x - centre)) for centre, bowl in zip(centres, bowls, strict=True)
        )
        return first, second

    def truth(parameters: Parameters) -> Parameters:
        return dict(
            zip(("default", "other"), values(np.array([parameters[f"x{i}"] for i in range(6)])), strict=True)
        )

    goals = _goals(default=2 * values(centres[1])[0], other=2 * values(centres[0])[1])
    shares = (1 - np.cos(np.linspace(0, math.pi, 2000))) / 2
    parts = [(share * bowls[0], (1 - share) * bowls[1]) for share in shares]
    points = [np.linalg.solve(a + b, a @ centres[0] + b @ centres[1]) for a, b in parts]
    best = _best(goals, np.array([values(point) for point in points]))
    space = space_of(**{f"x{i}": ("uniform", [-5, 5]) for i in range(6)})
    return Task("m1", "two bowls, 6 continuous", space, truth, best, objectives=goals)


def gaps() -> Task:
    """Make a front of five pieces, as ZDT3 of Zitzler, Deb and Thiele (2000); numbers on two scales and choices."""
    space = space_of(
        t=("uniform", [0, 1]),
        **{f"x{i}": ("uniform", [0, 1]) for i in range(2)},
        **{f"lr{i}": ("loguniform", [1e-5, 1]) for i in range(2)},
        **{f"n{i}": ("randint", [0, 10]) for i in range(2)},
        kind=("choice", ["a", "b", "c", "d"]),
    )

    def other(t: Any, g: Any) -> Any:
        return g * (1 - np.sqrt(t / g) - t / g * np.sin(10 * np.pi * t))

    def truth(parameters: Parameters) -> Parameters:
        away = sum(abs(parameters[f"x{i}"] - (0.3, 0.8)[i]) for i in range(2))
        away += sum(abs(math.log10(parameters[f"lr{i}"]) + (2, 3.5)[i]) / 5 for i in range(2))
        away += sum(abs(parameters[f"n{i}"] - (2, 7)[i]) / 9 for i in range(2))
        away += {"a": 0.6, "b": 0.3, "c": 0.0, "d": 0.9}[parameters["kind"]]
        return {"default": parameters["t"], "other": float(other(parameters["t"], 1 + away))}

    goals, t = _goals(default=1.1, other=2.5), np.linspace(0, 1, 2_001)
    front = np.column_stack([t, other(t, 1.0)])
    lowest = front[:, 1] < np.minimum.accumulate(np.append(np.inf, front[:, 1]))[:-1]
    return Task(
        "m2", "a front with gaps, 8 mixed", space, truth, _best(goals, front[lowest]), objectives=goals
    )


def families() -> Task:
    """Choose among families of models: each has a piece of the front of error and time."""

    def linear(model: Parameters) -> tuple[float, float]:
        error = (
            0.3
            + 0.01 * (math.log10(model["reg"]) + 1.5) ** 2
            + {"a": 0.02, "b": 0.0, "c": 0.05}[model["solver"]]
        )
        return error, {"a": 0.3, "b": 0.6, "c": 0.1}[model["solver"]] - 0.05 * math.log10(model["reg"])

    def trees(model: Parameters) -> tuple[float, float]:
        size = math.log2(model["count"])
        error = 0.14 + 0.2 * 2 ** (-size / 3) + 0.002 * (model["depth"] - 7) ** 2
        error += (
            0.05 * (math.log10(model["rate"]) + 0.25 * (size - 3)) ** 2 + 0.1 * (model["share"] - 0.7) ** 2
        )
        return error, 0.3 * size + 0.05 * model["depth"]

    def network(model: Parameters) -> tuple[float, float]:
        size = math.log2(model["width"]) + 0.5 * model["layers"]
        error = 0.06 + 0.4 * 2 ** (-size / 4) + 0.06 * (math.log10(model["lr"]) + 1 + 0.2 * size) ** 2
        error += 0.01 * (math.log10(model["decay"]) + 4) ** 2
        schedule = model["schedule"]
        if schedule["_name"] == "constant":
            return error + 0.03, 1.0 + 0.25 * size
        return error + 0.3 * (schedule["warmup"] - 0.1) ** 2, 1.1 + 0.25 * size + 0.04 * schedule["cycles"]

    def truth(parameters: Parameters) -> Parameters:
        model = parameters["model"]
        error, time = {"linear": linear, "trees": trees, "network": network}[model["_name"]](model)
        away = (parameters["features"] - 0.6) ** 2
        return {"default": error + 0.2 * away, "time": time + 0.3 * parameters["features"]}

    space = space_of(model=("choice", _models()), features=("uniform", [0.1, 1]))
    goals = _goals(default=0.7, time=4.5)
    return Task("m3", "families of models, nested, 4 to 9 active", space, truth, -2.1627, objectives=goals)


def _models() -> list[Parameters]:
    """Return the nested options of `families`."""
    schedules = [
        {"_name": "constant"},
        {"_name": "cosine", **space_of(warmup=("uniform", [0, 0.5]), cycles=("randint", [1, 6]))},
    ]
    return [
        {"_name": "linear", **space_of(reg=("loguniform", [1e-6, 1e2]), solver=("choice", ["a", "b", "c"]))},
        {
            "_name": "trees",
            **space_of(
                count=("qloguniform", [8, 2048, 1]),
                depth=("randint", [1, 17]),
                rate=("loguniform", [1e-3, 1]),
                share=("uniform", [0.2, 1]),
            ),
        },
        {
            "_name": "network",
            **space_of(
                width=("qloguniform", [8, 1024, 1]),
                layers=("randint", [1, 9]),
                lr=("loguniform", [1e-5, 1]),
                decay=("loguniform", [1e-7, 1e-1]),
                schedule=("choice", schedules),
            ),
        },
    ]


def network() -> Task:
    """Make a network whose error has noise, and whose size grows with what lowers it; part of it diverges."""
    space = space_of(
        lr=("loguniform", [1e-6, 10]),
        momentum=("uniform", [0, 0.999]),
        decay=("loguniform", [1e-8, 1e-1]),
        batch=("choice", [16, 32, 64, 128, 256]),
        layers=("randint", [1, 13]),
        units=("qloguniform", [8, 2048, 8]),
        activation=("choice", ["relu", "tanh", "gelu"]),
    )

    def truth(parameters: Parameters) -> Any:
        speed = math.log10(parameters["lr"]) - math.log10(1 - parameters["momentum"])
        speed -= 0.5 * math.log10(parameters["batch"] / 64)
        if speed > 0.5:
            return math.nan
        size = 2 * math.log10(parameters["units"]) + math.log10(parameters["layers"])
        error = 0.05 + 0.5 * 10 ** (-size / 3) + 0.03 * (speed + 1 + 0.2 * size) ** 2
        error += 0.005 * (math.log10(parameters["decay"]) + 4) ** 2 + 0.003 * (parameters["layers"] - 4) ** 2
        return {
            "default": error + {"relu": 0.02, "tanh": 0.05, "gelu": 0.0}[parameters["activation"]],
            "size": size,
        }

    goals = _goals(default=0.8, size=6.0)
    return Task(
        "m4", "like training a network, noise, 7 mixed", space, truth, -2.9636, 0.01, objectives=goals
    )


def _sphere(name: str, about: str, scales: tuple[float, ...]) -> Task:
    """Make a front that is a part of a sphere, as DTLZ2 of Deb et al. (2002), with a scale for each objective."""
    count = len(scales)
    names = ("default", *(f"goal{i}" for i in range(1, count)))
    volume = (
        math.pi ** (count / 2) / math.gamma(count / 2 + 1) / 2**count
    )  # of the unit ball where all are positive
    space = space_of(
        **{f"angle{i}": ("uniform", [0, 1]) for i in range(count - 1)},
        **{f"x{i}": ("uniform", [0, 1]) for i in range(3)},
        n=("randint", [0, 21]),
    )

    def truth(parameters: Parameters) -> Parameters:
        radius = 1 + sum((parameters[f"x{i}"] - (0.3, 0.5, 0.7)[i]) ** 2 for i in range(3)) * 2
        radius += ((parameters["n"] - 13) / 20) ** 2 * 2
        found = []
        for i in range(count - 1):
            found.append(radius * math.sin(parameters[f"angle{i}"] * math.pi / 2))
            radius *= math.cos(parameters[f"angle{i}"] * math.pi / 2)
        return dict(
            zip(names, (x * scale for x, scale in zip([*found, radius], scales, strict=True)), strict=True)
        )

    goals = _goals(**{each: 1.5 * scale for each, scale in zip(names, scales, strict=True)})
    return Task(name, about, space, truth, -math.prod(scales) * (1.5**count - volume), objectives=goals)


def three_goals() -> Task:
    """Three objectives on scales that differ by a thousand."""
    return _sphere("m5", "three objectives, 6 mixed", (1.0, 30.0, 1000.0))


def four_goals() -> Task:
    """Four objectives."""
    return _sphere("m6", "four objectives, 7 mixed", (1.0, 1.0, 10.0, 100.0))


def inference() -> Task:
    """Error and energy of a network that must be fast and small: one random point in twenty is."""
    space = space_of(
        width=("qloguniform", [16, 2048, 16]),
        depth=("randint", [1, 33]),
        bits=("choice", [4, 8, 16, 32]),
        batch=("choice", [1, 2, 4, 8, 16]),
        sparsity=("uniform", [0, 0.95]),
        lr=("loguniform", [1e-5, 1e-1]),
    )

    def truth(parameters: Parameters) -> Parameters:
        dense = math.log10(parameters["width"] ** 2 * parameters["depth"])
        size = dense + 0.7 * math.log10(1 - parameters["sparsity"])
        error = 0.04 + 0.8 * 10 ** (-size / 4) + {4: 0.08, 8: 0.015, 16: 0.002, 32: 0.0}[parameters["bits"]]
        error += (
            0.02 * (math.log10(parameters["lr"]) + 1 + 0.4 * size) ** 2 + 0.05 * parameters["sparsity"] ** 4
        )
        work = dense + math.log10(parameters["bits"] / 8)
        time = (
            10 ** (work - 4.3) / parameters["batch"] ** 0.3 + 0.3 * parameters["depth"] + parameters["batch"]
        )
        memory = (
            10 ** (size - 5) * parameters["bits"] / 8 + 0.02 * parameters["batch"] * parameters["width"] / 64
        )
        energy = (
            0.8 * work - 0.3 * math.log10(parameters["batch"]) + 0.2 * math.log10(1 - parameters["sparsity"])
        )
        return {"default": error, "energy": energy, "ms": time, "mb": memory}

    limits = ({"name": "ms", "constraint": "<= 8"}, {"name": "mb", "constraint": "<= 0.5"})
    goals = (*_goals(default=0.3, energy=5.0), *limits)
    return Task("m7", "two objectives, two limits, 6 mixed", space, truth, -0.5181, objectives=goals)
