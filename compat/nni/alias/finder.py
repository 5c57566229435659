"""The alias `nni`: a table of which name of NNI is which of Pitchpipe, and the finder of its modules.

The finder comes after all others, so that an installed nni wins.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
"""The folder that gives a script the alias when it is the last one in PYTHONPATH."""

_PACKAGE = __name__.partition(".")[0]

_EXPERIMENTS = ".compat.nni.experiment"
_CONFIGS = ".compat.nni.config"
_UTILS = ".compat.nni.alias.utils"
_HPO_UTILS = ".compat.nni.alias.hpo_utils"
_DRAWING = ".compat.nni.alias.drawing"
_CHANNEL = ".compat.nni.alias.trial_functions"
_DISPATCHING = ".compat.nni.alias.dispatching"


def _from(home: str, *names: str, **others: str) -> dict[str, str]:
    """Return a table: the names that are the same in `home`, and `others` by NNI's name."""
    table = dict(zip(names, names, strict=True)) | others
    return {name: f"{home}:{own}" for name, own in table.items()}


_TRIAL = {
    **_from(_CHANNEL, "get_next_parameter", "report_final_result", "report_intermediate_result"),
    **_from(_CHANNEL, get_next_parameters="get_next_parameter"),
    **_from(".sdk", "get_current_parameter", "get_experiment_id", "get_sequence_id", "get_trial_id"),
}
_TEXT = {**_from(_UTILS, "dump", "load"), **_from(".compat.nni.alias.tracing", "trace")}
_NO_MORE = _from(".tuners", "NoMoreTrialError")
_VALIDATOR = _from(_UTILS, "ClassArgsValidator")
_COMMANDS = _from(".protocol", "CommandType")
_PROTOCOL = {
    **_COMMANDS,
    **_from(_DISPATCHING, "receive", "send", _set_in_file="set_in_file", _set_out_file="set_out_file"),
}
_DISPATCHER_BASE = _from(".dispatcher", "MsgDispatcherBase")
_RECOVERABLE = _from(".dispatcher", "Recoverable")
_TUNERS: Mapping[str, str] = {
    "anneal_tuner": "AnnealTuner",
    "batch_tuner": "BatchTuner",
    "bohb_advisor": "BOHB",
    "dngo_tuner": "DNGOTuner",
    "evolution_tuner": "EvolutionTuner",
    "gp_tuner": "GPTuner",
    "gridsearch_tuner": "GridSearchTuner",
    "hyperband_advisor": "Hyperband",
    "metis_tuner": "MetisTuner",
    "pbt_tuner": "PBTTuner",
    "random_tuner": "RandomTuner",
    "smac_tuner": "SMACTuner",
    "tpe_tuner": "TpeTuner",
}
_OWN_NAMES = {"BOHB": "BOHBTuner", "Hyperband": "HyperbandTuner"}

_EXPERIMENT = _from(_EXPERIMENTS, "TrialHyperParameters", "TrialJob", "TrialMetricData", "TrialResult")
_CONFIG = _from(
    _CONFIGS,
    *("AlgorithmConfig", "CustomAlgorithmConfig", "ExperimentConfig", "LocalConfig", "RayConfig"),
    *("RemoteConfig", "RemoteMachineConfig"),
)

_MODULES: Mapping[str, Mapping[str, str]] = {
    "nni": {
        **_TRIAL,
        **_TEXT,
        **_NO_MORE,
        **_VALIDATOR,
        **_from(_UTILS, "enable_global_logging", "silence_stdout", __version__="VERSION"),
        **_from(_EXPERIMENTS, "Experiment"),
    },
    "nni.algorithms": {},
    "nni.algorithms.hpo": {},
    **{
        f"nni.algorithms.hpo.{module}": {name: f".tuners:{_OWN_NAMES.get(name, name)}"}
        for module, name in _TUNERS.items()
    },
    "nni.algorithms.hpo.hyperopt_tuner": _from(_DISPATCHING, "HyperoptTuner"),
    "nni.algorithms.hpo.regularized_evolution_tuner": _from(_DISPATCHING, "RegularizedEvolutionTuner"),
    "nni.algorithms.hpo.random_tuner": {**_from(".tuners", "RandomTuner"), **_from(_DRAWING, "suggest")},
    "nni.algorithms.hpo.curvefitting_assessor": _from(".assessors", "CurvefittingAssessor"),
    "nni.algorithms.hpo.medianstop_assessor": _from(".assessors", "MedianstopAssessor"),
    "nni.assessor": _from(".assessors", "AssessResult", "Assessor"),
    "nni.common": {},
    "nni.common.hpo_utils": {
        **_from(_HPO_UTILS, "FormattedParameters", "FormattedSearchSpace", "ParameterSpec"),
        **_from(_HPO_UTILS, "deformat_parameters", "format_parameters", "format_search_space"),
        **_from(_HPO_UTILS, "validate_search_space"),
        **_from(_DRAWING, "Deduplicator"),
        **_from(_UTILS, "OptimizeMode"),
    },
    "nni.common.serializer": _TEXT,
    "nni.experiment": {**_from(_EXPERIMENTS, "Experiment", "RunMode"), **_EXPERIMENT, **_CONFIG},
    "nni.experiment.config": _CONFIG,
    "nni.experiment.config.algorithm": _from(_CONFIGS, "AlgorithmConfig", "CustomAlgorithmConfig"),
    "nni.experiment.config.base": _from(_CONFIGS, "ConfigBase"),
    "nni.experiment.config.common": _CONFIG,
    "nni.experiment.config.experiment_config": _from(_CONFIGS, "ExperimentConfig"),
    "nni.experiment.config.local": _from(_CONFIGS, "LocalConfig"),
    "nni.experiment.config.remote": _from(_CONFIGS, "RemoteConfig", "RemoteMachineConfig"),
    "nni.experiment.config.training_services": _CONFIG,
    "nni.experiment.experiment": _from(_EXPERIMENTS, "Experiment", "RunMode"),
    "nni.experiment.data": _EXPERIMENT,
    "nni.parameter_expressions": _from(
        _DRAWING,
        *("choice", "lognormal", "loguniform", "normal", "qlognormal", "qloguniform", "qnormal"),
        *("quniform", "randint", "uniform"),
    ),
    "nni.recoverable": _RECOVERABLE,
    "nni.runtime": {},
    "nni.runtime.env_vars": _from(_UTILS, "dispatcher_env_vars", "trial_env_vars"),
    "nni.runtime.msg_dispatcher": _from(_DISPATCHING, "MsgDispatcher", _pack_parameter="packed_parameter"),
    "nni.runtime.msg_dispatcher_base": _DISPATCHER_BASE,
    "nni.runtime.protocol": _PROTOCOL,
    "nni.runtime.tuner_command_channel": _COMMANDS,
    "nni.runtime.tuner_command_channel.legacy": {**_PROTOCOL, **_from(_DISPATCHING, "LegacyCommandChannel")},
    "nni.runtime.trial_command_channel": _from(
        _CHANNEL,
        *("TrialCommandChannel", "get_default_trial_command_channel", "set_default_trial_command_channel"),
    ),
    "nni.trial": {**_TRIAL, **_from(_CHANNEL, "overwrite_intermediate_seq")},
    "nni.tuner": {**_from(".tuners", "Tuner"), **_NO_MORE},
    "nni.typehint": _from(
        ".protocol", "ParameterRecord", "Parameters", SearchSpace="JsonObject", TrialMetric="Json"
    ),
    "nni.utils": {
        **_from(_UTILS, "MetricType", "NodeType", "OptimizeMode"),
        **_from(_UTILS, "extract_scalar_history", "extract_scalar_reward", "merge_parameter", "split_index"),
        **_from(_DRAWING, "json2parameter", "json2space"),
        **_VALIDATOR,
    },
    # Paths of NNI 1.x.
    "nni.msg_dispatcher_base": _DISPATCHER_BASE,
    "nni.protocol": _PROTOCOL,
}


