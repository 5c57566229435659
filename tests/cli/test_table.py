"""Tables at the width of a terminal."""

import os
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from pitchpipe.cli.printing import aligned

from .conftest import Call, Storing, make_trial

MANY = {f"parameter_{number}": number for number in range(20)}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that pretends to have a terminal of a width."""

    def terminal(width: int) -> None:
        monkeypatch.setattr("pitchpipe.cli.printing.sys", SimpleNamespace(stdout=_Terminal()))
        size = os.terminal_size((width, 24))
        monkeypatch.setattr("pitchpipe.cli.printing.shutil", SimpleNamespace(get_terminal_size=lambda: size))

    return terminal


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_very_long_cell_does_not_widen_all_rows() -> None:
    rows = [("#", "parameters", "reason"), ("0", "x" * 100_000, "bad"), *[("1", "lr=0.1", "worse")] * 50]
    lines = aligned(rows)
    assert f"  {'x' * 999}…  bad" in lines[1]
    assert max(map(len, lines)) < 1_050
    assert {line.index("worse") for line in lines[2:]} == {lines[0].index("reason")}


@pytest.mark.parametrize(("width", "has_parameters"), [(80, False), (130, True)])
def test_a_narrow_table_of_trials_keeps_status_result_and_reason(
    width: int, has_parameters: bool, terminal: Callable[[int], None], stored: Storing, call: Call
) -> None:
    failed = make_trial(1, "FAILED", MANY, reason="ValueError: the learning rate is far too big for this")
    stored().write("e1", [make_trial(0, "SUCCEEDED", MANY, 0.25), failed])
    terminal(width)
    lines = call("trials", "e1").out.splitlines()
    assert max(map(len, lines)) <= width
    assert "SUCCEEDED  0.25" in lines[1]
    assert "ValueError: the learning" in lines[2]
    assert ("parameters" in lines[0]) == ("parameter_0=0" in lines[1]) == has_parameters


def test_parameters_get_all_the_room_when_nothing_failed(
    terminal: Callable[[int], None], stored: Storing, call: Call
) -> None:
    stored().write("e1", [make_trial(0, "SUCCEEDED", MANY, 0.25)])
    terminal(80)
    line = call("trials", "e1").out.splitlines()[1]
    assert "parameter_0=0 parameter_1=1" in line
    assert len(line) <= 80
