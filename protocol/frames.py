"""Frames: how a command and its payload become bytes, and how bytes become commands again.

A frame is a two-byte code, the length of the payload in bytes as 14 decimal digits, and the payload in UTF-8.

The names and codes of commands are NNI's, so that a manager or a dispatcher of NNI up to 2.7 can be at the other end of
the pipe; those in `OWN_COMMANDS` are Pitchpipe's, used only between peers that announced themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .errors import ProtocolError

PROTOCOL_VERSION = 1
"""The version of Pitchpipe's additions to the protocol."""

PROTOCOL_ENVIRONMENT = "PITCHPIPE_PROTOCOL"
"""The environment variable by which a manager tells its dispatcher which version it speaks."""

# Not a command line, which every user of the machine can read.
PARAMETERS_ENVIRONMENT = "PITCHPIPE_EXP_PARAMS"
"""The environment variable with the configuration for Pitchpipe's own dispatcher, as `--exp_params` has it."""

MAX_LENGTH = 64 * 1024 * 1024
"""The longest payload that is sent or accepted by default, in bytes."""

_HEADER = 16
_SHOWN = 32  # bytes at fault, at most


class CommandType(Enum):
    """A command; its value is the code that opens the frame.

    >>> CommandType.RequestTrialJobs.value
    b'GE'
    >>> CommandType(b"TR").name
    'NewTrialJob'
    """

    wire: bytes  # the value, as a plain attribute: every frame needs it
    code: str  # the value as text

    def __init__(self, wire: bytes) -> None:
        self.wire = wire
        self.code = wire.decode()

    # manager -> dispatcher
    Initialize = b"IN"
    RequestTrialJobs = b"GE"
    ReportMetricData = b"ME"
    UpdateSearchSpace = b"SS"
    ImportData = b"FD"
    AddCustomizedTrialJob = b"AD"
    TrialEnd = b"EN"
    Terminate = b"TE"
    Ping = b"PI"

    # dispatcher -> manager
    Initialized = b"ID"
    NewTrialJob = b"TR"
    SendTrialJobParameter = b"SP"
    NoMoreTrialJobs = b"NO"
    KillTrialJob = b"KI"
    Error = b"ER"

    # dispatcher -> manager, between peers only
    Pause = b"PA"
    Resume = b"RE"
    Checkpoint = b"CK"
    Processed = b"PR"

    # Members are singletons, every frame is looked up by one, and the enum's own hash is slow.
    __hash__ = object.__hash__


OWN_COMMANDS = frozenset(
    {CommandType.Error, CommandType.Pause, CommandType.Resume, CommandType.Checkpoint, CommandType.Processed}
)
"""Commands that a dispatcher must not send to a manager that did not announce itself: NNI's would end."""


class Frame(NamedTuple):  # not a dataclass: the trial's SDK imports this package and must start fast
    """One command with its payload (JSON text, or nothing)."""

    command: CommandType
    payload: str = ""


_CODES: dict[bytes, CommandType] = {command.value: command for command in CommandType}
_FIRST_LETTERS = frozenset(code[:1] for code in _CODES)


def encode_frame(command: CommandType, payload: str = "") -> bytes:
    """Return the bytes of one frame.

    Raise `FrameTooLong` above 64 MiB and `BadPayload` for text that UTF-8 cannot hold (lone surrogates).

    >>> encode_frame(CommandType.RequestTrialJobs, "2")
    b'GE000000000000012'
    """
    try:
        data = payload.encode()
    except UnicodeEncodeError as error:
        lone = payload[error.start : error.end].encode("utf-8", "backslashreplace")
        raise BadPayload("a payload that UTF-8 cannot hold", error.start, lone) from error
    if len(data) > MAX_LENGTH:
        raise FrameTooLong(f"a payload of {len(data)} bytes, more than {MAX_LENGTH},", 0, data[:32])
    return b"%s%014d%s" % (command.wire, len(data), data)


class FrameDecoder:
    """Turns a stream of bytes, cut anywhere, into frames.

    The first fault is final: later calls raise it again, because nothing after it can be trusted.

    >>> decoder = FrameDecoder()
    >>> decoder.feed(b"GE0000000000")
    []
    >>> decoder.feed(b"00012")
    [Frame(command=<CommandType.RequestTrialJobs: b'GE'>, payload='2')]
    >>> decoder.finish()
    """

    def __init__(self, max_length: int = MAX_LENGTH) -> None:
        self.max_length = max_length
        self._rest = bytearray()  # an incomplete frame
        self._needed = 1  # how long `_rest` must be before it can hold a frame
        self._offset = 0  # of the first byte of `_rest` in the stream
        self._error: FrameError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete with these bytes; raise a `FrameError` at the first fault."""
        if self._error is not None:
            raise self._error
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
        frames: list[Frame] = []
        try:
            end = self._take(data, frames)
        except FrameError as error:
            error.frames = tuple(frames)
            self._error = error
            raise
        self._offset += end
        self._rest = bytearray(data[end:])
        return frames

    def finish(self) -> None:
        """Note the end of the stream; raise `TruncatedFrame` if it is inside a frame."""
        if self._error is not None:
            raise self._error
        if self._rest:
            raise TruncatedFrame(
                "the stream ended inside a frame that begins", self._offset, bytes(self._rest[:_HEADER])
            )

    def _take(self, data: bytes, frames: list[Frame]) -> int:
        """Append the complete frames of `data` to `frames`; return where an incomplete one begins."""
        codes, limit, size, start = _CODES, self.max_length, len(data), 0
        while size - start >= _HEADER:
            body = start + _HEADER
            command = codes.get(data[start : start + 2])
            digits = data[start + 2 : body]
            if command is None or not digits.isdigit():
                raise self._header_error(data, start)
            length = int(digits)
            if length > limit:
                problem = f"a payload of {length} bytes, more than {limit},"
                raise FrameTooLong(problem, self._offset + start, data[start:body])
            if body + length > size:
                self._needed = body + length - start
                return start
            frames.append(Frame(command, self._text(data, body, length) if length else ""))
            start = body + length
        self._check_beginning(data, start)
        self._needed = 1
        return start

    def _text(self, data: bytes, start: int, length: int) -> str:
        try:
            return data[start : start + length].decode()
        except UnicodeDecodeError as error:
            at = start + error.start
            problem = f"a payload that is not UTF-8 ({error.reason})"
            raise BadPayload(problem, self._offset + at, data[at : start + length]) from None

    def _check_beginning(self, data: bytes, start: int) -> None:
        """Raise for the beginning of a header that no further bytes can make valid: they may never come."""
        begun = data[start:]
        good_code = begun[:2] in _CODES if len(begun) >= 2 else begun in _FIRST_LETTERS or not begun
        if not good_code or not (begun[2:].isdigit() or len(begun) <= 2):
            raise self._header_error(data, start)

    def _header_error(self, data: bytes, start: int) -> FrameError:
        header, offset = data[start : start + _HEADER], self._offset + start
        if header[:2] in _CODES or not (header[:2].isalpha() and (header[2:].isdigit() or len(header) == 2)):
            return BadHeader("not the header of a frame", offset, header)
        return UnknownCommand(f"the unknown command {header[:2].decode()!r}", offset, header)


class FrameError(ProtocolError):
    """Bytes that are not frames: says where in the stream and shows them."""

    def __init__(self, problem: str, offset: int, data: bytes, frames: tuple[Frame, ...] = ()) -> None:
        self.problem = problem
        self.offset = offset  # in bytes from the start of the stream
        self.data = bytes(data[:_SHOWN])  # the bytes at fault
        self.frames = frames  # the good ones that came before in the same piece
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
