"""The explanation of a trial: why it ended, in a sentence with its numbers, and the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..store import ExperimentFolder
from ..store.reading import ExperimentView, TrialDetail
from .failed_trials import ending_beside, hint_text
from .words import (
    duration_text,
    moment_text,
    number_text,
    reason_text,
    repeat_text,
    repeats_text,
    result_text,
    values_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The state or end of a trial: a heading, a sentence, further notes, and its traceback."""

    title: str
    sentence: str
    notes: tuple[str, ...] = ()
    error: str = ""
    is_bad: bool = False


def ending_of(
    trial: TrialDetail, view: ExperimentView, why_waiting: Callable[[ExperimentFolder, str], str]
) -> Ending:
    """Describe the state or end of a trial; `why_waiting` asks the manager, who alone knows."""
    status, reason = trial.status, trial.reason
    if status == "FAILED":
        return _failed(trial, _family_of(trial, view))
    if status == "SUCCEEDED":
        notes = [*([reason] if reason else []), *_family_of(trial, view), *_place_of(trial, view)]
        return Ending(title="It succeeded", sentence=_success(trial, view), notes=tuple(notes))
    if status == "EARLY_STOPPED":
        return Ending(
            title="It was stopped early",
            sentence=reason or "The assessor stopped it.",
            notes=_last_result(trial),
        )
    if status == "WAITING":
        return Ending(title="It is waiting", sentence=_as_sentence(why_waiting(view.folder, trial.trial_id)))
    if status == "RUNNING":
        return Ending(
            title="It is running",
            sentence=f"It has reported {_counted(trial.intermediate_results)} so far.",
            notes=_last_result(trial),
        )
    if status == "PAUSED":
        return Ending(title="It is paused", sentence=reason or "The tuner will resume it.")
    if status == "USER_CANCELED":
        return Ending(title="You killed it", sentence=reason or "It was killed on request.")
    return Ending(title="It was cancelled", sentence=reason or "The experiment ended first.")


def _success(trial: TrialDetail, view: ExperimentView) -> str:
    """Return a sentence with the result, or the value of each of several metrics, and its rank."""
    names = view.metric_names()
    if len(names) > 1 and all(name in trial.values for name in names):
        found = f"results are {values_text(trial, names)}"
    else:
        found = f"result is {'' if trial.final is None else _result(trial.final)}"
    rank = _rank_text(trial.sequence_id, view, "") if trial.family is None else ""
    return f"Its {found}: {rank}." if rank else f"Its {found}."


def _family_of(trial: TrialDetail, view: ExperimentView) -> Iterator[str]:
    """Say of which family a repeat is, and what its mean is worth: only means are compared."""
    family = view.family(trial)
    if family is None:
        return
    names = [name for name in view.metric_names() if name in family.values]
    number = family.sequence_id
    rank = _rank_text(number, view, " families")
    means = f"{repeats_text(family)} {values_text(family, names)}" if names else "which has no mean yet"
    placed = ", ".join(filter(None, (f"It is repeat {trial.repeat} of family {number}", means, rank)))
    reason = reason_text(family, view.summary().outcome_limits)
    yield f"{placed}; {reason}." if reason else f"{placed}."


def _place_of(trial: TrialDetail, view: ExperimentView) -> Iterator[str]:
    """Say whether a trial is on the front of several objectives, or which of the front dominate it; so of a family."""
    signs = {one.name: -1.0 if one.direction == "maximize" else 1.0 for one in view.objectives()}
    family = view.family(trial)
    own = family or trial
    if len(signs) < 2 or any(name not in own.values for name in signs):
        return
    it, one_of, all_of = ("It", "trial", "trials") if family is None else ("Its family", "family", "families")
    front = view.best()
    if any(one.sequence_id == own.sequence_id for one in front):
        counted = f"{len(front)} {one_of if len(front) == 1 else all_of}"
        yield f"{it} is on the Pareto front of {counted}: no other is as good in every objective."
        return
    better = [
        str(one.sequence_id)
        for one in front
        if all(sign * one.values[name] <= sign * own.values[name] for name, sign in signs.items())
    ]
    if better:
        named = f"{one_of} {better[0]} is" if len(better) == 1 else f"{all_of} {', '.join(better)} are"
        yield f"{it} is not on the Pareto front: {named} better in at least one objective and no worse in any."


