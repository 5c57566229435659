"""The config of an experiment, from a file or from Python.

`load_config` reads `experiment.yml`; `ExperimentConfig.from_dict` takes the same fields from Python;
`canonical` and `from_canonical` are the form in which the store keeps it. All problems are reported at
once, as one `ConfigError`. Tuners and assessors are never imported here: `check_plugins` asks a dispatcher.

    source       text to plain data, paths to file:line:column
    config_files  values in place of those in a file, the places of problems
    draft        Python data as JSON, spelling of keys, aliases
    values       what the values of fields may be, and what they become
    sections, root_fields   fields: type, range, default, meaning
    checking     all checks in turn, and the sentences of the models' refusals
    cross_checks  checks across several fields, and warnings
    starting_points  defaults, initial points and priors, checked against the search space
    plugins      the tuner and the assessor, asked in their own process; the trackers
    json_schema  what editors know of the fields
    experiment_config  the whole config, and what it leaves open: direction, assessor
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

# Loaded on first use: a `Checker` starts before pydantic, which takes as long as the check, is imported.
if TYPE_CHECKING:
    from .config_files import read_overridden
    from .draft import Draft, make_draft
    from .experiment_config import (
        ExperimentConfig,
        check_plugins,
        check_samples,
        load_config,
        located,
        with_plugins_checked,
    )
    from .json_schema import config_schema
    from .plugins import Checker, check_parameters, tracker_classes
    from .problems import (
        OTHER_NAMES,
        ConfigError,
        ConfigProblem,
        Finding,
        did_you_mean,
        fold,
        nearest,
        origin_of,
    )
    from .root_fields import ConfigFields, Form
    from .sections import PLATFORMS, AlgorithmConfig, LocalConfig, RayConfig
    from .source import Source, parse_source, read_source
    from .values import UnitError, parse_duration
else:
    __getattr__ = lazy_names(__name__, __file__)
