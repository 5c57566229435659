"""Where the server listens, its addresses, its tokens and its limits. No web framework is imported for them."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,500}")
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # all addresses, and the one for this machine
# Addresses for documentation: a packet to them would leave this machine, and none is sent.
_FAR = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
# The guard notes in the scope of a request that its token is that of readers.
READS_ONLY = "pitchpipe.reads_only"
WHY_READ_ONLY = "this link is read-only: to change something, ask the person who sent it for the full one"


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
    """Where the server listens, and its tokens; raises `SecurityError` for an open address without a token.

    The `share_token` lets people read, and change nothing.

    >>> ServerSettings(host="0.0.0.0")
    Traceback (most recent call last):
    pitchpipe.server.security.SecurityError: other machines can reach the server on 0.0.0.0: give it a token
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    share_token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    limits: ServerLimits = ServerLimits()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise SecurityError(f"other machines can reach the server on {self.host}: give it a token")
        tokens = [token for token in (self.token, self.share_token) if token is not None]
        if not all(map(_TOKEN.fullmatch, tokens)):
            raise SecurityError("a token has 16 to 500 letters, digits and . _ ~ + / = -")
        if self.share_token is not None and self.token is None:
            raise SecurityError("without a token everyone may change everything: give the server one, too")
        if len(set(tokens)) < len(tokens):
            raise SecurityError("readers have the same token as the owner: give them another one")

    def is_ours(self, name: str) -> bool:
        """Return whether requests may name the server by this host name (without a port)."""
        name = name.lower().rstrip(".")
        if name in _LOOPBACK_NAMES or name in {host.lower() for host in self.allowed_hosts}:
            return True
        if is_loopback(self.host):
            return False
        # DNS rebinding needs a name, so an address is safe.
        return _is_address(name) or name == self.host.lower() or name in machine_names()


def reads_only(scope: Mapping[str, Any]) -> bool:
    """Return whether a request, given by its scope, may read and change nothing."""
    return bool(scope.get(READS_ONLY))


def url_of(host: str, port: int) -> str:
    """Return the address of a server that listens there, for a browser on this machine.

    >>> url_of("::1", 80), url_of("0.0.0.0", 8080)
    ('http://[::1]:80', 'http://127.0.0.1:8080')
    """
    host = _ANY.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_for_others(host: str, url: str) -> str:
    """Return the address of a server for other machines; empty if it listens only for this one.

    `url` is its address here. On all addresses it is the one that this machine has on its way to others.

    >>> url_for_others("192.168.1.5", "http://192.168.1.5:80"), url_for_others("::1", "http://[::1]:80")
    ('http://192.168.1.5:80', '')
    """
    if is_loopback(host):
        return ""
    return url if host not in _ANY else url_of(_outgoing_address(), urlsplit(url).port or 80)


def _outgoing_address() -> str:
    """Return the address from which this machine reaches others; its name, if it reaches none."""
    for family, far in _FAR:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            return str(probe.getsockname()[0])
    return socket.gethostname()


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
