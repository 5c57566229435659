"""The config of an experiment: read, checked as a whole, and frozen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import getitem

from pydantic import PrivateAttr

from ..protocol import Config
from .checking import ConfigCheck
from .config_files import ConfigFiles, read_overridden
from .cross_checks import (
    warnings_about_command,
    warnings_about_ignored,
    warnings_about_objectives,
    warnings_about_repeats,
)
from .draft import draft_of, plain
from .plugins import Checker, PluginCheck, ask_dispatcher, check_trackers
from .problems import ConfigError, ConfigProblem, Finding, fold
from .root_fields import ConfigFields, Form
from .sections import AlgorithmConfig, ObjectiveConfig, RepeatsConfig
from .starting_points import StartingPoint, starting_points, warnings_about_start

_FINITE = ("gridsearch", "batch", "batchtuner")  # tuners whose search ends by itself
_ENDLESS = "without max_trial_number and max_experiment_duration it runs until it is stopped"
_VERBS = {"minimize": "minimizing", "maximize": "maximizing"}
# Built-in tuners that run every trial to its end and may never end the search.
_ENDLESS_TUNERS = frozenset(
    ("anneal", "auto", "cmaes", "dngo", "evolution", "gp", "metis", "optuna", "qmc", "random", "smac", "tpe")
)
_STOPPED_EARLY = (
    "assessor Auto stops {which} early, because only time limits the experiment;"
    " with `assessor: none` every trial runs to its end"
)


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
        data: Mapping[str, object],
        base_directory: str | os.PathLike[str] = ".",
        *,
        needs_command: bool = True,
    ) -> ExperimentConfig:
        """Make a config of Python data, with paths relative to `base_directory`, or raise `ConfigError`.

        `needs_command=False` is for trials that are functions. A config without a direction minimizes until
        `with_plugins_checked` asks for the default of its algorithms.
        """
        copied, findings = plain(data)
        check = ConfigCheck(cls, copied, base_directory, needs_command=needs_command)
        # The copy has null in place of what is not JSON: no finding is about what the user wrote there.
        nulls = [finding.path for finding in findings if reduce(getitem, finding.path, copied) is None]
        others = [
            other
            for other in check.draft.findings
            if not any(other.path[: len(null)] == null for null in nulls)
        ]
        check.draft.findings = [*others, *findings]
        return check.result()

    @classmethod
    def from_canonical(cls, data: Config) -> ExperimentConfig:
        """Restore a config from its canonical form, without checking files, or raise `ConfigError`.

        >>> config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "true"})
        >>> ExperimentConfig.from_canonical(config.canonical()) == config
        True
        """
        return ConfigCheck(cls, plain(data)[0], None, needs_command=False).result()

    @property
    def warnings(self) -> list[str]:
        """What is allowed but probably a mistake: fields without an effect, no limit, objectives without a tuner."""
        endless = [] if self._has_end() else [_ENDLESS]
        return [
            *warnings_about_ignored(self, self._ignored),
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
        """Return the config with the warnings of a check of its plug-ins, and with what it left open until then.

        These are the direction and the assessor of a config that names none.
        """
        assessor, note = default_assessor(self)
        chosen = {} if assessor is None else {"assessor": assessor}
        decided = self.with_direction(checked.directions).model_copy(update=chosen)
        decided._assessor_note = note
        decided._plugin_warnings = tuple(checked.warnings)
        return decided

    def with_direction(self, own: Mapping[str, str]) -> ExperimentConfig:
        """Return the config with an objective: its own, or one in the default direction of its algorithms or its form.

        >>> config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "x", "tuner": "GP"})
        >>> config.with_direction({"tuner": "maximize"}).direction_note
        'maximizing default: no direction is given, and maximize is the default of the tuner GP'
        """
        if "objectives" in self.model_fields_set:
            return self
        direction, note = default_direction(self, own, self._form)
        objective = ObjectiveConfig.model_validate({"direction": direction})
        decided = self.model_copy(update={"objectives": (objective,)})
        decided._direction_note = note
        return decided

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
    `check_warm_start` is only called if there are problems: else the start of the experiment reads earlier searches.
    """
    main = read_overridden(path, overrides)
    base = os.path.dirname(os.path.abspath(path))
    check = ConfigCheck(ExperimentConfig, main.data, base, main=main)
    if check_plugins:
        check.check_plugins(checker)
    check.check_also(check_warm_start, "warm_start", "objectives", "experiment_working_directory")
    config = check.result()
    return config.with_plugins(check.checked) if check_plugins else config


