"""`ExperimentView`: an experiment, as its folder holds it, for the command line, Python, the API, pages and reports.

It only reads, from any thread, whether the experiment runs, has ended or was killed. SQL does the filtering, sorting
and thinning, so memory does not grow with results that are not requested.

Times are seconds since the epoch. Numbers are as reported, NaN and infinities included (docs/reference/store.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...protocol import Json, schedule_of
from ...runner import TrialStatus
from ...trial_agent import output_name
from ..annotations import Annotations
from ..errors import computed
from ..folder import ExperimentFolder
from ..paths import absolute
from .best_trials import limits_of, read_best, read_front, read_front_trials, read_history
from .closeness import read_closest_to_defaults
from .code_versions import CodeVersion, ExperimentStart, read_code_versions, read_starts
from .curves import (
    Curve,
    NewResults,
    read_curve,
    read_curves,
    read_latest,
    read_new_results,
    read_reports,
    read_results,
    read_step,
)
from .database import Database
from .failure_groups import FailureGroup, FailureRegion, read_failure_regions, read_failures, read_retries
from .families import read_families, read_family, read_family_outline
from .family_page import read_family_page
from .feed import EventPage, Feed
from .field_names import FieldNames, check_kind, field_of, marks_of, with_fields
from .log_files import FilePiece, LogFile, NoSuchFile, list_files, read_piece, read_tail, safe_path
from .metrics import read_all_metric_names, read_family_metrics, read_metrics
from .overview import read_everything, read_experiment, read_summary
from .read_model import (
    ClosestTrial,
    FamilyRow,
    Goal,
    HistoryEntry,
    ParetoFront,
    Schedule,
    StoredExperiment,
    Summary,
    TrialDetail,
    TrialEnd,
    TrialRow,
)
from .schedules import has_schedules, read_schedules
from .trial_query import MARKS, TrialQuery
from .trial_rows import (
    TrialPage,
    read_details,
    read_exports,
    read_matching,
    read_outline,
    read_portions,
    read_record,
    read_trial,
    read_trials,
    rows_by_number,
    sequence_id_of,
)

# The output of each attempt and the parameters of a trial; its checkpoints and files are not for a browser.
_TRIAL_FILES = re.compile(r"(stdout|stderr)(-\d{1,9})?|parameters\.json")
_SPOOL = re.compile(r"reports-\d+-[0-9a-f]+\.jsonl")


@dataclass(frozen=True, slots=True)
class Follow:
    """Where a log is read from: the last `lines` lines, or at most `limit` bytes from byte `offset`."""

    lines: int | None = None
    offset: int = 0
    limit: int = 256 * 1024


class ExperimentView:
    """Reads one experiment's folder, from any thread, without disturbing what runs.

    Every method raises `StoreError` if the database cannot be read. Close it, or use it in a `with` block.
    """

    def __init__(self, folder: ExperimentFolder | Path | str) -> None:
        is_folder = isinstance(folder, ExperimentFolder)
        self.folder = folder if is_folder else ExperimentFolder(absolute(folder))
        self.database = Database(self.folder.database)
        self._feed = Feed(self.database)
        self._names: tuple[int, FieldNames] | None = None  # with the version of the database

    def __enter__(self) -> ExperimentView:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def experiment_id(self) -> str:
        """The experiment's id."""
        return self.folder.experiment_id

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    # ------------------------------------------------------------------ the experiment

    def experiment(self) -> StoredExperiment:
        """Return the row of the experiment."""
        return read_experiment(self.database)

    def summary(self) -> Summary:
        """Return its state."""
        with computed(self.database.path):
            return read_summary(self.database, self.folder)

    def check(self) -> None:
        """Read everything; raise `StoreError` for anything that cannot be understood."""
        self.summary()
        read_everything(self.database)

    def config(self) -> dict[str, Json]:
        """Return its configuration in the canonical form (camelCase keys, durations in seconds)."""
        return self.database.config()

    def objectives(self) -> list[Goal]:
        """Return what is optimised; the name of an objective is usually `default`."""
        return self.database.goals()

    def metric_names(self) -> list[str]:
        """Return the names of all metrics that are optimised or limited."""
        return [one.name for one in self.database.objectives()]

    def limits(self) -> dict[str, str]:
        """Return the limits of the metrics, in words, by name."""
        return limits_of(self.database)

    def main_objective(self) -> str:
        """Return the name of the objective that single-objective plug-ins optimise."""
        return self.database.main_objective()

    def best(self, count: int = 1, by: str | None = None) -> list[TrialRow]:
        """Return the best trials: the first `count` by one objective, the Pareto front by several, sorted by the first.

        With `by`, the first `count` of the front by an objective, or its `knee`; raise `QueryError` for an unknown one.
        """
        return read_best(self.database, count, by)

    def best_result(self) -> float | dict[str, float] | None:
        """Return the best result, None without one; of several objectives those of one trial, by name.

        It is the knee of the front, or else its best trial in the first objective.
        """
        with computed(self.database.path):
            names, front = [one.name for one in self.objectives()], self.best()
            trial = next(iter((self.best(1, "knee") if len(front) > 1 else []) or front), None)
        if trial is None or len(names) == 1:
            return None if trial is None else trial.values[names[0]]
        return {name: trial.values[name] for name in names}

    def repeats(self) -> int:
        """Return how often each configuration is run."""
        return self.database.repeats()

    def families(self, numbers: Sequence[int] | None = None) -> list[FamilyRow]:
        """Return the configurations that are run several times; with `numbers` only these."""
        return read_families(self.database, numbers)

    def family(self, trial: TrialRow) -> FamilyRow | None:
        """Return the family of a trial, as in `families`; None if its configuration runs once."""
        return read_family(self.database, trial)

    def closest_to_defaults(self) -> ClosestTrial | None:
        """Return the trial that changes the defaults least of the nearly equal ones, for `keep_close`; else None."""
        return read_closest_to_defaults(self.database)

    def front(self) -> ParetoFront:
        """Return the Pareto front."""
        return read_front(self.database)

    def marks(self) -> dict[str, dict[int, str]]:
        """Return the marks of trials (or families) in the columns that have some: `front`, `limits`."""
        names = marks_of(self.database.objectives())
        if not names:
            return {}
        front = self.front()
        on_front = {one: "knee" if one == front.knee else "yes" for one in front.trials}
        marks = {"front": on_front, "limits": dict.fromkeys(front.infeasible, "violated")}
        return {name: marks[name] for name in names}

    def history(self) -> list[HistoryEntry]:
        """Return every result in order of time, with the best so far."""
        with computed(self.database.path):
            return read_history(self.database)

    def ends(self) -> list[TrialEnd]:
        """Return the ends of all trials in order of time; with repeats those of the families that have a mean."""
        rows = chain.from_iterable(self.outline((), of_families=self.repeats() > 1))
        is_over = {status.value for status in TrialStatus if status.is_final}
        ends = [TrialEnd(*row) for row in rows if row[1] in is_over and row[2] is not None]
        return sorted(ends, key=lambda end: (end.time, end.sequence_id))

    def code_versions(self) -> list[CodeVersion]:
        """Return the versions of the code that trials ran, in the order in which they ran them."""
        return read_code_versions(self.database)

    def starts(self) -> list[ExperimentStart]:
        """Return where and from which commit the experiment was started, and each time resumed."""
        return read_starts(self.database)

    def failures(self) -> list[FailureGroup]:
        """Return the ways in which trials failed, the most frequent first."""
        return read_failures(self.database)

    def failure_regions(self) -> list[FailureRegion]:
        """Return the values of a parameter with which most trials fail, for each kind of failure that has them."""
        return read_failure_regions(self.database)

    def retries(self) -> dict[str, int]:
        """Return how many failed attempts were run again, by kind of failure."""
        return read_retries(self.database)

    def events(self, cursor: str | None = None, limit: int = 1000) -> EventPage:
        """Return what has happened since `cursor`, or the current cursor."""
        return self._feed.since(cursor, limit)

    # ------------------------------------------------------------------ trials

    def trials(self, query: TrialQuery | None = None) -> TrialPage:
        """Return a page of the table of trials; raise `QueryError`, also for a name that no column has."""
        query = with_fields(query or TrialQuery(), self.names, self.database)
        if query.asks_notes:
            query = replace(query, noted=Annotations(self.folder).all())
        if query.sort == "best":
            query = replace(query, front=read_front_trials(self.database))
        if {query.sort, *(condition.field for condition in query.conditions)} & {*MARKS}:
            query = replace(query, marks=self.marks())
        page = read_trials(self.database, query)
        if not page.total or query.may_find_all:
            for condition in query.conditions:
                self.names().check(condition.field, self.database)
                check_kind(condition, self.database)
        return page

    def check_query(self, query: TrialQuery) -> None:
        """Raise `QueryError` for a condition that cannot be asked; only `trials` finds those on what no trial has."""
        with_fields(query, self.names, self.database).where(self.main_objective())

    def family_page(self, query: TrialQuery) -> TrialPage:
        """Return a page of the table of families, which has no conditions; raise `QueryError`."""
        return read_family_page(self.database, with_fields(query, self.names, self.database))

    def names(self) -> FieldNames:
        """Return the names that users have for columns; of many trials some are read for those of metrics."""
        version = self.database.version()
        if self._names is None or self._names[0] != version:
            self._names = version, FieldNames.read(self.database)
        return self._names[1]

    def field(self, name: str) -> str:
        """Return the field of a query that a name means: a heading, a field, an objective, a parameter or a metric.

        Raise `QueryError` for a name that means nothing, with those that are near.
        """
        field = field_of(name, self.names(), self.database)
        self.names().check(field, self.database)
        return field

    def metric_values(self, rows: Sequence[TrialRow], names: Collection[str]) -> dict[int, dict[str, Json]]:
        """Return what each trial reported last under these names, by its number; of a family the means of numbers."""
        families = [row for row in rows if isinstance(row, FamilyRow)]
        numbers = [row.sequence_id for row in rows if not isinstance(row, FamilyRow)]
        values = read_metrics(self.database, numbers, names)
        return values | read_family_metrics(self.database, families, names)

    def all_metric_names(self) -> list[str]:
        """Return the names of all metrics: everything that was reported is read."""
        return read_all_metric_names(self.database)

    def numbered(self, numbers: Sequence[int]) -> list[TrialRow]:
        """Return the trials with these numbers, in this order, as in a page of the table."""
        return rows_by_number(self.database, numbers)

    def outline(
        self, metrics: Sequence[str], *, of_families: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield number, status, end and a value of each metric of all trials, or families, some hundred at a time."""
        return (read_family_outline if of_families else read_outline)(self.database, metrics)

    def portions(self) -> Iterator[list[TrialRow]]:
        """Yield all trials in order of their numbers, some hundred at a time: memory does not grow with them."""
        return read_portions(self.database)

    def details(self) -> Iterator[TrialDetail]:
        """Yield all about each trial, but for its earlier attempts, as `portions` does."""
        return read_details(self.database)

    def with_results(self) -> Iterator[tuple[TrialRow, dict[int, Json]]]:
        """Yield each trial, as `portions` does, and its intermediate results by their sequence numbers."""
        for portion in self.portions():
            numbers = [trial.sequence_id for trial in portion]
            results = read_results(self.database, numbers)
            yield from ((trial, results.get(trial.sequence_id, {})) for trial in portion)

    def trial(self, name: int | str) -> TrialDetail:
        """Return all about one trial, by its number or id; raise `LookupError` if there is none."""
        return read_trial(self.database, self.sequence_id(name))

    def sequence_id(self, name: int | str) -> int:
        """Return the number of a trial, by its number or id; raise `LookupError` if there is none."""
        return sequence_id_of(self.database, name)

    def matching(self, word: str) -> list[tuple[int, str]]:
        """Return number and id of the trials that a word may mean: a number, an id or the beginning of one."""
        return read_matching(self.database, word)

    def record(self, name: int | str) -> str:
        """Return the parameter record of a trial, exactly as the tuner made it."""
        return read_record(self.database, self.sequence_id(name))

    def exports(self, name: int | str) -> dict[str, str]:
        """Return what a trial exported at its end: paths by format, relative ones in the experiment's folder."""
        return read_exports(self.database, self.sequence_id(name))

    def schedule(self, name: int | str) -> Schedule:
        """Return with which parameters a trial was trained when; raise `LookupError` if there is no such trial.

        Where no trial has changed its parameters, that is a `NoScheduleError`.
        """
        (schedule,) = read_schedules(self.database, [self.sequence_id(name)])
        return schedule

    def parameter_changes(self, name: int | str) -> int:
        """Return how often the parameters of a trial changed while it was trained."""
        return self.schedule(name).changes if schedule_of(self.record(name)) else 0

    def has_schedules(self) -> bool:
        """Return whether a trial has continued with other parameters, or from another trial's checkpoint."""
        return has_schedules(self.database)

    def schedules(self, numbers: Sequence[int]) -> list[Schedule]:
        """Return the schedules of the trials with these numbers; none where no trial has changed its parameters."""
        return read_schedules(self.database, numbers) if self.has_schedules() else []

    def metrics(self, name: int | str, cursor: str | None = None, limit: int = 10_000) -> NewResults:
        """Return the intermediate results of a trial since a cursor, as they were reported."""
        return read_new_results(self.database, self.sequence_id(name), cursor, limit)

    def results_of(self, numbers: Sequence[int]) -> dict[int, dict[int, Json]]:
        """Return the intermediate results of many trials, by the trial's number and by their own."""
        return read_results(self.database, numbers)

    def reports_of(self, numbers: Sequence[int]) -> dict[int, list[tuple[int, float, Json]]]:
        """Return sequence number, time and value of the intermediate results of many trials, by the trial's number."""
        return read_reports(self.database, numbers)

    def curve(self, name: int | str, metric: str = "default", points: int | None = None) -> Curve:
        """Return one metric of a trial's intermediate results, thinned out to about `points` results."""
        return read_curve(self.database, self.sequence_id(name), metric, points)

    def curves(
        self, sequence_ids: Sequence[int], metric: str = "default", points: int | None = 100
    ) -> list[Curve]:
        """Return one metric of many trials, by their numbers, thinned out to about `points` results each."""
        return read_curves(self.database, sequence_ids, metric, points)

    def latest(self, sequence_ids: Sequence[int], sequence: int | None = None) -> dict[int, dict[str, float]]:
        """Return the numbers that trials reported last, or with `sequence` in that result, by trial and name."""
        return read_latest(self.database, sequence_ids, sequence)

    def step(self, sequence: int, metric: str = "default") -> dict[int, float]:
        """Return one metric of the intermediate results number `sequence`, by the number of the trial."""
        return read_step(self.database, sequence, metric)

    # ------------------------------------------------------------------ logs

    def logs(self) -> list[LogFile]:
        """Return the logs of the manager, the dispatcher and the agents."""
        return list_files(self.folder.logs)

    def log(self, name: str, follow: Follow | None = None) -> FilePiece:
        """Return a piece of one of the logs; raise `NoSuchFile`, a `LookupError`."""
        return _read(safe_path(self.folder.logs, name), follow)

    def trial_logs(self, name: int | str) -> list[LogFile]:
        """Return the files with the output and the parameters of a trial, those that exist."""
        found = list_files(self.folder.trial(self.sequence_id(name)))
        return [file for file in found if _TRIAL_FILES.fullmatch(file.name)]

    def outputs(self, name: int | str) -> list[LogFile]:
        """Return the files that a trial wrote into its folder, without spools, parameters and its last output."""
        trial = self.trial(name)
        own = {"parameters.json", *(output_name(stream, trial.attempt) for stream in ("stdout", "stderr"))}
        found = list_files(self.folder.trial(trial.sequence_id))
        return [file for file in found if file.name not in own and not _SPOOL.fullmatch(file.name)]

    def output(self, name: int | str, file: str) -> Path:
        """Return the path of a file that a trial wrote into its folder; raise `NoSuchFile`, a `LookupError`."""
        return safe_path(self.folder.trial(self.sequence_id(name)), file)

    def trial_log(self, name: int | str, file: str = "stdout", follow: Follow | None = None) -> FilePiece:
        """Return a piece of what a trial printed, in its second attempt `stdout-2`; raise `NoSuchFile`."""
        if not _TRIAL_FILES.fullmatch(file):
            names = "stdout, stderr, parameters.json, and stdout-2 of a second attempt"
            raise NoSuchFile(f"trials have no file '{file[:100]}'; they may have: {names}")
        return _read(safe_path(self.folder.trial(self.sequence_id(name)), file), follow)


def _read(path: Path, follow: Follow | None) -> FilePiece:
    follow = follow or Follow()
    if follow.lines is not None:
        return read_tail(path, follow.lines)
    return read_piece(path, follow.offset, follow.limit)
