"""The parameter record: one parameter set of a trial, as JSON text that all processes pass on unchanged.

Only what needs a field parses the record, with the functions of this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from .codec import dumps, loads
from .json_types import Json, Parameters

AddedSource = Literal["customized", "defaults", "initial", "warm_start"]
STARTING_POINTS = ("defaults", "initial", "warm_start")
"""The sources of parameters that the configuration names: the tuner learns their results."""

_PAUSES = "pauses_at_budget"


class RecordedStep(TypedDict):
    """What a trial trained with from result number `first` on; a step with that number or a lower one replaces it.

    If it began with a copied checkpoint: that of trial `copied_from`, made after `copied_at` of that trial's results,
    when that trial had `copied_steps` steps of its own.
    """

    first: int
    parameters: Json
    copied_from: NotRequired[int]
    copied_at: NotRequired[int]
    copied_steps: NotRequired[int]


class ParameterRecord(TypedDict):
    """A parameter record; the tuner may give a budget and what belongs to it, and families have the last fields."""

    parameter_id: int | str | None  # null for a user's own parameters
    parameter_source: Literal["algorithm"] | AddedSource
    parameters: Json  # of a user's own tuner: any value
    parameter_index: int
    budget: NotRequired[float]
    checkpoint_of: NotRequired[str]
    pauses_at_budget: NotRequired[bool]
    reason: NotRequired[str]  # in NoMoreTrialJobs: why the search should end
    family: NotRequired[int]  # the number of the first trial with these parameters
    repeat: NotRequired[int]  # 0, 1, 2 ...
    seed: NotRequired[int]
    family_end: NotRequired[str]  # how the family has ended, in its first trial's record
    schedule: NotRequired[list[RecordedStep]]  # of a trial that continued with other parameters or a copy


def parameters_of(record: str) -> Parameters:
    """Return the parameters of a record.

    >>> parameters_of('{"parameter_id": 3, "parameters": {"x": 1}}')
    {'x': 1}
    """
    return loads(record)["parameters"]


def budget_and_donor(record: str) -> tuple[float | None, str | None]:
    """Return the budget that a record asks for, and the trial from whose checkpoint it wants to start.

    >>> budget_and_donor('{"parameters": {"x": 1}, "budget": 9, "checkpoint_of": "AbCdE"}')
    (9.0, 'AbCdE')
    """
    if '"budget"' not in record and '"checkpoint_of"' not in record:
        return None, None  # nearly always: the record need not be parsed
    fields = loads(record)
    budget = fields.get("budget")
    return float(budget) if isinstance(budget, int | float) else None, fields.get("checkpoint_of")


def with_parameters(record: str, parameters: Mapping[str, Json]) -> str:
    """Return a record with other parameters.

    >>> with_parameters('{"parameter_id": 3, "parameters": {"x": 1}}', {"x": 2})
    '{"parameter_id": 3, "parameters": {"x": 2}}'
    """
    return dumps({**loads(record), "parameters": dict(parameters)})


def schedule_of(record: str) -> list[RecordedStep]:
    """Return the steps of a trial whose parameters changed or whose checkpoint is a copy, in the order of their making.

    >>> record = with_schedule('{"parameters": {"x": 2}}', [{"first": 0, "parameters": {"x": 1}}])
    >>> schedule_of(record), schedule_of('{"parameters": {"schedule": "cosine"}}')
    ([{'first': 0, 'parameters': {'x': 1}}], [])
    """
    return _field(record, "schedule") or []


def with_schedule(record: str, steps: Sequence[RecordedStep]) -> str:
    """Return a record with these steps."""
    return dumps({**loads(record), "schedule": [*steps]})


def pauses_at_budget(record: str) -> bool:
    """Return whether the tuner pauses the trial when it has spent its budget.

    >>> pauses_at_budget('{"parameters": {"x": 1}, "budget": 9, "pauses_at_budget": true}')
    True
    """
    return f'"{_PAUSES}"' in record and loads(record).get(_PAUSES) is True


def with_pause_at_budget(record: str, pauses: bool) -> str:
    """Return a record that says whether the tuner pauses the trial at its budget.

    >>> with_pause_at_budget('{"parameter_id": 3, "pauses_at_budget": true}', False)
    '{"parameter_id": 3}'
    """
    fields = {name: value for name, value in loads(record).items() if name != _PAUSES}
    return dumps({**fields, _PAUSES: True} if pauses else fields)


def added_record(parameters: Mapping[str, Json], source: AddedSource = "customized") -> str:
    """Return the record of a trial with a user's own parameters.

    The tuner learns the results of those that the configuration names.

    >>> added_record({"x": 1})
    '{"parameter_id": null, "parameter_source": "customized", "parameters": {"x": 1}, "parameter_index": 0}'
    """
    record = {"parameter_id": None, "parameter_source": source, "parameters": dict(parameters)}
    return dumps({**record, "parameter_index": 0})


def is_starting_point(record: str) -> bool:
    """Return whether the configuration names the parameters of a record, or the search that they come from.

    >>> is_starting_point(added_record({"x": 1}, "defaults")), is_starting_point(added_record({"x": 1}))
    (True, False)
    """
    return loads(record).get("parameter_source") in STARTING_POINTS


def is_default(record: str) -> bool:
    """Return whether the parameters of a record are the `defaults` of the configuration.

    >>> is_default(added_record({"x": 1}, "defaults")), is_default(added_record({"x": 1}, "initial"))
    (True, False)
    """
    return '"defaults"' in record and loads(record).get("parameter_source") == "defaults"


def repeated(record: str, family: int, repeat: int, seed: int | None = None) -> str:
    """Return the record of one repeat of a family.

    >>> repeated('{"parameter_id": 3, "parameters": {"x": 1}}', 7, 2, 41)
    '{"parameter_id": 3, "parameters": {"x": 1}, "family": 7, "repeat": 2, "seed": 41}'
    """
    fields = {name: value for name, value in loads(record).items() if name not in ("seed", "family_end")}
    return dumps(fields | {"family": family, "repeat": repeat} | ({} if seed is None else {"seed": seed}))


def repeat_of(record: str) -> tuple[int, int] | None:
    """Return the family and the number of a repeat; None for a trial that is not repeated.

    >>> repeat_of('{"parameters": {"x": 1}, "family": 7, "repeat": 2}'), repeat_of('{"parameters": {"x": 1}}')
    ((7, 2), None)
    """
    family = _field(record, "family")
    return None if family is None else (family, loads(record)["repeat"])


def repeat_number(record: str) -> int | None:
    """Return which repeat of its family a trial is; None if it is not repeated."""
    return _field(record, "repeat")


def seed_of_repeat(record: str) -> int | None:
    """Return the seed of a repeat, if it has one.

    >>> seed_of_repeat('{"parameters": {"seed": 1}, "seed": 41}'), seed_of_repeat('{"parameters": {"seed": 1}}')
    (41, None)
    """
    return _field(record, "seed")


def with_family_end(record: str, end: str) -> str:
    """Return the record of a family's first trial that says how the family ended."""
    return dumps({**loads(record), "family_end": end})


def family_end_of(record: str) -> str | None:
    """Return how the family of its first trial's record ended; None if it has not.

    >>> family_end_of(with_family_end('{"parameters": {"x": 1}}', "raced"))
    'raced'
    """
    return _field(record, "family_end")


def _field(record: str, name: str) -> Any:
    """Return a field that most records do not have."""
    return loads(record).get(name) if f'"{name}"' in record else None
