"""The config of an experiment, from a file or from Python.

`load_config` reads `experiment.yml`; `ExperimentConfig.from_dict` takes the same fields from Python;
`canonical` and `from_canonical` are the form in which the store keeps it. All problems are reported at
once, as one `ConfigError`. Tuners and assessors are never imported here: `check_plugins` asks a dispatcher.

    source       text to plain data with positions
    overrides    values in place of those in the file
    draft        spelling of keys, aliases, NNI's forms
    nni_arguments  arguments of algorithms in earlier versions of NNI
    nni_space    search spaces as NNI reads them
    root_fields  fields of the root: type, range, default, meaning
    objectives, start_fields, platforms, repeats, stopping   fields of these sections
    elsewhere    NNI's platforms on other machines, and what replaces them
    sections     what all sections are: frozen, strict, with a canonical form
    values       what the values of fields may be, and what they become
    validation   the models' refusals as sentences
    cross_checks checks across several fields
    command      placeholders in the trial command
    starting_points  defaults, initial points and priors, checked against the search space
    default_assessor  early stopping where only time limits the search
    directions   the direction that algorithms have by default
    plugins      the tuner and the assessor, asked in their own process
    trackers     MLflow and the like: their classes, and the check of their options
    checking     all of these in turn
    places       paths to file:line:column
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .experiment_config import (
        ExperimentConfig,
        check_plugins,
        check_samples,
        load_config,
        located,
        with_plugins_checked,
    )
    from .nni_space import todays_space
    from .overrides import read_overridden
    from .platforms import PLATFORMS, LocalConfig, RayConfig
    from .plugins import Checker, check_parameters
    from .problems import OTHER_NAMES, ConfigError, ConfigProblem, Finding, did_you_mean, nearest, shown
    from .source import parse_source, read_source
    from .trackers import tracker_classes
    from .units import UnitError, parse_duration

# Loaded on first use: a `Checker` starts before pydantic, which takes as long as the check, is imported.
_HOMES = {
    ".experiment_config": "ExperimentConfig check_plugins check_samples load_config located with_plugins_checked",
    ".nni_space": "todays_space",
    ".overrides": "read_overridden",
    ".platforms": "PLATFORMS LocalConfig RayConfig",
    ".plugins": "Checker check_parameters",
    ".problems": "OTHER_NAMES ConfigError ConfigProblem Finding did_you_mean nearest shown",
    ".source": "parse_source read_source",
    ".trackers": "tracker_classes",
    ".units": "UnitError parse_duration",
}

__all__ = [
    "OTHER_NAMES",
    "PLATFORMS",
    "Checker",
    "ConfigError",
    "ConfigProblem",
    "ExperimentConfig",
    "Finding",
    "LocalConfig",
    "RayConfig",
    "UnitError",
    "check_parameters",
    "check_plugins",
    "check_samples",
    "did_you_mean",
    "load_config",
    "located",
    "nearest",
    "parse_duration",
    "parse_source",
    "read_overridden",
    "read_source",
    "shown",
    "todays_space",
    "tracker_classes",
    "with_plugins_checked",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
