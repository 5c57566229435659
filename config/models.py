"""The fields of a config: one frozen model per section, with type, range, default and meaning of each field.

Everything here is about single fields; checks across fields are in `checks`.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from ..protocol import Objective, constraint_limits, objectives_of
from ..runner import FailureKind
from .problems import did_you_mean, shown
from .units import UnitError, parse_duration, parse_gpu_indices, parse_memory

__all__ = [
    "DEFAULT_WORKING_DIRECTORY",
    "AlgorithmConfig",
    "CheckpointConfig",
    "Confidence",
    "ConfigFields",
    "Directory",
    "Duration",
    "EarlierSearches",
    "Environment",
    "ExistingFile",
    "GainLimit",
    "GpuIndices",
    "GpuNumber",
    "LocalConfig",
    "LogLevel",
    "MaxFailures",
    "Memory",
    "ObjectiveConfig",
    "OutcomeConstraint",
    "Points",
    "PositiveDuration",
    "PriorConfig",
    "RayConfig",
    "Section",
    "StopConfig",
    "Storage",
    "Text",
    "Texts",
    "WorkingDirectory",
    "camel_case",
]

DEFAULT_WORKING_DIRECTORY = "~/pitchpipe-experiments"
_CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}


class Section(BaseModel):
    """A part of the config: strict types, no unknown fields, no changes after it is made."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def canonical(self) -> dict[str, Any]:
        """Return the section as JSON with camelCase keys, without fields that are not set."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {camel_case(name): _plain(value) for name, value in values.items() if value is not None}


def camel_case(name: str) -> str:
    """Return the canonical spelling of a field name.

    >>> camel_case("max_trial_number")
    'maxTrialNumber'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.canonical()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else copy.deepcopy(value)


def _not_zero(seconds: float) -> float:
    if seconds <= 0:
        raise UnitError(f"must be more than 0 seconds, not {seconds:g}")
    return seconds


def _path(value: Any, info: ValidationInfo) -> Path:
    """Return the absolute path; relative ones start from the folder `info.context["base"]`."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise UnitError(f"must be a path, not {shown(value)}")
    text = os.path.expanduser(os.fspath(value))
    if "\0" in text:
        raise UnitError("must be a path, but contains a NUL character")
    base = (info.context or {}).get("base")
    return Path(os.path.realpath(os.path.join(base, text))) if base is not None else Path(text)


def _existing(kind: str, exists: Any) -> Any:
    def check(path: Path, info: ValidationInfo) -> Path:
        if (info.context or {}).get("check_files") and not exists(path):
            raise UnitError(f"no such {kind}: {path}")
        return path

    return check


def _directory(value: Any, info: ValidationInfo) -> Path:
    return _existing("directory", os.path.isdir)(_path(value, info), info)


def _file(value: Any, info: ValidationInfo) -> Path:
    return _existing("file", os.path.isfile)(_path(value, info), info)


def _working_directory(value: Any, info: ValidationInfo) -> Path:
    path = _path(value, info)
    if (info.context or {}).get("check_files") and os.path.exists(path) and not os.path.isdir(path):
        raise UnitError(f"is not a directory: {path}")
    return path


def _gpu_number(value: Any) -> Any:
    if isinstance(value, float) and value > 1 and value != int(value):
        raise UnitError(f"must be a whole number or less than 1, not {shown(value)}")
    return value


def _log_level(value: Any) -> Any:
    level = value.lower() if isinstance(value, str) else value
    return "fatal" if level == "critical" else level


def _experiment_type(value: Any) -> Any:
    if value != "hpo":
        raise UnitError(f"must be hpo, not {shown(value)}", "architecture search is not supported")
    return value


def _no_annotation(value: Any) -> Any:
    if value is True:
        raise UnitError("annotations are not supported", "call get_next_parameter() in the trial script")
    return value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _environment_name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise UnitError(f"{shown(name)} is not the name of an environment variable")
    return name


def _environment_value(value: Any) -> Any:
    return str(value) if _is_number(value) else value


def _max_failures(value: Any) -> Any:
    """Check a count for all kinds of failure together, or one for each kind."""
    hint = "an integer for all kinds together, or a mapping such as {INFRA: 3, OOM: 1}"
    if not isinstance(value, Mapping):
        if not _is_count(value):
            raise UnitError(
                f"must be an integer of at least 0, -1 for no limit, or a mapping, not {shown(value)}", hint
            )
        return value
    for kind, count in value.items():
        if not isinstance(kind, str) or kind.upper() not in FailureKind.__members__:
            known = ", ".join(FailureKind)
            raise UnitError(
                f"{shown(kind)} is not a kind of failure",
                did_you_mean(str(kind).upper(), FailureKind.__members__) or f"the kinds are {known}",
            )
        if not _is_count(count):
            raise UnitError(
                f"{kind} must be an integer of at least 0, or -1 for no limit, not {shown(count)}", hint
            )
    return {kind.upper(): count for kind, count in value.items()}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= -1


def _confidence(value: Any) -> float:
    known = _CONFIDENCES.get(value.lower(), math.nan) if isinstance(value, str) else value
    if not _is_number(known) or not 0 <= known <= 1:
        words = ", ".join(_CONFIDENCES)
        hint = did_you_mean(value, _CONFIDENCES)
        raise UnitError(f"must be {words}, or a number from 0 to 1, not {shown(value)}", hint)
    return float(known)


def _gain_limit(value: Any) -> float | str:
    if value == "noise":
        return value
    hint = did_you_mean(value, ["noise"]) or "a number in units of the objective, such as 0.001, or noise"
    if not _is_number(value) or not math.isfinite(value):
        raise UnitError(f"must be a number or noise, not {shown(value)}", hint)
    if value <= 0:
        raise UnitError(f"must be greater than 0, not {shown(value)}", hint)
    return float(value)


def _earlier_search(value: Any, info: ValidationInfo) -> str:
    """Return an experiment's id or an Optuna study as it is, or the absolute path of a CSV file or a folder."""
    if not isinstance(value, str) or not value:
        raise UnitError(
            f"must be an experiment's id or folder, a CSV file, or STORAGE:STUDY, not {shown(value)}"
        )
    if "://" in value:
        if ":" not in value.partition("://")[2]:
            raise UnitError(f"{value} names no study", f"{value}:NAME")
        return value
    if value.endswith(".csv"):
        return str(_file(value, info))
    return str(_directory(value, info)) if "/" in value or value.startswith("~") else value


