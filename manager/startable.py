"""Whether this machine can start a trial of a config, and how many at a time, before anything is made."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..config import ExperimentConfig, Finding, LocalConfig
from ..runner import Ledger, Request
from ..sdk import flat_arguments
from ..store import runtime_directory
from ..trial_agent import StartError, arguments_of, base_environment, filled, misfits
from .run_settings import request_of

_PYTHON = re.compile(r"python[\d.]*")
_SHELL = re.compile("(ba|da|z|k)?sh")
# Options without a value; after any other, such as -m or -c, the next word need not be a script.
_PYTHON_OPTION = re.compile("-[BEIOPSbuvx]+")
_A_NUMBER = -1.5
_SHELL_OPTION = re.compile("-[euvx]+")


def faults_at_start(config: ExperimentConfig) -> list[Finding]:
    """Return, as the executor and the agent check it, why this machine cannot start a trial.

    Placeholders that cannot take a value are found wherever trials run. The rest is checked only for trials of this
    machine: the nodes of a Ray cluster and an environment that Ray makes may differ from it. A function has no command
    to check. Raise `RuntimeDirectoryError` if there is no place for the sockets of an experiment.
    """
    runtime_directory()
    command = config.trial_command
    faults = [] if command is None else [*_faults_of_placeholders(config, command)]
    if command is not None and _runs_here(config) and not faults:
        faults += _faults_of_command(config, command)
    return [*_shortages(config), *faults]


def most_at_once(config: ExperimentConfig) -> int:
    """Return how many trials can run at a time: `trial_concurrency`, or fewer if this machine is too small."""
    request, here = _on_this_machine(config)
    most = config.trial_concurrency
    return here.fitting(request, most) if here is not None else most


def _shortages(config: ExperimentConfig) -> Iterator[Finding]:
    """Yield a finding for each resource that a trial takes more of than this machine has."""
    fields = {
        "CPU": ("trial_cpu_number",) if config.resources is None else ("resources", "processes"),
        "GPU": ("trial_gpu_number",) if config.resources is None else ("resources", "gpus_per_process"),
        "memory": ("trial_memory_size",),
    }
    request, here = _on_this_machine(config)
    for name, why in (here.shortages(request) if here is not None else {}).items():
        hint = "pitchpipe doctor shows what you may use" if name in fields else ""
        place = fields.get(name, ("trial_resources", name))
        yield Finding(path=place, message=f"{why} on this machine", hint=hint)


def _faults_of_placeholders(config: ExperimentConfig, command: str) -> Iterator[Finding]:
    for misfit in misfits(command, _values(config) if "{" in command else {}):
        yield Finding(path=("trial_command",), message=misfit.what, hint=misfit.hint)


def _values(config: ExperimentConfig) -> dict[str, list[Any]]:
    """Return the values of each parameter, a single one for all numbers; none if only the tuner knows them."""
    from ..search_space import SearchSpace, SearchSpaceError

    space: Any = config.search_space or {}
    values: dict[str, list[Any]] = {}
    if config.tuner.name == "Batch":
        batch = [option for spec in space.values() for option in spec["_value"]]
        for name, value in (item for option in batch for item in flat_arguments(option).items()):
            values.setdefault(name, []).append(value)
        return values
    try:
        parameters = SearchSpace.parse(space).parameters
    except SearchSpaceError:
        return {name: [_A_NUMBER] for name in space if isinstance(name, str)}
    for parameter in parameters:
        options = parameter.options if parameter.categorical else [_A_NUMBER]
        values.setdefault(parameter.name, []).extend(options)
    return values


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


# ------------------------------------------------------------------ this machine


def _runs_here(config: ExperimentConfig) -> bool:
    """Return whether trials run on this machine and in its environment: not on a cluster, not in one that Ray makes."""
    service = config.training_service
    return isinstance(service, LocalConfig) or (service.address is None and not service.runtime_env)


def _on_this_machine(config: ExperimentConfig) -> tuple[Request, Ledger | None]:
    """Return what a trial takes of this machine, and what there is; None on a cluster, which is not asked."""
    request, service = request_of(config), config.training_service
    if not isinstance(service, LocalConfig):
        if service.address is not None:
            return request, None
        from ..executors.private_ray import most_of_this_machine

        here = Ledger(most_of_this_machine(request))
        return replace(request, custom={}), here  # Ray itself knows custom ones
    from ..executors.local import local_totals

    totals = local_totals(
        request,
        service.gpu_indices,
        service.max_trial_number_per_gpu,
        service.use_active_gpu,
        service.resources,
    )
    return request, Ledger(totals)
