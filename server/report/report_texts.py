"""The contents of a report besides its figures, ready to print: plain texts and tables of texts."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from ...protocol import Config, Json, number_in
from ...runner import ExperimentStatus
from ...store.reading import (
    ExperimentView,
    FailureGroup,
    FamilyRow,
    Summary,
    TrialRow,
    TrialTable,
    columns_in,
    plain,
)
from ...telling import (
    FailedTrial,
    changes_of_schedule,
    closeness_lines,
    column_text,
    duration_text,
    front_lines,
    gain_text,
    metric_text,
    nouns,
    reason_text,
    repeats_text,
    standing_text,
    start_lines,
    value_text,
    violation_text,
    who_text,
    why_none_text,
)
from ..figures import STATUS_LOOKS, ExperimentTable, Objective, chosen_numbers, value_name, written
from ..health import read_health
from ..secrecy import hidden

_MOST_TRIALS = 1000
_MOST_BEST = 20
_MOST_COLUMNS = 24
_MOST_METRICS = 8
_TRACEBACK_LINES = 12

Pairs = list[tuple[str, str]]
# A text, and what the column is sorted by.
Cell = tuple[str, float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRow:
    """One of the best trials: its number, its results, its parameters; of a family, how many `repeats`.

    `changes` says how often the parameters changed while the trial was trained, if they did.
    """

    number: int
    values: Pairs
    parameters: Pairs
    repeats: str
    changes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """One kind of failure: the number of trials, why, where, and the numbers of the first ones."""

    count: int
    kind: str
    reason: str
    traceback: str
    numbers: str


@dataclass(frozen=True, slots=True)
class TrialsTable:
    """Trials, or families, as rows of cells; `head` contains (name, whether the column is numeric)."""

    head: list[tuple[str, bool]]
    rows: list[list[Cell]]
    total: int

    @property
    def left_out(self) -> str:
        """A sentence about those that are left out; empty if there are none."""
        if len(self.rows) == self.total:
            return ""
        _, several = nouns(1 if self.head[0][0] == "trial" else 2)
        chosen = "the best tenth of these, and others evenly over time"
        return f"{len(self.rows):,} of {self.total:,} {several}: {chosen}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTexts:
    """All texts of a report; `state` is a sentence about an experiment that is not over.

    There are `families` where configurations are run several times.
    """

    id: str
    name: str
    state: str
    reason: str
    error: str
    summary: Pairs
    counts: list[tuple[str, str, int]]
    best: list[BestRow]
    more_best: int
    why_none: str
    knee: int | None
    failures: list[Failures]
    families: TrialsTable | None
    trials: TrialsTable
    settings: Pairs
    environment: Pairs
    written: str


def texts_of(view: ExperimentView, table: ExperimentTable, now: float | None = None) -> ReportTexts:
    """Collect the texts of a report; `now` is the time of writing, in seconds since the epoch."""
    summary, config = view.summary(), view.config()
    moment = time.time() if now is None else now
    best, families = summary.best, view.families()
    return ReportTexts(
        id=summary.id,
        name=summary.name or "",
        state=_state(summary, moment),
        reason=summary.reason or "",
        error=hidden(summary.error or ""),
        summary=_summary(summary, table, view),
        counts=[
            (look.name, look.color, summary.counts[status])
            for status, look in STATUS_LOOKS.items()
            if status in summary.counts
        ],
        best=[_best(row, table, view.parameter_changes(row.sequence_id)) for row in best[:_MOST_BEST]],
        more_best=max(len(best) - _MOST_BEST, 0),
        why_none="" if best else why_none_text(view, summary),
        knee=view.front().knee,
        failures=[_failures(group) for group in view.failures()],
        families=_family_table(families, table) if families else None,
        trials=_trial_table(view, table, families),
        settings=_settings(config, summary),
        environment=_environment(view),
        written=_moment(moment),
    )


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))


def _state(summary: Summary, now: float) -> str:
    if summary.is_running:
        return f"The experiment is still running. This report shows its state on {_moment(now)}."
    if not ExperimentStatus(summary.status).is_final and not summary.is_search:
        return f"The experiment is not over and not running. To resume it: pitchpipe resume {summary.id}"
    return ""


def _summary(summary: Summary, table: ExperimentTable, view: ExperimentView) -> Pairs:
    counts = summary.counts
    noun, _ = nouns(view.repeats())
    planned = summary.limits["max_trial_number"]
    pairs = [("Status", standing_text(summary))]
    for row in summary.best[:1] if len(table.objectives) == 1 else []:
        one = table.objectives[0]
        pairs.append((f"Best {value_name(one)}", f"{value_text(row, one.name)} ({who_text(row)})"))
    if not summary.best:
        pairs.append((f"Best {noun}", why_none_text(view, summary)))
    if gain := gain_text(summary):
        pairs.append(("Defaults", gain))
    for line in (
        *front_lines(view.front(), repeats=view.repeats()),
        *closeness_lines(view.closest_to_defaults()),
    ):
        name, _, text = line.partition(": ")
        pairs.append((name[0].upper() + name[1:], text))
    pairs += [("Note", note) for note in read_health(view)]
    pairs += [
        ("Trials", f"{summary.trials:,}" + (f" of {planned:,}" if planned else "")),
        ("Failed", f"{counts.get('FAILED', 0):,}"),
        ("Stopped early", f"{counts.get('EARLY_STOPPED', 0):,}"),
        ("Intermediate results", f"{summary.intermediate_results:,}"),
        ("Run time", duration_text(summary.run_time or 0.0)),
        ("Begun", _moment(summary.created)),
    ]
    return pairs + ([("Ended", _moment(summary.end_time))] if summary.end_time else [])


def _best(row: TrialRow, table: ExperimentTable, changes: int) -> BestRow:
    values = [(value_name(one), value_text(row, one.name) or "–") for one in _metrics(table)]
    return BestRow(
        number=row.sequence_id,
        values=values,
        parameters=_parameters(row.parameters, table),
        repeats=repeats_text(row),
        changes=changes_of_schedule(changes),
    )


def _metrics(table: ExperimentTable) -> list[Objective]:
    """Return what is optimised, and what is limited alone."""
    return [*dict.fromkeys([*table.objectives, *table.limits])]


def _parameters(parameters: Json, table: ExperimentTable) -> Pairs:
    point = parameters if isinstance(parameters, Mapping) else {}
    pairs = [(one.name, one.value(point)) for one in table.dimensions]
    return [(name, written(value)) for name, value in pairs if value is not None]


def _failures(group: FailureGroup) -> Failures:
    lines = [*FailedTrial.of(group, _TRACEBACK_LINES).lines, *([group.last_line] if group.last_line else [])]
    numbers = ", ".join(map(str, group.sequence_ids))
    others = group.count - len(group.sequence_ids)
    return Failures(
        count=group.count,
        kind=group.kind or "",
        reason=hidden(group.reason),
        traceback=hidden("\n".join(lines)),
        numbers=f"{numbers} and {others} more" if others > 0 else numbers,
    )


def _trial_table(view: ExperimentView, table: ExperimentTable, families: Sequence[FamilyRow]) -> TrialsTable:
    """Return the trials by number; of more than a thousand the best tenth, and others evenly over time."""
    family_of = {n: family.sequence_id for family in families for n in family.repeats.trials}
    columns = columns_in(TrialTable.REPORT, with_repeats=bool(families))
    limits = {limit.name: limit.limits_text for limit in table.limits}
    known = view.names()
    metrics = [one.name for one in known.beside[:_MOST_METRICS]]
    names = {
        "values": [*map(value_name, _metrics(table))],
        "metrics": [*map(known.heading, metrics)],
        "parameters": [dimension.name for dimension in table.dimensions[:_MOST_COLUMNS]],
    }
    head = [name for column in columns for name in names.get(column.name, [column.short_head])]
    trials = view.numbered(chosen_numbers(table.trials, table.objectives[0], _MOST_TRIALS))
    reported = view.metric_values(trials, metrics)
    rows = []
    for trial in trials:
        row = list[Cell]()
        values = {name: value for name, value in plain(trial.values).items() if value is not None}
        for column in columns:
            match column.name:
                case "values":
                    row += [_cell(values.get(metric.name)) for metric in _metrics(table)]
                case "metrics":
                    row += map(_reported, map(reported[trial.sequence_id].get, metrics))
                case "parameters":
                    point = plain(trial.parameters) if isinstance(trial.parameters, Mapping) else {}
                    row += map(_cell, _values(table, point))
                case "family":
                    row.append(_cell(family_of.get(trial.sequence_id)))
                case "reason":
                    why = "; ".join(filter(None, (violation_text(values, limits), hidden(trial.reason))))
                    row.append((why, why))
                case name:
                    value = plain(getattr(trial, name))
                    text = "" if value is None else hidden(column_text(trial, column, limits))
                    row.append((text or "–", float(value) if isinstance(value, int | float) else text))
        rows.append(row)
    return _as_table(head, rows, len(table.outline))


def _family_table(families: Sequence[FamilyRow], table: ExperimentTable) -> TrialsTable:
    """Return the families by number, with the means of their repeats; of many, as of the trials."""
    kept = set(chosen_numbers(table.configurations, table.objectives[0], _MOST_TRIALS))
    limits = {limit.name: limit.limits_text for limit in table.limits}
    rows = []
    for family in families:
        if family.sequence_id in kept:
            names = [metric.name for metric in _metrics(table)]
            means = [(value_text(family, name) or "–", _cell(family.values.get(name))[1]) for name in names]
            place, values = [family.sequence_id, repeats_text(family)], _values(table, family.parameters)
            reason = reason_text(family, limits)
            rows.append([*map(_cell, place), *means, *map(_cell, [*values, reason])])
    return _as_table(["family", "repeats", *_heads(table), "reason"], rows, len(families))


def _heads(table: ExperimentTable) -> list[str]:
    """Return the heads of the results and the parameters."""
    return [*map(value_name, _metrics(table)), *(one.name for one in table.dimensions[:_MOST_COLUMNS])]


def _values(table: ExperimentTable, parameters: Mapping[str, Json]) -> list[float | str | None]:
    return [dimension.value(parameters) for dimension in table.dimensions[:_MOST_COLUMNS]]


def _as_table(head: list[str], rows: list[list[Cell]], total: int) -> TrialsTable:
    are_numbers = [any(isinstance(row[place][1], float) for row in rows) for place in range(len(head))]
    return TrialsTable(list(zip(head, are_numbers, strict=True)), rows, total)


def _cell(value: float | str | None) -> Cell:
    if isinstance(value, int | float):
        return written(value), float(f"{value:.10g}")
    return written(value), value or ""


def _reported(value: Json) -> Cell:
    """Return what a trial reported under a name: a number, or the text of anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(number_in(value)):
        return _cell(value)
    text = hidden(metric_text(value))
    return text or written(None), text


