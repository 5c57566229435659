"""Events are plain data; those with many values are made by keyword."""

from __future__ import annotations

import pytest

from pitchpipe.runner import events as happened


@pytest.mark.parametrize(("where", "reason"), [("", "it raised"), ("t.py:3", "it raised (t.py:3)")])
def test_reason_of_a_failed_dispatcher_has_the_place_if_it_is_known(where: str, reason: str) -> None:
    assert happened.DispatcherFailed(1.0, message="it raised", where=where).reason == reason
