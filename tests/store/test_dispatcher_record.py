"""What a checkpoint of the dispatcher covers: the last reply it names, and none after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.store.dispatcher_record import QUEUES, DispatcherRecord, RecordRow, SavedState, queue_of_reply

TUNER, ASSESSOR = ("TR", "{}"), ("KI", '"AbCdE"')


@pytest.mark.parametrize(("reply", "last"), [(TUNER, 4), (ASSESSOR, 7)])
def test_last_reply_of_a_queue_is_covered_and_the_next_is_not(reply: tuple[str, str], last: int) -> None:
    saved = SavedState(9, "nine", default_reply=4, assessor_reply=7)
    assert [saved.covers((number, *reply)) for number in (last - 1, last, last + 1)] == [True, True, False]


@given(st.lists(st.sampled_from([TUNER, ASSESSOR]), max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_each_reply_is_either_covered_or_expected(
    kinds: list[tuple[str, str]], default: int, assessor: int
) -> None:
    replies: list[RecordRow] = [(number, *kind) for number, kind in enumerate(kinds, start=1)]
    saved = SavedState(3, "three", default, assessor)
    last = dict(zip(QUEUES, (default, assessor), strict=True))
    expected = [number for number, *kind in replies if number > last[queue_of_reply(kind[0], kind[1])]]
    assert [record[0] for record in DispatcherRecord((), replies, saved).expected()] == expected
    assert list(DispatcherRecord((), replies).expected()) == replies
