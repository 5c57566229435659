"""Parameters and moments as people read them; the simple cases are doctests, others in test_sentences.txt."""

from __future__ import annotations

import time

import pytest

from pitchpipe.store.reading.words import flat, moment_text


def test_empty_objects_stay_as_parameters() -> None:
    assert flat({"a": {}, "b": [1], "c": {"d": {"e": 1}}}) == {"a": {}, "b": [1], "c.d.e": 1}
    assert flat({}) == {}


def test_moment_is_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    assert moment_text(0.0) == "1970-01-01 02:00:00"
    monkeypatch.undo()
    time.tzset()
