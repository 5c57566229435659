"""Tasks that are formulas: continuous, mixed, nested, categorical, with noise and with regions that fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tasks import Parameters, Task, space_of

__all__ = [
    "architecture",
    "every_type",
    "few_matter",
    "hartmann",
    "mixed",
    "network",
    "rastrigin",
    "rosenbrock",
    "tree",
]


def _box(dimension: int, low: float, high: float) -> dict[str, Any]:
    return space_of(**{f"x{i}": ("uniform", [low, high]) for i in range(dimension)})


def _point(parameters: Parameters, dimension: int) -> np.ndarray:
    return np.array([parameters[f"x{i}"] for i in range(dimension)])


def _rotation(dimension: int, seed: int) -> np.ndarray:
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dimension, dimension)))
    return matrix


def rastrigin() -> Task:
    """Many local minima on a bowl, rotated: Rastrigin (1974) in five dimensions."""
    rotation, centre = _rotation(5, 1), np.random.default_rng(2).uniform(-3, 3, 5)

    def value(parameters: Parameters) -> float:
        z = rotation @ (_point(parameters, 5) - centre)
        return float(10 * 5 + np.sum(z**2 - 10 * np.cos(2 * np.pi * z)))

    return Task("s1", "rotated Rastrigin, 5 continuous", _box(5, -5, 5), value, 0.0)


def rosenbrock() -> Task:
    """Make a curved valley in eight dimensions: Rosenbrock (1960)."""

    def value(parameters: Parameters) -> float:
        x = _point(parameters, 8)
        return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))

    return Task("s2", "Rosenbrock, 8 continuous", _box(8, -2, 2), value, 0.0)


def hartmann() -> Task:
    """Six minima in six dimensions: Hartmann (1973), with the constants of Dixon and Szego (1978)."""
    weights = np.array([1.0, 1.2, 3.0, 3.2])
    scales = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    centres = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )

    def value(parameters: Parameters) -> float:
        distances = np.sum(scales * (_point(parameters, 6) - centres) ** 2, axis=1)
        return float(-np.sum(weights * np.exp(-distances)))

    return Task("s3", "Hartmann, 6 continuous", _box(6, 0, 1), value, -3.32237)


def few_matter() -> Task:
    """Fifteen dimensions of which four matter, on scales that differ by thousands."""
    sizes = np.array([3.0, 1.0, 0.3, 0.1])
    centres = np.random.default_rng(3).uniform(0.15, 0.85, 4)

    def value(parameters: Parameters) -> float:
        return float(np.sum(sizes * np.abs(_point(parameters, 15)[[2, 5, 9, 14]] - centres) ** 1.5))

    return Task("s4", "4 of 15 continuous matter", _box(15, 0, 1), value, 0.0)


def mixed() -> Task:
    """Continuous, integer and categorical parameters that depend on each other."""
    offsets = {"a": 0.0, "b": 0.6, "c": 1.1, "d": 1.5}
    space = space_of(
        **{f"x{i}": ("uniform", [-3, 3]) for i in range(4)},
        **{f"n{i}": ("randint", [0, 13]) for i in range(3)},
        kind=("choice", list(offsets)),
        sign=("choice", [True, False]),
        power=("choice", [1, 2, 3]),
    )

    def value(parameters: Parameters) -> float:
        x = _point(parameters, 4)
        n = np.array([parameters[f"n{i}"] for i in range(3)])
        shift = offsets[parameters["kind"]]
        turned = x if parameters["sign"] else x[::-1]
        bowl = np.sum(np.array([1.0, 3.0, 9.0, 27.0]) * (turned - shift) ** 2) / 10
        steps = np.sum((n - np.array([3, 7, 11])) ** 2) / 5
        return float(bowl + steps + 0.5 * abs(parameters["power"] - 2) + shift)

    return Task("s5", "10 mixed", space, value, 0.0)


def tree() -> Task:
    """Choices in choices, three deep: each leaf has a minimum of its own, and one of them is the lowest."""
    space = space_of(
        model=("choice", [_branch(name) for name in "ABC"]),
        scale=("loguniform", [1e-3, 1]),
    )

    def value(parameters: Parameters) -> float:
        branch = parameters["model"]
        top, inner = "ABC".index(branch["_name"]), branch["inner"]
        side = 0 if inner["_name"] == "left" else 1
        leaf = inner["leaf"]["_name"]
        depth = 0.0 if leaf == "plain" else inner["leaf"]["bend"] - 0.7 + 0.2 * side
        floor = (0.5, 0.0, 0.3)[top] + (0.2, 0.0)[side] + (0.15 if leaf == "plain" else 0.0)
        centre = 0.2 + 0.25 * top + 0.1 * side
        scale = math.log10(parameters["scale"]) + 1.2 + 0.4 * top
        return float(
            floor
            + 4 * (branch["share"] - centre) ** 2
            + 2 * (inner["width"] / 32 - 0.6) ** 2
            + depth**2
            + 0.3 * scale**2
        )

    return Task("s6", "tree of choices, three deep, 26 in all", space, value, 0.0)


def _branch(name: str) -> dict[str, Any]:
    inner = [
        {
            "_name": side,
            **space_of(
                width=("randint", [1, 33]),
                leaf=(
                    "choice",
                    [{"_name": "plain"}, {"_name": "bent", **space_of(bend=("uniform", [0, 1]))}],
                ),
            ),
        }
        for side in ("left", "right")
    ]
    return {"_name": name, **space_of(share=("uniform", [0, 1]), inner=("choice", inner))}


def every_type() -> Task:
    """All ten types of parameters, and noise as large as a tenth of what separates good from bad."""
    space = space_of(
        choice=("choice", ["one", "two", "three"]),
        randint=("randint", [0, 20]),
        uniform=("uniform", [0, 1]),
        quniform=("quniform", [0, 10, 0.5]),
        loguniform=("loguniform", [1e-4, 1]),
        qloguniform=("qloguniform", [1, 1000, 1]),
        normal=("normal", [0, 2]),
        qnormal=("qnormal", [5, 3, 1]),
        lognormal=("lognormal", [0, 1]),
        qlognormal=("qlognormal", [2, 1, 1]),
    )

    def value(parameters: Parameters) -> float:
        terms = (
            {"one": 0.3, "two": 0.0, "three": 0.5}[parameters["choice"]],
            ((parameters["randint"] - 13) / 10) ** 2,
            2 * (parameters["uniform"] - 0.3) ** 2,
            ((parameters["quniform"] - 6.5) / 5) ** 2,
            (math.log10(parameters["loguniform"]) + 2.5) ** 2 / 4,
            (math.log10(parameters["qloguniform"]) - 1.3) ** 2 / 2,
            ((parameters["normal"] - 1) / 4) ** 2,
            ((parameters["qnormal"] - 7) / 6) ** 2,
            (math.log(parameters["lognormal"]) - 0.5) ** 2 / 4,
            (math.log(max(parameters["qlognormal"], 0.5)) - 2.3) ** 2 / 4,
        )
        return float(sum(terms))

    return Task("s7", "all ten types, noise", space, value, 0.0, noise=0.1)


def architecture() -> Task:
    """Eight choices of five options: what each adds, what pairs add, as in tables of network architectures."""
    rng = np.random.default_rng(4)
    single, pairs = rng.normal(size=(8, 5)), 0.7 * rng.normal(size=(8, 8, 5, 5))
    space = space_of(**{f"op{i}": ("choice", ["none", "skip", "conv1", "conv3", "pool"]) for i in range(8)})
    options = space["op0"]["_value"]

    def value(parameters: Parameters) -> float:
        chosen = [options.index(parameters[f"op{i}"]) for i in range(8)]
        total = sum(single[i, option] for i, option in enumerate(chosen))
        total += sum(pairs[i, i + 1, chosen[i], chosen[i + 1]] for i in range(7))
        return float(total)

    return Task("s8", "8 choices of 5 that interact", space, value, _best_chain(single, pairs))


def _best_chain(single: np.ndarray, pairs: np.ndarray) -> float:
    """Return the lowest sum along the chain, by dynamic programming."""
    costs = single[0]
    for i in range(1, len(single)):
        costs = single[i] + np.min(costs[:, None] + pairs[i - 1, i], axis=0)
    return float(np.min(costs))


def network() -> Task:
    """Imitate training a network: rates on log scales that depend on each other, a cliff where it diverges."""
    space = space_of(
        lr=("loguniform", [1e-6, 10]),
        momentum=("uniform", [0, 0.999]),
        decay=("loguniform", [1e-8, 1e-1]),
        batch=("choice", [16, 32, 64, 128, 256]),
        layers=("randint", [1, 9]),
        units=("qloguniform", [8, 1024, 8]),
        dropout=("uniform", [0, 0.8]),
        optimizer=(
            "choice",
            [{"_name": "sgd"}, {"_name": "adam", **space_of(beta=("uniform", [0.8, 0.999]))}],
        ),
    )

    def value(parameters: Parameters) -> float:
        adam = parameters["optimizer"]["_name"] == "adam"
        speed = math.log10(parameters["lr"]) - (0 if adam else math.log10(1 - parameters["momentum"]))
        speed -= 0.5 * math.log10(parameters["batch"] / 64)
        if speed > (-0.5 if adam else 0.7):
            return math.nan  # it diverges
        size = parameters["layers"] * math.log2(parameters["units"])
        need = 0.004 * (size - 28) ** 2 / 8
        overfit = max(0.0, size - 30) * 0.004 * max(0.0, 0.3 - parameters["dropout"])
        rate = 0.04 * (speed + (2.8 if adam else 0.9)) ** 2
        decay = 0.004 * (math.log10(parameters["decay"]) + 4) ** 2
        beta = 0.3 * (parameters["optimizer"]["beta"] - 0.93) ** 2 if adam else 0.02
        return float(0.05 + need + overfit + rate + decay + beta + 0.05 * parameters["dropout"] ** 2)

    return Task("s9", "like training a network, 9 mixed; part of it fails", space, value, None)
