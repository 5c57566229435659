"""Access control: the guard in front of the API, the pages and their websockets.

By default the server listens on the loopback interface. Programs on this machine reach it there, and so do web pages
that the user visits: a page of another site may send requests to a local port, or point its own name at this address
(DNS rebinding). So the Host header must name this server, a request with an origin must come from its own pages, and
a change must be JSON, which forms of other sites cannot send. On any other address a token is required:
`Authorization: Bearer TOKEN`, or once `?token=TOKEN` in a browser, which then keeps it in a cookie.

Bodies, headers, rates, the number of streams and the time that a request or its response takes are bounded.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import ipaddress
import re
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from ..store.reading import to_json
from .request_guard import COOKIE, GuardedRequest
from .token_bucket import PeerBuckets, TokenBucket

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Paths where a change is a JSON body; the websocket of the pages has its own form; its origin is checked, too.
_JSON_PATHS = ("/api/", "/trials", "/stop_experiment")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,500}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_API_HEADERS = [(b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")]
# NiceGUI's pages are made of inline scripts and eval. Whatever runs there can reach no other machine.
_PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
        b" img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self';"
        b" frame-ancestors 'none'",
    )
]


class SecurityError(ValueError):
    """The server must not be started like this; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server: bytes of a body, changes and wrong tokens per second (and at once), open streams.

    The headers of a request have to arrive within `head_seconds`, its body within `body_seconds`. A client that reads
    nothing of a response for `stall_seconds` is disconnected.
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
    limits: Limits = Limits()

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


class Refusal(Exception):
    """A request that is not allowed: the HTTP status, and the reason as a sentence."""

    def __init__(self, status: int, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Guard:
    """ASGI middleware that lets allowed requests in and bounds them."""

    def __init__(
        self, app: App, settings: ServerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._settings = settings
        limits = settings.limits
        self._changes = TokenBucket(limits.changes_per_second, limits.changes_at_once, clock)
        if not is_loopback(settings.host):
            machine_names()  # now, and not while a client waits
        self._wrong_tokens = PeerBuckets(1.0, limits.wrong_tokens_at_once, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = GuardedRequest(scope)
        try:
            self._check_host(request)
            self._check_origin(request)
            if (location := self._check_token(request)) is not None:
                await _redirect(send, location, self._settings.token or "", request)
                return
            self._check_change(request)
            receive = await self._bounded(request, receive)
        except Refusal as refusal:
            await _refuse(scope, receive, send, refusal)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send, request))

    def _check_host(self, request: GuardedRequest) -> None:
        if not self._settings.is_ours(request.host):
            raise Refusal(
                421,
                f"this server is not '{request.host[:100]}': use its address, or start it with that host name allowed",
            )

    def _check_origin(self, request: GuardedRequest) -> None:
        """Refuse requests from pages of other sites; programs send no origin."""
        origin = request.header("origin")
        if origin and _site_of(origin) != request.header("host").lower():
            raise Refusal(403, "pages of other sites have no access to this server")
        site = request.header("sec-fetch-site")
        is_change = request.method not in _SAFE or request.is_websocket
        if site and site not in ("same-origin", "none") and is_change:
            raise Refusal(403, "pages of other sites cannot change anything here")

    def _check_token(self, request: GuardedRequest) -> str | None:
        """Return where to send a browser that has given its token in the address, or None."""
        token = self._settings.token
        if token is None:
            return None
        wrong = self._wrong_tokens.of(request.peer)
        if wrong.is_empty:
            raise Refusal(429, "too many wrong tokens: wait", ((b"retry-after", b"10"),))
        if (
            _is_same(token, request.query.get("token"))
            and request.method == "GET"
            and not request.is_websocket
        ):
            return request.without_token()
        given = request.given_tokens()
        if any(_is_same(token, each) for each in given):
            return None
        if any(given):
            wrong.take()
        raise Refusal(
            401,
            "the server needs its token: Authorization: Bearer TOKEN",
            ((b"www-authenticate", b"Bearer"),),
        )

    def _check_change(self, request: GuardedRequest) -> None:
        if request.method in _SAFE or request.is_websocket or not request.path.startswith(_JSON_PATHS):
            return
        length = request.header("content-length")
        if length and (not length.isdecimal() or int(length[:18]) > self._settings.limits.body):
            raise Refusal(413, f"a body has at most {self._settings.limits.body} bytes")
        has_body = length not in ("", "0") or request.header("transfer-encoding") != ""
        kind = request.header("content-type").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise Refusal(415, "send JSON: Content-Type: application/json")
        if not self._changes.take():
            raise Refusal(429, "too many changes at once: wait a second", ((b"retry-after", b"1"),))

    async def _bounded(self, request: GuardedRequest, receive: Receive) -> Receive:
        """Read the body of a change here, so that an endless one never reaches the application."""
        if request.is_websocket or request.method in _SAFE:
            return receive
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.body_seconds):
                message = await _whole_body(receive, limits.body)
        except TimeoutError as error:
            raise Refusal(
                408, f"a body has to arrive within {limits.body_seconds:g} s", ((b"connection", b"close"),)
            ) from error
        return _preceded_by(message, receive)


async def _whole_body(receive: Receive, most: int) -> MutableMapping[str, Any]:
    """Return the body of a request as one message; raise `Refusal` if it is too long or incomplete."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "the request ended before its body did")
        body += message.get("body", b"")
        if len(body) > most:
            raise Refusal(413, f"a body has at most {most} bytes")
        if not message.get("more_body"):
            return {**message, "body": bytes(body)}


def _site_of(origin: str) -> str:
    """Return the host and port of an Origin header; empty for a header that is not a URL.

    >>> _site_of("http://LOCALHOST:80"), _site_of("null"), _site_of("http://[")
    ('localhost:80', '', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _preceded_by(message: MutableMapping[str, Any], receive: Receive) -> Receive:
    """Return a `receive` that yields this message first."""
    waiting = [message]

    async def preceded() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return preceded


def _with_headers(send: Send, request: GuardedRequest) -> Send:
    policy = _API_HEADERS if request.path.startswith("/api/") else _PAGE_HEADERS
    extra = [*_HEADERS, *(policy if request.path.startswith(("/api/", "/ui")) else ())]

    async def with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return with_headers


def _is_same(token: str, given: str | None) -> bool:
    """Return whether the token is right, in a time that reveals nothing."""
    return given is not None and hmac.compare_digest(token.encode(), given.encode())


async def _redirect(send: Send, location: str, token: str, request: GuardedRequest) -> None:
    """Store the token in a cookie, and remove it from the address.

    A browser keeps the cookie from requests that another page leads to, through any number of redirections. From
    there, the next page is asked for by one of ours.
    """
    secure = "; Secure" if request.is_secure else ""
    cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/{secure}"
    kept = (b"set-cookie", cookie.encode("latin-1"))
    is_led_here = request.header("sec-fetch-site") not in ("", "none", "same-origin")
    if is_led_here:
        headers = [kept, (b"content-type", b"text/html; charset=utf-8"), *_API_HEADERS]
        body = f'<meta http-equiv="refresh" content="0; url={html.escape(location)}">'.encode()
    else:
        headers, body = [kept, (b"location", location.encode("latin-1", "replace"))], b""
    status = 200 if is_led_here else 303
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    body = to_json({"error": str(refusal)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start = {"status": refusal.status, "headers": [*headers, *refusal.headers, *_HEADERS]}
    await send({"type": "http.response.start", **start})
    await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})
