"""The guard in front of the API, the pages and their websockets: it lets allowed requests in, and bounds them.

By default the server listens on the loopback interface. Programs on this machine reach it there, and so do web pages
that the user visits: a page of another site may send requests to a local port, or point its own name at this address
(DNS rebinding). So the Host header must name this server, a request with an origin must come from the server's own
pages, and a change must be JSON, which forms of other sites cannot send. On any other address a token is required:
`Authorization: Bearer TOKEN`, or once `?token=TOKEN` in a browser, which then keeps it in a cookie. With the token of
readers a request may read and change nothing; pages and their events ask the scope for that.

docs/decisions/0024-guards-of-the-server.md says which of this Starlette and uvicorn do.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import time
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from .api import problem
from .security import READS_ONLY, WHY_READ_ONLY, ServerSettings, is_loopback, machine_names, reads_only

_COOKIE = "pitchpipe_token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Paths where a change is a JSON body. The websocket of the pages has its own form, and its origin is checked, too.
_JSON_PATHS = ("/api/", "/trials", "/stop_experiment")
_MOST_PEERS = 1000
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_NOTHING_LOADED = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
# NiceGUI's pages are made of inline scripts and eval. Whatever runs there can reach no other machine.
_ONLY_OWN_LOADED = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self';"
        " frame-ancestors 'none'"
    )
}


class RequestGuard:
    """ASGI middleware that lets allowed requests in and bounds them."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._changes = TokenBucket(settings.limits.changes_per_second, settings.limits.changes_at_once)
        self._wrong_tokens = dict[str, TokenBucket]()
        if not is_loopback(settings.host):
            machine_names()  # now, and not while a client waits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        try:
            self._check_host(request)
            self._check_origin(request)
            if (redirection := self._check_token(request)) is not None:
                await redirection(scope, receive, send)
                return
            self._check_change(request)
            receive = await self._with_whole_body(request, receive)
        except HTTPException as refusal:
            await _refuse(scope, receive, send, refusal)
            return
        await self._app(scope, receive, send if _is_websocket(request) else _with_headers(send, request))

    def _check_host(self, request: HTTPConnection) -> None:
        host = host_name(request.headers.get("host", ""))
        if not self._settings.is_ours(host):
            raise HTTPException(
                421,
                f"this server is not '{host[:100]}': use its address, or start it with that host name allowed",
            )

    def _check_origin(self, request: HTTPConnection) -> None:
        """Refuse requests from pages of other sites; programs send no origin."""
        origin = request.headers.get("origin", "")
        if origin and _site_of(origin) != request.headers.get("host", "").lower():
            raise HTTPException(403, "pages of other sites have no access to this server")
        site = request.headers.get("sec-fetch-site", "")
        if site not in ("", "same-origin", "none") and (_is_change(request) or _is_websocket(request)):
            raise HTTPException(403, "pages of other sites cannot change anything here")

    def _check_token(self, request: HTTPConnection) -> Response | None:
        """Return the redirection of a browser that has given its token in the address, else None; mark readers."""
        token, share = self._settings.token, self._settings.share_token
        if token is None:
            return None
        wrong = self._wrong_tokens_of(request.client.host if request.client else "")
        if wrong.is_empty:
            raise HTTPException(429, "too many wrong tokens: wait", {"retry-after": "10"})
        in_address = request.query_params.get("token")
        if request.scope.get("method") == "GET":
            for known in (token, share):
                if known is not None and _is_same(known, in_address):
                    return _redirection(request, known)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = [
            bearer.strip() if scheme.lower() == "bearer" else "",
            request.cookies.get(_COOKIE),
            in_address,
        ]
        if any(_is_same(token, each) for each in given):
            return None
        if share is not None and any(_is_same(share, each) for each in given):
            request.scope[READS_ONLY] = True
            return None
        if any(given):
            wrong.take()
        raise HTTPException(
            401, "the server needs its token: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"}
        )

    def _wrong_tokens_of(self, peer: str) -> TokenBucket:
        """Return how many wrong tokens a peer may still give: a peer that guesses locks no other out."""
        bucket = self._wrong_tokens.pop(peer, None)
        bucket = bucket or TokenBucket(1.0, self._settings.limits.wrong_tokens_at_once)
        # The last one of the dict, from which the one that is idle the longest is dropped.
        self._wrong_tokens[peer] = bucket
        if len(self._wrong_tokens) > _MOST_PEERS:
            del self._wrong_tokens[next(iter(self._wrong_tokens))]
        return bucket

    def _check_change(self, request: HTTPConnection) -> None:
        if _is_change(request) and reads_only(request.scope):
            raise HTTPException(403, WHY_READ_ONLY)
        if not _is_change(request) or not request.scope["path"].startswith(_JSON_PATHS):
            return
        headers, most = request.headers, self._settings.limits.body
        length = headers.get("content-length", "")
        if length and (not length.isdecimal() or int(length[:18]) > most):
            raise HTTPException(413, f"a body has at most {most} bytes")
        has_body = length not in ("", "0") or headers.get("transfer-encoding", "") != ""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise HTTPException(415, "send JSON: Content-Type: application/json")
        if not self._changes.take():
            raise HTTPException(429, "too many changes at once: wait a second", {"retry-after": "1"})

    async def _with_whole_body(self, request: HTTPConnection, receive: Receive) -> Receive:
        """Read the body of a change here, so that an endless one never reaches the application."""
        if not _is_change(request):
            return receive
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.body_seconds):
                body = await _whole_body(Request(request.scope, receive), limits.body)
        except TimeoutError as error:
            raise HTTPException(
                408, f"a body has to arrive within {limits.body_seconds:g} s", {"connection": "close"}
            ) from error
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def body_first() -> Message:
            return waiting.pop() if waiting else await receive()

        return body_first


