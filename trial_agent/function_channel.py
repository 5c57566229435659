"""Where the SDK's functions send results inside a function trial: first to the shared spool, then to the manager."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import orjson

from ..protocol import Parameters
from ..sdk import (
    OWN_PROCESS,
    LineFile,
    NoRunningTrial,
    TrialStopped,
    metric_text,
    own_calls,
    parameters_of,
    save_folder,
)
from .agent_events import Ended, Outbox, ReportKind
from .checkpoint_store import CheckpointStore
from .disk import sync_tree
from .job import Job
from .spool import Interpreter


class FunctionChannel:
    """One attempt's channel to the manager; its functions may be called from any thread of this process.

    `stopped` and `pausing` are set from outside. A stop is raised at the next call. A pause lets one more report
    through, because a checkpoint should follow it, and is raised after that checkpoint, or at the next report.
    A call waits while the outbox is full, so that a function that reports in a tight loop fills neither memory nor disk
    while the manager acknowledges nothing; the first final result never waits.
    """

    def __init__(
        self, job: Job, spool: LineFile, outbox: Outbox, clock: Callable[[], float] = time.time
    ) -> None:
        self.experiment_id = job.run.experiment
        self.trial_id = job.trial
        self.sequence_id = job.sequence_id
        self.checkpoint = job.checkpoint
        self.budget = job.budget
        self.seed = job.seed
        self.stopped = False
        self.pausing = False
        self._is_over = False
        self._job = job
        mark = f'"mark": "{job.mark}", ' if job.mark else ""
        self._who = f'{{"trial": {metric_text(job.trial)}, "attempt": {job.attempt}, {mark}'
        self._interpreter = Interpreter(
            job.trial, job.attempt, job.first_sequence, job.mark, metric=job.keep.metric
        )
        self._checkpoints: CheckpointStore | None = None
        self._spool = spool
        self._outbox = outbox
        self._clock = clock
        self._lock = threading.Lock()  # keeps the order in the file that of the numbers
        self._pid = os.getpid()
        self._last_report = False  # the one that a pause lets through

    def parameters(self) -> Parameters:
        """Return the trial's parameters, a new dict each time."""
        return parameters_of(self._job.parameters)

    def report(self, kind: ReportKind, value: str) -> None:
        """Write one result to the spool and send it; raise TrialStopped if the trial was stopped or paused."""
        self._check_open()
        if self._outbox.is_full and (kind == "intermediate" or self.has_final):
            self._wait_for_room()
            self._check_open()
        if self.pausing and kind == "intermediate":
            if self._last_report and not self.has_final:
                raise TrialStopped
            self._last_report = True
        now = self._clock()
        with self._lock:
            self._check_running()
            self._append(f'"{kind}": {value}, "time": {now!r}')
            self._outbox.put(self._interpreter.report(kind, value, now), urgent=False)

    def save(self, fill: Callable[[str], object]) -> None:
        """Make a checkpoint and report it; raise TrialStopped if the trial was stopped or is paused."""
        self.save_at_end(fill)
        if self.pausing and not self.has_final:
            raise TrialStopped

    def save_at_end(self, fill: Callable[[str], object]) -> None:
        """Make a checkpoint of a trial for which a pause comes too late."""
        self._check_open()
        self._wait_for_room()
        self._check_open()
        job = self._job
        name = save_folder(job.checkpoint_folder, job.attempt, fill)
        if name is None:
            return
        if job.run.synced:  # before its name is in the spool
            with own_calls():
                sync_tree(os.path.join(job.checkpoint_folder, name), job.run.folder)
        now = self._clock()
        with self._lock:
            self._check_running()
            if self._checkpoints is None:
                self._checkpoints = job.checkpoints()
            event = self._interpreter.checkpoint(name, now)
            self._append(f'"checkpoint": "{name}", "sequence": {event.sequence}, "time": {now!r}')
            outbox = self._outbox
            outbox.put(self._checkpoints.admit(event), urgent=False)
            self._checkpoints.prune(outbox.last, outbox.confirmed, outbox.sent)

    def close(self) -> None:
        """Take nothing more: the attempt is over, whatever its threads still do."""
        with self._lock:
            self._is_over = True
        if self._outbox.is_full:
            self._outbox.stir()  # a thread may wait for room there

    def record_new_beginning(self) -> None:
        """Write to the spool that what it holds of this attempt so far does not count."""
        self._append('"began_again": true')

    def record_end(self, ended: Ended) -> None:
        """Write to the spool how the attempt ended."""
        self._append(f'"ended": {orjson.dumps(ended.outcome()).decode()}')

    @property
    def has_final(self) -> bool:
        """Whether a final result was reported."""
        return self._interpreter.reported("final")

    @property
    def last_report(self) -> str | None:
        """The result that was reported last, as JSON text; None if there is none."""
        return self._interpreter.last

    def _wait_for_room(self) -> None:
        self._outbox.wait_for_room(lambda: self.stopped or self._is_over)

    def _check_open(self) -> None:
        if os.getpid() != self._pid:  # first: here, a lock may be one that no thread will release
            raise NoRunningTrial(OWN_PROCESS)
        self._check_running()
        if self.stopped:
            raise TrialStopped

    def _check_running(self) -> None:
        if self._is_over:
            hint = "a function must wait for its threads before it returns"
            raise NoRunningTrial(f"trial {self.trial_id} is over: {hint}")

    def _append(self, fields: str) -> None:
        self._spool.append(f"{self._who}{fields}}}")
        if self._job.run.synced:
            self._spool.sync()
