"""The parameters of a trial to take elsewhere: as JSON, as a command line, as Python."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from pprint import pformat

from nicegui import ui

from ...protocol import Config, Json
from ...sdk import flat_arguments
from ...store import shell_word
from ...store.reading import ExperimentView, TrialRow
from ...trial_agent import filled
from .actions import copied
from .elements import action, attributed

_FORMS = ("as JSON", "as a command", "as Python")
# Behind one of these, more words may belong to another command.
_SHELL = re.compile(r"[|&;<>()`$#\n]")
_MOST_OF_SCRIPT = 200_000


def copy_menu(view: ExperimentView, trial: TrialRow, name: str, label: str = "Copy") -> None:
    """Make a button whose menu offers the forms in which the parameters of a trial are copied; `name` says which."""

    async def copy(form: str) -> None:
        texts = await asyncio.to_thread(parameter_texts, view, trial)
        await copied(texts[form], f"The parameters of trial {trial.sequence_id} are on the clipboard {form}")

    with attributed(action(label, lambda: None, icon="content_copy"), aria_label=name), ui.menu():
        for form in _FORMS:
            ui.menu_item(form[0].upper() + form[1:], partial(copy, form))


def parameter_texts(view: ExperimentView, trial: TrialRow) -> dict[str, str]:
    """Return the parameters of a trial by form.

    A script that takes arguments gets the option of a nested choice by its name alone; any other gets the object with
    its `_name`, as in the search space, and the command is the one that runs the trial again.
    """
    command = command_line(view.config(), trial.parameters)
    parameters = flat_arguments(trial.parameters) if command else trial.parameters
    directory = shell_word(view.folder.path.parent)
    again = f"pitchpipe trial rerun {view.experiment_id} {trial.sequence_id} --dir {directory}"
    texts = (
        json.dumps(parameters),
        command or again,
        f"parameters = {pformat(parameters, width=100, sort_dicts=False)}",
    )
    return dict(zip(_FORMS, texts, strict=True))


def command_line(config: Config, parameters: Mapping[str, Json]) -> str:
    """Return the trial command with the parameters in it; empty if it takes them in another way.

    >>> command_line({"trialCommand": "./train -l {lr}"}, {"lr": 0.1}), command_line({}, {"lr": 0.1})
    ('./train -l 0.1', '')
    """
    command = config.get("trialCommand") or ""
    try:
        complete = filled(command, parameters)
        if complete == command and _parses_arguments(config, command):
            complete = filled(f"{command} {{args}}", parameters)
    except ValueError:  # a value that the shell would change, or two parameters with one name
        return ""
    return complete if complete != command else ""


def _parses_arguments(config: Config, command: str) -> bool:
    """Return whether the script of a plain command parses arguments, as `pitchpipe.parse_args` does."""
    if _SHELL.search(command):
        return False
    try:
        script = next((word for word in shlex.split(command) if word.endswith(".py")), None)
        if script is None:
            return False
        file = Path(config.get("trialCodeDirectory") or ".", script)
        if not file.is_file():
            return False
        with file.open(encoding="utf-8", errors="replace") as opened:
            return "parse_args" in opened.read(_MOST_OF_SCRIPT)
    except (ValueError, OSError):
        return False
