"""Actions on trials, for the table and for the page of one: compare, copy, kill, rerun, and the form that adds one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import html, ui
from nicegui.element import Element

from ...manager.control import TrialIds, add_trial, kill_trial, rerun_trial
from ...protocol import Config, Json, Parameters
from ...runner import TrialStatus
from ...search_space import SearchSpace, SearchSpaceError, identity
from ...store.reading import ExperimentView, Summary, TrialRow
from ...telling import escaped, option_text, visible
from .actions import confirmed, copied, made, result_of, say, show_refusal
from .elements import action, attributed
from .frame import ROOT, Where
from .readers import may_change

_MOST_COMPARED = 20


class TrialActions:
    """The actions of one page; `chosen` returns the numbers of the trials to act on."""

    def __init__(
        self, view: ExperimentView, where: Where, chosen: Callable[[], Awaitable[list[int]]]
    ) -> None:
        self._view = view
        self._where = where
        self._chosen = chosen
        self._buttons: list[ui.button] = []
        self._selected: list[int] = []
        self._changing: list[ui.button] = []
        self._kill: ui.button | None = None
        self._resume_link: Element | None = None
        # What was typed into a form that was closed, by the trial that it was filled in from.
        self._unfinished: dict[int | None, Parameters] = {}

    def toolbar(self, *, can_kill: bool = True) -> None:
        """Make the buttons above the table; some need selected trials, and Kill one that has not ended."""
        compare = action("Compare", self.compare, icon="compare_arrows", tip="Compare the selected trials")
        copy = action("Copy", self.copy, icon="content_copy", tip="Copy the parameters")
        self._buttons = [compare, copy, *self.changes()]
        for button in self._buttons:
            button.disable()
        if self._kill is not None:
            self._buttons.remove(self._kill)
            if not can_kill:
                self._changing.remove(self._kill)
                self._kill.set_visibility(False)
                self._kill = None
        if may_change():
            self._changing.append(action("Add trial", self.add, icon="add", kind="outline"))

    def changes(self) -> list[ui.button]:
        """Make the buttons that run trials again and kill them, and a link in their place when nothing runs.

        Readers get none of them.
        """
        if not may_change():
            return []
        rerun = action("Rerun", self.rerun, icon="replay", tip="Run again with the same parameters")
        self._kill = action("Kill", self.kill, icon="cancel", tip="Kill the trials")
        self._changing += [rerun, self._kill]
        with html.a(href=self._where.path("settings")) as self._resume_link:
            self._resume = ui.label()
        return [rerun, self._kill]

    def show_state(self, summary: Summary, *, is_over: bool = False) -> None:
        """Show what can be done while the experiment runs (not kill a trial that `is_over`), or how it continues."""
        for button in self._changing:
            button.set_visibility(summary.is_running)
        if self._kill is not None:
            self._kill.set_visibility(summary.is_running and not is_over)
        if self._resume_link is not None:
            self._resume_link.set_visibility(not summary.is_running)
            self._resume.set_text("Run more trials" if summary.status == "DONE" else "Not running: resume")

    async def show_selected(self) -> None:
        """Enable or disable the buttons."""
        self._selected = await self._chosen()
        for button in self._buttons:
            button.set_enabled(bool(self._selected))
        await self.follow()

    async def follow(self) -> None:
        """Disable Kill once all selected trials have ended."""
        if self._kill is not None:
            self._kill.set_enabled(bool(await self._living(self._selected)))

    async def compare(self) -> None:
        """Open the page that shows the trials side by side."""
        numbers = await self._chosen()
        if len(numbers) > _MOST_COMPARED:
            show_refusal(f"{len(numbers)} trials are too many to compare: select at most {_MOST_COMPARED}")
            return
        address = f"{self._where.path('compare')}?trials={','.join(map(str, numbers))}"
        ui.navigate.to(address.removeprefix(ROOT))  # navigation adds the root itself

    async def copy(self) -> None:
        """Copy the parameters of the trials to the clipboard: an object, or a list of objects."""
        numbers = await self._chosen()
        parameters = [trial.parameters for trial in await self._trials(numbers)]
        done = f"The parameters of {_named(numbers)} are on the clipboard"
        await copied(json.dumps(parameters[0] if len(parameters) == 1 else parameters), done)

    async def kill(self) -> None:
        """Kill those of the trials that have not ended, after a confirmation."""
        numbers = [trial.sequence_id for trial in await self._living(await self._chosen())]
        if not numbers:
            show_refusal("these trials have ended")
            return
        consequence = "The processes get the grace period to end. The experiment continues."
        if await confirmed(f"Kill {_named(numbers)}?", consequence, "Kill"):
            for trial in await self._living(numbers):
                done = f"Trial {trial.sequence_id} is being killed"
                await made(kill_trial, self._view.folder, trial.trial_id, done=done)

    async def rerun(self) -> None:
        """Run the same parameters again, as new trials."""
        for trial in await self._trials(await self._chosen()):
            done = f"The parameters of trial {trial.sequence_id} will run again"
            await made(rerun_trial, self._view.folder, trial.trial_id, done=self._saying(done))

    async def add(self) -> None:
        """Show the form of a new trial, filled in as it was closed, or from the first selected trial, or the best."""
        numbers = await self._chosen()
        config = await asyncio.to_thread(self._view.config)
        source = next(iter(numbers), None)
        models = await self._trials(numbers[:1]) or await asyncio.to_thread(self._view.best)
        filled = self._unfinished.get(source) or (models[0].parameters if models else {})
        done = "The trial has been added: it starts as soon as resources are free"

        async def run(parameters: Parameters) -> bool:
            return await made(add_trial, self._view.folder, parameters, done=self._saying(done))

        self._unfinished[source] = await TrialForm(config, filled, run).ask()

    def _saying(self, done: str) -> Callable[[TrialIds], None]:
        """Return what says that a trial is made, with a link to it."""

        def tell(new: TrialIds) -> None:
            number = new["sequence_id"]
            say(done, link=(f"Open trial {number}", self._where.path(f"trials/{number}")))

        return tell

    async def _living(self, numbers: Sequence[int]) -> list[TrialRow]:
        """Return those of the trials that have not ended."""
        return [trial for trial in await self._trials(numbers) if not TrialStatus(trial.status).is_final]

    async def _trials(self, numbers: Sequence[int]) -> list[TrialRow]:
        return await asyncio.to_thread(self._view.numbered, numbers)


def _named(numbers: Sequence[int]) -> str:
    """Name trials in a sentence.

    >>> _named([3]), _named([3, 5]), _named(range(30))
    ('trial 3', 'trials 3 and 5', '30 trials')
    """
    if len(numbers) > 5:
        return f"{len(numbers)} trials"
    words = [str(number) for number in numbers]
    return f"trial {words[0]}" if len(words) == 1 else f"trials {', '.join(words[:-1])} and {words[-1]}"


Value = Callable[[], Any]


class TrialForm:
    """Asks for the parameters of a trial, filled in with those of another, and runs it.

    It stays open, with what was typed, until `run` returns that the trial was taken, or the user cancels or presses
    Escape.
    """

    def __init__(
        self, config: Config, filled: Mapping[str, Json], run: Callable[[Parameters], Awaitable[bool]]
    ) -> None:
        self._space: Config = config.get("searchSpace") or {}
        self._constraints = config.get("constraints") or ()
        self._filled = filled
        self._run = run

    async def ask(self) -> Parameters:
        """Show the form until the trial is taken or the form closed; return what Escape left unfinished."""
        dialog = ui.dialog().props("no-backdrop-dismiss")
        with dialog, ui.card().style("min-width: min(30rem, 92vw)"):
            html.h2("Add a trial")
            html.p("It runs with exactly these parameters, before those from the tuner.").classes("pp-dim")
            with html.div().classes("pp-stack").style("width: 100%; gap: .4rem"):
                read = _fields(self._space, self._filled)
            self._problems = html.div().classes("pp-bad").props("role=alert")
            with html.div().classes("pp-row").style("align-self: flex-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit({})).props("flat no-caps")
                ui.button("Run it", on_click=lambda: self._send(dialog, read())).props("unelevated no-caps")
        is_unfinished = await result_of(dialog) is None
        return read() if is_unfinished else {}

    async def _send(self, dialog: Any, parameters: Parameters) -> None:
        self._problems.clear()
        problems = self._problems_of(parameters)
        with self._problems:
            for problem in problems:
                html.p(escaped(problem))
        if not problems and await self._run(parameters):
            dialog.submit({})

    def _problems_of(self, parameters: Parameters) -> list[str]:
        """Return the problems of the parameters, as sentences."""
        try:
            space = SearchSpace.parse(self._space, self._constraints)
        except SearchSpaceError:
            return []  # only the user's tuner reads this search space
        if faults := space.validate(parameters):
            return [str(fault) for fault in faults]
        return [f"the constraint {text} is not met" for text in space.violations(parameters)]


def _fields(space: Config, filled: Mapping[str, Json]) -> Callable[[], Parameters]:
    """Make the fields of one level of the search space; return what reads them."""
    values = dict[str, Value]()
    for name, parameter in space.items():
        if name != "_name":
            is_constant = not isinstance(parameter, Mapping)
            spec = {"_type": "choice", "_value": [parameter]} if is_constant else parameter
            values[name] = _field(name, spec, filled.get(name))
    return lambda: {name: value() for name, value in values.items()}


def _field(name: str, parameter: Config, filled: Json) -> Value:
    if parameter.get("_type") == "choice":
        options = list(parameter.get("_value", ()))
        if options and all(isinstance(option, Mapping) and "_name" in option for option in options):
            return _nested_field(name, options, filled)
        field = _select(name, options, filled)
        return lambda: options[field.value]
    return _number_field(name, parameter, filled)


def _number_field(name: str, parameter: Config, filled: Json) -> Value:
    arguments = ", ".join(map(str, parameter.get("_value", ())))
    field = ui.input(visible(name), value="" if filled is None else str(filled)).style("width: 100%")
    field.props("outlined dense inputmode=decimal autocomplete=off")
    attributed(field, hint=escaped(f"{parameter.get('_type')} {arguments}"))
    return lambda: _number(field.value)


def _number(text: Any) -> Any:
    """Return the number that was typed, or the text if it is not one, for the search space to refuse.

    >>> _number("16"), _number(" 1e-3"), _number("many")
    (16, 0.001, 'many')
    """
    for kind in (int, float):
        try:
            return kind(str(text).strip())
        except ValueError:
            pass
    return text


def _select(name: str, options: Sequence[Json], filled: Json) -> ui.select:
    """Make a field whose value is the place of an option."""
    words = [option_text(option) for option in options]
    places = {identity(option): place for place, option in enumerate(options)}
    chosen = places.get(identity(filled), 0)
    field = ui.select(dict(enumerate(words)), label=visible(name), value=chosen)
    return field.props("outlined dense options-dense").style("width: 100%")


def _nested_field(name: str, options: list[Config], filled: Json) -> Value:
    names = [option["_name"] for option in options]
    before: Mapping[str, Json] = filled if isinstance(filled, Mapping) else {}
    field = _select(name, names, before.get("_name"))
    parts: list[tuple[Element, Callable[[], Parameters]]] = []
    for option in options:
        group = attributed(html.fieldset(), aria_label=escaped(f"{name}: {option['_name']}"))
        with group.classes("pp-nested"):
            parts.append((group, _fields(option, before)))

    def show() -> None:
        for place, (group, read) in enumerate(parts):
            group.set_visibility(place == field.value and bool(read()))

    show()
    field.on_value_change(show)
    return lambda: {"_name": names[field.value], **parts[field.value][1]()}
