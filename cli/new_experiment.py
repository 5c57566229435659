"""From a config file to a manager, for the verbs that start an experiment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..telling import escaped
from .failures import FAILED, Failure
from .interrupts import Interrupts
from .printing import print_warning

if TYPE_CHECKING:
    from ..config import ExperimentConfig, Finding
    from ..manager import Manager


def checked_config(
    path: Path,
    overrides: Sequence[str] = (),
    directory: Path | None = None,
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> ExperimentConfig:
    """Return the config with `--set`, after checking it and its plug-ins; print warnings about it on stderr.

    A warm start looks for earlier experiments in `directory`; `meanwhile` is called on a thread of its own.
    """
    from ..config import Checker

    if not path.is_file():
        raise Failure(f"there is no file {path}" if not path.exists() else f"{path} is not a file")
    if path.suffix == ".py":
        raise Failure(f"{path} is a Python script, not a config: pitchpipe init {path} writes one for it")
    with Checker() as checker:  # it starts while this process imports what reads the config
        threading.Thread(target=meanwhile, daemon=True).start()
        from ..config import load_config

        config = load_config(
            path,
            overrides=overrides,
            checker=checker,
            check_warm_start=partial(_warm_start_faults, directory=directory),
        )
    for warning in (*config.warnings, *dict.fromkeys(_unpassed(config))):
        print_warning(path, warning)
    return config


def _unpassed(config: ExperimentConfig) -> Iterator[str]:
    """Yield warnings about values for which `{args}` passes no option, although the script's default differs."""
    command = config.trial_command or ""
    script = next((word for word in command.split() if word.endswith(".py")), "")
    if "{args}" not in command or not script:
        return
    from ..search_space import SearchSpace
    from .script_facts import read_script

    try:
        facts = read_script((config.trial_code_directory / script).read_text(encoding="utf-8-sig"))
        parameters = SearchSpace.parse(config.search_space).parameters
    except (OSError, ValueError, SyntaxError):
        return  # only Python scripts can be read, and only a custom tuner can read another search space
    if not facts.takes_options:
        return
    for parameter in parameters:
        default = facts.default_of(parameter.name)
        for value in parameter.options:
            if (value is None or value is False) and default not in (None, value):
                name, word = parameter.name, "null" if value is None else "false"
                yield (
                    f"{{args}} passes nothing for {name}: {word}, so {script} would use its default {default}:"
                    " write pitchpipe.parse_args(parser) in place of parser.parse_args()"
                )


def _warm_start_faults(config: ExperimentConfig, directory: Path | None) -> list[Finding]:
    from ..manager import warm_start_faults  # importing the manager takes longer than the check

    return warm_start_faults(config, directory)


def check_startable(
    config: ExperimentConfig, path: Path, overrides: Sequence[str] = (), directory: Path | None = None
) -> None:
    """Raise `Failure` if this machine cannot start a trial; `path` and `overrides` are those of the config."""
    from ..manager import faults_at_start

    if findings := faults_at_start(config):
        from ..config import located

        findings += _warm_start_faults(config, directory)
        problems = map(str, located(findings, path, overrides))
        raise Failure("\n".join(map(escaped, problems)), FAILED)


@contextmanager
def with_places_in_file(path: Path, overrides: Sequence[str] = ()) -> Iterator[None]:
    """Add places in the config's file to the problems of a `ConfigError` that name no file."""
    from ..config import ConfigError, Finding, located

    try:
        yield
    except ConfigError as error:
        findings = [
            Finding(path=problem.path, message=problem.message, hint=problem.hint)
            for problem in error.problems
            if problem.file is None
        ]
        others = [problem for problem in error.problems if problem.file is not None]
        raise ConfigError([*others, *located(findings, path, overrides)]) from error


def make_experiment(
    path: Path,
    experiment_id: str | None,
    directory: Path | None,
    interrupts: Interrupts,
    overrides: Sequence[str] = (),
    *,
    runs_here: bool = False,
    resume_if_exists: bool = False,
) -> Manager:
    """Check a config and this machine; make the experiment's folder and store, of which nothing remains on a failure.

    With `resume_if_exists`, the experiment with this id continues if there is one. With `runs_here`, the dispatcher of
    a local experiment starts meanwhile, and imports its libraries.
    """
    if resume_if_exists and experiment_id is None:
        raise Failure("--resume-if-exists needs --experiment-id, by which the experiment is found again")
    config = checked_config(path, overrides, directory, meanwhile=_import_ahead)
    from ..manager import StandbyDispatcher

    # On Ray the first trial waits for Ray, which needs the cores.
    is_local = config.training_service.platform == "local"
    standby = StandbyDispatcher() if runs_here and is_local else None
    try:
        check_startable(config, path, overrides, directory)
        interrupts.hold()
        from ..manager import create_experiment
        from ..manager.control import continue_experiment

        with with_places_in_file(path, overrides):
            manager = None
            if resume_if_exists and experiment_id is not None:
                manager = continue_experiment(config, experiment_id, directory=directory)
            is_new = manager is None
            manager = manager or create_experiment(
                config, directory=directory, experiment_id=experiment_id, source=path
            )
    except BaseException:
        if standby is not None:
            standby.close()
        raise
    manager.standby = standby
    if overrides and is_new:  # the copy of the file in the folder gets them, too, as JSON, which is YAML
        from ..config import read_overridden

        text = json.dumps(read_overridden(path, overrides).data, indent=2, ensure_ascii=False)
        (manager.folder.path / "experiment.yml").write_text(text, encoding="utf-8")
    return manager


def _import_ahead() -> None:
    """Import what running an experiment needs while the plug-ins are checked."""
    for name in ("..manager.experiment_factory", "..executors.local", ".foreground"):
        import_module(name, __package__)
