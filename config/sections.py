"""The sections of a config: type, range, default and meaning of each field. Those of the root are in `root_fields`."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from ..protocol import (
    Direction,
    JsonObject,
    Objective,
    Parameters,
    brief_json,
    camel_case,
    constraint_limits,
    number_in,
    objectives_of,
)
from ..runner import Repeats
from .problems import did_you_mean
from .values import (
    UnitError,
    absolute_path,
    as_tuple,
    directory_path,
    environment_name,
    environment_value,
    file_path,
    gpu_number,
    is_number,
    log_level,
    max_failures,
    parse_duration,
    parse_gpu_indices,
    parse_memory,
    positive_duration,
    storage_url,
    system_text,
    working_directory,
)

# What users write is in the JSON schema, too, where it is more than the type that it becomes.
Duration = Annotated[float, BeforeValidator(parse_duration, json_schema_input_type=float | str)]
PositiveDuration = Annotated[float, BeforeValidator(positive_duration, json_schema_input_type=float | str)]
Memory = Annotated[int, BeforeValidator(parse_memory, json_schema_input_type=int | str), Field(gt=0)]
Directory = Annotated[Path, BeforeValidator(directory_path)]
ExistingFile = Annotated[Path, BeforeValidator(file_path)]
WorkingDirectory = Annotated[Path, BeforeValidator(working_directory)]
GpuNumber = Annotated[float, BeforeValidator(gpu_number), Field(ge=0)]
GpuIndices = Annotated[
    tuple[int, ...], BeforeValidator(parse_gpu_indices, json_schema_input_type=int | str | tuple[int, ...])
]
Text = Annotated[str, Field(min_length=1), AfterValidator(system_text)]
Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
Environment = dict[
    Annotated[str, AfterValidator(environment_name)],
    Annotated[str, BeforeValidator(environment_value, json_schema_input_type=str | float)],
]
MaxFailures = Annotated[int | dict[str, int], BeforeValidator(max_failures)]
Storage = Annotated[str, BeforeValidator(storage_url)]
LogLevel = Annotated[
    Literal["fatal", "error", "warning", "info", "debug", "trace"], BeforeValidator(log_level)
]


class Section(BaseModel):
    """A part of the config: strict types, no unknown fields, no changes after it is made."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def canonical(self) -> JsonObject:
        """Return the section as JSON with camelCase keys, without fields that are not set."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {camel_case(name): _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.canonical()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else copy.deepcopy(value)


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
    class_args: JsonObject = Field(
        default_factory=dict, description="Keyword arguments of the class, passed on unchanged."
    )


def _outcome_constraint(value: Any) -> str:
    hint = 'such as "<= 20" or ">= 0.5, <= 1", in quotes'
    if not isinstance(value, str):
        raise UnitError(f"must be text, not {brief_json(value)}", hint)
    try:
        limits = constraint_limits(value)
    except ValueError as error:
        raise UnitError(str(error), hint) from error
    if not any(map(math.isfinite, limits)):
        raise UnitError(f"{brief_json(value)} is too large a number for a limit", hint)
    return value.strip()


class ObjectiveConfig(Section):
    """A metric of the final result: optimised if it has a direction, limited if it has a constraint."""

    name: Text = Field(default="default", description="The key of the metric in the reported dict.")
    direction: Direction | None = Field(
        default=None, description="Which way is better; not set for a metric that is only limited."
    )
    constraint: Annotated[str, BeforeValidator(_outcome_constraint)] | None = Field(
        default=None,
        description='The limits that a good trial keeps: `"<= 20"`, `">= 0.5"` or both with a comma. YAML needs the'
        " quotes where it begins with `>` or has a comma in braces. There is no `<`, `>` or `==`.",
    )
    reference: float | None = Field(
        default=None,
        description="A value that every useful trial beats; the hypervolume is measured from it.",
    )

    def parsed(self) -> Objective:
        """Return the objective in the form that other rooms use."""
        return objectives_of([self.canonical()])[0]


Objectives = Annotated[tuple[ObjectiveConfig, ...], BeforeValidator(as_tuple), Field(min_length=1)]


_CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}


def _confidence(value: Any) -> float:
    number = _CONFIDENCES.get(value.lower(), math.nan) if isinstance(value, str) else value
    if not is_number(number) or not 0 <= number <= 1:
        words = ", ".join(_CONFIDENCES)
        hint = did_you_mean(value, _CONFIDENCES)
        raise UnitError(f"must be {words}, or a number from 0 to 1, not {brief_json(value)}", hint)
    return float(number)


def _earlier_search(value: Any, info: ValidationInfo) -> str:
    """Return an experiment's id or an Optuna study as it is, or the absolute path of a CSV file or a folder."""
    if not isinstance(value, str) or not value:
        raise UnitError(
            f"must be an experiment's id or folder, a CSV file, or STORAGE:STUDY, not {brief_json(value)}"
        )
    system_text(value)
    if "://" in value:
        if ":" not in value.partition("://")[2]:
            raise UnitError(f"{value} names no study", f"{value}:NAME")
        return value
    if value.endswith(".db") and (file := absolute_path(value, info)).is_file():
        hint = f"for a study of Optuna in it: sqlite:///{file}:NAME"
        raise UnitError(f"{value} is a file, not an experiment", hint)
    is_path = value.endswith(".csv") or "/" in value or value.startswith("~")
    return str(absolute_path(value, info)) if is_path else value


