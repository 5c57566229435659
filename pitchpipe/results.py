"""The results of an experiment as objects and tables, read from its folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .plots import Plots
from .protocol import JsonObject, Parameters

if TYPE_CHECKING:
    from .store.reading import ExperimentView, FailureRegion, TrialRow

_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class BestTrial:
    """A best trial; `value` is a number, or with several objectives a dict of numbers by name.

    For a configuration that runs several times, `value` is the mean of the `repeats` that succeeded, `trial_id` is the
    first of them, and `interval` is half of the 95 % confidence interval, None if it is unknown.
    """

    trial_id: str
    sequence_id: int
    value: float | dict[str, float]
    parameters: Parameters
    _: KW_ONLY
    repeats: int = 1
    interval: float | dict[str, float | None] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class ExperimentResult(Plots):
    """The state of an experiment, or its outcome.

    `best` is the best trial, None if none succeeded; with several objectives it is the Pareto front, a list.
    `directions` maps the name of each objective to `minimize` or `maximize`. `defaults` is the trial of the `defaults`
    of the config once it has succeeded, and `gain` by how much the best is better: a number, 0 if nothing is better, or
    with several objectives the largest gain in each; None if the defaults violate a limit. The rows of `trials` are
    read from the experiment's folder on first use.
    """

    id: str
    status: str
    folder: Path
    counts: dict[str, int]
    best: BestTrial | list[BestTrial] | None
    reason: str = ""
    directions: dict[str, str] | None = None
    defaults: BestTrial | None = None
    gain: float | dict[str, float] | None = None
    _rows: tuple[TrialRow, ...] = field(default=(), repr=False, compare=False)  # of `best`
    _keeps: object = field(default=None, repr=False, compare=False)  # removes a temporary folder at its end

    @cached_property
    def trials(self) -> list[JsonObject]:
        """All trials in the order in which they were made, as plain dicts.

        `metrics` has what a trial reported last under each name, nested ones with dots: in its final result, or else in
        its intermediate ones, so that a trial that runs or was stopped has them, too.
        """
        names = list(self._directions)
        return _read(self.folder, lambda view: _rows(view, [*view.details()], names))

    @cached_property
    def families(self) -> list[JsonObject]:
        """The configurations that run several times: rows like those of `trials`, with means and `repeats`.

        `repeats` has the numbers of the `trials`, the `count` of those that succeeded, the `interval` of each mean
        (half of the 95 % confidence interval) and how the family ended; `metrics` are the means of numbers. Empty
        without `repeats` in the configuration.
        """
        names = list(self._directions)
        return _read(self.folder, lambda view: _rows(view, view.families(), names))

    @cached_property
    def failures(self) -> list[str]:
        """The ways in which trials failed, the most frequent first, such as `4 trials failed: ValueError: no luck`."""
        from .telling import failed_text

        return [failed_text(group) for group in _read(self.folder, lambda view: view.failures())]

    @cached_property
    def failure_regions(self) -> list[FailureRegion]:
        """Values of parameters with which most trials fail in one way, such as `width` above 64 out of memory."""
        return _read(self.folder, lambda view: view.failure_regions())

    def trial(self, trial_id: str) -> JsonObject:
        """Return the trial with this id; raise `KeyError` if there is none."""
        for row in self.trials:
            if row["trial_id"] == trial_id:
                return row
        raise KeyError(f"experiment {self.id} has no trial {trial_id}")

    def best_by(self, objective: str | None = None) -> JsonObject | None:
        """Return the trial with the best value of one objective (the first, if none is named); None if there is none.

        With several objectives, `knee` is the knee of the front. A trial that violates a limit is never the best.
        Raises `KeyError` for an unknown objective.
        """
        name = objective or next(iter(self._directions))
        if name not in self._directions and (name != "knee" or len(self._directions) < 2):
            raise KeyError(
                f"'{name}' is not an objective of experiment {self.id}: it has {list(self._directions)}"
            )
        best = _read(self.folder, lambda view: view.best(1, name))
        return self._row_of(best[0]) if best else None

    def _row_of(self, trial: TrialRow) -> JsonObject:
        """Return the row of a family, or the row of a trial with all its details."""
        from .store.reading import FamilyRow

        if not isinstance(trial, FamilyRow):
            return self.trial(trial.trial_id)
        return next(row for row in self.families if row["sequence_id"] == trial.sequence_id)

    @cached_property
    def front(self) -> JsonObject:
        """The Pareto front: `trials`, `knee`, `hypervolume`, its `reference` and `history`, `infeasible`, `limits`.

        Trials are numbers (`sequence_id`), and the hypervolume is None with one objective.
        """
        return asdict(_read(self.folder, lambda view: view.front()))

    @cached_property
    def closest_to_defaults(self) -> JsonObject | None:
        """The nearly best trial that changes the `defaults` least; None without `keep_close`.

        A dict with `trial` and `best`, the `changes` of the trial that matter (`parameter`, `value`, and `default` if
        there is one), how many others it has (`unimportant`), and for the best trial `best_changes` and
        `best_unimportant`. With repeats, `trial` and `best` are families.
        """
        from .store.reading import closest_object

        closest = _read(self.folder, lambda view: view.closest_to_defaults())
        return None if closest is None else closest_object(closest, self._row_of)

    @cached_property
    def health(self) -> list[str]:
        """Notes on how the search went: whether it learned, ranges that are too narrow, useless parameters."""
        from .server import read_health

        return _read(self.folder, read_health)

    def dataframe(self) -> Any:
        """Return the trials as a pandas DataFrame: one row each, nested columns as `parameters.x` and `metrics.y`.

        It needs pandas.

        `start_time` and `end_time` are times (datetime64, UTC), `duration` is in seconds.
        """
        from .protocol import require_extra

        require_extra("dataframe() needs", "pandas")
        import pandas

        from .store.reading import flat

        table = pandas.DataFrame(
            [
                {
                    name: value
                    for head, given in row.items()
                    if given or head != "metrics"  # else an empty dict would be a value
                    for name, value in flat(given, head).items()
                }
                for row in self.trials
            ]
        )
        for name in ("start_time", "end_time"):
            if name in table:
                table[name] = pandas.to_datetime(table[name].astype(float), unit="s", utc=True)
        return table

    def __repr__(self) -> str:
        from .protocol import counted
        from .telling import experiment_text, values_text, who_text

        best = "no best"
        if isinstance(self.best, list):
            best = f"a front of {len(self.best)}"
        elif self.best is not None and self._rows:
            best = f"best {values_text(self._rows[0], list(self._directions))} ({who_text(self._rows[0])})"
        trials = counted(sum(self.counts.values()), "trial")
        return f"<ExperimentResult {self.id}: {experiment_text(self.status)}, {trials}, {best}>"

    def _repr_html_(self) -> str:
        from .telling import counts_text, experiment_text, parameter_texts, value_text, visible, who_text

        counts = counts_text(self.counts) or "no trials"
        objectives = ", ".join(f"{direction} {visible(name)}" for name, direction in self._directions.items())
        head = f"experiment <b>{escape(self.id)}</b>: {experiment_text(self.status)} ({counts}), {escape(objectives)}"
        parameters = [parameter_texts(trial.parameters) for trial in self._rows]
        names = list(dict.fromkeys(name for texts in parameters for name in texts))
        rows = [
            [
                who_text(trial),
                *(value_text(trial, name) for name in self._directions),
                *(texts.get(name, "") for name in names),
            ]
            for trial, texts in zip(self._rows, parameters, strict=True)
        ]
        reason = f"<p>{escape(visible(self.reason))}</p>" if self.reason else ""
        table = _table(["", *map(visible, self._directions), *names], rows) if rows else self._why_none()
        return f"<p>{head}</p>{reason}{table}"

    def _why_none(self) -> str:
        """Return, as HTML, why there is no best trial, and how trials failed."""
        from .telling import visible, why_none_text

        why_none = _read(self.folder, lambda view: why_none_text(view, view.summary()))
        lines = [why_none, *self.failures]
        return "".join(f"<p>{escape(visible(line))}</p>" for line in lines)

    def _folder_to_plot(self) -> Path:
        return self.folder

    @property
    def _directions(self) -> dict[str, str]:
        return self.directions or {"default": "minimize"}


def _read(folder: Path, read: Callable[[ExperimentView], Answer]) -> Answer:
    """Return what a function reads of the experiment in a folder."""
    from .store.reading import ExperimentView

    with ExperimentView(folder) as view:
        return read(view)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table."""
    return f"<table>{_line(names, 'th')}{''.join(_line(row, 'td') for row in rows)}</table>"


