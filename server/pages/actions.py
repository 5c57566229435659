"""Changes requested on a page: made in a thread; a refusal is shown as a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import html, ui

from ...manager.control import ControlError
from ...store import StoreError
from ...store.reading import escaped
from .elements import scripted

__all__ = ["confirmed", "copied", "done", "made", "result_of", "say", "show_refusal"]

_REFUSAL = "pp-refusal"
_PATIENCE = 10.0  # seconds for a busy browser
_COPY = (
    "navigator.clipboard"
    " ? navigator.clipboard.writeText(TEXT).then(() => '', error => error.message) : REFUSAL"
)
_CLOSE = "document.querySelectorAll(BUTTONS).forEach(close => close.click())"
_NO_CLIPBOARD = "this browser gives pages no clipboard: open them on localhost or by https"


async def made(change: Callable[..., Any], *arguments: Any, done: str = "") -> bool:
    """Make a change with a function of `manager.control`; report that it is `done`, or why it failed."""
    try:
        await asyncio.to_thread(change, *arguments)
    except (ControlError, StoreError) as error:
        show_refusal(str(error))
        return False
    if done:
        say(done)
    return True


async def done(change: Awaitable[None], text: str) -> bool:
    """Await a change; report the `text` when it is done, or why it failed."""
    try:
        await change
    except ControlError as error:
        show_refusal(str(error))
        return False
    say(text)
    return True


async def copied(text: str, done: str) -> None:
    """Put a text on the clipboard; report that it is `done`, or why nothing was copied."""
    try:
        why = await ui.run_javascript(scripted(_COPY, TEXT=text, REFUSAL=_NO_CLIPBOARD), timeout=_PATIENCE)
    except TimeoutError:
        why = "the browser did not reply"
    if why:
        show_refusal(f"nothing was copied: {why}")
    else:
        say(done)


def say(text: str) -> None:
    """Show that something has been done, in place of why something else could not be."""
    ui.run_javascript(scripted(_CLOSE, BUTTONS=f".{_REFUSAL} .q-btn"))
    ui.notify(escaped(text), type="positive", position="bottom-right")


def show_refusal(text: str) -> None:
    """Show why something cannot be done; the message stays until it is closed."""
    sentence = text[:1].upper() + text[1:]
    ui.notify(
        escaped(sentence),
        type="negative",
        multi_line=True,
        actions=[{"label": "Close", "color": "white"}],
        timeout=0,
        position="bottom-right",
        classes=_REFUSAL,
    )


async def confirmed(question: str, explanation: str, yes: str) -> bool:
    """Ask for confirmation of something that cannot be undone."""
    with ui.dialog() as dialog, ui.card().props("role=alertdialog"):
        html.h2(escaped(question))
        html.p(escaped(explanation))
        with html.div().classes("pp-row").style("align-self: flex-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps autofocus")
            ui.button(yes, on_click=lambda: dialog.submit(True)).props("unelevated no-caps color=negative")
    return bool(await result_of(dialog))


async def result_of(dialog: Any) -> Any:
    """Show a dialog until it is closed, remove it and return its result; None if its page was left."""
    result = await dialog
    if not dialog.is_deleted:
        dialog.delete()
    return result
