"""Changes that are asked for on a page: sent to the manager in a thread, and a refusal shown as the sentence it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..reading import ExperimentView

__all__ = ["ask_for", "confirmed", "say", "tell_refusal"]


async def ask_for(view: ExperimentView, request: dict[str, Any], done: str = "") -> dict[str, Any] | None:
    """Ask the manager for a change, and say that it is `done`; None if it was refused, which is said, too."""
    from ...manager.control import ControlError, ask_manager

    if view.folder.manager() is None:
        tell_refusal(
            f"Experiment {view.experiment_id} does not run, so nothing can be changed:"
            f" pitchpipe resume {view.experiment_id} goes on with it."
        )
        return None
    try:
        answer = await asyncio.to_thread(ask_manager, view.folder.path, request)
    except ControlError as error:
        tell_refusal(str(error))
        return None
    if done:
        say(done)
    return answer


def say(text: str) -> None:
    """Tell the user that something has been done."""
    from nicegui import ui

    ui.notify(text, type="positive", position="bottom-right")


def tell_refusal(text: str) -> None:
    """Tell the user, in a sentence, that something cannot be done; it stays until it is closed."""
    from nicegui import ui

    sentence = text[:1].upper() + text[1:]
    ui.notify(
        sentence, type="negative", multi_line=True, close_button="Close", timeout=0, position="bottom-right"
    )


async def confirmed(question: str, explanation: str, yes: str) -> bool:
    """Ask before something that cannot be undone."""
    from nicegui import html, ui

    with ui.dialog() as dialog, ui.card().props("role=alertdialog"):
        html.h2(question)
        html.p(explanation)
        with html.div().classes("pp-row").style("align-self: flex-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps autofocus")
            ui.button(yes, on_click=lambda: dialog.submit(True)).props("unelevated no-caps color=negative")
    answer = await dialog
    dialog.delete()
    return bool(answer)
