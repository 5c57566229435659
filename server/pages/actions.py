"""What pages do for their users: requests to a manager, commands, notes; what was done or refused is a sentence."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import html, ui
from nicegui.element import Element

from ...manager.control import ControlError
from ...store import Annotation, Annotations, ExperimentFolder, StoreError, tags_of
from ...telling import escaped, visible
from ..security import WHY_READ_ONLY
from .elements import action, attributed, badge, panel, scripted
from .readers import may_change


async def made(
    change: Callable[..., Any], *arguments: object, done: str | Callable[[Any], None] = ""
) -> bool:
    """Make a change, in a thread; report that it is `done`, or why it failed. Readers make none, whatever they send.

    A function in the place of a text gets what the change returned, and reports it.
    """
    if not may_change():
        show_refusal(WHY_READ_ONLY)
        return False
    try:
        answer = await asyncio.to_thread(change, *arguments)
    except (ControlError, StoreError, ValueError, OSError) as error:
        show_refusal(str(error))
        return False
    if callable(done):
        done(answer)
    elif done:
        say(done)
    return True


_COPY = (
    "navigator.clipboard"
    " ? navigator.clipboard.writeText(TEXT).then(() => '', error => error.message) : REFUSAL"
)
_NO_CLIPBOARD = "this browser gives pages no clipboard: open them on localhost or by https"
_BROWSER_PATIENCE = 10.0  # seconds for a busy one


async def copied(text: str, done: str) -> None:
    """Put a text on the clipboard; report that it is `done`, or why nothing was copied."""
    try:
        why = await ui.run_javascript(
            scripted(_COPY, TEXT=text, REFUSAL=_NO_CLIPBOARD), timeout=_BROWSER_PATIENCE
        )
    except TimeoutError:
        why = "the browser did not reply"
    if why:
        show_refusal(f"nothing was copied: {why}")
    else:
        say(done)


def copy_button(text: str, name: str, done: str, label: str = "Copy") -> ui.button:
    """Make a button that puts a text on the clipboard; screen readers read its `name`."""
    button = action(label, partial(copied, text, done), icon="content_copy")
    return attributed(button, aria_label=name)


_REFUSAL = "pp-refusal"
_TIME_TO_CLICK = 12_000  # milliseconds
_CLOSE = "document.querySelectorAll(BUTTONS).forEach(close => close.click())"


def say(text: str, link: tuple[str, str] | None = None) -> None:
    """Show that something has been done, with a link (its text and address), and close the refusals before it."""
    ui.run_javascript(scripted(_CLOSE, BUTTONS=f".{_REFUSAL} .q-btn"))
    if link is None:
        ui.notify(escaped(text), type="positive", position="bottom-right")
        return
    label, address = link
    leads = {"label": label, "href": address, "color": "white", "noCaps": True}
    ui.notify(
        escaped(text), type="positive", position="bottom-right", timeout=_TIME_TO_CLICK, actions=[leads]
    )


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


def dismiss_button(note: Element, name: str) -> None:
    """Make a button that hides an element, a note, from now on: the browser remembers its `name`."""
    attributed(note, data_note=name).classes("pp-dismissible")
    button = ui.button(icon="close").props("flat round dense size=sm color=grey")
    attributed(button, aria_label="Dismiss this note").tooltip("Dismiss this note")
    button.on("click", js_handler=scripted("() => pitchpipe.dismiss(NAME)", NAME=name))


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


def notes_panel(annotations: Annotations, trial: int | None, noted: Annotation) -> None:
    """Make the panel with the note and the tags of a trial, or of the experiment for None; `noted` are these now.

    Readers see them, if there are any.
    """
    if not may_change():
        _show_notes(noted)
        return
    with panel("Notes and tags"):
        with html.div().classes("pp-stack"):
            tags = ui.input("Tags, separated by commas", value=", ".join(noted.tags))
            tags.props("outlined dense autocomplete=off").style("width: min(34rem, 100%)")
            note = ui.textarea("Note", value=noted.note).props("outlined dense autogrow").style("width: 100%")

        async def save() -> None:
            annotation = Annotation((note.value or "").strip(), tags_of(tags.value or ""))
            await made(annotations.write, trial, annotation, done="The note is saved")

        with html.div().classes("pp-row").style("margin-top: .5rem"):
            action("Save the note", save, kind="outline")


def _show_notes(noted: Annotation) -> None:
    if noted.note or noted.tags:
        with panel("Notes and tags"), html.div().classes("pp-stack"):
            if noted.tags:
                with html.div().classes("pp-row"):
                    for tag in noted.tags:
                        badge(visible(tag))
            if noted.note:
                html.p(escaped(noted.note, keep="\n\t")).style("white-space: pre-wrap")


def resume_button(
    folder: ExperimentFolder, max_trial_number: Callable[[], float | None] = lambda: None
) -> None:
    """Make a button that resumes an experiment, with a new limit if one is given; a `ValueError` is shown.

    Readers get none.
    """
    if not may_change():
        return

    async def resume() -> None:
        try:
            limit = max_trial_number()
        except ValueError as error:
            show_refusal(str(error))
            return
        button.props("loading")
        options = ["--detach", "--quiet", *([] if limit is None else ["--max-trial-number", str(limit)])]
        await made(run_command, folder, "resume", *options, done="The experiment runs again")
        button.props(remove="loading")

    button = action("Resume", resume, icon="play_arrow", kind="unelevated", color="primary")


_COMMAND_PATIENCE = 120.0


def run_command(folder: ExperimentFolder, verb: str, *options: str) -> None:
    """Run a command of `pitchpipe`: what outlives the page, or removes what it shows. Raise `ControlError`."""
    package = __name__.partition(".")[0]
    words = [verb, folder.experiment_id, "--dir", str(folder.path.parent), *options]
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", package, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise ControlError(f"{verb} did not end within {_COMMAND_PATIENCE:.0f} s") from None
    if ended.returncode:
        why = ended.stderr.strip().removeprefix("Error: ")
        raise ControlError(why or f"{verb} ended with exit code {ended.returncode}")
