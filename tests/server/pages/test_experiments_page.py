"""The line of the best result in the list of experiments."""

import re

from pitchpipe.server.pages.experiments_page import sparkline


def test_line_of_many_steps_is_short_and_keeps_both_ends() -> None:
    made = sparkline([float(-n) for n in range(5_000)])["path"]
    steps = re.findall(r"H([\d.]+)V([\d.]+)", made)
    assert len(steps) <= 101
    assert (made.count("M0 0"), steps[-1]) == (1, ("100", "20"))
