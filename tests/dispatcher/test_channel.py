"""The channel over descriptors: whole frames from pieces, one write for many frames, and its ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pitchpipe.dispatcher import ChannelClosed, FdChannel
from pitchpipe.protocol import BadHeader, CommandType, Frame, TruncatedFrame, encode_frame

PING = Frame(CommandType.Ping)


@dataclass
class Ends:
    channel: FdChannel
    out_fd: int  # to the channel
    in_fd: int  # from the channel

    def hang_up(self) -> None:
        os.close(self.out_fd)
        self.out_fd = -1


@pytest.fixture
def ends() -> Iterator[Ends]:
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    ends = Ends(FdChannel(theirs_in, theirs_out), ours_out, ours_in)
    yield ends
    ends.channel.close()
    for fd in (ends.out_fd, ends.in_fd):
        if fd >= 0:
            os.close(fd)


def test_frames_in_pieces_are_received_one_by_one(ends):
    data = encode_frame(CommandType.RequestTrialJobs, "2") + encode_frame(CommandType.Ping)
    os.write(ends.out_fd, data[:7])
    threading.Timer(0.01, os.write, (ends.out_fd, data[7:])).start()
    assert ends.channel.receive() == Frame(CommandType.RequestTrialJobs, "2")
    assert ends.channel.receive() == PING


def test_end_of_the_stream_is_none(ends):
    os.write(ends.out_fd, encode_frame(*PING))
    ends.hang_up()
    assert ends.channel.receive() == PING
    assert ends.channel.receive() is None


def test_end_inside_a_frame_is_an_error(ends):
    os.write(ends.out_fd, b"PI0000")
    ends.hang_up()
    with pytest.raises(TruncatedFrame):
        ends.channel.receive()


def test_frames_before_garbage_are_received_first(ends):
    os.write(ends.out_fd, encode_frame(*PING) * 2 + b"garbage garbage!")
    assert [ends.channel.receive(), ends.channel.receive()] == [PING, PING]
    with pytest.raises(BadHeader):
        ends.channel.receive()


def test_interrupt_wakes_a_waiting_receiver(ends):
    received: list[Frame | None] = [PING]
    waiting = threading.Thread(target=lambda: received.append(ends.channel.receive()))
    waiting.start()
    ends.channel.interrupt()
    waiting.join(20)
    assert received == [PING, None]


def test_interrupt_goes_before_what_has_come(ends):
    os.write(ends.out_fd, encode_frame(*PING) * 2)
    assert ends.channel.receive() == PING
    ends.channel.interrupt()
    assert ends.channel.receive() is None


def test_sent_frames_leave_together_at_the_flush(ends):
    os.set_blocking(ends.in_fd, False)
    ends.channel.send(CommandType.Initialized)
    ends.channel.send(CommandType.NewTrialJob, "{}")
    with pytest.raises(BlockingIOError):
        os.read(ends.in_fd, 100)
    ends.channel.flush()
    expected = encode_frame(CommandType.Initialized) + encode_frame(CommandType.NewTrialJob, "{}")
    assert os.read(ends.in_fd, 100) == expected


def test_more_than_a_pipe_holds_is_written_whole(ends):
    payload = "x" * 1_000_000
    ends.channel.send(CommandType.Error, payload)
    writing = threading.Thread(target=ends.channel.flush)
    writing.start()
    expected = encode_frame(CommandType.Error, payload)
    data = b""
    while len(data) < len(expected):
        data += os.read(ends.in_fd, 1 << 20)
    writing.join(20)
    assert data == expected


def test_rest_of_a_short_write_follows(ends, monkeypatch):
    write = os.write
    monkeypatch.setattr("pitchpipe.dispatcher.channel.os.write", lambda fd, data: write(fd, data[:7]))
    ends.channel.send(CommandType.NewTrialJob, "abcdefghij")
    ends.channel.flush()
    assert os.read(ends.in_fd, 100) == encode_frame(CommandType.NewTrialJob, "abcdefghij")


def test_descriptor_that_does_not_block_is_made_to(ends):
    in_fd, out_fd = os.pipe()
    os.set_blocking(out_fd, False)
    channel = FdChannel(in_fd, out_fd)
    assert os.get_blocking(out_fd)
    channel.close()


def test_worker_that_was_abandoned_writes_nothing_into_a_closed_channel():
    (in_fd, to_it), (from_it, out_fd) = os.pipe(), os.pipe()
    channel = FdChannel(in_fd, out_fd)
    channel.close()
    files = [os.dup(to_it) for _ in range(4)]  # they have the numbers of the channel's descriptors now
    channel.send(CommandType.Ping)
    with pytest.raises(ChannelClosed):
        channel.flush()
    channel.interrupt()
    assert channel.receive() is None
    for fd in (*files, to_it, from_it):
        os.close(fd)


def test_frames_of_many_threads_are_not_mixed(ends):
    def write(letter: str) -> None:
        for _ in range(50):
            ends.channel.send(CommandType.Error, letter * 5000)
            ends.channel.flush()

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    data = b""
    while len(data) < 200 * 5016:
        data += os.read(ends.in_fd, 1 << 20)
    frames = [data[i : i + 5016] for i in range(0, len(data), 5016)]
    whole = [encode_frame(CommandType.Error, letter * 5000) for letter in "abcd" for _ in range(50)]
    assert sorted(frames) == whole


def test_flush_without_a_reader_is_channel_closed(ends):
    os.close(ends.in_fd)
    ends.in_fd = -1
    ends.channel.send(CommandType.Initialized)
    with pytest.raises(ChannelClosed):
        ends.channel.flush()
