"""A trial, or a family of repeats, in words: its results, why it ended, how it compares with others, and its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..protocol import counted, objectives_of
from ..store import ExperimentFolder
from ..store.reading import (
    ExperimentView,
    FamilyRow,
    Repeats,
    TrialColumn,
    TrialDetail,
    TrialRow,
    flat,
)
from .failed_trials import FailedTrial, ending_beside
from .words import (
    duration_text,
    moment_text,
    nouns,
    number_text,
    result_text,
    results_text,
    status_text,
    visible,
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
    """Describe the state or end of a trial, and compare it with others; `why_waiting` asks the manager."""
    status, reason = trial.status, trial.reason
    if status == "FAILED":
        return _failed(trial, view)
    if status == "SUCCEEDED":
        compared = (*_family_of(trial, view), *_place_of(trial, view), *_broken_limits(trial, view))
        notes = (*([reason] if reason else ()), *compared)
        return Ending(title="It succeeded", sentence=_success(trial, view), notes=notes)
    if status == "EARLY_STOPPED":
        return Ending(
            title="It was stopped early",
            sentence=reason or "The assessor stopped it.",
            notes=(*_last_result(trial), *_at_the_same_step(trial, view)),
        )
    if status == "WAITING":
        why = why_waiting(view.folder, trial.trial_id)
        return Ending(title="It is waiting", sentence=f"{why[0].upper()}{why[1:]}.")
    if status == "RUNNING":
        return Ending(
            title="It is running",
            sentence=f"It has reported {_reported(trial)} so far.",
            notes=_last_result(trial),
        )
    if status == "PAUSED":
        return Ending(title="It is paused", sentence=reason or "The tuner will resume it.")
    if status == "USER_CANCELED":
        return Ending(title="You killed it", sentence=reason or "It was killed on request.")
    return Ending(title="It was cancelled", sentence=reason or "The experiment ended first.")


def _success(trial: TrialDetail, view: ExperimentView) -> str:
    """Return a sentence with the result, or the value of each objective and limited metric, and its rank."""
    names = view.metric_names()
    if not all(name in trial.values for name in names):
        found = f"result is {'' if trial.final is None else _result(trial.final)}"
    elif len(names) > 1:
        found = f"results are {values_text(trial, names)}"
    else:
        noun = "result" if names == ["default"] else visible(names[0])
        found = f"{noun} is {value_text(trial, names[0])}"
    rank = _rank_text(trial.sequence_id, view, "") if trial.family is None else ""
    return f"Its {found}: {rank}." if rank else f"Its {found}."


def _family_of(trial: TrialDetail, view: ExperimentView) -> Iterator[str]:
    """Describe the family of a repeat, and the rank of its mean, because only means are compared."""
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
    """Say whether a trial, or its family, is on the Pareto front, or which trials on it dominate this one."""
    signs = {one.name: -1.0 if one.direction == "maximize" else 1.0 for one in view.objectives()}
    family = view.family(trial)
    own = family or trial
    if len(signs) < 2 or any(name not in own.values for name in signs):
        return
    it, (one_of, all_of) = ("It", nouns(1)) if family is None else ("Its family", nouns(2))
    front = view.best()
    if any(one.sequence_id == own.sequence_id for one in front):
        size = counted(len(front), one_of, all_of)
        yield f"{it} is on the Pareto front of {size}: no other is as good in every objective."
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
    """Return the rank of a trial or a family among those that keep the limits; empty if it has none.

    With several objectives there are no ranks.
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
    tied = f", tied with {counted(ties, 'other')}" if ties else ""
    kept = " that keep the limits" if broken else ""
    return f"{rank} of {len(results) + 1}{noun}{kept}{tied}"


def _result(final: object) -> str:
    """Return a final result in words: the number under `default` first, and the others with their names.

    >>> _result(0.25), _result({"seconds": 7, "default": 0.25}), _result({"accuracy": 0.97, "seconds": 7})
    ('0.25', '0.25, seconds 7', 'accuracy 0.97, seconds 7')
    """
    if not isinstance(final, dict) or not final:
        return result_text(final)
    first = [result_text(final["default"])] if "default" in final else []
    others = [f"{visible(name)} {result_text(value)}" for name, value in final.items() if name != "default"]
    return ", ".join([*first, *others])


