"""The outbox: no event is lost before it is acknowledged, and none is given out after."""

import threading

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.trial_agent import Report
from pitchpipe.trial_agent.agent_events import BATCH_BYTES, Outbox, encode_event


def event(number: int, value: str = "") -> Report:
    return Report(trial="AbCdE", attempt=1, kind="intermediate", sequence=number, value=value, time=0.0)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_every_event_comes_once_however_replies_are_lost(steps: list[tuple[int, bool]]) -> None:
    box, cursor, put, got = Outbox(), 0, 0, []
    for count, arrives in [*steps, (0, True), (0, True)]:
        box.put_all([event(put + i) for i in range(count)])
        put += count
        events, after = box.take(cursor)
        if arrives:  # a reply that is lost acknowledges nothing
            got += [e.sequence for e in events if isinstance(e, Report)]
            cursor = after
    assert got == list(range(put))
    box.take(cursor)
    assert len(box) == 0


def test_batches_are_bounded_but_never_empty() -> None:
    box = Outbox()
    box.put(event(0, "x" * 3 * BATCH_BYTES))
    box.put_all([event(n, "x" * 1000) for n in range(1, 200)])
    events, cursor = box.take(0)
    assert (len(events), cursor) == (1, 1)
    events, cursor = box.take(cursor)
    assert sum(len(orjson.dumps(encode_event(e))) for e in events) <= BATCH_BYTES
    assert cursor == 1 + len(events) > 50


def test_cursor_without_events_is_where_it_was() -> None:
    box = Outbox()
    box.put(event(0))
    assert box.take(0)[1] == 1
    assert box.take(1) == ([], 1)
    assert box.take(1) == ([], 1)


def test_held_events_leave_with_the_urgent_one() -> None:
    calls: list[int] = []
    box = Outbox(lambda: calls.append(len(box)))
    box.hold(60.0)
    box.put(event(0), urgent=False)
    assert box.take(0) == ([], 0)
    assert box.wait(0, 0.0) == ([], 0)
    box.put(event(1))
    assert calls == [2]
    assert len(box.take(0)[0]) == 2


def test_hold_ends_by_itself() -> None:
    box = Outbox()
    box.hold(0.01)
    box.put(event(0), urgent=False)
    assert box.wait(0, 30.0) == ([event(0)], 1)


def test_hold_that_begins_while_a_thread_waits_ends_by_itself_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box, found = Outbox(), []
    waits, wait = threading.Event(), box._changed.wait

    def told_wait(timeout: float | None = None) -> bool:
        waits.set()  # with the lock, which hold() gets once the thread waits
        return wait(timeout)

    monkeypatch.setattr(box._changed, "wait", told_wait)
    thread = threading.Thread(target=lambda: found.append(box.wait(0, 60.0)), daemon=True)
    thread.start()
    assert waits.wait(30.0)
    box.hold(0.01)
    box.put(event(0), urgent=False)
    thread.join(30.0)
    assert found == [([event(0)], 1)]


def test_hold_is_released_once_its_time_is_over_and_only_then() -> None:
    box = Outbox()
    assert not box.release()
    box.hold(60.0)
    assert box.is_holding
    assert not box.release()
    box.hold(0.0)
    assert box.release()
    assert not box.is_holding
    assert not box.release()


def test_event_that_is_not_urgent_leaves_at_once_when_nothing_is_held() -> None:
    calls: list[int] = []
    box = Outbox(lambda: calls.append(1))
    box.put(event(0), urgent=False)
    assert calls == [1]


def test_waiting_thread_is_woken_by_an_event() -> None:
    box = Outbox()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(box.wait(0, 30.0)))
    thread.start()
    box.put(event(0))
    thread.join(30.0)
    assert found == [([event(0)], 1)]


def test_numbers_of_what_was_put_sent_and_confirmed() -> None:
    box = Outbox()
    assert (box.last, box.sent, box.confirmed) == (0, 0, 0)
    box.put_all([event(0), event(1)])
    assert (box.last, box.sent, box.confirmed) == (2, 0, 0)
    box.take(0)
    box.put(event(2))
    assert (box.last, box.sent, box.confirmed) == (3, 2, 0)
    box.take(2)
    assert (box.last, box.sent, box.confirmed) == (3, 3, 2)


def test_full_outbox_has_room_again_when_events_are_acknowledged() -> None:
    calls: list[str] = []
    box = Outbox(max_bytes=300)
    box.on_room = lambda: calls.append("room")
    box.put_all([event(0), event(1)])
    assert not box.is_full
    box.wait_for_room()  # returns
    box.put(event(2))
    assert box.is_full
    thread = threading.Thread(target=lambda: (box.wait_for_room(), calls.append("continued")))
    thread.start()
    box.take(0)
    assert calls == []
    box.take(1)
    thread.join(30.0)
    assert sorted(calls) == ["continued", "room"]


def test_long_values_fill_the_outbox() -> None:
    box = Outbox(max_bytes=10_000)
    box.put(event(0, "x" * 10_000))
    assert box.is_full


def test_wait_for_room_ends_when_it_is_given_up_or_the_outbox_is_closed() -> None:
    box, given_up, returned = Outbox(max_bytes=100), threading.Event(), threading.Semaphore(0)
    box.put(event(0))
    for condition in (given_up.is_set, lambda: False):
        threading.Thread(target=lambda c=condition: (box.wait_for_room(c), returned.release())).start()
    given_up.set()
    box.stir()
    assert returned.acquire(timeout=30.0)
    assert not returned.acquire(blocking=False)
    box.close()
    assert returned.acquire(timeout=30.0)


def test_closed_outbox_takes_no_more_than_it_has_room_for() -> None:
    box = Outbox(max_bytes=300)
    box.close()
    for number in range(10):
        box.put(event(number))
    assert len(box) == 3


def test_hold_can_be_extended_but_not_begun_again() -> None:
    box = Outbox()
    box.hold_on(60.0)
    assert not box.is_holding
    box.hold(0.0)
    box.hold_on(60.0)
    assert box.held_for() > 1.0