def _storage(value: Any, info: ValidationInfo) -> Any:
    """Return a URL as it is, or the absolute path of a folder."""
    if isinstance(value, str) and "://" in value:
        return value
    return str(_path(value, info))


def _outcome_constraint(value: Any) -> str:
    hint = 'such as "<= 20" or ">= 0.5, <= 1", in quotes'
    if not isinstance(value, str):
        raise UnitError(f"must be text, not {shown(value)}", hint)
    try:
        limits = constraint_limits(value)
    except ValueError as error:
        raise UnitError(str(error), hint) from error
    if not any(map(math.isfinite, limits)):
        raise UnitError(f"{shown(value)} is too large a number for a limit", hint)
    return value.strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Duration = Annotated[float, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[float, BeforeValidator(lambda value: _not_zero(parse_duration(value)))]
Memory = Annotated[int, BeforeValidator(parse_memory), Field(gt=0)]
Directory = Annotated[Path, BeforeValidator(_directory)]
ExistingFile = Annotated[Path, BeforeValidator(_file)]
WorkingDirectory = Annotated[Path, BeforeValidator(_working_directory)]
GpuNumber = Annotated[float, BeforeValidator(_gpu_number), Field(ge=0)]
GpuIndices = Annotated[tuple[int, ...], BeforeValidator(parse_gpu_indices)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
Environment = dict[
    Annotated[str, AfterValidator(_environment_name)], Annotated[str, BeforeValidator(_environment_value)]
]
EarlierSearches = Annotated[
    tuple[Annotated[str, BeforeValidator(_earlier_search)], ...], BeforeValidator(_tuple)
]
Points = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_tuple)]
Confidence = Annotated[float, BeforeValidator(_confidence)]
GainLimit = Annotated[float | Literal["noise"], BeforeValidator(_gain_limit)]
MaxFailures = Annotated[int | dict[str, int], BeforeValidator(_max_failures)]
Storage = Annotated[str, BeforeValidator(_storage)]
OutcomeConstraint = Annotated[str, BeforeValidator(_outcome_constraint)]
LogLevel = Annotated[
    Literal["fatal", "error", "warning", "info", "debug", "trace"], BeforeValidator(_log_level)
]


class AlgorithmConfig(Section):
    """A tuner or an assessor: by `name`, or your class by `class_name` and `code_directory`."""

    name: Text | None = Field(
        default=None, description="A built-in algorithm, or one that an installed package registers."
    )
    class_name: Text | None = Field(
        default=None, description="Your class: `module.ClassName` in `code_directory`."
    )
    code_directory: Directory | None = Field(
        default=None, description="The folder of your class; needed with `class_name`."
    )
    class_args: dict[str, Any] = Field(
        default_factory=dict, description="Keyword arguments of the class, passed on unchanged."
    )


