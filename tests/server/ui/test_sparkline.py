"""The line of the best result in the list of experiments."""

import math
import re

from pitchpipe.server.ui.sparkline import sparkline


def test_line_goes_down_by_steps_from_the_first_result() -> None:
    made = sparkline([None, 4.0, 4.0, 3.0, 2.0])
    assert '<path d="M0 0H66.67V10H100V20"/>' in made
    assert 'aria-label="Best result over 4 trials: 4 to 2"' in made


def test_line_of_equal_results_is_in_the_middle() -> None:
    assert '<path d="M0 10H100V10"/>' in sparkline([5.0, 5.0, 5.0])


def test_fewer_than_two_results_have_no_line() -> None:
    assert sparkline([]) == sparkline([None, 1.0]) == sparkline([math.inf, 1.0]) == ""


def test_line_of_many_steps_is_short_and_keeps_both_ends() -> None:
    made = sparkline([float(-n) for n in range(5_000)])
    steps = re.findall(r"H([\d.]+)V([\d.]+)", made)
    assert len(steps) <= 101
    assert (made.count("M0 0"), steps[-1]) == (1, ("100", "20"))
