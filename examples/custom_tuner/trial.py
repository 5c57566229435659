"""Descends Rosenbrock's valley by gradient steps with momentum; how far it gets depends on the parameters."""

import time

import pitchpipe

STEPS_A_REPORT = 50
REPORTS = 40
TOO_FAR = 1e6
A_WHILE = 0.02  # s: a real trial computes so long that the assessor can stop it on the way


def rosenbrock(x: float, y: float) -> float:
    """Return the height at a point; the lowest one is 0, at (1, 1)."""
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def slope(x: float, y: float) -> tuple[float, float]:
    """Return the gradient at a point."""
    return -2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)


def descend(learning_rate: float, momentum: float) -> float:
    """Walk down and report the height after every 50 steps; gives the last height."""
    x, y, speed_x, speed_y = -1.2, 1.0, 0.0, 0.0
    for _ in range(REPORTS):
        for _ in range(STEPS_A_REPORT):
            slope_x, slope_y = slope(x, y)
            speed_x = momentum * speed_x - learning_rate * slope_x
            speed_y = momentum * speed_y - learning_rate * slope_y
            # The walk is fenced in: too large a step would otherwise end in an overflow.
            x, y = max(-10.0, min(10.0, x + speed_x)), max(-10.0, min(10.0, y + speed_y))
        pitchpipe.report_intermediate_result(min(TOO_FAR, rosenbrock(x, y)))
        time.sleep(A_WHILE)
    return min(TOO_FAR, rosenbrock(x, y))


if __name__ == "__main__":
    parameters = {"learning_rate": 1e-4, "momentum": 0.5, **pitchpipe.get_next_parameter()}
    pitchpipe.report_final_result(descend(parameters["learning_rate"], parameters["momentum"]))