def _named_results(final: object) -> Iterator[tuple[str, str]]:
    """Yield each value of a final result with its name, the number under `default` first.

    >>> dict(_named_results({"seconds": 7, "default": 0.25, "eval": {"f1": 0.5}})), dict(_named_results(0.25))
    ({'result': '0.25', 'seconds': '7', 'eval.f1': '0.5'}, {'result': '0.25'})
    """
    if final is None:
        return
    if not isinstance(final, dict) or not final:
        yield "result", result_text(final)
        return
    values = flat(final)
    if "default" in values:
        yield "result", result_text(values.pop("default"))
    yield from ((visible(name), result_text(value)) for name, value in values.items())


def _failed(trial: TrialDetail, view: ExperimentView) -> Ending:
    failure = FailedTrial.of(trial)
    notes = [note for note in (failure.facts, failure.hint) if note]
    notes += [
        f"{counted(group.count, 'trial')} failed the same way; the first was trial {group.sequence_id}."
        for group in view.failures()
        if trial.sequence_id in group.sequence_ids and group.count > 1
    ]
    return Ending(
        title="Why it failed",
        sentence=trial.reason,
        notes=(*notes, *_family_of(trial, view)),
        error=(trial.error or "").rstrip(),
        is_bad=True,
    )


def _last_result(trial: TrialDetail) -> tuple[str, ...]:
    if trial.last is None:
        return ()
    last = number_text(trial.last)
    is_only = trial.intermediate_results == 1
    return (
        f"Its only intermediate result was {last}."
        if is_only
        else f"The last of its {_reported(trial)} was {last}.",
    )


def _reported(trial: TrialDetail) -> str:
    return counted(trial.intermediate_results, "intermediate result")


def _broken_limits(trial: TrialDetail, view: ExperimentView) -> Iterator[str]:
    front, family = view.front(), view.family(trial)
    own = trial if family is None else family
    if own.sequence_id in front.infeasible:
        it = "It" if family is None else "Its family"
        yield f"{it} {violation_text(own.values, front.limits)}, and is never the best."


def _at_the_same_step(trial: TrialDetail, view: ExperimentView) -> Iterator[str]:
    """Compare the last result with those of other trials at the same step."""
    step = trial.intermediate_results - 1
    others = {} if step < 0 else view.step(step)
    own = others.pop(trial.sequence_id, None)
    if own is None or not others:
        return
    sign = 1.0 if view.objectives()[0].direction == "minimize" else -1.0
    better = sum(sign * value < sign * own for value in others.values())
    best = min(others.values(), key=lambda value: sign * value)
    yield (
        f"After {counted(step + 1, 'result')} it had {number_text(own)}; of the {counted(len(others), 'other trial')}"
        f" that got there, {better} had a better one, the best {number_text(best)}."
    )


_ORIGINS: Mapping[str, str] = MappingProxyType(
    {
        "defaults": "your defaults",
        "initial": "your initial_points",
        "warm_start": "the warm start: among the best of an earlier search",
        "customized": "a user: added to the search",
    }
)
_LAST = 10


def facts_of(
    trial: TrialDetail, folder: ExperimentFolder, intermediate: Sequence[object] = ()
) -> Iterator[tuple[str, object]]:
    """Yield names with values, of the `intermediate` results the last ones; missing values are None or empty."""
    yield "from", _ORIGINS.get(trial.parameter_source or "")
    yield from _named_results(trial.final)
    yield "repeat", repeat_text(trial)
    yield "seed", trial.seed
    yield "intermediate", _intermediate(trial.intermediate_results, intermediate)
    yield "created", moment_text(trial.created)
    yield "started", None if trial.start_time is None else moment_text(trial.start_time)
    yield "ended", None if trial.end_time is None else moment_text(trial.end_time)
    yield "took", None if trial.seconds is None else duration_text(trial.seconds)
    yield "attempt", trial.attempt if trial.attempt > 1 else None
    yield "code", trial.code
    yield "agent", trial.agent
    yield "GPUs", ", ".join(map(str, trial.gpus or ()))
    yield "process", trial.pid if trial.status == "RUNNING" else None
    yield "ended with", ending_beside(trial.reason, trial.exit_code)
    yield "budget", None if trial.budget is None else number_text(trial.budget)
    yield "checkpoint", trial.checkpoint
    files = folder.trial(trial.sequence_id)
    yield "files", files if files.is_dir() else None


