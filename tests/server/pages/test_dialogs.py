"""Dialogs that are open when their page is left, and changes of readers."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pitchpipe.server.pages import actions
from pitchpipe.server.pages.actions import confirmed
from pitchpipe.server.pages.trial_actions import TrialForm

UNIT = {"_type": "uniform", "_value": [0, 1]}
SPACE = {"searchSpace": {"x": UNIT}}
NAMES = ["a", 1, "1", True, "true", None]
NESTED = {
    "c": {"_type": "choice", "_value": NAMES},
    "n": {"_type": "choice", "_value": [{"_name": name, "x": UNIT} for name in NAMES]},
}
CHOSEN: list[dict[str, Any]] = [{"c": name, "n": {"_name": name, "x": 0.25}} for name in NAMES]


async def _refuse(_parameters: dict[str, Any]) -> bool:
    return False


DIALOGS: dict[str, tuple[Callable[[], Awaitable[Any]], Any]] = {
    "form of a trial": (lambda: TrialForm(SPACE, {"x": 0.5}, _refuse).ask(), {"x": 0.5}),
    **{
        f"form with {chosen['c']!r}": (TrialForm({"searchSpace": NESTED}, chosen, _refuse).ask, chosen)
        for chosen in CHOSEN
    },
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

    assert json.dumps(asyncio.run(leave())) == json.dumps(cancelled)


def test_changes_of_a_reader_are_refused_although_a_page_asks_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(actions, "may_change", lambda: False)
    monkeypatch.setattr(actions, "show_refusal", said.append)
    assert not asyncio.run(actions.made(os.abort))
    assert said == [
        "this link is read-only: to change something, ask the person who sent it for the full one"
    ]
