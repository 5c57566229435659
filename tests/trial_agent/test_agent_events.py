"""The events of an agent and their messages, field by field: agents and managers of other versions read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from pitchpipe.trial_agent import Ended, Event, Report, Saved, SpoolProblem, Started, decode_events
from pitchpipe.trial_agent.agent_events import encode_event
from pitchpipe.trial_agent.messages import MessageError

WHO = {"trial": "AbCdE", "attempt": 1}
NOT_REACHED = {
    "exit_code": None,
    "signal": None,
    "error": None,
    "killed": False,
    "paused": False,
    "time": 2.0,
}
MESSAGES = [
    (Started(**WHO, pid=7, time=2.0), {"e": "started", **WHO, "pid": 7, "time": 2.0, "note": None}),
    (
        Report("AbCdE", 1, "final", 3, "0.9", 2.0),
        {"e": "report", **WHO, "kind": "final", "sequence": 3, "value": "0.9", "time": 2.0},
    ),
    (
        Saved(**WHO, name="1-3", sequence=3, time=2.0),
        {"e": "checkpoint", **WHO, "name": "1-3", "sequence": 3, "value": None, "time": 2.0},
    ),
    (SpoolProblem(**WHO, message="?"), {"e": "problem", **WHO, "message": "?"}),
    (
        Ended(**WHO, time=2.0),
        {"e": "ended", **WHO, **NOT_REACHED, "out_of_memory": False, "exported": None},
    ),
    (
        Ended(**WHO, time=2.0, out_of_memory=True, exported={"onnx": "/m"}),
        {"e": "ended", **WHO, **NOT_REACHED, "out_of_memory": True, "exported": {"onnx": "/m"}},
    ),
]


@pytest.mark.parametrize(("event", "message"), MESSAGES)
def test_message_of_an_event_has_its_fields_with_the_mark_last(event: Event, message: dict[str, Any]) -> None:
    marked = replace(event, mark="5f")
    assert orjson.dumps(encode_event(marked)) == orjson.dumps({**message, "mark": "5f"})
    assert decode_events([encode_event(marked)]) == [marked]


@pytest.mark.parametrize(("event", "message"), MESSAGES)
def test_message_may_lack_a_mark_and_have_fields_of_a_later_version(
    event: Event, message: dict[str, Any]
) -> None:
    assert decode_events([message, {**message, "of_a_later_version": 1}]) == [event, event]


def test_outcome_leaves_out_what_does_not_apply() -> None:
    assert Ended(**WHO, time=2.0, mark="5f").outcome() == NOT_REACHED
    killed = Ended(**WHO, time=2.0, out_of_memory=True, exported={"onnx": "/m"})
    assert killed.outcome() == {**NOT_REACHED, "out_of_memory": True, "exported": {"onnx": "/m"}}


@pytest.mark.parametrize("message", [{}, {"e": "?"}, {"e": "report", **WHO}, {"e": [], **WHO}])
def test_event_that_makes_no_sense_is_a_message_error(message: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match="is invalid"):
        decode_events([message])


def test_texts_of_users_can_be_sent_whatever_they_hold() -> None:
    ended = Ended(**WHO, error="\udcff", exported={"\ud800": "/m\udcff"}, time=2.0)
    assert (ended.error, ended.exported) == ("?", {"?": "/m?"})
    assert SpoolProblem(**WHO, message="\udcff").message == "?"
