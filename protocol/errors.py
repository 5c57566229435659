"""Errors in what crosses the pipe.

ProtocolError
├── FrameError            the bytes are not frames; nothing after them can be trusted
│   ├── BadHeader         the 16 bytes of a header are not a code and a length
│   ├── UnknownCommand    a code that no command has
│   ├── FrameTooLong      a length above the limit
│   ├── BadPayload        a payload that is not UTF-8
│   └── TruncatedFrame    the stream ended inside a frame
├── JsonError             a text that is not JSON, or a value that cannot be written as JSON
└── MetricError           a reported value that is not a metric
"""

from __future__ import annotations

from .commands import Frame

__all__ = [
    "BadHeader",
    "BadPayload",
    "FrameError",
    "FrameTooLong",
    "JsonError",
    "MetricError",
    "ProtocolError",
    "TruncatedFrame",
    "UnknownCommand",
]

_SHOWN = 32


class ProtocolError(ValueError):
    """Anything wrong with what crosses the pipe."""


class FrameError(ProtocolError):
    """Bytes that are not frames: says where in the stream and shows them.

    `offset` counts bytes from the start of the stream, `data` holds the bytes at fault (at most 32), and
    `frames` are the good frames that came before them in the same piece.
    """

    def __init__(self, problem: str, offset: int, data: bytes, frames: tuple[Frame, ...] = ()) -> None:
        self.problem = problem
        self.offset = offset
        self.data = bytes(data[:_SHOWN])
        self.frames = frames
        super().__init__(f"{problem} at byte {offset}: {self.data!r}")


class BadHeader(FrameError):
    """The bytes are not a header, which is two letters and 14 decimal digits."""


class UnknownCommand(FrameError):
    """No command has this code."""


class FrameTooLong(FrameError):
    """The length is above the limit; nothing of that size was allocated."""


class BadPayload(FrameError):
    """The payload is not UTF-8; the offset is that of the first bad byte."""


class TruncatedFrame(FrameError):
    """The stream ended inside a frame."""


class JsonError(ProtocolError):
    """A text that is not JSON, or a value that cannot be written as JSON."""


class MetricError(ProtocolError):
    """A reported value that is not a metric; the message completes the sentence "the trial ..."."""
