"""The requests and responses of the API, as its OpenAPI document describes them. Responses are made without them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from ...protocol import JsonObject, Parameters
from ...store.reading import BestIntermediate as StoredIntermediate
from ...store.reading import FamilyRow, HistoryEntry, ReportedResult, Summary, VolumeEntry
from ...store.reading import TrialDetail as WholeTrial

Status = Literal[
    "WAITING", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED"
]
Kind = Literal["INFRA", "OOM", "TIMEOUT", "NAN", "IMPORT", "USER_ERROR", "KILLED"]
NewParameters = Annotated[Parameters, Field(max_length=10_000, examples=[{"lr": 0.1, "units": 32}])]


class _Taken(BaseModel):
    """A request body; unknown names in it are errors."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """Why a request failed."""

    error: str


def _fields_of(kind: type) -> type[BaseModel]:
    """Return a model with the fields of a class of the read model."""
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(kind).items()}
    return create_model(kind.__name__, **fields)


class Change(_Taken):
    """New limits or a new search space; what is left out stays, null removes a limit."""

    model_config = ConfigDict(extra="forbid", strict=True)  # "9" and true are not numbers

    max_trial_number: Annotated[int, Field(gt=0, lt=2**53)] | None = None
    max_experiment_duration: Annotated[
        Annotated[float, Field(gt=0, lt=1e12)] | Annotated[str, Field(max_length=30)] | None,
        Field(description='Seconds, or text such as "2h".'),
    ] = None
    trial_concurrency: Annotated[int, Field(gt=0, le=1_000_000)] | None = None
    search_space: Annotated[JsonObject, Field(min_length=1, max_length=10_000)] | None = None


class NewTrial(_Taken):
    """A trial with the user's own parameters."""

    parameters: NewParameters


class Measured(BaseModel):
    """A result with several metrics."""

    model_config = ConfigDict(extra="allow")

    default: Annotated[float, Field(allow_inf_nan=False)]


class ImportedResult(_Taken):
    """A result that was measured elsewhere."""

    parameter: NewParameters
    value: Annotated[
        Annotated[float, Field(allow_inf_nan=False)] | Measured,
        Field(description="A number, or an object with one as `default`."),
    ]


class Import(_Taken):
    """Results for the tuner."""

    data: Annotated[list[ImportedResult], Field(min_length=1, max_length=100_000)]


class Stop(_Taken):
    """Why the experiment is stopped."""

    reason: Annotated[str, StringConstraints(max_length=500)] = "stopped by the user"


class Limits(BaseModel):
    """The current limits; null is no limit, durations are in seconds."""

    max_trial_number: int | None
    max_experiment_duration: float | None
    trial_concurrency: int


class Added(BaseModel):
    """A new trial."""

    sequence_id: int
    trial_id: str


class Killed(Added):
    """A trial that is being killed."""


class Imported(BaseModel):
    """The number of imported results, and why each of the others is outside the search space."""

    imported: int
    left_out: list[str]


class Repeats(BaseModel):
    """The repeated trials of one configuration; the result of their family is the mean."""

    trials: list[int] = Field(description="The numbers of the trials.")
    count: int = Field(description="How many have a result.")
    of: int = Field(description="How many there may be.")
    interval: dict[str, float | None] = Field(description="Half of the 95 % confidence interval, by metric.")
    end: str | None = Field(description="`complete`, `raced`, `stopped` or `failed`; null while it runs.")


class Trial(_fields_of(FamilyRow)):
    """A trial in a table, or a family of repeats among the best; times are seconds since the epoch."""

    status: Status
    family: int | None = Field(
        description="Of a repeat: the number of the first trial with these parameters."
    )
    repeats: Repeats | None = None
    value: float | None = Field(description="The result in the main objective.")
    values: dict[str, float | None] = Field(description="The results by objective.")
    final: Any = Field(description="The final result as it was reported.")
    last: float | None = Field(description="The last intermediate result.")
    kind: Kind | None


class TrialDetail(Trial, _fields_of(WholeTrial)):
    """Everything about one trial."""


class TrialPage(BaseModel):
    """Some of the trials, and the number of those that match the filters."""

    trials: list[Trial]
    total: int


class Objective(BaseModel):
    """What is optimised."""

    name: str
    direction: Literal["minimize", "maximize"]


class BestIntermediate(_fields_of(StoredIntermediate)):
    """The best intermediate result."""

    sequence: int = Field(description="The number of the result within its trial, from 0.")


