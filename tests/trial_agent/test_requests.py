"""Requests keep their form as messages: agents of an earlier version must understand them."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.trial_agent import MessageDecoder, RunSpec, encode_message
from pitchpipe.trial_agent.checkpoint_store import Keeping
from pitchpipe.trial_agent.messages import MessageError
from pitchpipe.trial_agent.requests import (
    Hello,
    Kill,
    Pause,
    Ping,
    Poll,
    ReadFile,
    Request,
    Shutdown,
    Start,
    decode_request,
    encode_request,
)

ATTEMPT: dict[str, Any] = {"trial": "AbCdE", "attempt": 1}
KEEP: dict[str, Any] = {
    "keep": 2,
    "rank_by": "score",
    "mode": "minimize",
    "metric": "loss",
    "frequency": 5,
    "at_end": True,
}
ORDER = {
    **ATTEMPT,
    "sequence_id": 7,
    "parameters": "{}",
    "first_sequence": 3,
    "gpus": [0],
    "checkpoint": "trials/7/checkpoints/1-3",
    "budget": 9.0,
    "mark": "5f",
}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Hello("secret", "exp"), {"op": "hello", "token": "secret", "experiment": "exp"}),
        (Kill("AbCdE", 1, 0.5), {"op": "kill", **ATTEMPT, "grace": 0.5}),
        (Pause("AbCdE", 1), {"op": "pause", **ATTEMPT}),
        (Ping(), {"op": "ping"}),
        (Poll(4), {"op": "poll", "after": 4}),
        (ReadFile("a", 1, 2), {"op": "read_file", "path": "a", "offset": 1, "limit": 2}),
        (Shutdown(), {"op": "shutdown"}),
        (Start(**ORDER, keep=Keeping(**KEEP)), {"op": "start", **ORDER, "keep": KEEP}),
    ],
)
def test_request_keeps_its_message_and_is_decoded_from_it(request_: Request, message: dict[str, object]):
    (sent,) = MessageDecoder().feed(encode_message(encode_request(request_)))
    assert sent == message
    assert decode_request(message) == request_


def test_configure_message_keeps_every_field():
    run = RunSpec(
        kind="function",
        experiment="exp",
        folder="/exp",
        path="/exp/trial.pkl",
        environment={"A": "b"},
        memory_limit=5,
    )
    message = encode_request(run)
    assert (message["op"], message["experiment"], message["folder"]) == ("configure", "exp", "/exp")
    assert decode_request(message) == run


@pytest.mark.parametrize("message", [{"op": "dance"}, {}, {"op": "kill"}, {"op": "start", "trial": "a"}])
def test_invalid_message_is_refused(message: dict[str, object]):
    with pytest.raises(MessageError):
        decode_request(message)
