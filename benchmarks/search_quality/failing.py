"""Tasks of which a region dies: trials there fail, and the best points lie beside it."""

from __future__ import annotations

import math

from tasks import Parameters, Task, space_of

__all__ = ["diverging_and_large", "out_of_memory"]


def out_of_memory() -> Task:
    """Imitate a network whose batch times width must fit into memory; a larger one would be better."""
    space = space_of(
        batch=("choice", [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]),
        width=("qloguniform", [16, 4096, 8]),
        lr=("loguniform", [1e-5, 1]),
        dropout=("uniform", [0, 0.8]),
        decay=("loguniform", [1e-8, 1e-1]),
    )

    def value(parameters: Parameters) -> float:
        batch, width = math.log2(parameters["batch"]), math.log2(parameters["width"])
        if batch + width > 15:
            return math.nan
        rate = math.log10(parameters["lr"]) + 2.5 - 0.15 * (batch - 5)
        return (
            0.05
            + 0.01 * (width - 10) ** 2
            + 0.006 * (batch - 7) ** 2
            + 0.04 * rate**2
            + 0.05 * (parameters["dropout"] - 0.3) ** 2
            + 0.004 * (math.log10(parameters["decay"]) + 4) ** 2
        )

    return Task("d1", "batch times width must fit into memory, 5 mixed", space, value)


def diverging_and_large() -> Task:
    """Imitate a network that diverges at high rates, is too slow if deep and wide, and may not fit into memory."""
    space = space_of(
        lr=("loguniform", [1e-6, 10]),
        momentum=("uniform", [0, 0.999]),
        layers=("randint", [1, 25]),
        units=("qloguniform", [8, 2048, 8]),
        batch=("choice", [16, 32, 64, 128, 256]),
        clip=("loguniform", [0.01, 100]),
        optimizer=("choice", ["sgd", "adam", "lion"]),
    )

    def value(parameters: Parameters) -> float:
        name, layers, units = parameters["optimizer"], parameters["layers"], parameters["units"]
        gain = {"sgd": math.log10(1 - parameters["momentum"]), "adam": -1.0, "lion": -1.7}[name]
        speed = math.log10(parameters["lr"]) - gain
        too_slow = layers * math.log2(units) ** 2 > 700
        if too_slow or parameters["batch"] * units * layers > 6e5 or speed > -0.3:
            return math.nan
        return (
            0.05
            + 0.00015 * (layers * math.log2(units) - 75) ** 2
            + 0.03 * (speed + 0.7) ** 2
            + 0.01 * math.log10(parameters["clip"]) ** 2
            + 0.004 * (math.log2(parameters["batch"]) - 5) ** 2
            + {"sgd": 0.0, "adam": 0.01, "lion": 0.03}[name]
        )

    return Task("d2", "diverges, too slow or too large, 7 mixed", space, value)
