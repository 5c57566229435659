"""What has to be said first about an experiment: that it failed, lost its manager, ended early, or cannot go on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...store.reading import TrialQuery
from .frame import shown_status

if TYPE_CHECKING:
    from ...store.reading import ExperimentView

__all__ = ["Notice", "notices_of"]

_PATIENCE = 2.0
# So many seconds may pass between the parameters of a trial and its start without a word.
_USUAL_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence, the traceback that belongs to it, and whether it is bad."""

    text: str
    error: str = ""
    is_bad: bool = False


def notices_of(summary: dict[str, Any], view: ExperimentView) -> list[Notice]:
    """The notices about an experiment, the worst first; a running one is asked what troubles it."""
    status, reason = summary["status"], summary["reason"]
    if shown_status(summary) == "ABANDONED":
        return [
            Notice(
                "The manager of this experiment is gone, perhaps killed. Trials may go on for a while; "
                f"pitchpipe resume {summary['id']} goes on with it.",
                is_bad=True,
            )
        ]
    if status == "ERROR":
        return [
            Notice(
                f"The experiment failed: {reason or 'no reason was given'}.", summary["error"], is_bad=True
            )
        ]
    found = [Notice(trouble) for trouble in _troubles(summary, view)]
    if reason and status != "RUNNING":
        found.append(Notice(f"It ended early: {reason}."))
    return found


def _troubles(summary: dict[str, Any], view: ExperimentView) -> list[str]:
    """What the manager of a running experiment complains of, and why nothing runs, if so."""
    from ...manager.control import ControlError, ask_manager

    if not summary["is_running"]:
        return []
    try:
        told = ask_manager(view.folder.path, {"op": "status"}, timeout=_PATIENCE)
    except ControlError as error:
        return [f"What follows may be old: {error}."]
    troubles: list[str] = [*told.get("troubles", ())]
    reasons: dict[str, str] = told.get("waiting", {})
    first = view.trials(TrialQuery(statuses=("WAITING",), limit=1)).trials
    if first and not summary["counts"].get("RUNNING") and time.time() - first[0]["created"] > _USUAL_WAIT:
        troubles.append(f"Nothing runs: {reasons.get(first[0]['trial_id']) or 'a trial waits to be started'}")
    return troubles
