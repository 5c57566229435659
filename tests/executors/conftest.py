"""Tests that are coroutine functions."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function: with the fixture `runner` if it has one, or in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    values: dict[str, Any] = pyfuncitem.funcargs
    run = values["runner"].run if "runner" in values else asyncio.run
    run(pyfuncitem.obj(**{name: values[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True
