"""Histories and verdicts, for any order in which results may come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.dispatcher.errors import PluginFailed
from pitchpipe.dispatcher.judging import AssessorHalf, RecentIds
from pitchpipe.protocol import CommandType, dumps, loads

ARRIVALS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), max_size=30)


class Threshold:
    """Finds a history bad when it has three results."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def assess_trial(self, trial_job_id: str, trial_history: list[int]) -> bool:
        self.calls.append((trial_job_id, trial_history))
        return len(trial_history) < 3

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        self.calls.append((trial_job_id, []))


def judge(arrivals: list[tuple[str, int]]) -> tuple[Threshold, list[Any]]:
    sent: list[Any] = []
    judging = AssessorHalf(Threshold(), lambda command, payload: sent.append((command, payload)))
    for trial, sequence in arrivals:
        judging.metric(trial, sequence, dumps(sequence))
    return judging.plugin.instance, sent


@given(ARRIVALS)
def test_histories_are_contiguous_and_grow(arrivals):
    assessor, _ = judge(arrivals)
    for trial in "ab":
        lengths = [len(history) for name, history in assessor.calls if name == trial]
        assert lengths == sorted(set(lengths))
        assert all(history == list(range(len(history))) for _, history in assessor.calls)


@given(ARRIVALS)
def test_trial_is_stopped_once_and_not_judged_again(arrivals):
    assessor, sent = judge(arrivals)
    doomed = {trial for trial, history in assessor.calls if len(history) >= 3}
    assert sorted(sent) == [] if not sent else len(sent) == len(doomed)
    assert {payload for _, payload in sent} == {dumps(trial) for trial in doomed}
    assert all(command is CommandType.KillTrialJob for command, _ in sent)
    for trial in doomed:
        assert sum(len(history) >= 3 for name, history in assessor.calls if name == trial) == 1


def test_spared_trial_is_judged_to_its_end_and_never_stopped() -> None:
    sent: list[Any] = []
    judging = AssessorHalf(Threshold(), lambda command, payload: sent.append(loads(payload)))
    for sequence in range(5):
        judging.metric("a", sequence, dumps(sequence), is_spared=True)
        judging.metric("b", sequence, dumps(sequence))
    judging.trial_end("a", True)
    assert sent == ["b"]
    seen = [len(history) for name, history in judging.plugin.instance.calls if name == "a"]
    assert seen == [1, 2, 3, 4, 5, 0]


@given(st.permutations(range(5)))
def test_whole_history_is_judged_in_the_end(order):
    judging = AssessorHalf(Everything(), lambda *_: None)
    for sequence in order:
        judging.metric("t", sequence, dumps(sequence))
    assert judging.plugin.instance.last == [0, 1, 2, 3, 4]


class Everything:
    last: Any = None

    def assess_trial(self, trial_job_id: str, trial_history: list[int]) -> bool:
        self.last = trial_history
        return True

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        pass


def test_memory_of_ended_trials_is_bounded():
    judging = AssessorHalf(Everything(), lambda *_: None)
    judging._ended = RecentIds(5)
    for i in range(100):
        judging.metric(str(i), 0, "1")
        judging.trial_end(str(i), True)
    assert judging._histories == {}
    assert len(judging._ended._ids) == 5


class Slotted:
    __slots__ = ()

    def assess_trial(self, trial_job_id: str, trial_history: list[int]) -> bool:
        return False


class Computed(Slotted):
    @property
    def reason(self) -> str:
        return "too slow"


class Broken(Slotted):
    def __setattr__(self, name: str, value: Any) -> None:
        raise ZeroDivisionError


def reasons(assessor: Any) -> list[str]:
    sent: list[str] = []
    judging = AssessorHalf(
        assessor, lambda command, payload: sent.append(loads(payload)["reason"]), peer=True
    )
    judging.metric("t", 0, "1")
    return sent


def test_assessor_without_an_attribute_for_the_reason_gets_the_usual_one():
    assert reasons(Slotted()) == ["Slotted found it bad after 1 result"]


def test_reason_may_be_computed():
    assert reasons(Computed()) == ["too slow"]


def test_assessor_that_refuses_a_reason_in_its_own_way_is_at_fault():
    with pytest.raises(PluginFailed, match="of the assessor raised ZeroDivisionError"):
        reasons(Broken())
