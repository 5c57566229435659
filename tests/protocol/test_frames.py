"""Frames: bytes to commands and back, whole or in pieces, good or bad."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.protocol import (
    MAX_LENGTH,
    BadHeader,
    BadPayload,
    CommandType,
    Frame,
    FrameDecoder,
    FrameError,
    FrameTooLong,
    TruncatedFrame,
    UnknownCommand,
    encode_frame,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
FRAMES = st.lists(st.builds(Frame, st.sampled_from(CommandType), TEXTS), max_size=8)
PING = encode_frame(CommandType.Ping)


def encode_all(frames: list[Frame]) -> bytes:
    return b"".join(encode_frame(*frame) for frame in frames)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(borders)]


def decode(pieces: list[bytes]) -> tuple[list[Frame], FrameError | None]:
    """All frames that the pieces hold, and the fault that ends them."""
    decoder, frames = FrameDecoder(), []
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        decoder.finish()
    except FrameError as error:
        return frames + list(error.frames), error
    return frames, None


def test_frame_bytes_are_code_length_and_payload():
    assert encode_frame(CommandType.RequestTrialJobs, "2") == b"GE00000000000001" + b"2"
    assert encode_frame(CommandType.Initialized) == b"ID00000000000000"


def test_length_counts_bytes_not_characters():
    assert encode_frame(CommandType.Error, "é€") == b"ER00000000000005" + "é€".encode()


@settings(max_examples=50)
@given(FRAMES, st.lists(st.integers(0, 10_000), max_size=12))
def test_round_trip_survives_any_split(frames, cuts):
    assert decode(in_pieces(encode_all(frames), cuts)) == (frames, None)


@settings(max_examples=50)
@given(FRAMES)
def test_round_trip_byte_by_byte(frames):
    data = encode_all(frames)
    assert decode([data[i : i + 1] for i in range(len(data))]) == (frames, None)


@given(st.binary(max_size=80))
def test_garbage_is_frames_or_a_typed_error(data):
    frames, error = decode([data])
    if error is None:
        assert encode_all(frames) == data
    else:
        assert 0 <= error.offset <= len(data)
        assert data[error.offset :].startswith(error.data)
        assert repr(error.data) in str(error)


@settings(max_examples=50)
@given(FRAMES, st.binary(max_size=40), st.lists(st.integers(0, 10_000), max_size=6))
def test_faults_do_not_depend_on_the_split(frames, garbage, cuts):
    data = encode_all(frames) + garbage
    whole, split = decode([data]), decode(in_pieces(data, cuts))
    assert split[0] == whole[0]
    assert type(split[1]) is type(whole[1])
    if whole[1] is not None and split[1] is not None:
        assert split[1].offset == whole[1].offset


@pytest.mark.parametrize(
    ("bad", "kind", "offset"),
    [
        (b"hello, this is no frame", BadHeader, 0),
        (b"GE0000000000000x1", BadHeader, 0),
        (b"GE-0000000000001", BadHeader, 0),
        (b"GE         0001_", BadHeader, 0),
        (b"ge00000000000000", UnknownCommand, 0),
        (b"XX00000000000000", UnknownCommand, 0),
        (b"GE99999999999999", FrameTooLong, 0),
        (b"GE00000000000004ab\xffd", BadPayload, 18),
        (b"GE00000000000004ab", TruncatedFrame, 0),
        (b"GE0000", TruncatedFrame, 0),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2])
def test_fault_is_typed_and_placed(bad, kind, offset, pieces):
    frames, error = decode([PING + bad] if pieces == 1 else [PING, bad])
    assert frames == [Frame(CommandType.Ping)]
    assert type(error) is kind
    assert error.offset == len(PING) + offset
    assert f"at byte {len(PING) + offset}: b'" in str(error)


@pytest.mark.parametrize("begun", [b"h", b"hi", b"GEx", b"GE00 "])
def test_bad_beginning_of_a_header_is_not_waited_for(begun):
    with pytest.raises(FrameError):
        FrameDecoder().feed(begun)


def test_fault_is_final():
    decoder = FrameDecoder()
    with pytest.raises(BadHeader):
        decoder.feed(b"rubbish rubbish!")
    with pytest.raises(BadHeader):
        decoder.feed(PING)
    with pytest.raises(BadHeader):
        decoder.finish()


def test_length_limit_is_checked_before_the_payload_comes():
    with pytest.raises(FrameTooLong, match="11 bytes, more than 10"):
        FrameDecoder(max_length=10).feed(b"ME00000000000011")
    assert FrameDecoder(max_length=10).feed(b"ME000000000000100123456789") == [
        Frame(CommandType.ReportMetricData, "0123456789")
    ]


def test_nothing_is_allocated_for_an_announced_length():
    tracemalloc.start()
    FrameDecoder().feed(b"ME%014d" % MAX_LENGTH)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_payload_above_the_limit_is_refused_by_the_sender():
    with pytest.raises(FrameTooLong):
        encode_frame(CommandType.Error, "x" * (MAX_LENGTH + 1))


def test_lone_surrogate_is_refused_by_the_sender():
    with pytest.raises(BadPayload, match="ud800"):
        encode_frame(CommandType.Error, "a\ud800")


def test_long_frame_in_small_pieces_is_not_copied_per_piece():
    text = "x" * 100_000
    data = encode_frame(CommandType.ImportData, text)
    decoder = FrameDecoder()
    decoder.feed(data[:1000])
    waiting = decoder._rest
    for start in range(1000, 99_000, 1000):
        assert decoder.feed(data[start : start + 1000]) == []
        assert decoder._rest is waiting
    assert decoder.feed(data[99_000:]) == [Frame(CommandType.ImportData, text)]


def test_codes_are_those_of_the_published_protocol():
    published = ["IN", "GE", "ME", "SS", "FD", "AD", "EN", "TE", "PI", "ID", "TR", "SP", "NO", "KI", "ER"]
    ours = ["PA", "RE", "CK", "PR"]
    assert [command.value.decode() for command in CommandType] == published + ours