def _line(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _rows(view: ExperimentView, trials: Sequence[TrialRow], objectives: Sequence[str]) -> list[JsonObject]:
    """Return trials or families as rows."""
    metrics = view.metric_values(trials, view.all_metric_names() if trials else ())
    return [_row(trial, metrics[trial.sequence_id], objectives) for trial in trials]


def _row(trial: TrialRow, metrics: JsonObject, objectives: Sequence[str]) -> JsonObject:
    """Return a trial or a family as a row; its first names are those that callbacks receive."""
    from .store.reading import FamilyRow, TrialDetail, TrialTable, columns_in

    row: JsonObject = {}
    for column in columns_in(TrialTable.PYTHON):
        if column.name == "value":
            row["value"] = _value_of(trial, objectives)
        elif column.name == "kind":
            row["failure_kind"] = trial.kind
        elif column.name == "metrics":
            row["metrics"] = metrics
        elif column.name != "error" or isinstance(trial, TrialDetail):
            row[column.name] = getattr(trial, column.name)
    return row | ({"repeats": asdict(trial.repeats)} if isinstance(trial, FamilyRow) else {})


def _value_of(trial: TrialRow, objectives: Sequence[str]) -> Any:
    """Return the number of the only objective, a dict by name for several, None without a result."""
    values = trial.values
    if not values:
        return None
    return values[objectives[0]] if len(objectives) == 1 else {name: values[name] for name in objectives}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a search; `result` has the results so far."""

    def __init__(self, message: str, result: ExperimentResult) -> None:
        super().__init__(message)
        self.result = result


def result_of(folder: Path, keeps: object = None) -> ExperimentResult:
    """Return the results in the folder of an experiment, running or not; raise `StoreError` if it cannot be read.

    The object in `keeps` lives as long as the results.
    """
    from .telling import gains_over_defaults

    summary = _read(folder, lambda view: view.summary())
    directions = {objective.name: objective.direction for objective in summary.objectives}
    names = list(directions)
    front = [_best_of(trial, names) for trial in summary.best]
    gains, defaults = gains_over_defaults(summary), summary.defaults
    return ExperimentResult(
        id=summary.id,
        status=summary.status,
        folder=folder,
        counts=summary.counts,
        best=front if len(directions) > 1 else next(iter(front), None),
        reason=summary.reason,
        directions=directions,
        defaults=_best_of(defaults, names) if defaults and defaults.status == "SUCCEEDED" else None,
        gain=gains[names[0]] if gains and len(names) == 1 else gains,
        _rows=tuple(summary.best),
        _keeps=keeps,
    )


def _best_of(trial: TrialRow, names: Sequence[str]) -> BestTrial:
    from .store.reading import FamilyRow

    first = trial.trial_id, trial.sequence_id, _value_of(trial, names), trial.parameters
    if not isinstance(trial, FamilyRow):
        return BestTrial(*first)
    intervals = {name: trial.repeats.interval.get(name) for name in names}
    interval = intervals if len(names) > 1 else intervals[names[0]]
    return BestTrial(*first, repeats=trial.repeats.count, interval=interval)


def warn_if_none_succeeded(result: ExperimentResult) -> None:
    """Log why trials failed if no trial has succeeded."""
    if not result.counts.get("SUCCEEDED") and result.failures:
        from .telling import escaped

        _log.warning("no trial has succeeded: %s", escaped("; ".join(result.failures[:3])))
