"""The most important facts about an experiment: that it failed, lost its manager, ended early, or is blocked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...manager.control import ControlError, ask_manager
from ...store.reading import ExperimentView, Summary, TrialQuery

__all__ = ["Notice", "notices_of"]

_PATIENCE = 2.0
# A trial that waits this many seconds for its start is normal.
_USUAL_WAIT = 5.0
# What comes before the reason of an experiment that is not running; one that is stopped may have been extended.
_LEADS = {"VIEWED": "This is ", "STOPPED": "It is stopped: "}


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence, its traceback, whether it is bad, and whether resuming the experiment is what to do."""

    text: str
    error: str = ""
    is_bad: bool = False
    resumes: bool = False


def notices_of(summary: Summary, view: ExperimentView, health: Sequence[str] = ()) -> list[Notice]:
    """Return the notices about an experiment, the worst first; a running manager is asked for its warnings.

    `health` are the notes on how the search went.
    """
    status, reason = summary.status, summary.reason
    if summary.is_abandoned:
        return [
            Notice(
                "The manager of this experiment is gone, perhaps killed. Trials may continue for a while.",
                is_bad=True,
                resumes=True,
            )
        ]
    if status == "ERROR":
        return [
            Notice(
                f"The experiment failed: {reason or 'no reason was given'}. Once the cause is mended, resume it.",
                summary.error,
                is_bad=True,
                resumes=True,
            )
        ]
    found = [Notice(warning) for warning in _warnings(summary, view)]
    found += [Notice(f"{region[0].upper()}{region[1:]}.") for region in view.failure_regions()]
    if reason and status != "RUNNING":
        found.append(Notice(f"{_LEADS.get(status, 'It ended early: ')}{reason}."))
    return [*found, *(Notice(f"Note: {note}.") for note in health)]


def _warnings(summary: Summary, view: ExperimentView) -> list[str]:
    """Return the warnings of a running experiment's manager, and why nothing runs."""
    if not summary.is_running:
        return []
    try:
        state = ask_manager(view.folder.path, {"op": "status"}, timeout=_PATIENCE)
    except ControlError as error:
        return [f"This page may be out of date: {error}."]
    warnings: list[str] = [*state.get("warnings", ())]
    reasons: dict[str, str] = state.get("waiting", {})
    first = view.trials(TrialQuery(statuses=("WAITING",), limit=1)).trials
    if first and not summary.counts.get("RUNNING") and time.time() - first[0].created > _USUAL_WAIT:
        warnings.append(
            f"Nothing is running: {reasons.get(first[0].trial_id) or 'a trial waits to be started'}"
        )
    return warnings
