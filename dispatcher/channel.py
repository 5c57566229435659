"""Channels: how a dispatcher receives and sends frames.

Each dispatcher gets a channel, so several can live in one process. Frames are collected until `flush`, so all
output of a command leaves in one write.
"""

from __future__ import annotations

import os
import select
from collections import deque
from queue import SimpleQueue
from threading import Lock
from typing import Protocol

from ..protocol import CommandType, Frame, FrameDecoder, FrameError, encode_frame
from .errors import ChannelClosed

_CHUNK = 1 << 18


class Channel(Protocol):
    """What a dispatcher needs from its connection to the manager."""

    def receive(self) -> Frame | None:
        """Wait for the next frame and return it; None at the end of the stream and after `interrupt`."""
        ...

    def send(self, command: CommandType, payload: str = "") -> None:
        """Queue a frame for the next `flush`; from any thread."""
        ...

    def flush(self) -> None:
        """Send the queued frames in order; raise `ChannelClosed` when the manager no longer reads."""
        ...

    def interrupt(self) -> None:
        """Make the current or the next `receive` return None at once; from any thread."""
        ...


class FdChannel:
    """Frames over two file descriptors, normally those of pipes."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in, self._out = in_fd, out_fd
        os.set_blocking(out_fd, True)  # whatever mode the manager set
        self._decoder = FrameDecoder()
        self._frames: deque[Frame] = deque()
        self._fault: FrameError | None = None
        self._unsent: list[bytes] = []
        self._unsent_lock, self._write_lock = Lock(), Lock()
        self._interrupted = self._is_closed = False
        self._wake_in, self._wake_out = os.pipe()
        self._poll = select.poll()
        self._poll.register(in_fd, select.POLLIN)
        self._poll.register(self._wake_in, select.POLLIN)

    def receive(self) -> Frame | None:
        """Return the next frame, or None; raise a `FrameError` after the last good frame."""
        while not self._interrupted:
            if self._frames:
                return self._frames.popleft()
            if self._fault is not None:
                raise self._fault
            self._poll.poll()
            if self._interrupted:
                break
            data = os.read(self._in, _CHUNK)
            if not data:
                self._decoder.finish()
                return None
            try:
                self._frames.extend(self._decoder.feed(data))
            except FrameError as error:
                self._frames.extend(error.frames)
                self._fault = error
        return None

    def send(self, command: CommandType, payload: str = "") -> None:
        """Queue a frame for the next `flush`."""
        data = encode_frame(command, payload)
        with self._unsent_lock:
            self._unsent.append(data)

    def flush(self) -> None:
        """Write the queued frames, waiting while the pipe is full."""
        if not self._unsent:
            return  # as after most results
        with self._write_lock:
            if self._is_closed:  # a worker that was abandoned comes late; others may have the descriptor
                raise ChannelClosed("the dispatcher has ended")
            with self._unsent_lock:
                data = memoryview(b"".join(self._unsent))
                self._unsent.clear()
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError as error:
                raise ChannelClosed(f"the manager no longer reads ({error.strerror})") from error

    def interrupt(self) -> None:
        """Make `receive` return None."""
        self._interrupted = True
        if not self._is_closed:
            os.write(self._wake_out, b"\0")

    def close(self) -> None:
        """Close the descriptors, including the given ones."""
        self._is_closed = True
        for fd in (self._in, self._out, self._wake_in, self._wake_out):
            os.close(fd)


class MemoryChannel:
    """Frames within one process: a manager's side (`deliver`, `end`, `sent`) and a dispatcher's.

    >>> channel = MemoryChannel()
    >>> channel.deliver(CommandType.RequestTrialJobs, "2")
    >>> channel.receive()
    Frame(command=<CommandType.RequestTrialJobs: b'GE'>, payload='2')
    >>> channel.send(CommandType.Initialized)
    >>> channel.flush()
    >>> channel.sent.get()
    Frame(command=<CommandType.Initialized: b'ID'>, payload='')
    """

    def __init__(self) -> None:
        self.sent: SimpleQueue[Frame] = SimpleQueue()
        self._incoming: SimpleQueue[Frame | None] = SimpleQueue()
        self._interrupted = False

    def deliver(self, command: CommandType, payload: str = "") -> None:
        """Send a frame to the dispatcher."""
        self._incoming.put(Frame(command, payload))

    def end(self) -> None:
        """End the stream to the dispatcher."""
        self._incoming.put(None)

    def receive(self) -> Frame | None:
        """Return the next delivered frame, or None."""
        frame = self._incoming.get()
        return None if self._interrupted else frame

    def send(self, command: CommandType, payload: str = "") -> None:
        """Put a frame into `sent` at once."""
        self.sent.put(Frame(command, payload))

    def flush(self) -> None:
        """Do nothing: `send` sends at once."""

    def interrupt(self) -> None:
        """Make `receive` return None."""
        self._interrupted = True
        self._incoming.put(None)
