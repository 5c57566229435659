"""Events are plain data; those with many values are made by keyword."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pitchpipe.runner import events as happened

from .driver import EVENT_KINDS


@pytest.mark.parametrize("kind", sorted(EVENT_KINDS, key=lambda kind: kind.__name__))
def test_event_takes_at_most_four_values_by_position_and_the_time_first(kind: type[happened.Event]) -> None:
    by_position = [field.name for field in fields(kind) if not field.kw_only]
    assert by_position[0] == "time"
    assert len(by_position) <= (
        6 if kind is happened.Reported else 4
    )  # made for each result, so it must be fast


@pytest.mark.parametrize(("where", "reason"), [("", "it raised"), ("t.py:3", "it raised (t.py:3)")])
def test_reason_of_a_failed_dispatcher_has_the_place_if_it_is_known(where: str, reason: str) -> None:
    assert happened.DispatcherFailed(1.0, message="it raised", where=where).reason == reason
