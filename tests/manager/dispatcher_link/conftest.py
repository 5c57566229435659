"""Tests here may be coroutines: each has an event loop of its own, and its table is cleared there."""

from __future__ import annotations

import asyncio
import inspect

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}

    async def play() -> None:
        try:
            await test(**arguments)
        finally:
            await arguments["table"].clear()

    asyncio.run(play())
    return True