class ObjectiveConfig(Section):
    """A metric of the final result: optimised if it has a direction, limited if it has a constraint."""

    name: Text = Field(default="default", description="The key of the metric in the reported dict.")
    direction: Literal["minimize", "maximize"] | None = Field(
        default=None, description="Which way is better; not set for a metric that is only limited."
    )
    constraint: OutcomeConstraint | None = Field(
        default=None,
        description='The limits that a good trial keeps: `"<= 20"`, `">= 0.5"` or both with a comma.',
    )
    reference: float | None = Field(
        default=None,
        description="A value that every useful trial beats; the hypervolume is measured from it.",
    )

    def parsed(self) -> Objective:
        """Return it as the other rooms use it."""
        return objectives_of([self.canonical()])[0]


class PriorConfig(Section):
    """Where good values of a parameter are expected, and how sure that is."""

    centre: Any = Field(description="The best value that you expect; of a nested choice, its `_name`.")
    confidence: Confidence = Field(
        default=_CONFIDENCES["medium"],
        description="`low` (0.25), `medium`, `high` (0.75), or a number from 0 to 1.",
    )


class StopConfig(Section):
    """When the search ends before its limits."""

    expected_gain_below: GainLimit = Field(
        description="The search ends when the further gain that a model of the results expects is below this number, in"
        " units of the objective, or below the estimated `noise` of a result."
    )
    min_trials: int = Field(
        default=20,
        gt=0,
        description="So many trials must have succeeded, and kept all limits, before it ends.",
    )


class CheckpointConfig(Section):
    """Checkpoints of trials: how many are kept, and when `Trainable` classes save one."""

    keep: int = Field(
        default=1, gt=0, description="How many checkpoints of a trial are kept, always including the latest."
    )
    rank_by: Literal["recency", "score"] = Field(
        default="recency", description="Which are kept: the latest, or those with the best result."
    )
    frequency: int = Field(
        default=0, ge=0, description="Steps between the checkpoints of `Trainable` classes; 0 = none."
    )
    at_end: bool = Field(
        default=False, description="`Trainable` classes also save a checkpoint when they end."
    )


class LocalConfig(Section):
    """Trials run on this machine, without Ray."""

    platform: Literal["local"] = Field(description="`local`")
    use_active_gpu: bool = Field(default=False, description="Also use GPUs on which other programs run.")
    max_trial_number_per_gpu: int = Field(
        default=1, ge=1, description="Trials that share a GPU; more than 1 needs `trial_gpu_number`."
    )
    gpu_indices: GpuIndices | None = Field(
        default=None, description="The GPUs to use; all of them when not set."
    )
    resources: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Custom resources of this machine: name and amount."
    )
    reuse_mode: bool = Field(default=False, description="Accepted and ignored.")


class RayConfig(Section):
    """Trials run on Ray workers."""

    platform: Literal["ray"] = Field(description="`ray`")
    address: Text | None = Field(
        default=None, description="The cluster to join; a private Ray is started when not set."
    )
    idle_timeout: Duration = Field(
        default=300.0, description="How long a private Ray keeps running after its last experiment."
    )
    runtime_env: dict[str, Any] | None = Field(
        default=None, description="Ray's runtime environment, passed on unchanged."
    )
    reconnect_timeout: Duration = Field(
        default=600.0,
        description="How long to wait for a lost cluster; then the experiment stops, and can be resumed.",
    )


