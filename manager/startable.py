"""Whether this machine can start a trial of a config, checked before anything is made."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config import ExperimentConfig, Finding
from ..sdk import flat_arguments
from ..store import runtime_directory
from ..trial_agent import StartError, arguments_of, base_environment, filled, misfits
from .run_settings import runs_here, shortages_of

_PYTHON = re.compile(r"python[\d.]*")
_SHELL = re.compile("(ba|da|z|k)?sh")
# Options without a value; after any other, such as -m or -c, the next word need not be a script.
_PYTHON_OPTION = re.compile("-[BEIOPSbuvx]+")
_A_NUMBER = -1.5
_SHELL_OPTION = re.compile("-[euvx]+")


def faults_at_start(config: ExperimentConfig) -> list[Finding]:
    """Return, as the executor and the agent check it, why this machine cannot start a trial.

    Placeholders that cannot take a value are found wherever trials run. Nothing else is checked for a Ray cluster,
    whose nodes may differ from this machine, no command of a function, and none that runs in an environment that Ray
    makes. Raise `RuntimeDirectoryError` if there is no place for the sockets of an experiment.
    """
    runtime_directory()
    command = config.trial_command
    faults = [] if command is None else [*_faults_of_placeholders(config, command)]
    if command is not None and runs_here(config) and not faults:
        faults += _faults_of_command(config, command)
    return [*_shortages(config), *faults]


def _shortages(config: ExperimentConfig) -> Iterator[Finding]:
    fields = {
        "CPU": ("trial_cpu_number",) if config.resources is None else ("resources", "processes"),
        "GPU": ("trial_gpu_number",) if config.resources is None else ("resources", "gpus_per_process"),
        "memory": ("trial_memory_size",),
    }
    for name, why in shortages_of(config).items():
        hint = "pitchpipe doctor shows what you may use" if name in fields else ""
        place = fields.get(name, ("trial_resources", name))
        yield Finding(path=place, message=f"{why} on this machine", hint=hint)


def _faults_of_placeholders(config: ExperimentConfig, command: str) -> Iterator[Finding]:
    for misfit in misfits(command, _values(config) if "{" in command else {}):
        yield Finding(path=("trial_command",), message=misfit.what, hint=misfit.hint)


def _values(config: ExperimentConfig) -> dict[str, list[Any]]:
    """Return the values of each parameter, one for all numbers; none where only a tuner knows them."""
    from ..search_space import SearchSpace, SearchSpaceError

    space: Any = config.search_space or {}
    found: dict[str, list[Any]] = {}
    if config.tuner.name == "Batch":
        batch = [option for spec in space.values() for option in spec["_value"]]
        for name, value in (item for option in batch for item in flat_arguments(option).items()):
            found.setdefault(name, []).append(value)
        return found
    try:
        parameters = SearchSpace.parse(space).parameters
    except SearchSpaceError:
        return {name: [_A_NUMBER] for name in space if isinstance(name, str)}
    for one in parameters:
        found.setdefault(one.name, []).extend(one.options if one.categorical else [_A_NUMBER])
    return found


def _faults_of_command(config: ExperimentConfig, command: str) -> Iterator[Finding]:
    place = ("trial_command",)
    try:
        environment = base_environment(os.environ) | config.trial_environment
        example = filled(command, dict.fromkeys(config.search_space or (), 0))
        arguments = arguments_of(example, str(config.trial_code_directory), environment)
    except StartError as error:
        yield Finding(path=place, message=str(error))
        return
    script = _script(arguments, environment)
    missing = config.trial_code_directory / script
    # One that is written with a placeholder differs from trial to trial.
    if script in command.split() and not missing.exists():
        hint = "correct trial_command or trial_code_directory"
        yield Finding(path=place, message=f"there is no file {missing}", hint=hint)


def _script(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the script that Python or a shell is to run, as it is written; empty if there may be none."""
    program, *rest = arguments
    is_shell = _SHELL.fullmatch(os.path.basename(program)) is not None
    if not is_shell and not _PYTHON.fullmatch(os.path.basename(program)):
        return ""
    option = _SHELL_OPTION if is_shell else _PYTHON_OPTION
    script = next((word for word in rest if not option.fullmatch(word)), "-")
    on_path = is_shell and "/" not in script and shutil.which(script, os.F_OK, environment.get("PATH"))
    return "" if script.startswith("-") or on_path else script
