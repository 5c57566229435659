"""The page with the settings of an experiment: change limits and search space, rename, stop or delete it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from nicegui import html, ui

from ...config import UnitError, parse_duration
from ...manager.control import change_experiment, rename_experiment, stop_experiment
from ...protocol import Config, JsonObject
from ...search_space import check
from ...store import Annotations
from ...store.reading import ExperimentView, FeedEvent, Summary
from ...telling import escaped
from ..experiments import Experiments
from ..secrecy import hidden
from .actions import confirmed, made, notes_panel, resume_button, run_command, show_refusal
from .elements import action, attributed, named_values, panel
from .frame import Where, experiment_frame
from .readers import may_change


async def settings_page(experiments: Experiments, experiment_id: str) -> None:
    """Show what can be changed, and the original config; readers see the settings, and no secrets in the config."""
    async with experiment_frame(experiments, experiment_id, "Settings", "settings") as (view, where, live):
        summary, config, given = await asyncio.to_thread(_read, view)
        html.h1("Settings").classes("pp-hidden")
        if may_change():
            page = _Settings(view, where, summary, config)

            async def refresh(_events: list[FeedEvent]) -> None:
                page.show(await asyncio.to_thread(view.summary))

            live.on_change(refresh)
        else:
            _show_settings(summary, config)
        annotations = Annotations(view.folder)
        notes_panel(annotations, None, await asyncio.to_thread(annotations.read, None))
        with panel("The original config"):
            html.pre(escaped(given if may_change() else hidden(given), keep="\n\t"))


def _show_settings(summary: Summary, config: Config) -> None:
    with panel("Limits"):
        limits = summary.limits
        named_values((limit.label, limit.text(limits.get(limit.name)) or "no limit") for limit in LIMITS)
    with panel("Search space"):
        html.pre(escaped(_written(config.get("searchSpace") or {}), keep="\n"))


def _read(view: ExperimentView) -> tuple[Summary, Config, str]:
    path = view.folder.path / "experiment.yml"
    no_file = "Made from Python, without a config file."
    return view.summary(), view.config(), path.read_text("utf-8", "replace") if path.is_file() else no_file


class _Settings:
    """The forms; untouched fields follow the store, edited ones keep the user's text."""

    def __init__(self, view: ExperimentView, where: Where, summary: Summary, config: Config) -> None:
        self._view = view
        self._where = where
        self._fields: dict[str, ui.input] = {}
        self._stored: dict[str, str] = {}
        self._running: list[ui.button] = []  # what can be done while the experiment runs
        self._idle: list[ui.button] = []  # and while it does not
        with html.section().classes("pp-panel pp-notice pp-mild") as self._over:
            self._resume_form()
        with panel("Limits"):
            self._limit_form(summary)
        with panel("Search space"):
            editor = _SpaceEditor(config.get("searchSpace") or {})
            change = action("Change the search space", lambda: self._change_space(editor), kind="outline")
            self._running.append(change)
        with panel("Name"):
            self._name_form(summary)
        with panel("End"):
            self._stop_form()
        self.show(summary)

    def show(self, summary: Summary) -> None:
        """Show the current limits, and whether they can be changed."""
        for limit in LIMITS:
            text = limit.text(summary.limits.get(limit.name))
            field = self._fields[limit.name]
            if field.value == self._stored[limit.name]:
                field.set_value(text)
            self._stored[limit.name] = text
        self._over.set_visibility(not summary.is_running)
        self._grace.set_visibility(summary.is_running)
        for button in self._running:
            button.set_enabled(summary.is_running)
        for button in self._idle:
            button.set_enabled(not summary.is_running)

    def _resume_form(self) -> None:
        html.p(
            "Not running. Changes take effect when you resume. For more trials, raise the number of trials first."
        )
        with html.div().style("margin-top: .5rem"):
            resume_button(self._view.folder, self._more_trials)

    def _more_trials(self) -> float | None:
        """Return the number of trials that was typed; None if it is the stored one. Raise `ValueError`."""
        typed = {"max_trial_number": self._typed()["max_trial_number"]}
        return changes_of(typed, self._stored).get("max_trial_number")

    def _typed(self) -> dict[str, str]:
        return {name: str(field.value or "").strip() for name, field in self._fields.items()}

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
        folder = self._view.folder
        consequence = f"All its trials, results, logs and files in {folder.path} are removed for good."
        if not await confirmed(f"Delete experiment {self._where.title}?", consequence, "Delete it"):
            return
        if await made(run_command, folder, "delete", "--yes", done="The experiment is deleted"):
            ui.navigate.to("/")

    def _limit_form(self, summary: Summary) -> None:
        with html.form().classes("pp-stack").style("max-width: 34rem") as form:
            for limit in LIMITS:
                text = limit.text(summary.limits.get(limit.name))
                # Text that is set later would overwrite what the user types while the page opens.
                field = ui.input(limit.label, value=text).props("outlined dense autocomplete=off")
                self._fields[limit.name] = attributed(field, hint=limit.hint)
                self._stored[limit.name] = text
            save = ui.button("Save limits").props("unelevated no-caps type=submit")
            save.style("align-self: flex-start")
        form.on("submit.prevent", self._save)

    async def _save(self) -> None:
        typed = self._typed()
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

    async def _change_space(self, editor: _SpaceEditor) -> None:
        space = editor.read()
        if space is not None:
            done = "The search space has been changed"
            await made(change_experiment, self._view.folder, {"search_space": space}, done=done)

    def _stop_form(self) -> None:
        grace = "Running trials get the grace period. Results are kept, and you can resume later."
        self._grace = html.p(grace).classes("pp-dim")
        with html.div().classes("pp-row").style("margin-top: .6rem"):
            look = {"kind": "outline", "color": "negative"}
            self._running.append(action("Stop the experiment", self._stop, icon="stop", **look))
            self._idle.append(action("Delete the experiment", self._delete, icon="delete", **look))

    async def _stop(self) -> None:
        consequence = (
            "Running trials are stopped and become cancelled. Results are kept, and you can resume later."
        )
        if await confirmed(f"Stop experiment {self._where.title}?", consequence, "Stop it"):
            await made(stop_experiment, self._view.folder, done="The experiment is being stopped")


