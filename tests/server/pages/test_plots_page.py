"""What an address of the page of figures asks for, and what of it an experiment knows."""

from __future__ import annotations

import pytest

from pitchpipe.server.figures import ExperimentTable, Objective, TrialRecord, example_table
from pitchpipe.server.pages.plots_page import Choice


def test_choices_come_back_from_their_address() -> None:
    choice = Choice(figure="slice", objective="train.loss", stopped=False, step=12, show_all=True)
    assert Choice.parse(choice.query()) == choice
    usual = Choice.parse({"figure": "slice"})
    assert (usual.stopped, usual.step) == (True, None)
    assert Choice.parse(usual.query()) == usual


@pytest.mark.parametrize("step", ["0", "-1", "1.5", "nan", "\u0663", "9" * 400, "1; DROP TABLE trials"])
def test_step_that_is_no_number_of_a_result_is_left_out(step: str) -> None:
    assert Choice.parse({"step": step}).step is None


def test_metric_that_nobody_reported_is_left_out() -> None:
    trials = [TrialRecord(0, "SUCCEEDED", {"x": 1}, {"default": 1.0}, {"train.loss": 2.0})]
    table = ExperimentTable.of("one", [Objective()], trials)
    assert Choice(figure="history", objective="train.loss").known_in(table).objective == "train.loss"
    assert Choice(figure="history", objective="train.loss").known_in(example_table()).objective is None