Points = Annotated[tuple[Parameters, ...], BeforeValidator(as_tuple)]
EarlierSearches = Annotated[
    tuple[Annotated[str, BeforeValidator(_earlier_search)], ...], BeforeValidator(as_tuple)
]
Confidence = Annotated[
    float, BeforeValidator(_confidence, json_schema_input_type=float | Literal["low", "medium", "high"])
]


class PriorConfig(Section):
    """Where good values of a parameter are expected, and how sure that is."""

    centre: Any = Field(
        description="The best value that you expect, or null; of a nested choice, its `_name`."
    )
    confidence: Confidence = Field(
        default=_CONFIDENCES["medium"],
        description="`low` (0.25), `medium`, `high` (0.75), or a number from 0 to 1.",
    )

    def canonical(self) -> JsonObject:
        """Return the section as JSON, also with null as the centre."""
        return {"centre": None, **super().canonical()}


class RepeatsConfig(Section):
    """How often each configuration is run, and on what conditions."""

    count: int = Field(ge=1, description="How often each configuration is run.")
    seed: bool = Field(
        default=True,
        description="Give each repeat a seed: `pitchpipe.get_seed()`, or the variable `PITCHPIPE_SEED`. Repeat n has"
        " the same seed in every configuration.",
    )
    race: bool = Field(
        default=True,
        description="Give up a configuration that is clearly worse than the best after 2 or more repeats.",
    )

    @property
    def fewest(self) -> int:
        """How many repeats every configuration gets, if none fails or is stopped."""
        return Repeats(self.count, race=self.race).fewest


class ResourcesConfig(Section):
    """The processes of a trial, and what each of them takes."""

    processes: int = Field(gt=0, description="Processes of a trial, in all. Each runs `trial_command`.")
    nodes: int = Field(
        default=1,
        gt=0,
        description="Nodes of a trial, with equally many processes on each. More than 1 needs Ray.",
    )
    cpus_per_process: float = Field(default=1.0, gt=0, description="CPUs of each process.")
    gpus_per_process: int | None = Field(
        default=None,
        ge=0,
        description="GPUs of each process. A process sees all GPUs that its trial has on the node; 0 hides all GPUs,"
        " not set hides none.",
    )


def _gain_limit(value: Any) -> float | str:
    if value == "noise":
        return value
    hint = did_you_mean(value, ["noise"]) or "a number in units of the objective, such as 0.001, or noise"
    if not is_number(value) or not math.isfinite(number_in(value)):
        raise UnitError(f"must be a number or noise, not {brief_json(value)}", hint)
    if value <= 0:
        raise UnitError(f"must be greater than 0, not {brief_json(value)}", hint)
    return float(value)


GainLimit = Annotated[float | Literal["noise"], BeforeValidator(_gain_limit)]


class StopConfig(Section):
    """When the search ends before its limits."""

    expected_gain_below: GainLimit = Field(
        description="The search ends when the further gain that a model of the results expects is below this number, in"
        " units of the objective, or below the estimated `noise` of a result."
    )
    min_trials: int = Field(
        default=20,
        gt=0,
        description="At least this many trials must have succeeded, and kept all limits, before it ends.",
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
        default=1,
        ge=1,
        description="Trials that share a GPU; no effect if trials take none.",
    )
    gpu_indices: GpuIndices | None = Field(
        default=None,
        description="The GPUs to use, as nvidia-smi numbers them;"
        " all that are [visible](../use/howto/gpus.md) when not set.",
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
    runtime_env: JsonObject | None = Field(
        default=None, description="Ray's runtime environment, passed on unchanged."
    )
    reconnect_timeout: Duration = Field(
        default=600.0,
        description="How long to wait for a lost cluster; then the experiment stops, and can be resumed.",
    )


PLATFORMS: Mapping[str, type[Section]] = MappingProxyType({"local": LocalConfig, "ray": RayConfig})