def column_text(trial: TrialRow, column: TrialColumn, limits: Mapping[str, str]) -> str:
    """Return what a trial has in a column of a table; empty if it has nothing there."""
    if column.name == "reason":
        return reason_text(trial, limits)
    value = trial.seconds if column.name == "duration" else getattr(trial, column.name)
    return "" if value is None else _IN_WORDS[column.kind](value)


_IN_WORDS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "number": number_text,
        "text": str,
        "status": status_text,
        "moment": moment_text,
        "duration": duration_text,
        "json": result_text,
    }
)


def _intermediate(count: int, results: Sequence[object]) -> str:
    earlier = "… " if len(results) > _LAST else ""
    last = f": {earlier}{', '.join(map(result_text, results[-_LAST:]))}" if results else ""
    return f"{counted(count, 'result')}{last}" if count else ""


def value_text(trial: TrialRow, name: str) -> str:
    """Return one metric of a trial or, with its margin, of a family; empty without a result."""
    return values_text(trial, [name])


def values_text(trial: TrialRow, names: Sequence[str]) -> str:
    """Return the metrics that a trial or a family has, each with its name if there are several."""
    values = {name: trial.values[name] for name in names if name in trial.values}
    margins = trial.repeats.interval if isinstance(trial, FamilyRow) else {}
    return results_text(values, margins, is_named=len(names) > 1)


def who_text(trial: TrialRow) -> str:
    """Return the number of a trial, or that of a family and how many repeats its mean has."""
    family = repeats_text(trial)
    return f"{family}, family {trial.sequence_id}" if family else f"trial {trial.sequence_id}"


def repeats_text(trial: TrialRow) -> str:
    """Return how many repeats the mean of a family has, such as `mean of 3 of 5 repeats`; empty for a trial."""
    if not isinstance(trial, FamilyRow):
        return ""
    count, of = trial.repeats.count, trial.repeats.of
    if count < 2:
        return f"{count} of {of} repeats"
    return f"mean of {count} repeats" if count == of else f"mean of {count} of {of} repeats"


def repeat_text(trial: TrialRow) -> str:
    """Return which repeat a trial is, such as `1 of family 3`; empty if its configuration runs once."""
    return "" if trial.family is None else f"{trial.repeat} of family {trial.family}"


def violation_text(values: Mapping[str, float], limits: Mapping[str, str]) -> str:
    """Return which limits the results of a trial violate; empty if it keeps all.

    >>> violation_text({"loss": 0.5, "ms": 25.0}, {"ms": "<= 20", "loss": "<= 1"})
    'violates ms <= 20'
    >>> violation_text({"s": 0.1 + 0.2}, {"s": "<= 0.3"})
    ''
    """
    named = [{"name": name, "constraint": text} for name, text in limits.items() if name in values]
    broken = [one.name for one in objectives_of(named) if one.excess_of(values[one.name]) > 0]
    return f"violates {' and '.join(f'{name} {limits[name]}' for name in broken)}" if broken else ""


def reason_text(trial: TrialRow, limits: Mapping[str, str]) -> str:
    """Return which limits the results violate, and why a trial failed or a family got no further repeats."""
    violation = violation_text(trial.values, limits)
    if not isinstance(trial, FamilyRow):
        reason = trial.reason
    elif trial.status == "SYS_CANCELED":
        reason = "the experiment ended before its other repeats"
    elif violation and trial.family_end == "raced":
        reason = "it got no further repeats"
    else:
        reason = _FAMILY_ENDS.get(trial.family_end or "") or _without_result(trial.repeats)
    return "; ".join(filter(None, (violation, reason)))


_FAMILY_ENDS: Mapping[str, str] = MappingProxyType(
    {
        "raced": "clearly worse than the best: it got no further repeats",
        "stopped": "a repeat was stopped early",
        "failed": "no repeat succeeded",
    }
)


def _without_result(repeats: Repeats) -> str:
    """Return how many repeats of a complete family have no result."""
    lacking = len(repeats.trials) - repeats.count
    if not lacking or repeats.end != "complete":
        return ""
    return f"{counted(lacking, 'repeat has', 'repeats have')} no result"
