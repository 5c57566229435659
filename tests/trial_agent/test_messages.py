"""Messages between manager and agent: their framing, and requests, which agents of an earlier version understand."""

import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe import protocol
from pitchpipe.trial_agent import MessageDecoder, encode_message, messages
from pitchpipe.trial_agent.messages import (
    Hello,
    Keeping,
    Kill,
    MessageError,
    Pause,
    Ping,
    Poll,
    ReadFile,
    Request,
    RunSpec,
    Shutdown,
    Start,
    decode_request,
    encode_request,
)

# Paths have what Python makes of bytes that are not UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.integers(0xDC80, 0xDCFF).map(chr))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), max_size=4)


@given(MESSAGES, st.lists(st.integers(0, 10_000)))
def test_messages_survive_any_split(messages: list[dict[str, object]], cuts: list[int]) -> None:
    wire = b"".join(encode_message(message) for message in messages)
    borders = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]
    decoder = MessageDecoder()
    found = [m for a, b in itertools.pairwise(borders) for m in decoder.feed(wire[a:b])]
    assert found == messages


def test_parameters_as_long_as_the_dispatcher_may_send_fit_into_a_message() -> None:
    assert messages.MAX_LENGTH > 2 * protocol.MAX_LENGTH  # a quote is escaped
    sent = {"parameters": '"' * 17_000_000}
    assert MessageDecoder().feed(encode_message(sent)) == [sent]


def test_length_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(MessageError, match="over the limit"):
        MessageDecoder(max_length=100).feed(struct.pack(">I", 101))


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff"])
def test_what_is_not_an_object_is_refused_with_its_bytes(body: bytes) -> None:
    with pytest.raises(MessageError, match="b"):
        MessageDecoder().feed(struct.pack(">I", len(body)) + body)


def test_bytes_travel_as_base64_and_other_objects_not_at_all() -> None:
    assert MessageDecoder().feed(encode_message({"data": b"log"})) == [{"data": "bG9n"}]
    with pytest.raises(TypeError, match="object"):
        encode_message({"data": object()})


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
