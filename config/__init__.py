"""The config of an experiment, from a file or from Python.

`load_config` reads `experiment.yml`; `ExperimentConfig.from_dict` takes the same fields from Python;
`canonical` and `from_canonical` are the form in which the store keeps it. All problems are reported at
once, as one `ConfigError`. Tuners and assessors are never imported here: `check_plugins` asks a dispatcher.

    source       text to plain data with positions
    draft        spelling of keys, aliases, NNI's forms
    models       fields: type, range, default, meaning
    objectives, start_fields, platforms, repeats, stopping   fields of these sections
    section      what all sections are: frozen, strict, with a canonical form
    values       what the values of fields may be, and what they become
    validation   the models' refusals as sentences
    checks       checks across several fields
    command      placeholders in the trial command
    starting_points  defaults, initial points and priors, checked against the search space
    directions   the direction that algorithms have by default
    plugins      the tuner and the assessor, asked in their own process
    examination  all of these in turn
    places       paths to file:line:column
    docs         docs/config.md, written from the models
"""

from __future__ import annotations

from .experiment_config import ExperimentConfig, check_plugins, load_config, with_plugins_checked
from .platforms import PLATFORMS, LocalConfig, RayConfig
from .problems import ConfigError, ConfigProblem
from .source import read_source
from .units import UnitError, parse_duration

__all__ = [
    "PLATFORMS",
    "ConfigError",
    "ConfigProblem",
    "ExperimentConfig",
    "LocalConfig",
    "RayConfig",
    "UnitError",
    "check_plugins",
    "load_config",
    "parse_duration",
    "read_source",
    "with_plugins_checked",
]
