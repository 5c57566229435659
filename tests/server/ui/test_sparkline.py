"""The line of the best result in the list of experiments."""

import math
import re

from pitchpipe.server.ui.sparkline import sparkline


def test_line_goes_down_by_steps_from_the_first_result() -> None:
    made = sparkline([None, 4.0, 4.0, 3.0, 2.0])
    assert made == {"path": "M0 0H66.67V10H100V20", "says": "Best result over 4 trials: 4 to 2"}


def test_line_of_equal_results_is_in_the_middle() -> None:
    assert sparkline([5.0, 5.0, 5.0])["path"] == "M0 10H100V10"


def test_line_between_the_largest_floats_is_drawn() -> None:
    assert sparkline([1e308, -1e308, -1.7e308])["path"] == "M0 0H50V14.81H100V20"


def test_fewer_than_two_results_have_no_line() -> None:
    assert sparkline([]) == sparkline([None, 1.0]) == sparkline([math.inf, 1.0]) == {}


def test_line_of_many_steps_is_short_and_keeps_both_ends() -> None:
    made = sparkline([float(-n) for n in range(5_000)])["path"]
    steps = re.findall(r"H([\d.]+)V([\d.]+)", made)
    assert len(steps) <= 101
    assert (made.count("M0 0"), steps[-1]) == (1, ("100", "20"))
