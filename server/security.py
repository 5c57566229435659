"""Where the server listens, its token and its limits. No web framework is imported for them."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from functools import cache

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,500}")


class SecurityError(ValueError):
    """The server must not be started like this; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of one server: bytes of a body, changes per second and at once, wrong tokens, open streams.

    The headers of a request have to arrive within `head_seconds`, and its body within `body_seconds`. A client that
    reads nothing of a response for `stall_seconds` is disconnected.
    """

    body: int = 4 * 1024 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    stall_seconds: float = 60.0
    connections: int = 500
    changes_per_second: float = 50.0
    changes_at_once: int = 200
    wrong_tokens_at_once: int = 20
    streams: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where the server listens, and its token; raises `SecurityError` for an open address without a token.

    >>> ServerSettings(host="0.0.0.0")
    Traceback (most recent call last):
    pitchpipe.server.security.SecurityError: other machines can reach the server on 0.0.0.0: give it a token
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    limits: ServerLimits = ServerLimits()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise SecurityError(f"other machines can reach the server on {self.host}: give it a token")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise SecurityError("a token has 16 to 500 letters, digits and . _ ~ + / = -")

    def is_ours(self, name: str) -> bool:
        """Return whether requests may name the server by this host name (without a port)."""
        name = name.lower().rstrip(".")
        if name in _LOOPBACK_NAMES or name in {host.lower() for host in self.allowed_hosts}:
            return True
        if is_loopback(self.host):
            return False
        # DNS rebinding needs a name, so an address is safe.
        return _is_address(name) or name == self.host.lower() or name in machine_names()


@cache
def machine_names() -> frozenset[str]:
    """Return the names of this machine; looked up once, because a name server may have to be asked."""
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach this address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
