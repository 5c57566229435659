"""Experiments as a manager would have left them: made through the store, in a moment, without running anything."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pitchpipe.config import ExperimentConfig
from pitchpipe.protocol import with_schedule
from pitchpipe.runner.effects import AttemptRow, Changes, MetricRow
from pitchpipe.runner.trial import FailureKind, Trial, TrialStatus
from pitchpipe.store import ExperimentRow, Store, StoreTick
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import FamilyRow, Goal, Summary, TrialRow, database
from pitchpipe.store.reading.read_model import Repeats

SPACE = {"lr": {"_type": "uniform", "_value": [0, 1]}, "units": {"_type": "choice", "_value": [16, 32]}}


def a_config(**fields: Any) -> ExperimentConfig:
    data = {
        "search_space": SPACE,
        "training_service": {"platform": "local"},
        "trial_command": "true",
        "seed": 1,
    }
    return ExperimentConfig.from_dict({**data, **fields})


class MadeExperiment:
    """An experiment's folder with a store that a test fills."""

    def __init__(
        self,
        path: Path,
        config: ExperimentConfig | Mapping[str, Any] | None = None,
        status: str = "RUNNING",
        name: str | None = "a name",
        more: Mapping[str, Any] | None = None,
        created: float = 100.0,
    ) -> None:
        path.mkdir(parents=True)
        (path / "logs").mkdir()
        self.folder = ExperimentFolder(path)
        self.status = status
        canonical = config if isinstance(config, Mapping) else (config or a_config()).canonical()
        row = ExperimentRow(
            id=path.name,
            name=name,
            status=status,
            config={**canonical, **(more or {})},
            token="secret",
            created=created,
        )
        names = tuple(objective["name"] for objective in row.config["objectives"])
        self.store = Store.create(self.folder.database, row, names)
        # Not every test closes it, and Python 3.13 warns of a connection that is left open.
        weakref.finalize(self, self.store._db.close)

    def commit(
        self,
        *trials: Trial,
        metrics: Sequence[MetricRow] = (),
        superseded: Sequence[tuple[int, int, int]] = (),
        attempts: Sequence[AttemptRow] = (),
        **values: Any,
    ) -> None:
        changed = Changes(
            trials={trial.trial_id: trial for trial in trials},
            metrics=list(metrics),
            attempts=list(attempts),
            superseded=list(superseded),
        )
        self.store.commit(StoreTick(changes=changed, **{"status": self.status, **values}))


def a_trial(number: int, status: str = "SUCCEEDED", value: float | None = None, **fields: Any) -> Trial:
    """Return a trial that began at second 100 + number; its learning rate is number / 10."""
    parameters = fields.pop("parameters", {"lr": number / 10, "units": 16})
    source = fields.pop("source", "algorithm")
    record = json.dumps({"parameter_id": number, "parameter_source": source, "parameters": parameters})
    is_over = status not in ("WAITING", "RUNNING", "PAUSED")
    times = {"start_time": 100.0 + number, "end_time": 110.0 + number if is_over else None}
    if value is not None:
        times |= {"final": json.dumps(value), "values": (value,), "finals": 1}
    kind = FailureKind.USER_ERROR if status == "FAILED" else None
    made = {"attempt": 1, "kind": kind, "created": 100.0, **times, **fields}
    return Trial(
        trial_id=f"T{number:04}",
        sequence_id=number,
        parameter_id=number,
        record=record,
        created=made.pop("created"),
        status=TrialStatus(status),
        **made,
    )


def scheduled(trial: Trial, *steps: Mapping[str, Any]) -> Trial:
    """Let a trial have these steps in its record, which say what it trained with; return it."""
    trial.record = with_schedule(trial.record, steps)  # type: ignore[arg-type]
    return trial


def results(trial: Trial, values: Sequence[Any], first: int = 0, attempt: int = 1) -> list[MetricRow]:
    """Intermediate results of a trial, which knows of them afterwards."""
    trial.next_sequence = first + len(values)
    return [
        MetricRow(
            trial=trial,
            attempt=attempt,
            kind="PERIODICAL",
            sequence=first + number,
            value=json.dumps(value),
            time=101.0 + number,
        )
        for number, value in enumerate(values)
    ]


def a_row(number: int, values: Mapping[str, float] | None = None, **fields: Any) -> TrialRow:
    """Return a trial with these results, or with `repeats` a family, as the read model has it."""
    values = dict(values or {})
    usual: dict[str, Any] = {
        "trial_id": f"T{number:04}",
        "status": "SUCCEEDED",
        "created": 100.0,
        "start_time": 100.0,
        "end_time": 110.0,
        "final": None,
        "reason": "",
        "kind": None,
        "exit_code": None,
        "attempt": 1,
        "agent": None,
        "parameters": {},
        "parameter_source": "algorithm",
        "family": None,
        "repeat": None,
        "seed": None,
        "family_end": None,
        "value": next(iter(values.values()), None),
        "intermediate_results": 0,
        "duration": 10.0,
        "last": None,
    }
    kind = FamilyRow if "repeats" in fields else TrialRow
    return kind(**{**usual, "sequence_id": number, "values": values, **fields})


def some_repeats(count: int, of: int, **fields: Any) -> Repeats:
    """Return the repeats of a family, of which `count` succeeded."""
    return Repeats(
        **{"trials": [*range(of)], "count": count, "of": of, "interval": {}, "end": None, **fields}
    )


def a_summary(*best: Any, defaults: Any = None, **fields: Any) -> Summary:
    """Return the summary of an experiment that is DONE, whose `default` is minimised."""
    usual: dict[str, Any] = {
        "id": "made1234",
        "name": None,
        "status": "DONE",
        "reason": "",
        "error": "",
        "created": 100.0,
        "end_time": 200.0,
        "run_time": 100.0,
        "folder": "made1234",
        "is_running": False,
        "is_search": False,
        "has_program": None,
        "counts": {},
        "trials": 0,
        "intermediate_results": 0,
        "trials_per_minute": 0.0,
        "results_per_minute": 0.0,
        "limits": {},
        "objectives": [Goal("default", "minimize")],
        "outcome_limits": {},
        "best_intermediate": None,
        "closest": None,
        "remaining": None,
    }
    return Summary(**{**usual, "best": list(best), "defaults": defaults, **fields})


@contextmanager
def counted_steps(statements: list[str] | None = None) -> Iterator[list[int]]:
    """Count what readers cost that open a database meanwhile: an item for each 100 steps of SQLite.

    `statements` receives what they ask.
    """
    steps: list[int] = []

    def opened(*args: Any, **options: Any) -> Any:
        connection = open_to_read(*args, **options)
        connection.set_progress_handler(lambda: steps.append(100), 100)
        if statements is not None:
            connection.set_trace_callback(statements.append)
        return connection

    open_to_read = database.open_to_read
    with mock.patch.object(database, "open_to_read", opened):
        yield steps
