"""Fits a cosine by a polynomial: more terms cost more and fit better; both are reported."""

import math

import pitchpipe

POINTS = [place / 20 - 1 for place in range(41)]


def main() -> None:
    """Fit with the given degree and smoothing, and report the error and the number of terms."""
    parameters = {"degree": 4, "smoothing": 1e-3} | (pitchpipe.get_next_parameter() or {})
    coefficients = fitted(int(parameters["degree"]), float(parameters["smoothing"]))
    misses = [value_at(coefficients, x) - target(x) for x in POINTS]
    error = math.sqrt(sum(miss * miss for miss in misses) / len(misses))
    terms = sum(abs(coefficient) > 1e-3 for coefficient in coefficients)
    pitchpipe.report_final_result({"error": error, "terms": terms})


def target(x: float) -> float:
    """Return the value to be fitted."""
    return math.cos(4 * x) + x / 2


def legendre(degree: int, x: float) -> list[float]:
    """Return the values of the Legendre polynomials up to a degree."""
    values = [1.0, x]
    for n in range(1, degree):
        values.append(((2 * n + 1) * x * values[n] - n * values[n - 1]) / (n + 1))
    return values[: degree + 1]


def fitted(degree: int, smoothing: float) -> list[float]:
    """Return the coefficients that descend to the least squares, each shrunk by the smoothing."""
    rows = [legendre(degree, x) for x in POINTS]
    coefficients = [0.0] * (degree + 1)
    for _ in range(30):
        for place in range(degree + 1):
            rest = [
                target(x)
                - sum(c * r for c, r in zip(coefficients, row, strict=True))
                + coefficients[place] * row[place]
                for x, row in zip(POINTS, rows, strict=True)
            ]
            pull = sum(row[place] * left for row, left in zip(rows, rest, strict=True)) / len(rows)
            norm = sum(row[place] ** 2 for row in rows) / len(rows)
            coefficients[place] = math.copysign(max(abs(pull) - smoothing, 0.0), pull) / norm
    return coefficients


def value_at(coefficients: list[float], x: float) -> float:
    """Return the fit at one point."""
    values = legendre(len(coefficients) - 1, x)
    return sum(c * value for c, value in zip(coefficients, values, strict=True))


if __name__ == "__main__":
    main()