class TokenBucket:
    """Allows `per_second` on average, and `at_once` in a burst; `clock` returns seconds.

    >>> now = [0.0]
    >>> bucket = TokenBucket(1.0, 2, lambda: now[0])
    >>> bucket.take(), bucket.take(), bucket.take()
    (True, True, False)
    >>> now[0] = 1.0
    >>> bucket.take()
    True
    """

    def __init__(self, per_second: float, at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._size = self._left = float(at_once)
        self._clock = clock
        self._then = clock()

    def take(self) -> bool:
        """Take one; return False when there is none."""
        if self.is_empty:
            return False
        self._left -= 1.0
        return True

    @property
    def is_empty(self) -> bool:
        """Whether there is none at present."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._then) * self._rate)
        self._then = now
        return self._left < 1.0


def host_name(host: str) -> str:
    """Return the name in a Host header without the port; empty if it is invalid.

    >>> host_name("localhost:8080"), host_name("[::1]:80"), host_name("a b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc != host or parts.username is not None or " " in host or parts.port == 0:
            return ""  # reading an invalid port raises
        return parts.hostname or ""
    except ValueError:
        return ""


def _is_websocket(request: HTTPConnection) -> bool:
    return request.scope["type"] == "websocket"


def _is_change(request: HTTPConnection) -> bool:
    return not _is_websocket(request) and request.scope["method"] not in _SAFE


def _site_of(origin: str) -> str:
    """Return the host and port of an Origin header; empty for a header that is not a URL.

    >>> _site_of("http://LOCALHOST:80"), _site_of("null"), _site_of("http://[")
    ('localhost:80', '', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_same(token: str, given: str | None) -> bool:
    """Return whether the token is right, in a time that reveals nothing."""
    return given is not None and hmac.compare_digest(token.encode(), given.encode())


async def _whole_body(request: Request, most: int) -> bytes:
    """Return the body of a request; raise `HTTPException` if it is too long or incomplete."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise HTTPException(413, f"a body has at most {most} bytes")
    except ClientDisconnect as error:
        raise HTTPException(400, "the request ended before its body did") from error
    return bytes(body)


def _with_headers(send: Send, request: HTTPConnection) -> Send:
    """Return a `send` that adds the headers that browsers heed."""
    path: str = request.scope["path"]
    policy = (
        _NOTHING_LOADED if path.startswith("/api/") else _ONLY_OWN_LOADED if path.startswith("/ui") else {}
    )

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message.setdefault("headers", [])
            MutableHeaders(scope=message).update(_HEADERS | policy)
        await send(message)

    return with_headers


def _redirection(request: HTTPConnection, token: str) -> Response:
    """Return a response that stores the token in a cookie, and removes it from the address.

    A browser keeps the cookie from requests that another page leads to, through any number of redirections. Such a
    request gets a page of this server instead, which leads on.
    """
    left = {name: value for name, value in request.query_params.items() if name != "token"}
    location = "/" + request.scope["path"].lstrip("/\\")  # `//elsewhere` would be another site
    location += f"?{urlencode(left)}" if left else ""
    secure = "; Secure" if request.scope.get("scheme") == "https" else ""
    cookie = {"set-cookie": f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/{secure}"}
    if request.headers.get("sec-fetch-site", "") in ("", "none", "same-origin"):
        return RedirectResponse(location, 303, cookie | _HEADERS)
    page = f'<meta http-equiv="refresh" content="0; url={html.escape(location)}">'
    return HTMLResponse(page, headers=cookie | _HEADERS | _NOTHING_LOADED)


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: HTTPException) -> None:
    if scope["type"] == "websocket":
        await receive()
        await WebSocketClose(1008)(scope, receive, send)
        return
    response = problem(refusal.status_code, refusal.detail, {**_HEADERS, **(refusal.headers or {})})
    await response(scope, receive, send)
