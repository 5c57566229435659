"""All trials of an experiment as text, in portions, so that slow clients block nothing.

JSON: `{"experiment": {...}, "trials": [...]}` with the intermediate results of each. CSV: a header and a row per trial,
with nested parameters, results and metrics flattened by dots. How numbers are written is in docs/reference/store.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import TYPE_CHECKING

from ...protocol import Config, Json
from ..errors import understood
from .csv_cells import NULL, csv_text
from .json_values import flat, parsed, to_json
from .metrics import last_values
from .read_model import FamilyRow, TrialDetail, TrialRow
from .trial_columns import TrialColumn, TrialTable, columns_in

if TYPE_CHECKING:
    from .view import ExperimentView

_OF_EXPERIMENT = ("id", "name", "status", "reason", "folder", "created", "end_time", "run_time")
_OF_FAMILY = ("sequence_id", "status", "parameters", "values", "repeats")
_MANY = ("parameters", "final", "metrics")  # each is a column for each name in it
_FIRST = tuple(takewhile(lambda column: column.name not in _MANY, columns_in(TrialTable.CSV)))
_PREFIX = "parameters."
_METRIC = "metrics."
_PREFIXES = (_PREFIX, "final.", _METRIC)


def json_lines(view: ExperimentView, config: Config | None = None) -> Iterator[bytes]:
    """Yield the experiment and its trials as one JSON object, with another `config` in place of its own if given."""
    summary = view.summary()
    head: dict[str, object] = {name: getattr(summary, name) for name in _OF_EXPERIMENT}
    head["front"] = view.front()
    if families := view.families():
        head["families"] = [family_object(family) for family in families]
    yield b'{"experiment":' + to_json({**head, "config": config or view.config()}) + b',"trials":['
    between = b"\n"
    for trial, results in view.with_results():
        yield between + to_json(trial_object(trial, [*results.values()]))
        between = b",\n"
    yield b"\n]}\n"


def family_object(family: FamilyRow) -> dict[str, object]:
    """Return a family of repeats as the export has it."""
    return {name: getattr(family, name) for name in _OF_FAMILY}


def detail_object(trial: TrialDetail) -> dict[str, object]:
    """Return all about a trial as the HTTP API has it: what only a detail has stands before the parameters."""
    row, detail = ([field.name for field in fields(kind)] for kind in (TrialRow, TrialDetail))
    place, *more, last = row.index("parameters"), *detail[len(row) :]
    return {name: getattr(trial, name) for name in (*row[:place], *more, *row[place:], last)}


def trial_object(trial: TrialRow, intermediate: Sequence[Json]) -> dict[str, object]:
    """Return a trial with its results as the export has it."""
    reported = {"intermediate": intermediate, "metrics": last_values(intermediate, trial.final)}
    return {
        column.exported_name: reported[column.name]
        if column.name in reported
        else getattr(trial, column.name)
        for column in columns_in(TrialTable.JSON, with_repeats=trial.family is not None)
    }


def csv_lines(view: ExperimentView) -> Iterator[bytes]:
    """Yield a header and one row per trial.

    A parameter whose name is that of another column, or begins as those of results do, gets the prefix `parameters.`
    """
    many = _names(view)
    columns = columns_in(TrialTable.CSV, with_repeats=view.repeats() > 1)
    last = [column for column in columns if column.name not in _MANY and column not in _FIRST]
    first_names, last_names = ([column.exported_name for column in part] for part in (_FIRST, last))
    taken = {*first_names, *many.finals, *last_names}
    head = [
        f"{_PREFIX}{name}" if name in taken or name.startswith(_PREFIXES) else name
        for name in many.parameters
    ]
    metrics = [f"{_METRIC}{name}" for name in many.metrics]
    yield csv_text([[*first_names, *head, *many.finals, *metrics, *last_names]])
    for portion in view.portions():
        reported = view.metric_values(portion, many.metrics)
        yield csv_text([_row(trial, many, reported[trial.sequence_id], last) for trial in portion])


@dataclass(frozen=True, slots=True)
class _Many:
    """The names of all parameters, of what is in final results, and of metrics."""

    parameters: list[str]
    finals: list[str]
    metrics: list[str]


def _names(view: ExperimentView) -> _Many:
    """Return all names: the trials and their results are read twice, here for the names alone."""
    parameters, finals = dict[str, None](), dict[str, None]()
    for portion in view.database.portions("SELECT sequence_id, record, final FROM trials"):
        for number, record, final in portion:
            with understood(view.database.path, f"trial {number}"):
                parameters.update(dict.fromkeys(flat(parsed(record)["parameters"])))
                finals.update(dict.fromkeys(_flat_final(parsed(final))))
    return _Many(list(parameters), list(finals), view.all_metric_names())


def _row(
    trial: TrialRow, many: _Many, reported: Mapping[str, Json], last: Sequence[TrialColumn]
) -> list[object]:
    results = _flat_final(trial.final)
    values = {name: NULL if value is None else value for name, value in flat(trial.parameters).items()}
    before, after = ([_or_none(getattr(trial, column.name)) for column in part] for part in (_FIRST, last))
    named = [
        *map(values.get, many.parameters),
        *map(results.get, many.finals),
        *map(reported.get, many.metrics),
    ]
    return [*before, *named, *after]


def _or_none(value: object) -> object:
    return None if value == "" else value


def _flat_final(final: Json) -> dict[str, Json]:
    return {} if final is None else flat(final, "final")
