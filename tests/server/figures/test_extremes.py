"""Figures of numbers at the ends of what a float can be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pitchpipe.search_space import SearchSpace
from pitchpipe.server import figures
from pitchpipe.server.figures import Curve, ExperimentTable, Objective, TrialRecord, dimensions_of
from pitchpipe.server.pages.brushing import brushed

FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [5e-324, 2.3e-308, 1e-300, 1e-100, 1e100, 1e300, -1e300, 1e308, -1e308]
)


@settings(max_examples=2, deadline=None)
@example(5e-324, 1e308, "minimize")
@example(-1e300, 1e300, "maximize")
@example(1e-300, 1e300, "minimize")
@example(1e-300, 1.5e-300, "maximize")
@given(FLOATS, FLOATS, st.sampled_from(["minimize", "maximize"]))
def test_figures_of_any_two_floats_are_drawn(one: float, other: float, direction: str) -> None:
    values = [one, other, one, 0.5, other, one]
    points = [{"x": value, "y": float(number)} for number, value in enumerate(values)]
    trials = [
        TrialRecord(
            number, "SUCCEEDED", point, {"default": point["x"]}, start_time=1.0, end_time=2.0, worker="w"
        )
        for number, point in enumerate(points)
    ]
    curves = [Curve(number, [0, 1, 2], [one, other, 0.5]) for number in range(len(trials))]
    table = ExperimentTable.of("extremes", [Objective(direction=direction)], trials, curves=curves)
    for options in ({}, {"log": True}, {"show_all": True}):
        for plot in (figures.plot_history, figures.plot_curves, figures.plot_slice):
            plot(table, **options)
    figures.plot_curves(table, smoothing=0.6)
    figures.plot_parallel(table)
    figures.plot_edf([table])
    figures.plot_contour(table, "x", "y")
    figures.plot_importance(table)
    figures.health_notes(table, fewest=3)


@pytest.mark.parametrize("power", [-990, -400, 400, 990])
def test_figures_of_tiny_and_huge_results_are_those_of_usual_ones(power: int) -> None:
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((60, 2))]

    def made(scale: float) -> ExperimentTable:
        values = [scale * (1.0 + point["x"] - 0.1 * point["y"]) for point in points]
        return ExperimentTable.of(
            "scaled",
            [Objective()],
            [
                TrialRecord(number, "SUCCEEDED", point, {"default": value})
                for number, (point, value) in enumerate(zip(points, values, strict=True))
            ],
        )

    scale = 2.0**power
    usual, scaled = made(1.0), made(scale)
    for plot, traces in ((figures.plot_history, 2), (figures.plot_edf, 2)):
        for before, after in zip(plot(usual).data, plot(scaled).data, strict=True):
            assert before.name == after.name
            factors = [axis for axis in "xy" if list(before[axis]) != list(after[axis])]
            assert len(factors) == 1
            assert list(after[factors[0]]) == [scale * value for value in before[factors[0]]]
        assert len(plot(scaled).data) == traces
    assert figures.importance(scaled) == figures.importance(usual)
    assert figures.health_notes(scaled) == figures.health_notes(usual)
    before, after = (figures.plot_contour(one, "x", "y").data[0].z for one in (usual, scaled))
    np.testing.assert_allclose(after, scale * before, rtol=1e-9)
    ticks = figures.plot_parallel(scaled).data[0].dimensions[-1]
    assert len(set(ticks.tickvals)) == len(set(ticks.ticktext)) == len(ticks.tickvals) > 2


@pytest.mark.parametrize(
    ("kind", "numbers", "is_log"),
    [
        ("lognormal", [512, 128], True),
        ("lognormal", [-512, 128], True),
        ("lognormal", [0, 75], True),
        ("lognormal", [0, 1e9], True),
        ("qlognormal", [0, 1, 1], False),  # may be 0
        ("qlognormal", [512, 128, 1e212], False),
        ("loguniform", [5e-324, 1.7e308], True),
        ("loguniform", [1e-300, 1e300], True),
        ("qloguniform", [1e200, 1e210, 1e199], True),
        ("lograndint", [1, 2**40], True),
        ("uniform", [-8e307, 8e307], False),
        ("uniform", [1e200, 2e200], False),
        ("quniform", [0, 5e-324, 5e-324], False),
        ("normal", [0, 1e300], False),
        ("normal", [1e300, 1e-300], False),
        ("qnormal", [0, 1e300, 1e290], False),
        ("randint", [-(2**49), 2**49], False),
    ],
)
def test_figures_of_the_farthest_ranges(kind: str, numbers: list[float], is_log: bool) -> None:
    given: dict[str, Any] = {
        "x": {"_type": kind, "_value": numbers},
        "y": {"_type": "uniform", "_value": [0, 1]},
    }
    space, rng = SearchSpace.parse(given), np.random.default_rng(1)
    points = [space.decode(rng.random(2)) for _ in range(15)]
    trials = [
        TrialRecord(
            number, "SUCCEEDED", point, {"default": point["y"]}, start_time=1.0, end_time=2.0, worker="w"
        )
        for number, point in enumerate(points)
    ]
    table = ExperimentTable.of("far", [Objective()], trials, dimensions_of(given))
    (one, _) = table.dimensions
    low, high = one.bounds
    assert (one.log, -np.inf < low <= high < np.inf) == (is_log, True)
    units = one.units(points)
    drawn = np.isfinite(units)
    assert ((units[drawn] >= 0) & (units[drawn] <= 1)).all()
    assert drawn.all() or not is_log  # there is room for all on a logarithmic axis
    if is_log and kind in ("lognormal", "loguniform"):
        assert (
            np.argsort(units, kind="stable") == np.argsort([point["x"] for point in points], kind="stable")
        ).all()
    for plot in (figures.plot_history, figures.plot_slice, figures.plot_parallel, figures.plot_importance):
        plot(table)
    figures.plot_contour(table, "x", "y")
    assert brushed(table, [(-400.0, 400.0), None, None], None, ["x", "y"]).where.startswith(
        "parameters.x >= "
    )
