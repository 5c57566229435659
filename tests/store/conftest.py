"""The experiments that the tests of the server look at, too."""

from __future__ import annotations

from ..server.conftest import made

__all__ = ["made"]
