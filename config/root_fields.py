"""The fields at the root of a config: type, range, default and meaning of each.

Checks across fields are in `cross_checks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr

from ..protocol import JsonObject, JsonPath, Parameters, brief_json
from ..runner import FailureKind
from .sections import (
    AlgorithmConfig,
    CheckpointConfig,
    Directory,
    Duration,
    EarlierSearches,
    Environment,
    ExistingFile,
    GpuIndices,
    GpuNumber,
    LocalConfig,
    LogLevel,
    MaxFailures,
    Memory,
    ObjectiveConfig,
    Objectives,
    Points,
    PositiveDuration,
    PriorConfig,
    RayConfig,
    RepeatsConfig,
    ResourcesConfig,
    Section,
    StopConfig,
    Storage,
    Text,
    Texts,
    WorkingDirectory,
)
from .values import UnitError

if TYPE_CHECKING:
    from .source import Source

DEFAULT_WORKING_DIRECTORY = "~/pitchpipe-experiments"


def _experiment_type(value: Any) -> Any:
    if value != "hpo":
        raise UnitError(f"must be hpo, not {brief_json(value)}", "architecture search is not supported")
    return value


def _no_annotation(value: Any) -> Any:
    if value is True:
        raise UnitError("annotations are not supported", "call get_next_parameter() in the trial script")
    return value


@dataclass(frozen=True)
class Form:
    """How a config is read, and what is decided where it says nothing; a subclass is for another program's form."""

    default_direction: str = "minimize"
    why: str = "no algorithm has one"
    own_tuner_needs_space: bool = True

    def read_words(self, source: Source) -> str:
        """Give words of a file the meaning that they have in this form, and return a remark if any changed."""
        return ""

    def read_space(self, space: JsonObject, at: JsonPath) -> tuple[JsonObject, list[str]]:
        """Return the search space as this form means it, and remarks; `at` is its place."""
        return space, []


class ConfigFields(Section):
    """The root of the config."""

    _notes: tuple[str, ...] = PrivateAttr(())  # what was given and has no effect
    _form: Form = PrivateAttr(default_factory=Form)
    # The names, in the file, of the fields without an effect, with their lines.
    _ignored: dict[JsonPath, str] = PrivateAttr({})

    experiment_name: str | None = Field(default=None, description="A name for your own use.")
    experiment_type: Annotated[str, BeforeValidator(_experiment_type)] = Field(
        default="hpo", description="Only `hpo`."
    )
    search_space: JsonObject | None = Field(
        default=None, description="The search space; or set `search_space_file`."
    )
    search_space_file: ExistingFile | None = Field(
        default=None,
        description="A JSON or YAML file with the search space. Set this or `search_space`, not both.",
    )
    constraints: Texts = Field(
        default=(), description="Expressions over parameters that every trial satisfies."
    )
    defaults: Parameters | None = Field(
        default=None,
        description="Your present parameters. They run as trial 0, which no assessor stops, and reports compare the"
        " best trial with them; see [starting points](#priors).",
    )
    keep_close: bool = Field(
        default=False,
        description="Also propose, of nearly equal trials, the one that changes `defaults` least; see [starting"
        " points](#priors).",
    )
    initial_points: Points = Field(
        default=(), description="Parameters to try first, in this order, after `defaults`."
    )
    priors: dict[str, PriorConfig] = Field(
        default_factory=dict,
        description="Where you expect good values, by parameter; for the tuners `Auto`, `TPE` and `NSGA`. See"
        " [priors](#priors).",
    )
    warm_start: EarlierSearches = Field(
        default=(),
        description="Earlier searches whose best parameters are tried next: experiments (id or folder; also of NNI),"
        " CSV files, Optuna studies (`sqlite:///study.db:NAME`). See [starting points](#priors).",
    )
    objectives: Objectives = Field(
        default=(ObjectiveConfig(direction="minimize"),),
        description="What to optimise, in which direction, and limits of other metrics; see [objectives](#objectives).",
    )
    repeats: RepeatsConfig | None = Field(
        default=None,
        description="Run each configuration several times, because its result is noisy; see [repeats](#repeats).",
    )
    trial_command: Text | None = Field(
        default=None,
        description="The shell command of a trial. Required. `{args}` stands for all parameters as `--NAME=VALUE`, and"
        " `{NAME}` for one of them; see [arguments](../use/trial.md#with-argparse).",
    )
    trial_code_directory: Directory = Field(
        default=Path("."), description="The folder in which the command runs.", validate_default=True
    )
    trial_code: Literal["live", "snapshot"] = Field(
        default="live",
        description="`live`: each trial runs the code as it is when it starts; `snapshot`: all run a copy made at the"
        " start. See [what code made the result](../use/trial.md#what-code-made-the-result).",
    )
    trial_concurrency: int = Field(default=1, gt=0, description="How many trials run at the same time.")
    trial_cpu_number: float | None = Field(
        default=None,
        gt=0,
        description="CPUs of a trial, and so its [threads](../use/trial.md#what-a-command-trial-runs-in).",
    )
    trial_gpu_number: GpuNumber | None = Field(
        default=None,
        description="GPUs of a trial: whole, or a fraction below 1. 0 hides all GPUs, not set hides none.",
    )
    trial_memory_size: Memory | None = Field(default=None, description="Memory of a trial, such as `4gb`.")
    trial_resources: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Custom resources of a trial: name and amount."
    )
    resources: ResourcesConfig | None = Field(
        default=None,
        description="Trials of several processes, as `torchrun` starts them; see [resources](#resources).",
    )
    trial_environment: Environment = Field(
        default_factory=dict,
        description="Environment variables of a trial, in addition to the existing ones.",
    )
    trial_start: Literal["auto", "warm", "cold"] = Field(
        default="auto",
        description="How a Python script is started: `cold`, from nothing; `warm`, as a fork of a process that has"
        " imported its libraries; `auto`, warm from about the third trial on. See [warm"
        " starts](../use/trial.md#warm-starts).",
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
        description=(
            "An attempt of a trial that runs longer is stopped. It counts as failed (TIMEOUT), unless it has reported "
            "its final result."
        ),
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
    tuner_gpu_indices: GpuIndices | None = Field(
        default=None, description="The GPUs that the tuner may use, as nvidia-smi numbers them."
    )
    tuner: AlgorithmConfig = Field(default=AlgorithmConfig(name="Auto"), description="The search algorithm.")
    assessor: AlgorithmConfig | None = Field(
        default=None,
        description="The early-stopping rule; `none` stops no trial. The default is `Auto` where only time limits the"
        " experiment, else `none` ([assessors](assessors.md#the-default)).",
    )
    trackers: dict[Literal["mlflow", "tensorboard", "wandb"], JsonObject] = Field(
        default_factory=dict,
        description="Where else results go, with the options of each: `{wandb: {project: digits}}`;"
        " see [trackers](../use/integrations.md#trackers).",
    )
    training_service: Annotated[LocalConfig | RayConfig, Field(discriminator="platform")] = Field(
        default=RayConfig(platform="ray"), description="Where trials run."
    )
    shared_storage: JsonObject | None = Field(default=None, description="Accepted and ignored.")

    def canonical(self) -> JsonObject:
        """Return the config as JSON with camelCase keys; `assessor` is null if the config says that there is none."""
        canonical = super().canonical()
        if self.assessor is None and "assessor" in self.model_fields_set:
            canonical["assessor"] = None
        return canonical