def _settings(config: Config, summary: Summary) -> Pairs:
    """Return the settings that matter for the results."""
    limits = [f"limit {name} {limit}" for name, limit in summary.outcome_limits.items()]
    objectives = ", ".join([*(f"{one.direction} {one.name}" for one in summary.objectives), *limits])
    service = config.get("trainingService") or {}
    known = {
        "Objective": objectives,
        "Tuner": _algorithm(config.get("tuner")),
        "Assessor": _algorithm(config.get("assessor")),
        "Seed": config.get("seed"),
        "Concurrent trials": config.get("trialConcurrency"),
        "Platform": service.get("platform") if isinstance(service, Mapping) else None,
        "Command": config.get("trialCommand"),
        "Code directory": config.get("trialCodeDirectory"),
        "Folder": summary.folder,
    }
    return [(name, hidden(str(value))) for name, value in known.items() if value not in (None, "")]


def _algorithm(section: Json) -> str:
    if not isinstance(section, Mapping):
        return ""
    name = str(section.get("name") or section.get("className") or "")
    arguments = section.get("classArgs") or {}
    listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({listed})" if listed else name


def _environment(view: ExperimentView) -> Pairs:
    """Describe where the experiment ran last and from which commit, and what wrote the report."""
    starts = view.starts()
    ran = [pair for pair in start_lines(starts[-1]) if pair[1]] if starts else []
    writer = (
        f"Pitchpipe {version('pitchpipe')}, Python {platform.python_version()}, plotly {version('plotly')}"
    )
    return [*ran, ("Report written by", writer)]
