"""Dialogs that are open when their page is left."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pitchpipe.server.ui.changes import confirmed
from pitchpipe.server.ui.trial_form import TrialForm

SPACE = {"searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}}}


async def _refuse(_parameters: dict[str, Any]) -> bool:
    return False


DIALOGS: dict[str, tuple[Callable[[], Awaitable[Any]], Any]] = {
    "form of a trial": (lambda: TrialForm(SPACE, {"x": 0.5}, _refuse).ask(), {"x": 0.5}),
    "confirmation": (lambda: confirmed("Kill it?", "It ends.", "Kill"), False),
}


@pytest.mark.parametrize("name", DIALOGS)
def test_dialog_of_a_page_that_is_left_counts_as_cancelled(name: str) -> None:
    from nicegui import Client
    from nicegui.elements.dialog import Dialog
    from nicegui.page import page

    show, cancelled = DIALOGS[name]

    async def leave() -> Any:
        client = Client(page("/left"), request=None)

        async def ask() -> Any:
            with client:
                return await show()

        asking = asyncio.create_task(ask())
        await asyncio.sleep(0)  # it is shown
        assert any(isinstance(element, Dialog) for element in client.elements.values())
        client.delete()
        return await asking

    assert asyncio.run(leave()) == cancelled
