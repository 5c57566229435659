"""The settings of an experiment: change limits and search space, or stop it."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import html, ui

from ...manager.control import change_experiment, rename_experiment, stop_experiment
from ...store import Annotations
from ...store.reading import ExperimentView, FeedEvent, Summary, escaped
from ..experiments import Experiments
from .actions import confirmed, delete_experiment, done, made, notes_panel, resume_button, show_refusal
from .elements import action, attributed, panel
from .frame import Where, experiment_frame
from .limits import LIMITS, Limit, changes_of
from .space_editor import SpaceEditor

__all__ = ["settings_page"]


async def settings_page(experiments: Experiments, experiment_id: str) -> None:
    """Show what can be changed, and the original config."""
    async with experiment_frame(experiments, experiment_id, "Settings", "settings") as (view, where, live):
        summary, config, given = await asyncio.to_thread(_read, view)
        html.h1("Settings").classes("pp-hidden")
        page = _Settings(view, where)
        page.build(summary, config)
        annotations = Annotations(view.folder)
        notes_panel(annotations, None, await asyncio.to_thread(annotations.read, None))
        with panel("The original config"):
            html.pre(escaped(given, keep="\n\t"))

        async def refresh(_events: list[FeedEvent]) -> None:
            page.show(await asyncio.to_thread(view.summary))

        live.on_change(refresh)


def _read(view: ExperimentView) -> tuple[Summary, dict[str, Any], str]:
    path = view.folder.path / "experiment.yml"
    given = (
        path.read_text("utf-8", "replace") if path.is_file() else "Made from Python, without a config file."
    )
    return view.summary(), view.config(), given


class _Settings:
    """The forms; untouched fields follow the store, edited ones keep the user's text."""

    def __init__(self, view: ExperimentView, where: Where) -> None:
        self._view = view
        self._where = where
        self._fields: dict[str, Any] = {}
        self._stored: dict[str, str] = {}
        self._controls: list[Any] = []
        self._over: Any = None
        self._grace: Any = None
        self._idle: list[Any] = []

    def build(self, summary: Summary, config: dict[str, Any]) -> None:
        """Make the forms."""
        with html.section().classes("pp-panel pp-notice pp-mild") as self._over:
            self._resume_form()
        with panel("Limits"):
            self._limit_form(summary)
        with panel("Search space"):
            editor = SpaceEditor(config.get("searchSpace") or {})
            self._controls.append(
                action("Change the search space", lambda: self._change_space(editor), kind="outline")
            )
        with panel("Name"):
            self._name_form(summary)
        with panel("End"):
            self._stop_form()
        self.show(summary)

    def show(self, summary: Summary) -> None:
        """Show the current limits, and whether they can be changed."""
        self._where.show_status(summary)
        for limit in LIMITS:
            text = limit.text(summary.limits.get(limit.name))
            field = self._fields[limit.name]
            if field.value == self._stored[limit.name]:
                field.set_value(text)
            self._stored[limit.name] = text
        for control in self._controls:
            control.set_enabled(summary.is_running)
        self._over.set_visibility(not summary.is_running)
        self._grace.set_visibility(summary.is_running)
        for control in self._idle:
            control.set_enabled(not summary.is_running)

    def _resume_form(self) -> None:
        html.p(
            "Not running. Changes take effect when you resume. For more trials, raise the number of trials first."
        )
        with html.div().style("margin-top: .5rem"):
            resume_button(self._view.folder, self._more_trials)

    def _more_trials(self) -> int | None:
        """Return the number of trials that was typed; None if it is the stored one. Raise `ValueError`."""
        typed = str(self._fields["max_trial_number"].value or "").strip()
        return changes_of({"max_trial_number": typed}, self._stored).get("max_trial_number")

    def _name_form(self, summary: Summary) -> None:
        with html.div().classes("pp-row"):
            field = ui.input("Name of the experiment", value=summary.name or "").props("outlined dense")
            field.style("width: min(24rem, 100%)")

            async def rename() -> None:
                name = str(field.value or "").strip()
                if await made(rename_experiment, self._view.folder, name):
                    ui.navigate.reload()  # the name is in the head of the page and in its title

            self._idle.append(action("Rename", rename, kind="outline"))
        html.p("An experiment can be renamed and deleted while it does not run.").classes("pp-dim")

    async def _delete(self) -> None:
        question = f"Delete experiment {self._where.name or self._where.experiment_id}?"
        consequence = (
            f"All its trials, results, logs and files in {self._view.folder.path} are removed for good."
        )
        if await confirmed(question, consequence, "Delete it") and await done(
            delete_experiment(self._view.folder), "The experiment is deleted"
        ):
            ui.navigate.to("/")

    def _limit_form(self, summary: Summary) -> None:
        with html.form().classes("pp-stack").style("max-width: 34rem") as form:
            for limit in LIMITS:
                text = limit.text(summary.limits.get(limit.name))
                self._fields[limit.name], self._stored[limit.name] = _field(limit, text), text
            save = ui.button("Save limits").props("unelevated no-caps type=submit")
            save.style("align-self: flex-start")
        form.on("submit.prevent", self._save)

    async def _save(self) -> None:
        typed = {name: str(field.value or "").strip() for name, field in self._fields.items()}
        try:
            changes = changes_of(typed, self._stored)
        except ValueError as error:
            show_refusal(str(error))
            return
        if not changes:
            show_refusal("Nothing was changed")
            return
        if await made(change_experiment, self._view.folder, changes, done="The limits have been changed"):
            self._stored = typed
            self.show(await asyncio.to_thread(self._view.summary))

    async def _change_space(self, editor: SpaceEditor) -> None:
        space = editor.read()
        if space is not None:
            done = "The search space has been changed"
            await made(change_experiment, self._view.folder, {"search_space": space}, done=done)

    def _stop_form(self) -> None:
        self._grace = html.p(
            "Running trials get the grace period. Results are kept, and you can resume later."
        ).classes("pp-dim")
        with html.div().classes("pp-row").style("margin-top: .6rem"):
            look = {"kind": "outline", "color": "negative"}
            self._controls.append(action("Stop the experiment", self._stop, icon="stop", **look))
            self._idle.append(action("Delete the experiment", self._delete, icon="delete", **look))

    async def _stop(self) -> None:
        question = f"Stop experiment {self._where.name or self._where.experiment_id}?"
        consequence = (
            "Running trials are stopped and become cancelled. Results are kept, and you can resume later."
        )
        if await confirmed(question, consequence, "Stop it"):
            await made(stop_experiment, self._view.folder, done="The experiment is being stopped")


def _field(limit: Limit, text: str) -> Any:
    """Make a field with its text: text set later would overwrite what the user types while the page opens."""
    field = ui.input(limit.label, value=text).props("outlined dense autocomplete=off")
    return attributed(field, hint=limit.hint)
