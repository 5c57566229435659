"""Lets a tuner pause, resume and stop existing trials, by sending frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..protocol import CommandType, dumps
from ..tuners import TrialControl


class DispatcherControl(TrialControl):
    """A `TrialControl` that sends to the manager.

    `send(command, payload)` sends with the command being handled; `is_peer()` says whether the manager knows
    Pitchpipe's own commands; `changed(trial_job_id, parameters)` is called with new parameters. Every frame is
    marked as the tuner's, because verdicts of the assessor come from another queue.
    """

    def __init__(
        self,
        send: Callable[[CommandType, str], None],
        is_peer: Callable[[], bool],
        changed: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._send, self._is_peer, self._changed = send, is_peer, changed

    def pause(self, trial_job_id: str, reason: str) -> None:
        """Send Pause; raise RuntimeError if the manager does not know it."""
        self._require_peer("pause")
        self._verdict(CommandType.Pause, trial_job_id, reason)

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Any] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Send Resume; raise RuntimeError if the manager does not know it."""
        self._require_peer("resume")
        payload = {
            "trial_job_id": trial_job_id,
            "parameters": parameters,
            "checkpoint_of": checkpoint_of,
            "budget": budget,
            **({"pauses_at_budget": True} if pauses_at_budget else {}),
        }
        self._send(CommandType.Resume, dumps(payload))
        if parameters is not None:
            self._changed(trial_job_id, parameters)

    def stop(self, trial_job_id: str, reason: str) -> None:
        """Send KillTrialJob."""
        if self._is_peer():
            self._verdict(CommandType.KillTrialJob, trial_job_id, reason)
        else:
            self._send(CommandType.KillTrialJob, dumps(trial_job_id))

    def _verdict(self, command: CommandType, trial_job_id: str, reason: str) -> None:
        self._send(command, dumps({"trial_job_id": trial_job_id, "reason": reason, "by": "tuner"}))

    def _require_peer(self, what: str) -> None:
        if not self._is_peer():
            raise RuntimeError(f"this manager cannot {what} trials")