def _rank_text(number: int, view: ExperimentView, noun: str) -> str:
    """Return the rank of a trial or a family by the only objective, among those that keep the limits.

    Empty if there are several objectives, or it does not count.
    """
    if len(view.objectives()) > 1:
        return ""
    broken = set(view.front().infeasible)
    results = {row.sequence_id: row.value for row in view.history() if row.sequence_id not in broken}
    value = results.pop(number, None)
    if value is None:
        return ""
    is_max = view.objectives()[0].direction == "maximize"
    better = sum(other > value if is_max else other < value for other in results.values())
    ties = sum(other == value for other in results.values())
    rank = f"rank {better + 1}" if better else "the best"
    tied = f", tied with {ties} {'other' if ties == 1 else 'others'}" if ties else ""
    kept = " that keep the limits" if broken else ""
    return f"{rank} of {len(results) + 1}{noun}{kept}{tied}"


def _result(final: object) -> str:
    """Return a final result in words, with its other values after the number under `default`.

    >>> _result(0.25), _result({"default": 0.25, "seconds": 7})
    ('0.25', '0.25, seconds 7')
    """
    if not isinstance(final, dict) or "default" not in final:
        return result_text(final)
    others = [f"{name} {result_text(value)}" for name, value in final.items() if name != "default"]
    return ", ".join([result_text(final["default"]), *others])


def _failed(trial: TrialDetail, more: Iterable[str]) -> Ending:
    ending = ending_beside(trial.reason, trial.exit_code)
    attempts = f"{trial.attempt} attempts" if trial.attempt > 1 else ""
    facts = ", ".join(fact for fact in (trial.kind, ending, attempts) if fact)
    notes = tuple(note for note in (facts, hint_text(trial.error or trial.reason)) if note)
    return Ending(
        title="Why it failed",
        sentence=trial.reason,
        notes=(*notes, *more),
        error=(trial.error or "").rstrip(),
        is_bad=True,
    )


def _last_result(trial: TrialDetail) -> tuple[str, ...]:
    if trial.last is None:
        return ()
    count, last = trial.intermediate_results, number_text(trial.last)
    return (
        f"Its only intermediate result was {last}."
        if count == 1
        else f"The last of its {count} intermediate results was {last}.",
    )


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _counted(results: int) -> str:
    return "1 intermediate result" if results == 1 else f"{results} intermediate results"


def facts_of(trial: TrialDetail, folder: ExperimentFolder) -> Iterator[tuple[str, object]]:
    """Return names with values; missing values are None or empty."""
    began, ended = trial.start_time, trial.end_time
    yield "Result", None if trial.final is None else _result(trial.final)
    yield "Repeat", repeat_text(trial)
    yield "Seed", trial.seed
    yield "Intermediate results", trial.intermediate_results
    yield "Created", moment_text(trial.created)
    yield "Began", None if began is None else moment_text(began)
    yield "Ended", None if ended is None else moment_text(ended)
    yield "Took", None if trial.seconds is None else duration_text(trial.seconds)
    yield "Attempt", trial.attempt if trial.attempt > 1 else None
    yield "Agent", trial.agent
    yield "GPUs", ", ".join(map(str, trial.gpus or ()))
    yield "Process", trial.pid if trial.status == "RUNNING" else None
    yield "Process ended with", ending_beside(trial.reason, trial.exit_code)
    yield "Budget", None if trial.budget is None else number_text(trial.budget)
    yield "Checkpoint", trial.checkpoint
    files = folder.trial(trial.sequence_id)
    yield "Files", files if files.is_dir() else None
