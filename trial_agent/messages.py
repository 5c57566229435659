"""The framing of messages on a byte stream: a 4-byte big-endian length, then that many bytes of JSON.

Ray sends the same dicts unchanged; only the socket carrier needs this framing. Bytes become base64.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Container
from typing import Any, TypeVar

import orjson

# The parameters of one trial have up to 64 MiB in a frame of the dispatcher, and quotes are escaped once more.
MAX_LENGTH = 160 * 1024 * 1024
_LENGTH = struct.Struct(">I")

Message = dict[str, Any]
_T = TypeVar("_T")


class MessageError(Exception):
    """The peer sent something that is not a message."""


def encode_message(message: Message) -> bytes:
    """Return the framed bytes of a message.

    >>> encode_message({"op": "poll", "after": 0})
    b'\\x00\\x00\\x00\\x17{"op":"poll","after":0}'
    """
    body = to_bytes(message)
    return _LENGTH.pack(len(body)) + body


def to_bytes(value: Any) -> bytes:
    """Return the JSON of plain values, also of paths and variables that are not UTF-8.

    >>> from_bytes(to_bytes(["caf\\udce9"])) == ["caf\\udce9"]
    True
    """
    try:
        return orjson.dumps(value, default=_bytes_as_text)
    except TypeError:  # orjson takes no half of a surrogate pair
        return json.dumps(value, default=_bytes_as_text).encode()


def from_bytes(body: bytes) -> Any:
    """Return what `to_bytes` was given; raise `json.JSONDecodeError`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\u" not in body:
            raise
        return json.loads(body)


def _bytes_as_text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} cannot be sent in a message")


def from_message(kind: type[_T], message: Message) -> _T:
    """Return an object of a dataclass from a message with its fields; ignore those that a later version added."""
    try:
        return kind(**message)
    except TypeError:
        known: Container[str] = vars(kind)["__dataclass_fields__"]
        return kind(**{name: value for name, value in message.items() if name in known})


class MessageDecoder:
    """Turns a stream of bytes, split anywhere, back into messages.

    >>> decoder = MessageDecoder()
    >>> wire = encode_message({"op": "poll", "after": 0})
    >>> decoder.feed(wire[:3]), decoder.feed(wire[3:])
    ([], [{'op': 'poll', 'after': 0}])
    """

    def __init__(self, max_length: int = MAX_LENGTH) -> None:
        self._buffer = bytearray()
        self._max_length = max_length

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes; raise MessageError if it cannot be part of one."""
        buffer = self._buffer
        buffer += data
        messages: list[Message] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > self._max_length:
                raise MessageError(f"a message of {length} bytes is over the limit of {self._max_length}")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            messages.append(_decode(bytes(buffer[start + _LENGTH.size : end])))
            start = end
        del buffer[:start]
        return messages


def _decode(body: bytes) -> Message:
    try:
        message = from_bytes(body)
    except json.JSONDecodeError as error:
        raise MessageError(f"a message is not JSON ({error}): {body[:80]!r}") from error
    if not isinstance(message, dict):
        raise MessageError(f"a message is not an object: {body[:80]!r}")
    return message
