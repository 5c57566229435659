"""Where web pages are: the tokens of their server, and the addresses for this machine, for others, and for readers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .failures import Failure

if TYPE_CHECKING:
    from ..server import ServerSettings

_BYTES = 24  # of a random token


def page_settings(host: str, port: int = 0, *, share: bool = False) -> ServerSettings:
    """Return where pages are served; with a token where other machines reach them, and a second one to `share` them.

    Raises `Failure` for a token in the environment that cannot be one.
    """
    from ..server import SHARE_VARIABLE, TOKEN_VARIABLE, SecurityError, ServerSettings, is_loopback

    token, share_token = (os.environ.pop(name, "") for name in (TOKEN_VARIABLE, SHARE_VARIABLE))
    if share and not share_token:
        share_token = secrets.token_urlsafe(_BYTES)
    if not token and (share_token or not is_loopback(host)):
        token = secrets.token_urlsafe(_BYTES)
    try:
        return ServerSettings(host=host, port=port, token=token or None, share_token=share_token or None)
    except SecurityError as error:
        raise Failure(str(error)) from error


def page_address(settings: ServerSettings, url: str, page: str) -> str:
    """Return the address of a page for a browser on this machine, with the token if there is one."""
    return f"{url}{page}{_query(settings.token)}"


def addresses_for_others(settings: ServerSettings, url: str, page: str) -> Iterator[str]:
    """Yield lines with the addresses of a page for other machines, and for readers, where there are such."""
    from ..server import url_for_others

    others = url_for_others(settings.host, url)
    if others and others != url:
        yield f"from other machines: {others}{page}{_query(settings.token)}"
    if settings.share_token is not None:
        yield f"to read only: {others or url}{page}{_query(settings.share_token)}"


def _query(token: str | None) -> str:
    return "" if token is None else f"?{urlencode({'token': token})}"
