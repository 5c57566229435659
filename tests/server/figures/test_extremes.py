"""Figures of numbers at the ends of what a float can be."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pitchpipe.server import figures
from pitchpipe.server.figures import Curve, ExperimentTable, Objective, TrialRecord

FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [5e-324, 2.3e-308, 1e-100, 1e100, 1e308, -1e308]
)


@settings(max_examples=2, deadline=None)
@example(5e-324, 1e308, "minimize")
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
