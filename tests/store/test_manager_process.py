"""The manager's clock, and what it notices of a clock that was set."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.store import steady_clock
from pitchpipe.store.manager_process import clock_jump, clock_mark


def test_steady_clock_counts_from_the_time_of_day_whatever_that_becomes() -> None:
    now = steady_clock(wall=iter([1000.0]).__next__, elapsed=iter([7.0, 8.5, 9.0]).__next__)
    assert [now(), now()] == [1001.5, 1002.0]


def test_two_marks_of_a_clock_that_was_not_set_show_no_jump() -> None:
    assert clock_jump(clock_mark(), clock_mark()) == 0.0


@pytest.mark.parametrize(("offset", "jump"), [(100.5, 0.0), (3700.0, 3600.0), (40.0, -60.0)])
def test_jump_is_reported_from_one_second_on(offset: float, jump: float) -> None:
    assert clock_jump({"boot": "a", "offset": 100.0}, {"boot": "a", "offset": offset}) == jump


@pytest.mark.parametrize("before", [{}, {"boot": "b", "offset": 0.0}, {"boot": "a"}])
def test_marks_that_cannot_be_compared_show_no_jump(before: dict[str, object]) -> None:
    assert clock_jump(before, {"boot": "a", "offset": 3700.0}) == 0.0


def test_mark_of_a_system_without_boot_ids_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    mark = clock_mark()
    assert clock_jump(mark, {**mark, "offset": mark["offset"] + 3600.0}) == 0.0