def _of_algorithms() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the algorithms by the paths of NNI 1, `nni.gp_tuner.gp_tuner`, and those in packages of NNI 2."""
    for path, names in _MODULES.items():
        parent, _, module = path.rpartition(".")
        if parent == "nni.algorithms.hpo":
            yield f"nni.{module}", names
            yield f"nni.{module}.{module}", names
            yield f"{path}.{module}", names


MODULES: Mapping[str, Mapping[str, str]] = {**_MODULES, **dict(_of_algorithms())}

INSTEAD: Mapping[str, str] = {
    "nni.tools": "the command nnictl does what it does, such as nnictl update searchspace ID --filename FILE",
    "nni.nas": "Pitchpipe does not search for architectures",
    "nni.retiarii": "Pitchpipe does not search for architectures",
    "nni.compression": "Pitchpipe does not compress models",
    "nni.algorithms.compression": "Pitchpipe does not compress models",
}
"""What to do without modules that have no counterpart."""


class Alias(MetaPathFinder, Loader):
    """Finds and loads `nni` and its modules; their names are imported on first use."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that the alias knows; raise ModuleNotFoundError for another of NNI's."""
        del path, target
        if fullname.startswith("nni.") and fullname not in MODULES:
            raise ModuleNotFoundError(_without_counterpart(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=True) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the module to the import system."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names."""
        name = module.__name__
        vars(module).update(__all__=sorted(MODULES[name]), __getattr__=partial(_find, name))


def activate() -> ModuleSpec:
    """Let this process import the alias, and return the spec of `nni`; a second call changes nothing.

    >>> activate().name
    'nni'
    >>> from nni.assessor import AssessResult
    >>> AssessResult.Good
    <AssessResult.Good: True>
    """
    alias = next((finder for finder in sys.meta_path if isinstance(finder, Alias)), None)
    if alias is None:
        alias = Alias()
        sys.meta_path.append(alias)
    return ModuleSpec("nni", alias, is_package=True)


def variables(job: Any) -> dict[str, str]:
    """Return the environment variables that scripts written for NNI read, for a job of a trial agent."""
    return {
        "NNI_EXP_ID": job.run.experiment,
        "NNI_TRIAL_JOB_ID": job.trial,
        "NNI_TRIAL_SEQ_ID": str(job.sequence_id),
        "NNI_OUTPUT_DIR": job.folder,
        "NNI_SYS_DIR": job.folder,
        "NNI_CODE_DIR": job.run.code_directory or os.getcwd(),
        # Scripts take it for the sign of an experiment. A real nni would wait for a manager of its own.
        **({} if PathFinder.find_spec("nni") else {"NNI_PLATFORM": "local"}),
    }


def _find(module: str, name: str) -> Any:
    """Return the value of a name in a module of the alias."""
    if name in MODULES[module]:
        home, _, attribute = MODULES[module][name].partition(":")
        own = importlib.import_module(_PACKAGE + home)
        return getattr(own, attribute) if attribute else own
    if f"{module}.{name}" in MODULES:
        return importlib.import_module(f"{module}.{name}")
    raise AttributeError(_without_counterpart(f"{module}.{name}"))


def _without_counterpart(name: str) -> str:
    """Say that Pitchpipe has no such module or name of NNI, and what to use instead."""
    instead = f": {INSTEAD[name]}" if name in INSTEAD else ""
    page = "docs/reference/nni.md lists the names that have one"
    return f"{name} of NNI has no counterpart here{instead}; {page}"