class ConfigFields(Section):
    """The root of the config."""

    experiment_name: str | None = Field(default=None, description="A name for your own use.")
    experiment_type: Annotated[str, BeforeValidator(_experiment_type)] = Field(
        default="hpo", description="Only `hpo`."
    )
    search_space: dict[str, Any] | None = Field(
        default=None, description="The search space; or set `search_space_file`."
    )
    search_space_file: ExistingFile | None = Field(
        default=None,
        description="A JSON or YAML file with the search space. Set this or `search_space`, not both.",
    )
    constraints: Texts = Field(
        default=(), description="Expressions over parameters that every trial satisfies."
    )
    defaults: dict[str, Any] | None = Field(
        default=None,
        description="Your present parameters. They run as trial 0, and reports compare the best trial with them; see"
        " [starting points](#priors).",
    )
    initial_points: Points = Field(
        default=(), description="Parameters to try first, in this order, after `defaults`."
    )
    priors: dict[str, PriorConfig] = Field(
        default_factory=dict,
        description="Where you expect good values, by parameter; for the tuners `Auto` and `TPE`. See"
        " [priors](#priors).",
    )
    warm_start: EarlierSearches = Field(
        default=(),
        description="Earlier searches whose best parameters are tried next: experiments (id or folder), CSV files,"
        " Optuna studies (`sqlite:///study.db:NAME`). See [starting points](#priors).",
    )
    objectives: Annotated[tuple[ObjectiveConfig, ...], BeforeValidator(_tuple), Field(min_length=1)] = Field(
        default=(ObjectiveConfig(direction="minimize"),),
        description="What to optimise, in which direction, and limits of other metrics; see [objectives](#objectives).",
    )
    trial_command: Text | None = Field(default=None, description="The shell command of a trial. Required.")
    trial_code_directory: Directory = Field(
        default=Path("."), description="The folder in which the command runs.", validate_default=True
    )
    trial_concurrency: int = Field(default=1, gt=0, description="How many trials run at the same time.")
    trial_cpu_number: float | None = Field(default=None, gt=0, description="CPUs of a trial.")
    trial_gpu_number: GpuNumber | None = Field(
        default=None,
        description="GPUs of a trial: whole, or a fraction below 1. 0 hides all GPUs, not set hides none.",
    )
    trial_memory_size: Memory | None = Field(default=None, description="Memory of a trial, such as `4gb`.")
    trial_resources: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Custom resources of a trial: name and amount."
    )
    trial_environment: Environment = Field(
        default_factory=dict,
        description="Environment variables of a trial, in addition to the existing ones.",
    )
    max_experiment_duration: PositiveDuration | None = Field(
        default=None,
        description="The experiment ends after this much running time; running trials are stopped.",
    )
    max_trial_number: int | None = Field(default=None, gt=0, description="No new trials after this many.")
    stop_when: StopConfig | None = Field(
        default=None,
        description="Ends the search when more trials are not worth it; see [stop_when](#stop_when).",
    )
    max_trial_duration: PositiveDuration | None = Field(
        default=None,
        description="An attempt of a trial that runs longer is stopped and counts as failed (TIMEOUT).",
    )
    max_identical_failures: int = Field(
        default=5,
        ge=0,
        description="The experiment stops when this many of its first trials fail in the same way; 0 = never.",
    )
    max_failures: MaxFailures = Field(
        default={FailureKind.INFRA.value: 3},
        description=(
            "How often a failed trial is run again, from its last checkpoint: in total, or by kind of failure, such as"
            f" `{{INFRA: 3, OOM: 1}}`; -1 = no limit. The kinds are {', '.join(FailureKind)}; kinds that are not named"
            " are not retried, except INFRA (3 times)."
        ),
    )
    fail_fast: bool = Field(
        default=False, description="End the experiment when a trial fails and has no retries left."
    )
    checkpoint: CheckpointConfig = Field(
        default=CheckpointConfig(), description="Which checkpoints of trials are kept."
    )
    storage_path: Storage | None = Field(
        default=None,
        description=(
            "A folder or URL (any that fsspec supports) to which the experiment and its checkpoints are copied every"
            " 10 seconds, so that it can be resumed on another machine: `pitchpipe resume ID --from`."
        ),
    )
    reuse_actors: bool = Field(
        default=True,
        description="A `Trainable` whose `reset_config` returns true is reused for the next trial.",
    )
    seed: int | None = Field(
        default=None, ge=0, description="Seed of the tuner; if not set, every run is different."
    )
    durability: Literal["process", "power"] = Field(
        default="process",
        description="What committed results survive: killed processes, or also a power cut (slower).",
    )
    kill_grace: Duration = Field(
        default=5.0, description="Time between asking a trial to end and killing it."
    )
    orphan_timeout: Duration = Field(
        default=600.0, description="How long trials continue without a manager before they are ended."
    )
    agent_timeout: PositiveDuration | None = Field(
        default=None,
        description=(
            "An agent silent for this long counts as lost, and its trial is run again; if not set, 10 s, or 60 s where"
            " trials are Python functions. After 3 s of silence it gets no new work."
        ),
    )
    dispatcher_timeout: PositiveDuration = Field(
        default=600.0,
        description="A dispatcher silent for this long is replaced; a tuner may compute longer.",
    )
    nni_manager_ip: str | None = Field(default=None, description="Accepted and ignored.")
    use_annotation: Annotated[bool, BeforeValidator(_no_annotation)] = Field(
        default=False, description="Only `false`."
    )
    debug: bool = Field(default=False, description="Sets the log level to `debug`.")
    log_level: LogLevel = Field(
        default="info",
        description="How much is logged (`critical` means `fatal`). With `debug` every event is recorded, too, "
        "in `logs/events.jsonl`.",
    )
    experiment_working_directory: WorkingDirectory = Field(
        default=Path(DEFAULT_WORKING_DIRECTORY),
        description="The folder that contains the folders of experiments.",
        validate_default=True,
    )
    tuner_gpu_indices: GpuIndices | None = Field(default=None, description="The GPUs that the tuner may use.")
    tuner: AlgorithmConfig = Field(default=AlgorithmConfig(name="Auto"), description="The search algorithm.")
    assessor: AlgorithmConfig | None = Field(
        default=None, description="The early-stopping rule; `none` (the default) stops no trial."
    )
    training_service: Annotated[LocalConfig | RayConfig, Field(discriminator="platform")] = Field(
        default=RayConfig(platform="ray"), description="Where trials run."
    )
    shared_storage: dict[str, Any] | None = Field(default=None, description="Accepted and ignored.")
