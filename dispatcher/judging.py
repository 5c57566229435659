"""The assessor's half of a dispatcher: the histories of running trials, and at most one verdict against each."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

from ..protocol import CommandType, JsonError, VerdictMessage, counted, dumps, loads, with_default
from .checkpointing import Checkpointed
from .errors import PluginFailed
from .plugin import Plugin

_log = logging.getLogger(__name__)


class AssessorHalf(Checkpointed):
    """Lets an assessor judge trials; its methods run on the assessor worker only."""

    KEPT: ClassVar = ("_histories", "_stopped", "_ended")

    def __init__(
        self,
        assessor: Any,
        send: Callable[[CommandType, str], None],
        objective: str = "default",
        *,
        peer: bool = False,
    ) -> None:
        self.plugin = Plugin("assessor", assessor)
        self.peer = peer  # the manager knows Pitchpipe's own commands
        self._send = send
        self._objective = objective
        self._histories: dict[str, TrialHistory] = {}
        self._stopped: set[str] = set()  # each gets one verdict, however many results follow
        self._ended = RecentIds()

    def metric(self, trial_job_id: str, sequence: int, value: str, *, is_spared: bool = False) -> None:
        """Take an intermediate result (JSON text); judge the trial if its history grew.

        The assessor learns from a trial that `is_spared`, like the others, but cannot end it.
        """
        if trial_job_id in self._stopped or trial_job_id in self._ended:
            return
        try:
            decoded = with_default(loads(value), self._objective)
        except JsonError as error:
            _log.warning("A result of trial %s is dropped: %s", trial_job_id, error)
            return
        history = self._histories.get(trial_job_id)
        if history is None:
            # A peer sends them in order; the first of a trial that started from a checkpoint is not number 0.
            history = self._histories[trial_job_id] = TrialHistory(sequence if self.peer else 0)
        if history.add(sequence, decoded):
            self._judge(trial_job_id, history, is_spared=is_spared)

    def final(self, trial_job_id: str, value: str) -> None:
        """Take a final result (JSON text) for an assessor that wants it; the tuner's half warns if it is not JSON."""
        if trial_job_id not in self._histories:
            return
        try:
            decoded = with_default(loads(value), self._objective)
        except JsonError:
            return
        self.plugin.call("receive_trial_result", trial_job_id, decoded)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Take the end of a trial; call the assessor if the trial had reported anything."""
        self._ended.add(trial_job_id)
        self._stopped.discard(trial_job_id)
        if self._histories.pop(trial_job_id, None) is not None:
            self.plugin.call("trial_end", trial_job_id, success)

    def _judge(self, trial_job_id: str, history: TrialHistory, *, is_spared: bool) -> None:
        self._forget_reason()
        # A copy, because assessors may keep or change it.
        verdict = _plain(self.plugin.call("assess_trial", trial_job_id, history.values.copy()))
        if verdict is True:
            return
        if verdict is False:
            if is_spared:
                reason = self._reason(CommandType.KillTrialJob, history)
                _log.info("Trial %s continues, as it is that of the defaults: %s", trial_job_id, reason)
                return
            self._stopped.add(trial_job_id)
            self._send_verdict(CommandType.KillTrialJob, trial_job_id, history)
        elif verdict == "pause" and self.peer:
            # Not remembered, so that the trial is judged again once it is resumed.
            self._send_verdict(CommandType.Pause, trial_job_id, history)
        elif verdict == "pause":
            _log.warning("Trial %s continues: this manager cannot pause it", trial_job_id)
        else:
            raise self.plugin.invalid("assess_trial", verdict, "neither an AssessResult nor a bool")

    def _send_verdict(self, command: CommandType, trial_job_id: str, history: TrialHistory) -> None:
        reason = self._reason(command, history)
        _log.info("%s %s: %s", command.name, trial_job_id, reason)
        payload = VerdictMessage(trial_job_id=trial_job_id, reason=reason) if self.peer else trial_job_id
        self._send(command, dumps(payload))

    def _reason(self, command: CommandType, history: TrialHistory) -> str:
        given = self._reason_of_plugin("__getattribute__", "reason")
        if given:
            return str(given)
        verdict = "bad" if command is CommandType.KillTrialJob else "to be paused"
        results = counted(len(history.values), "result")
        return f"{type(self.plugin.instance).__name__} found it {verdict} after {results}"

    def _forget_reason(self) -> None:
        """Unset `reason`: an earlier one is of another verdict."""
        try:
            self.plugin.instance.reason = None  # for every result, and twice as fast as the guarded call
        except BaseException:  # noqa: BLE001 - the guarded call names the plug-in
            self._reason_of_plugin("__setattr__", "reason", None)

    def _reason_of_plugin(self, method: str, *args: Any) -> Any:
        """Set or get `reason`; ignore that a class has no such attribute, or computes it."""
        try:
            return self.plugin.call(method, *args)
        except PluginFailed as failed:
            if not isinstance(failed.__cause__, AttributeError):
                raise
            return None


def _plain(verdict: Any) -> Any:
    """Return a verdict as True, False or "pause", and anything else unchanged."""
    if isinstance(verdict, Enum):
        verdict = verdict.value
    if verdict is True:
        return True
    if getattr(getattr(verdict, "dtype", None), "kind", "") == "b" and verdict.shape == ():
        return bool(verdict)  # a numpy bool, which comparisons of numpy numbers return
    return verdict


class TrialHistory:
    """The intermediate results of one trial, in the order of their sequence numbers, which begin with `first`.

    >>> history = TrialHistory()
    >>> history.add(0, 0.1), history.add(2, 0.3), history.values
    (True, False, [0.1])
    >>> history.add(1, 0.2), history.values
    (True, [0.1, 0.2, 0.3])
    """

    __slots__ = ("_early", "_first", "values")

    def __init__(self, first: int = 0) -> None:
        self.values: list[Any] = []
        self._first = first
        self._early: dict[int, Any] = {}  # arrived before an earlier one

    def add(self, sequence: int, value: Any) -> bool:
        """Take a result and return whether `values` grew; a repeated result changes nothing."""
        values = self.values
        sequence -= self._first
        if sequence != len(values):
            if sequence > len(values):
                self._early.setdefault(sequence, value)
            return False
        values.append(value)
        while self._early and len(values) in self._early:
            values.append(self._early.pop(len(values)))
        return True


class RecentIds:
    """The ids that were added last, at most `limit`.

    >>> recent = RecentIds(2)
    >>> for name in "abc":
    ...     recent.add(name)
    >>> "a" in recent, "b" in recent, "c" in recent
    (False, True, True)
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._ids: dict[Any, None] = {}

    def __contains__(self, item: Any) -> bool:
        return item in self._ids

    def add(self, item: Any) -> None:
        """Add an id; forget the oldest one beyond the limit."""
        self._ids[item] = None
        if len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]