def located(
    findings: Iterable[Finding], path: str | os.PathLike[str], overrides: Sequence[str] = ()
) -> list[ConfigProblem]:
    """Return findings in the config of a file, made after it was read, with their positions in the file."""
    main = read_overridden(path, overrides)
    draft = draft_of(main.data)
    return ConfigFiles(main).problems(replace(each, path=draft.origin(each.path)) for each in findings)


def with_plugins_checked(config: ExperimentConfig) -> ExperimentConfig:
    """Check the plug-ins of a config from Python and return it with a direction, or raise `ConfigError`."""
    checked = ask_dispatcher(config)
    if problems := ConfigFiles().problems([*checked.findings, *check_trackers(config)]):
        raise ConfigError(problems)
    return config.with_plugins(checked)


def check_plugins(config: ExperimentConfig) -> list[ConfigProblem]:
    """Return the problems of the tuner and the assessor of a config from Python."""
    return ConfigFiles().problems(ask_dispatcher(config).findings)


def check_samples(config: ExperimentConfig) -> list[ConfigProblem]:
    """Return the constraints that no sample keeps, unless the tuner draws no samples: a part of `check_plugins`."""
    if not config.constraints or fold(config.tuner.name or "gridsearch") in _FINITE:
        return []
    from ..search_space import impossible

    problems = impossible(config.search_space, config.constraints)
    return [ConfigProblem(path=each.path, message=each.message, hint=each.hint) for each in problems]


def default_direction(config: ConfigFields, own: Mapping[str, str], form: Form) -> tuple[str, str]:
    """Return the direction and a sentence that says where it comes from.

    `own` has the defaults of the tuner's and the assessor's class, if any. The tuner's wins over the assessor's; if
    neither class has one (such as Random), the form of the config decides.
    """
    role = next((role for role in ("tuner", "assessor") if role in own), None)
    if role is not None:
        direction, source = own[role], f"{own[role]} is the default of the {_name(config, role)}"
    else:
        direction, source = form.default_direction, form.why
    note = f"{_VERBS[direction]} default: no direction is given, and {source}"
    if own.get("assessor", direction) != direction:
        note += f"; the {_name(config, 'assessor')}, whose own default is {own['assessor']}, follows"
    return direction, note


def objectives_text(objectives: Sequence[ObjectiveConfig]) -> str:
    """Return what is optimised, and what limits it.

    >>> given = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 20"}]
    >>> objectives_text([ObjectiveConfig(**each) for each in given])
    'minimizing loss, limit ms <= 20'
    """
    goals = [f"{_VERBS[each.direction]} {each.name}" for each in objectives if each.direction is not None]
    limits = [f"limit {each.name} {each.constraint}" for each in objectives if each.constraint is not None]
    return ", ".join([*goals, *limits])


def _name(config: ConfigFields, role: str) -> str:
    section = config.tuner if role == "tuner" else config.assessor
    return role if section is None else f"{role} {section.name or section.class_name}"


def default_assessor(config: ConfigFields) -> tuple[AlgorithmConfig | None, str]:
    """Return the assessor, and a sentence that says why if the config does not name it itself."""
    is_free = "assessor" not in config.model_fields_set
    is_endless = fold(config.tuner.name or "").removesuffix("tuner") in _ENDLESS_TUNERS
    only_time = config.max_experiment_duration is not None and config.max_trial_number is None
    one_goal = len(config.objectives) == 1 and config.objectives[0].constraint is None
    if not (is_free and is_endless and only_time and one_goal and config.stop_when is None):
        return config.assessor, ""
    # The results of some trials are wanted, be they good or not.
    if config.defaults is not None or config.initial_points or config.repeats is not None:
        return AlgorithmConfig(name="Auto", class_args={"hopeless_only": True}), _STOPPED_EARLY.format(
            which="hopeless trials"
        )
    return AlgorithmConfig(name="Auto"), _STOPPED_EARLY.format(which="trials")


def repeats_note(repeats: RepeatsConfig | None, most: int | None) -> str:
    """Return a sentence about the repeats, for the start of a run; `most` is the largest number of trials.

    It is empty if each configuration runs once.

    >>> repeats_note(RepeatsConfig(count=5, race=False), 20)
    '5 repeats of each configuration, with a seed for each; max_trial_number counts trials: 20 are 4 configurations'
    """
    if repeats is None or repeats.count == 1:
        return ""
    seeds = ", with a seed for each" if repeats.seed else ""
    note = f"{repeats.count} repeats of each configuration{seeds}"
    if repeats.fewest < repeats.count:
        note += f", fewer of one that is clearly worse than the best (at least {repeats.fewest})"
    if most is None:
        return note
    least, at_best = most // repeats.count, -(-most // repeats.fewest)
    number = str(least) if least == at_best else f"{least} to {at_best}"
    return f"{note}; max_trial_number counts trials: {most} are {number} configurations"
