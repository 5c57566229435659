"""The panel with the note and the tags of a trial or an experiment."""

from __future__ import annotations

import asyncio

from nicegui import html, ui

from ...store import Annotation, Annotations, StoreError, tags_of
from .actions import say, show_refusal
from .elements import action, panel

__all__ = ["notes_panel"]


def notes_panel(annotations: Annotations, trial: int | None, found: Annotation) -> None:
    """Make the panel; `found` is what is noted on the trial, or on the experiment for None."""
    with panel("Notes and tags"):
        with html.div().classes("pp-stack"):
            tags = ui.input("Tags, separated by commas", value=", ".join(found.tags))
            tags.props("outlined dense autocomplete=off").style("width: min(34rem, 100%)")
            note = ui.textarea("Note", value=found.note).props("outlined dense autogrow").style("width: 100%")

        async def save() -> None:
            annotation = Annotation((note.value or "").strip(), tags_of(tags.value or ""))
            try:
                await asyncio.to_thread(annotations.write, trial, annotation)
            except (ValueError, StoreError, OSError) as error:
                show_refusal(str(error))
                return
            say("The note is saved")

        with html.div().classes("pp-row").style("margin-top: .5rem"):
            action("Save the note", save, kind="outline")