_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitField:
    """A text field for a limit that can be changed; an empty one removes the limit if it `may_be_empty`."""

    name: str
    label: str
    hint: str
    is_duration: bool = False
    may_be_empty: bool = True

    def text(self, value: float | None) -> str:
        """Return the text in the field for a value.

        >>> [LIMITS[1].text(seconds) for seconds in (None, 5400, 7200.0, 90)]
        ['', '90m', '2h', '90s']
        """
        if value is None:
            return ""
        if not self.is_duration:
            return str(value)
        for unit, seconds in _UNITS:
            if value % seconds == 0:
                return f"{value // seconds:.0f}{unit}"
        return f"{value:g}s"

    def value(self, text: str) -> float | None:
        """Return the value of a text for the manager; raise `ValueError` with a sentence if it is invalid."""
        if not text:
            if not self.may_be_empty:
                raise ValueError(f"{self.label} cannot be empty")
            return None
        if self.is_duration:
            return self._seconds(text)
        if not text.isdecimal() or not int(text):
            raise ValueError(f"{self.label} must be a whole number from 1 on, not '{text}'")
        return int(text)

    def _seconds(self, text: str) -> float:
        try:
            seconds = float(text) if text.replace(".", "", 1).isdecimal() else parse_duration(text)
        except UnitError:
            seconds = 0.0
        if not seconds > 0:
            raise ValueError(f"{self.label} must be a time such as 90m, 12h or 2d, not '{text}'")
        return seconds


LIMITS = (
    LimitField(
        name="max_trial_number",
        label="Number of trials",
        hint="No new trials after this many; empty: no limit",
    ),
    LimitField(
        name="max_experiment_duration",
        label="Duration of the experiment",
        hint="Such as 90m, 12h or 2d, from its start; empty: no limit",
        is_duration=True,
    ),
    LimitField(
        name="trial_concurrency",
        label="Trials at a time",
        hint="How many trials run at once",
        may_be_empty=False,
    ),
)


def changes_of(typed: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, float | None]:
    """Return what differs from the stored limits; raise `ValueError` with the first problem.

    >>> changes_of({"max_trial_number": "20", "trial_concurrency": "2"}, {"trial_concurrency": "2"})
    {'max_trial_number': 20}
    """
    return {
        limit.name: limit.value(typed[limit.name])
        for limit in LIMITS
        if limit.name in typed and typed[limit.name] != stored.get(limit.name, "")
    }


class _SpaceEditor:
    """A text field with the search space as JSON, one parameter per line."""

    def __init__(self, space: Config) -> None:
        html.p("Applies to new trials only.").classes("pp-dim")
        self._text = ui.textarea("Search space (JSON)", value=_written(space)).classes("pp-mono")
        self._text.props("outlined autogrow spellcheck=false").style("width: 100%; margin: .5rem 0")
        self._problems = html.div().classes("pp-bad").props("role=alert")

    def read(self) -> JsonObject | None:
        """Return the search space that was typed; None if it is invalid, which is shown."""
        space, problems = _examined(self._text.value or "")
        self._problems.clear()
        with self._problems:
            for problem in problems:
                html.p(problem)
        return None if problems else space


def _written(space: Config) -> str:
    """Write the search space as JSON, one parameter per line.

    >>> print(_written({"x": {"_type": "uniform", "_value": [0, 1]}}))
    {
      "x": {"_type": "uniform", "_value": [0, 1]}
    }
    """
    lines = [f"  {json.dumps(name)}: {json.dumps(inner)}" for name, inner in space.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _examined(text: str) -> tuple[JsonObject, list[str]]:
    """Return the search space in a text, and its problems.

    >>> _examined('{"x": {"_type": "uniform"')[1]
    ["invalid JSON: Expecting ',' delimiter in line 1, column 26"]
    """
    try:
        space = json.loads(text)
    except json.JSONDecodeError as error:
        return {}, [f"invalid JSON: {error.msg} in line {error.lineno}, column {error.colno}"]
    return space, [str(problem) for problem in check(space)]