class ExperimentSummary(_fields_of(Summary)):
    """The status of an experiment; times are seconds since the epoch, durations seconds."""

    is_search: bool = Field(description="Its caller runs the trials, by asking and telling.")
    has_program: bool | None = Field(
        description="Whether a living program runs a trial of a search; null: its manager runs the trials."
    )
    objectives: list[Objective]
    outcome_limits: dict[str, str] = Field(description="Limits of metrics, such as `<= 20`, by name.")
    defaults: Trial | None = Field(description="The trial of the `defaults` of the config.")
    best: list[Trial] = Field(description="Only trials that keep the limits.")
    best_intermediate: BestIntermediate | None = Field(
        description="Of all trials that have not failed, while none has succeeded and one is running."
    )
    results_per_minute: float = Field(description="Intermediate results of the running trials.")
    closest: int | None = Field(description="The trial closest to the limits, while none keeps them.")


class Best(BaseModel):
    """The best trials: one list by one objective, the Pareto front by several."""

    trials: list[Trial]


class FrontPoint(_fields_of(VolumeEntry)):
    """The hypervolume of the front after a trial that increased it."""


class Front(BaseModel):
    """The Pareto front of several objectives. Trials are given by number."""

    trials: list[int] = Field(
        description="Those that no other trial beats in every objective and that keep the limits."
    )
    knee: int | None = Field(description="The one farthest from the line or plane through the front's ends.")
    hypervolume: float | None
    reference: dict[str, float] = Field(
        description="The point from which the volume is measured, by objective."
    )
    history: list[FrontPoint]
    infeasible: list[int] = Field(description="Trials that violate a limit, the closest to it first.")
    limits: dict[str, str]


class ParameterChange(BaseModel):
    """A parameter that differs from its default."""

    parameter: str
    default: Any = Field(None, description="Left out if the defaults do not have the parameter.")
    value: Any


class Closest(BaseModel):
    """The nearly best trial that differs least from the defaults, compared with the best one."""

    trial: Trial
    best: Trial
    changes: list[ParameterChange] = Field(description="The changes of `trial` that matter.")
    unimportant: int = Field(description="How many other changes it has.")
    best_by: str | None = Field(
        description="With several objectives: `knee`, or the one in which `best` is best."
    )
    best_changes: list[ParameterChange]
    best_unimportant: int


class Health(BaseModel):
    """Notes on how a search went, as sentences."""

    notes: list[str]


class HistoryPoint(_fields_of(HistoryEntry)):
    """A result, and the best so far."""

    value: float | None


class Failure(BaseModel):
    """Trials that failed the same way."""

    count: int
    kind: str | None
    reason: str
    last_line: str
    error: str | None
    exit_code: int | None
    sequence_ids: list[int]


class FailureRegion(BaseModel):
    """Values of one parameter with which most trials fail in one way: those below or above a number, or one option.

    `failed` trials with these values failed in this way, and `well` ones did not fail. `has_others`: trials that failed
    in other ways are not counted. `is_avoided`: the tuner learns where trials fail. `recent` of the newest
    `of_recent` trials have these values, however they ended.
    """

    kind: Kind
    parameter: str
    side: Literal["below", "above", "is"]
    value: Any
    failed: int
    well: int
    has_others: bool
    is_avoided: bool
    recent: int
    of_recent: int
    text: str


class Importance(BaseModel):
    """How much of the variance of the results each parameter explains alone."""

    names: list[str]
    shares: list[float]
    low: list[float]
    high: list[float]
    interactions: float
    fit: float
    trials: int
    method: str
    why_not: str
    stopped: int = Field(description="How many of the `trials` were stopped early.")


class Result(_fields_of(ReportedResult)):
    """An intermediate result as it was reported."""


class Results(BaseModel):
    """What a trial reported since the cursor; forget earlier results numbered `keep_below` or higher first."""

    cursor: str
    keep_below: int
    results: list[Result]
    has_more: bool


class Curve(BaseModel):
    """One metric of one trial, thinned out."""

    sequence_id: int
    sequences: list[int]
    values: list[float | None]
    total: int


class CurvePage(BaseModel):
    """The curves of several trials."""

    curves: list[Curve]


class Event(BaseModel):
    """Something that happened; the other fields depend on the kind."""

    model_config = ConfigDict(extra="allow")

    n: int
    time: float
    kind: Literal["experiment", "trial", "results"]


class EventPage(BaseModel):
    """Events since the cursor; with `reset`, everything has to be read again."""

    cursor: str
    events: list[Event]
    reset: bool


class LogFile(BaseModel):
    """A log file; its size in bytes."""

    name: str
    size: int
    modified: float


class LogPiece(BaseModel):
    """A piece of a log, from byte `offset`; the next one begins at `next_offset`."""

    text: str
    offset: int
    next_offset: int
    size: int
