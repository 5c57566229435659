"""Commands of `pitchpipe` that a page runs for its user: resume and delete, which outlive or remove what is shown."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

from nicegui import ui

from ...manager.control import ControlError
from ...store import ExperimentFolder
from .actions import done, show_refusal
from .elements import action

__all__ = ["delete_experiment", "resume_button"]

_PATIENCE = 120.0


def resume_button(
    folder: ExperimentFolder, max_trial_number: Callable[[], int | None] = lambda: None
) -> ui.button:
    """Make a button that resumes an experiment, with a new limit if one is given; a `ValueError` is shown."""

    async def resume() -> None:
        try:
            change = _resume(folder, max_trial_number())
        except ValueError as error:
            show_refusal(str(error))
            return
        button.props("loading")
        await done(change, "The experiment runs again")
        button.props(remove="loading")

    button = action("Resume", resume, icon="play_arrow", kind="unelevated", color="primary")
    return button


async def _resume(folder: ExperimentFolder, max_trial_number: int | None) -> None:
    """Continue an experiment in the background, with a new limit if one is given; raise `ControlError`."""
    limit = [] if max_trial_number is None else ["--max-trial-number", str(max_trial_number)]
    await _run(["resume", folder.experiment_id, *_directory(folder), "--detach", "--quiet", *limit])


async def delete_experiment(folder: ExperimentFolder) -> None:
    """Delete an experiment that is over with all its files; raise `ControlError`."""
    await _run(["delete", folder.experiment_id, *_directory(folder), "--yes"])


def _directory(folder: ExperimentFolder) -> list[str]:
    return ["--dir", str(folder.path.parent)]


async def _run(words: list[str]) -> None:
    command = [sys.executable, "-P", "-m", __name__.partition(".")[0], *words]
    try:
        ended = await asyncio.to_thread(
            subprocess.run,
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise ControlError(f"{words[0]} did not end within {_PATIENCE:.0f} s") from None
    if ended.returncode:
        raise ControlError(
            ended.stderr.strip().removeprefix("Error: ")
            or f"{words[0]} ended with exit code {ended.returncode}"
        )
