"""The story of the code that made the results: what changed during a search, and from which commit it was started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..store.reading import (
    CodeVersion,
    Condition,
    ExperimentStart,
    ExperimentView,
    Summary,
    TrialQuery,
    TrialRow,
)
from .trial_story import value_text, violation_text, who_text

_MIXED = "results before and after may not be comparable"
_MOST_CHANGES = 3


def code_note(versions: Sequence[CodeVersion]) -> str:
    """Say from which trial on the code was another; empty if all trials ran the same.

    >>> def version(number, first, *changed):
    ...     return CodeVersion(
    ...         number=number, first_trial=first, trials=1, changed=changed, files={}, packages={}, digests=frozenset()
    ...     )
    >>> code_note([version(1, 0), version(2, 9, "train.py")])
    'the code changed: train.py from trial 9 on; results before and after may not be comparable'
    >>> code_note([version(1, 0)])
    ''
    """
    changes = code_changes(versions)
    return f"the code changed: {_listed([*changes.values()])}; {_MIXED}" if changes else ""


def code_note_of(view: ExperimentView, summary: Summary) -> str:
    """Return `code_note` with the best trial of the current code, where the best one ran older code."""
    versions = view.code_versions()
    note, current = code_note(versions), versions[-1].digests if versions else frozenset()
    # With repeats a mean would be compared with single runs; a front has no best.
    if not note or len(summary.best) != 1 or view.repeats() > 1 or summary.best[0].code in current:
        return note
    best = _best_of(view, current, summary)
    within = " within the limits" if summary.outcome_limits else ""
    found = f"no trial of the current code has succeeded{within}"
    if best is not None:
        result = value_text(best, summary.objectives[0].name)
        found = f"the best of the current code is {who_text(best)} with {result}"
    return f"{note}; {who_text(summary.best[0])}, the best, ran older code: {found}"


def _best_of(view: ExperimentView, digests: Iterable[str], summary: Summary) -> TrialRow | None:
    """Return the best trial that ran code with one of these digests; None if none succeeded and keeps the limits."""
    queries = [
        TrialQuery(
            statuses=("SUCCEEDED",), conditions=(Condition("code", "=", digest),), sort="best", limit=1
        )
        for digest in digests
    ]
    goal = summary.objectives[0]
    found = [trial for query in queries for trial in view.trials(query).trials if goal.name in trial.values]
    kept = [trial for trial in found if not violation_text(trial.values, summary.outcome_limits)]
    sign = -1.0 if goal.direction == "maximize" else 1.0
    return min(kept, key=lambda trial: sign * trial.values[goal.name], default=None)


def code_changes(versions: Sequence[CodeVersion]) -> dict[int, str]:
    """Return what changed in the code, by the first trial that ran the other one."""
    return {
        one.first_trial: f"{_listed(one.changed)} from trial {one.first_trial} on" for one in versions[1:]
    }


def changed_since_text(files: Sequence[str]) -> str:
    """Say before a resume that the code is not what the last trials ran.

    >>> changed_since_text(["train.py", "model.py"])
    'train.py and model.py changed since the last trial: results before and after may not be comparable'
    """
    return f"{_listed(files)} changed since the last trial: {_MIXED}"


def start_lines(start: ExperimentStart) -> Iterator[tuple[str, str]]:
    """Yield names with texts about a start: the machine, and the commit.

    >>> start = ExperimentStart(time=0.0, host="ada", python="3.11.2", system="Linux", commit="0" * 40, changed=2)
    >>> dict(start_lines(start))["Commit"]
    '000000000000, 2 files changed'
    """
    yield "Host", start.host
    yield "System", start.system
    yield "Python", start.python
    yield "Pitchpipe", start.pitchpipe
    yield "GPUs", "; ".join(start.gpus)
    if start.commit is not None:
        changed = {None: "", 0: "", 1: ", 1 file changed"}.get(
            start.changed, f", {start.changed} files changed"
        )
        branch = f" ({start.branch})" if start.branch else ""
        yield "Commit", f"{start.commit[:12]}{branch}{changed}"


def _listed(names: Sequence[str]) -> str:
    """Return some names in one phrase.

    >>> _listed(["a.py"]), _listed(["a.py", "b.py"]), _listed(["a", "b", "c", "d", "e"])
    ('a.py', 'a.py and b.py', 'a, b, c and 2 more')
    """
    more = len(names) - _MOST_CHANGES
    *first, last = [*names[:_MOST_CHANGES], *([f"{more} more"] if more > 0 else [])]
    return f"{', '.join(first)} and {last}" if first else last
