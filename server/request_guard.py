"""The parts of a request that the guard checks: method, path, headers, tokens."""

from __future__ import annotations

from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

COOKIE = "pitchpipe_token"


class GuardedRequest:
    """The parts of a request that the guard checks."""

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        self.is_websocket = scope["type"] == "websocket"
        self.method: str = scope.get("method", "GET")
        self.path: str = scope["path"]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.is_secure = scope.get("scheme") in ("https", "wss")
        self._headers = dict[str, str]()
        for name, value in scope["headers"]:
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        self.query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
        self.host = _name_of(self.header("host"))

    def header(self, name: str) -> str:
        """Return the first header with a lower-case name; empty if there is none."""
        return self._headers.get(name, "")

    def given_tokens(self) -> list[str]:
        """Return the tokens in the header, the cookie and the address."""
        scheme, _, bearer = self.header("authorization").partition(" ")
        tokens = [bearer.strip()] if scheme.lower() == "bearer" else []
        try:
            cookie = SimpleCookie(self.header("cookie")).get(COOKIE)
        except CookieError:
            cookie = None
        tokens += [cookie.value] if cookie is not None else []
        return tokens + ([self.query["token"]] if "token" in self.query else [])

    def without_token(self) -> str:
        """Return the address without the token."""
        left = {name: value for name, value in self.query.items() if name != "token"}
        path = "/" + self.path.lstrip("/\\")  # `//elsewhere` would be another site
        return path + (f"?{urlencode(left)}" if left else "")


def _name_of(host: str) -> str:
    """Return the name in a Host header without the port; empty if it is invalid.

    >>> _name_of("localhost:8080"), _name_of("[::1]:80"), _name_of("a b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc != host or parts.username is not None or " " in host or parts.port == 0:
            return ""  # reading an invalid port raises
        return parts.hostname or ""
    except ValueError:
        return ""
