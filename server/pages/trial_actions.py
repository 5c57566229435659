"""Actions on trials: kill, rerun, compare, copy their parameters, add one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nicegui import html, ui

from ...manager.control import add_trial, kill_trial, rerun_trial
from ...store.reading import ExperimentView, Summary, TrialDetail
from .actions import confirmed, copied, made, show_refusal
from .elements import action
from .frame import ROOT, Where
from .trial_form import TrialForm

__all__ = ["TrialActions"]

Chosen = Callable[[], Awaitable[list[int]]]
_MOST_COMPARED = 20


class TrialActions:
    """The actions of one page; `chosen` returns the trials to act on."""

    def __init__(self, view: ExperimentView, where: Where) -> None:
        self._view = view
        self._where = where
        self._buttons: list[Any] = []
        self._changing: list[Any] = []
        self._resume: Any = None
        self._resume_link: Any = None
        # What was typed into a form that was closed, by the trial that it was filled in from.
        self._unfinished: dict[int | None, dict[str, Any]] = {}

    def toolbar(self, chosen: Chosen) -> None:
        """Make the buttons above the table; some need selected trials."""
        compare = action(
            "Compare", lambda: self.compare(chosen), icon="compare_arrows", tip="Compare the selected trials"
        )
        copy = action("Copy", lambda: self.copy(chosen), icon="content_copy", tip="Copy the parameters")
        self._buttons = [compare, copy, *self.changes(chosen)]
        for button in self._buttons:
            button.disable()
        add = action("Add trial", lambda: self.add(chosen), icon="add", kind="outline")
        self._changing.append(add)

    def changes(self, chosen: Chosen) -> tuple[ui.button, ui.button]:
        """Make the buttons that run trials again and kill them, and a link in their place when nothing runs."""
        rerun = action(
            "Rerun", lambda: self.rerun(chosen), icon="replay", tip="Run again with the same parameters"
        )
        kill = action("Kill", lambda: self.kill(chosen), icon="cancel", tip="Kill the trials")
        self._changing += [rerun, kill]
        with html.a(href=self._where.path("settings")) as self._resume_link:
            self._resume = ui.label()
        return rerun, kill

    def show_state(self, summary: Summary) -> None:
        """Show what can be done with trials while the experiment runs, or how it continues."""
        for button in self._changing:
            button.set_visibility(summary.is_running)
        self._resume_link.set_visibility(not summary.is_running)
        self._resume.set_text("Run more trials" if summary.status == "DONE" else "Not running: resume")

    async def show_selected(self, chosen: Chosen) -> None:
        """Enable or disable the buttons."""
        some = bool(await chosen())
        for button in self._buttons:
            button.set_enabled(some)

    async def compare(self, chosen: Chosen) -> None:
        """Open the page that shows the trials side by side."""
        numbers = await chosen()
        if len(numbers) > _MOST_COMPARED:
            show_refusal(f"{len(numbers)} trials are too many to compare: select at most {_MOST_COMPARED}")
            return
        address = f"{self._where.path('compare')}?trials={','.join(map(str, numbers))}"
        ui.navigate.to(address.removeprefix(ROOT))  # navigation adds the root itself

    async def copy(self, chosen: Chosen) -> None:
        """Copy the parameters of the trials to the clipboard: an object, or a list of objects."""
        numbers = await chosen()
        found = [trial.parameters for trial in await self._trials(numbers)]
        done = f"The parameters of {_named(numbers)} are on the clipboard"
        await copied(json.dumps(found[0] if len(found) == 1 else found), done)

    async def kill(self, chosen: Chosen) -> None:
        """Kill the trials after a confirmation."""
        numbers = await chosen()
        what = _named(numbers)
        if await confirmed(
            f"Kill {what}?", "The processes get the grace period to end. The experiment continues.", "Kill"
        ):
            for trial in await self._trials(numbers):
                done = f"Trial {trial.sequence_id} is being killed"
                await made(kill_trial, self._view.folder, trial.trial_id, done=done)

    async def rerun(self, chosen: Chosen) -> None:
        """Run the same parameters again, as new trials."""
        for trial in await self._trials(await chosen()):
            done = f"The parameters of trial {trial.sequence_id} will run again"
            await made(rerun_trial, self._view.folder, trial.trial_id, done=done)

    async def add(self, chosen: Chosen) -> None:
        """Show the form of a new trial, filled in as it was closed, or from the first selected trial, or the best."""
        numbers = await chosen()
        config = await asyncio.to_thread(self._view.config)
        source = next(iter(numbers), None)
        selected = await self._trials(numbers[:1])
        found = selected[0] if selected else next(iter(await asyncio.to_thread(self._view.best)), None)
        filled = self._unfinished.get(source) or ({} if found is None else found.parameters)
        done = "The trial has been added: it starts as soon as resources are free"

        async def run(parameters: dict[str, Any]) -> bool:
            return await made(add_trial, self._view.folder, parameters, done=done)

        self._unfinished[source] = await TrialForm(config, filled, run).ask()

    async def _trials(self, numbers: Sequence[int]) -> list[TrialDetail]:
        return await asyncio.to_thread(lambda: [self._view.trial(number) for number in numbers])


def _named(numbers: Sequence[int]) -> str:
    """Name trials in a sentence.

    >>> _named([3]), _named([3, 5]), _named(range(30))
    ('trial 3', 'trials 3 and 5', '30 trials')
    """
    if len(numbers) > 5:
        return f"{len(numbers)} trials"
    words = [str(number) for number in numbers]
    return f"trial {words[0]}" if len(words) == 1 else f"trials {', '.join(words[:-1])} and {words[-1]}"
