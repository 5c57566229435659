"""The config of an experiment: read, checked as a whole, and frozen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import PrivateAttr

from .checking import IGNORED, Examination
from .command import warnings_about_command
from .default_assessor import default_assessor
from .directions import default_direction, objectives_text
from .draft import fold, make_draft
from .objectives import ObjectiveConfig, warnings_about_objectives
from .overrides import read_overridden
from .places import Places
from .plain import plain
from .platforms import LocalConfig
from .plugins import Checker, PluginCheck, ask_dispatcher
from .problems import ConfigError, ConfigProblem, Finding, dotted
from .repeats import repeats_note, warnings_about_repeats
from .root_fields import ConfigFields
from .starting_points import StartingPoint, starting_points, warnings_about_start
from .trackers import check_trackers

_FINITE = ("gridsearch", "batch", "batchtuner")  # tuners whose search ends by itself
_ENDLESS = "without max_trial_number and max_experiment_duration it runs until it is stopped"

__all__ = [
    "ExperimentConfig",
    "check_plugins",
    "check_samples",
    "load_config",
    "located",
    "with_plugins_checked",
]


class ExperimentConfig(ConfigFields):
    """A whole config; `docs/reference/config.md` lists the fields. Durations are seconds, sizes bytes, paths absolute.

    >>> config = ExperimentConfig.from_dict({
    ...     "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}},
    ...     "trial_command": "python train.py", "max_trial_duration": "1.5h", "max_trial_number": 10})
    >>> config.max_trial_duration, config.tuner.name, config.training_service.platform
    (5400.0, 'Auto', 'ray')
    """

    _assessor_note: str = PrivateAttr("")
    _direction_note: str = PrivateAttr("")
    _plugin_warnings: tuple[str, ...] = PrivateAttr(())

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        base_directory: str | os.PathLike[str] = ".",
        *,
        needs_command: bool = True,
    ) -> ExperimentConfig:
        """Make a config of Python data, with paths relative to `base_directory`, or raise `ConfigError`.

        `needs_command=False` is for trials that are functions. A config without a direction minimizes until
        `with_plugins_checked` asks for the default of its algorithms.
        """
        copied, findings = plain(data)
        examination = Examination(cls, copied, base_directory, needs_command=needs_command)
        examination.draft.findings += findings
        return examination.result()

    @classmethod
    def from_canonical(cls, data: Mapping[str, Any]) -> ExperimentConfig:
        """Restore a config from its canonical form, without checking files, or raise `ConfigError`.

        >>> config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "true"})
        >>> ExperimentConfig.from_canonical(config.canonical()) == config
        True
        """
        return Examination(cls, plain(data)[0], None, needs_command=False).result()

    @property
    def warnings(self) -> list[str]:
        """What is allowed but probably a mistake: fields without an effect, no limit, objectives without a tuner."""
        local = self.training_service if isinstance(self.training_service, LocalConfig) else None
        ignored = {
            IGNORED[0]: self.nni_manager_ip is not None,
            IGNORED[1]: self.shared_storage is not None,
            IGNORED[2]: local is not None and local.reuse_mode,
            IGNORED[3]: local is not None and local.max_trial_number_per_gpu > 1 and not self._takes_gpus(),
        }
        without = {IGNORED[3]: " without trial_gpu_number"}
        endless = [] if self._has_end() else [_ENDLESS]
        names = {path: self._written.get(path, dotted(path)) for path, is_set in ignored.items() if is_set}
        return [
            *(f"{name} has no effect{without.get(path, '')}" for path, name in names.items()),
            *self._notes,
            *warnings_about_command(self),
            *warnings_about_objectives(self.objectives),
            *warnings_about_start(self),
            *warnings_about_repeats(self.repeats, self.max_trial_number),
            *endless,
            *self.plugin_warnings,
        ]

    @property
    def plugin_warnings(self) -> tuple[str, ...]:
        """What the plug-ins cannot do that the config asks for; empty until they are checked."""
        return self._plugin_warnings

    @property
    def starting_points(self) -> list[StartingPoint]:
        """The points that run first, in order, each once: the defaults and the initial points."""
        return starting_points(self)

    @property
    def direction_note(self) -> str:
        """Where the default direction comes from; empty if the config names a direction."""
        return self._direction_note

    @property
    def goal(self) -> str:
        """What is optimised and limited, and where the direction comes from if the config names none."""
        return self._direction_note or objectives_text(self.objectives)

    @property
    def assessor_note(self) -> str:
        """That an assessor which the config does not name stops trials early; empty if none does."""
        return self._assessor_note

    @property
    def repeats_note(self) -> str:
        """How often configurations are run, as a sentence; empty if each runs once."""
        return repeats_note(self.repeats, self.max_trial_number)

    def with_plugins(self, checked: PluginCheck) -> ExperimentConfig:
        """Return the config with what a check of its plug-ins found, warnings included, and what is decided then.

        These are the direction and the assessor of a config that names none.
        """
        assessor, note = default_assessor(self)
        chosen = {} if assessor is None else {"assessor": assessor}
        found = self.with_direction(checked.directions).model_copy(update=chosen)
        found._assessor_note = note
        found._plugin_warnings = tuple(checked.warnings)
        return found

    def with_direction(self, own: Mapping[str, str]) -> ExperimentConfig:
        """Return the config with an objective: its own, or one in the default direction of its algorithms or of NNI.

        >>> config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "x", "tuner": "GP"})
        >>> config.with_direction({"tuner": "maximize"}).direction_note
        'maximizing default: no direction is given, and maximize is the default of the tuner GP'
        """
        if "objectives" in self.model_fields_set:
            return self
        direction, note = default_direction(self, own, is_nnis=self._is_nnis)
        objective = ObjectiveConfig.model_validate({"direction": direction})
        decided = self.model_copy(update={"objectives": (objective,)})
        decided._direction_note = note
        return decided

    def _takes_gpus(self) -> bool:
        per_process = None if self.resources is None else self.resources.gpus_per_process
        return bool(self.trial_gpu_number or per_process)

    def _has_end(self) -> bool:
        limits = (self.max_trial_number, self.max_experiment_duration, self.stop_when)
        return any(limit is not None for limit in limits) or fold(self.tuner.name or "") in _FINITE


def load_config(
    path: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    check_plugins: bool = True,
    checker: Checker | None = None,
    check_warm_start: Callable[[ExperimentConfig], list[Finding]] = lambda _: [],
) -> ExperimentConfig:
    """Read and check a config file, or raise `ConfigError` with all its problems.

    `overrides` are values in place of those in the file, as `KEY=VALUE` with dots in the keys. With `check_plugins`
    the tuner and the assessor are constructed once, in a separate process: the `checker`, if it was started before.
    `check_warm_start` is called if there are problems: without any, who makes the experiment reads earlier searches.
    """
    main = read_overridden(path, overrides)
    base = os.path.dirname(os.path.abspath(path))
    examination = Examination(ExperimentConfig, main.data, base, main=main)
    if check_plugins:
        examination.check_plugins(checker)
    examination.check_also(check_warm_start, "warm_start", "objectives", "experiment_working_directory")
    config = examination.result()
    return config.with_plugins(examination.checked) if check_plugins else config


def located(
    findings: Iterable[Finding], path: str | os.PathLike[str], overrides: Sequence[str] = ()
) -> list[ConfigProblem]:
    """Return what was found later in the config of a file, at the places of the file."""
    main = read_overridden(path, overrides)
    draft = make_draft(main.data)
    return Places(main).problems(replace(each, path=draft.origin(each.path)) for each in findings)


def with_plugins_checked(config: ExperimentConfig) -> ExperimentConfig:
    """Check the plug-ins of a config from Python and return it with a direction, or raise `ConfigError`."""
    checked = ask_dispatcher(config)
    if problems := Places().problems([*checked.findings, *check_trackers(config)]):
        raise ConfigError(problems)
    return config.with_plugins(checked)


def check_plugins(config: ExperimentConfig) -> list[ConfigProblem]:
    """Return the problems of the tuner and the assessor of a config from Python."""
    return Places().problems(ask_dispatcher(config).findings)


def check_samples(config: ExperimentConfig) -> list[ConfigProblem]:
    """Return the constraints that no sample keeps, unless the tuner draws none: a part of `check_plugins`."""
    if not config.constraints or fold(config.tuner.name or "gridsearch") in _FINITE:
        return []
    from ..search_space import impossible

    found = impossible(config.search_space, config.constraints)
    return Places().problems(Finding(path=one.path, message=one.message, hint=one.hint) for one in found)
