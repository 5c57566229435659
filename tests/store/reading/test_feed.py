"""The feed reports what has changed since a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict

import pytest

from pitchpipe.store.reading.database import Database
from pitchpipe.store.reading.feed import Feed

from ...stored import MadeExperiment, a_trial, results


@pytest.fixture
def now() -> list[float]:
    """Return the time of the feed, which a test may set."""
    return [0.0]


@pytest.fixture
def feed(made: MadeExperiment, now: list[float]) -> Iterator[Feed]:
    with closing(Database(made.folder.database)) as db:
        yield Feed(db, lambda: now[0])


def test_events_are_what_has_changed(made: MadeExperiment, feed: Feed, now: list[float]) -> None:
    def events(cursor: str | None = None) -> tuple[str, list[tuple[object, ...]]]:
        now[0] += 1.0
        passed_over = ("n", "time", "trial_id", "attempt")
        page = feed.since(cursor)
        return page.cursor, [
            tuple(value for name, value in asdict(event).items() if name not in passed_over)
            for event in page.events
        ]

    cursor, found = events()
    assert found == []
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0]))
    cursor, found = events(cursor)
    assert found == [("results", 0, 0, 2), ("trial", 0, "RUNNING")]
    made.commit(trial, metrics=results(trial, [3.0], first=2), status="STOPPING", reason="enough")
    _, found = events(cursor)
    assert found == [("experiment", "STOPPING", "enough"), ("results", 0, 2, 3)]
    assert feed.since("00000000.5").reset
    assert not feed.since(cursor).reset


def test_database_is_read_again_only_after_a_while(
    made: MadeExperiment, feed: Feed, now: list[float]
) -> None:
    cursor = feed.since().cursor
    made.commit(a_trial(0))
    assert feed.since(cursor).events == []
    now[0] = 1.0
    assert [event.kind for event in feed.since(cursor).events] == ["trial"]


def test_events_come_in_pages(made: MadeExperiment, feed: Feed, now: list[float]) -> None:
    cursor = feed.since().cursor
    made.commit(*map(a_trial, range(3)))
    now[0] = 1.0
    first = feed.since(cursor, limit=2)
    second = feed.since(first.cursor, limit=2)
    assert [[event.sequence_id for event in page.events] for page in (first, second)] == [[0, 1], [2]]
