"""From a config file to a manager, for the verbs that start an experiment."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .failures import FAILED, Failure
from .interrupts import Interrupts

if TYPE_CHECKING:
    from ..config import ExperimentConfig, Finding
    from ..manager import Manager

__all__ = ["check_startable", "checked_config", "make_experiment", "placed"]

_PYTHON = re.compile(r"python[\d.]*")
_SHELL = re.compile("(ba|da|z|k)?sh")
# Options without a value; after any other, such as -m or -c, the next word need not be a script.
_PYTHON_OPTION = re.compile("-[BEIOPSbuvx]+")
_SHELL_OPTION = re.compile("-[euvx]+")


def checked_config(
    path: Path, overrides: Sequence[str] = (), *, meanwhile: Callable[[], None] = lambda: None
) -> ExperimentConfig:
    """Return the checked config with `--set` and its plug-ins; print settings without effect on stderr.

    `meanwhile` is called in a thread of its own.
    """
    from ..config import Checker

    if not path.is_file():
        raise Failure(f"there is no file {path}" if not path.exists() else f"{path} is not a file")
    if path.suffix == ".py":
        raise Failure(f"{path} is a Python script, not a config: pitchpipe init {path} writes one for it")
    with Checker() as checker:  # it starts while this process imports what reads the config
        threading.Thread(target=meanwhile, daemon=True).start()
        from ..config import load_config

        config = load_config(path, overrides=overrides, checker=checker)
    for warning in config.warnings:
        click.echo(f"{path}: warning: {warning}", err=True)
    return config


def check_startable(config: ExperimentConfig, path: Path, overrides: Sequence[str] = ()) -> None:
    """Check, as the executor and the agent do, that this machine can start a trial; raise `Failure` if not.

    Nothing is checked for a Ray cluster, whose nodes may differ from this machine. `path` and `overrides` are those of
    the config.
    """
    if config.training_service.platform != "local":
        return
    findings = [*_shortages(config), *_faults_of_command(config)]
    if findings:
        from ..config import located

        raise Failure("\n".join(map(str, located(findings, path, overrides))), FAILED)


def _shortages(config: ExperimentConfig) -> Iterator[Finding]:
    from ..config import Finding
    from ..manager import shortages_of

    fields = {
        "CPU": ("trial_cpu_number",) if config.resources is None else ("resources", "processes"),
        "GPU": ("trial_gpu_number",) if config.resources is None else ("resources", "gpus_per_process"),
        "memory": ("trial_memory_size",),
    }
    for name, why in shortages_of(config).items():
        hint = "pitchpipe doctor lists the GPUs" if name == "GPU" else ""
        place = fields.get(name, ("trial_resources", name))
        yield Finding(path=place, message=f"{why} on this machine", hint=hint)


def _faults_of_command(config: ExperimentConfig) -> Iterator[Finding]:
    from ..config import Finding
    from ..trial_agent import StartError, arguments_of, base_environment, filled

    place = ("trial_command",)
    try:
        environment = base_environment(os.environ) | config.trial_environment
        command = filled(config.trial_command or "", dict.fromkeys(config.search_space or (), 0))
        arguments = arguments_of(command, str(config.trial_code_directory), environment)
    except StartError as error:
        yield Finding(path=place, message=str(error))
        return
    script = _script(arguments, environment)
    missing = config.trial_code_directory / script
    # One that is written with a placeholder differs from trial to trial.
    if script in (config.trial_command or "").split() and not missing.exists():
        what = f"there is no file {missing}: correct trial_command or trial_code_directory"
        yield Finding(path=place, message=what)


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


@contextmanager
def placed(path: Path, overrides: Sequence[str] = ()) -> Iterator[None]:
    """Give the problems of a `ConfigError` that name no file their places in the file of the config."""
    from ..config import ConfigError, Finding, located

    try:
        yield
    except ConfigError as error:
        here = [one for one in error.problems if one.file is None]
        findings = [Finding(path=one.path, message=one.message, hint=one.hint) for one in here]
        others = [one for one in error.problems if one.file is not None]
        raise ConfigError([*others, *located(findings, path, overrides)]) from error


def make_experiment(
    path: Path,
    experiment_id: str | None,
    directory: Path | None,
    interrupts: Interrupts,
    overrides: Sequence[str] = (),
    *,
    runs_here: bool = False,
) -> Manager:
    """Check a config and this machine, and make the experiment's folder and store; if that fails, nothing remains.

    With `runs_here` the dispatcher of a local experiment starts to import libraries meanwhile.
    """
    config = checked_config(path, overrides, meanwhile=_import_ahead)
    from ..manager import StandbyDispatcher

    # On Ray the first trial waits for Ray, which needs the cores.
    is_local = config.training_service.platform == "local"
    standby = StandbyDispatcher() if runs_here and is_local else None
    try:
        check_startable(config, path, overrides)
        interrupts.hold()
        from ..manager import create_experiment

        with placed(path, overrides):
            manager = create_experiment(config, directory=directory, experiment_id=experiment_id, source=path)
    except BaseException:
        if standby is not None:
            standby.close()
        raise
    manager.standby = standby
    if overrides:  # the copy of the file in the folder gets them, too; JSON is YAML
        from ..config import read_overridden

        text = json.dumps(read_overridden(path, overrides).data, indent=2, ensure_ascii=False)
        (manager.folder.path / "experiment.yml").write_text(text, encoding="utf-8")
    return manager


def _import_ahead() -> None:
    """Import what running an experiment needs while the plug-ins are checked."""
    for name in ("..manager.experiments", "..executors.local", ".running"):
        import_module(name, __package__)
