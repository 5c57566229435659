"""The best trials in words: the front, how much better they are than the user's `defaults`, and why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ..numerics import knee_of
from ..protocol import counted, objectives_of
from ..runner import ExperimentStatus, TrialStatus
from ..store.reading import (
    ABSENT,
    BestIntermediate,
    ChangedParameter,
    ClosestTrial,
    ExperimentView,
    FamilyRow,
    Goal,
    ParetoFront,
    Summary,
    TrialRow,
)
from .trial_story import repeats_text, values_text, who_text
from .words import STATUS_WORDS, nouns, number_text, results_text


def best_result_text(best: float | Mapping[str, float] | None, front: int) -> str:
    """Return the best result, or the results of one of the `front` trials on a Pareto front.

    >>> best_result_text({"accuracy": 0.98, "ms": 3.25}, 4), best_result_text(0.5, 1), best_result_text(None, 0)
    ('accuracy 0.98, ms 3.25 (one of 4 on the front)', '0.5', '')
    """
    if isinstance(best, Mapping):
        return results_text(best) + (f" (one of {front} on the front)" if front > 1 else "")
    return "" if best is None else number_text(best)


def best_intermediate_text(best: BestIntermediate) -> str:
    """Return the best intermediate result, and whose it is.

    >>> best_intermediate_text(BestIntermediate(3, 11, 0.9125))
    '0.9125 (trial 3, after 12 results)'
    """
    after = counted(best.sequence + 1, "result")
    return f"{number_text(best.value)} (trial {best.sequence_id}, after {after})"


def why_none_text(view: ExperimentView, summary: Summary) -> str:
    """Return why an experiment has no best trial."""
    if summary.closest is not None:
        return closest_text(summary.closest, summary.status, repeats=view.repeats())
    if summary.counts.get("EARLY_STOPPED") == summary.trials > 0:
        advice = (
            "use a milder assessor, or more trials" if view.config().get("assessor") else "use more trials"
        )
        return f"all {counted(summary.trials, 'trial')} were stopped early: {advice}"
    if len(summary.objectives) > 1 and summary.counts.get("SUCCEEDED"):
        return "the front has no knee"
    return f"no trial has succeeded{_yet(summary.status)}" if summary.trials else "there are no trials"


def closest_text(sequence_id: int, status: str, *, repeats: int = 1) -> str:
    """Return the sentence that is shown while no trial, or with `repeats` no family, keeps all limits.

    >>> closest_text(7, "RUNNING"), closest_text(7, "DONE", repeats=5)
    ('no trial keeps the limits yet (closest: trial 7)', 'no family keeps the limits (closest: family 7)')
    """
    one, _ = nouns(repeats)
    return f"no {one} keeps the limits{_yet(status)} (closest: {one} {sequence_id})"


def _yet(status: str) -> str:
    return "" if ExperimentStatus(status).is_final else " yet"


def front_lines(front: ParetoFront, *, repeats: int = 1) -> Iterator[str]:
    """Yield the size, hypervolume and knee of a front, and how many trials, or with `repeats` families, violate limits.

    >>> limits = {"ms": "<= 20"}
    >>> list(front_lines(ParetoFront(trials=[1], infeasible=[4], limits=limits)))
    ['limits: ms <= 20; 1 trial violates them']
    >>> list(front_lines(ParetoFront(trials=[], infeasible=[], limits=limits)))
    ['limits: ms <= 20']
    >>> front = ParetoFront(trials=[1, 3], infeasible=[], limits={}, hypervolume=2.5, knee=3)
    >>> list(front_lines(front, repeats=5))
    ['front: 2 families, hypervolume 2.5 (from the reference point ); the knee is family 3']
    """
    one, several = nouns(repeats)
    if front.hypervolume is not None:
        reference = ", ".join(f"{name} {number_text(value)}" for name, value in front.reference.items())
        volume = f"hypervolume {number_text(front.hypervolume)} (from the reference point {reference})"
        knee = "" if front.knee is None else f"; the knee is {one} {front.knee}"
        yield f"front: {counted(len(front.trials), one, several)}, {volume}{knee}"
    if front.limits:
        limits = ", ".join(f"{name} {limit}" for name, limit in front.limits.items())
        count = len(front.infeasible)
        violations = f"; {count or 'no'} {f'{one} violates' if count == 1 else f'{several} violate'} them"
        yield f"limits: {limits}{violations if count or front.trials else ''}"


def front_text(points: Mapping[int, tuple[float, ...]], *, repeats: int = 1) -> str:
    """Return the size of a front and its knee; empty for a single trial. With `repeats`, it consists of families.

    >>> front_text({3: (0.0, 1.0), 4: (0.1, 0.2), 9: (1.0, 0.0)}), front_text({3: (0.5,)})
    ('front: 3 trials, knee trial 4', '')
    """
    one, several = nouns(repeats)
    knee = knee_of(points)
    found = f"front: {len(points)} {several}" if len(points) > 1 else ""
    return found if knee is None else f"{found}, knee {one} {knee}"


def gains_over_defaults(summary: Summary) -> dict[str, float] | None:
    """Return by how much the best trials improve each objective.

    None if the defaults have no result, or violate a limit that the best trials keep.
    """
    defaults = summary.defaults
    if defaults is None or not _has_result(defaults) or _broken_limits(summary, defaults):
        return None
    return {name: max([0.0, *gains]) for name, gains in _differences(summary, defaults).items()}


def _has_result(defaults: TrialRow) -> bool:
    """Return whether the defaults succeeded; the end of an experiment may have cut off some of their repeats."""
    is_cut_off = isinstance(defaults, FamilyRow) and defaults.status == TrialStatus.SYS_CANCELED.value
    return defaults.status == TrialStatus.SUCCEEDED.value or (is_cut_off and bool(defaults.values))


def _differences(summary: Summary, defaults: TrialRow) -> dict[str, list[float]]:
    """Return by how much each of the best trials is better than the defaults, by objective."""
    base, found = defaults.values, dict[str, list[float]]()
    for name, sign in _signs(summary.objectives).items():
        values = [trial.values[name] for trial in summary.best]
        # The difference of equal infinities would be NaN.
        found[name] = [sign * (base[name] - value) if value != base[name] else 0.0 for value in values]
    return found


def _broken_limits(summary: Summary, defaults: TrialRow) -> list[str]:
    """Return the limits that the defaults violate, in words."""
    values = defaults.values
    given = [{"name": name, "constraint": text} for name, text in summary.outcome_limits.items()]
    return [
        f"{one.name} is {number_text(values[one.name])}, not {one.limits_text}"
        for one in objectives_of(given)
        if one.violation(values[one.name]) > 0
    ]


def _signs(objectives: Sequence[Goal]) -> dict[str, float]:
    """Return 1 for what is minimized, -1 for what is maximized."""
    return {one.name: 1.0 if one.direction == "minimize" else -1.0 for one in objectives}


def gain_text(summary: Summary) -> str:
    """Return a sentence about the best trials and the defaults; empty without defaults."""
    defaults = summary.defaults
    if defaults is None:
        return ""
    if not _has_result(defaults):
        return _without_result(TrialStatus(defaults.status), who_text(defaults))
    signs = _signs(summary.objectives)
    those = f"the defaults ({values_text(defaults, list(signs))}, {who_text(defaults)})"
    one, several = nouns(2 if isinstance(defaults, FamilyRow) else 1)
    if broken := _broken_limits(summary, defaults):
        best = len(summary.best)
        keeps = (
            f"the best {several} keep" if best > 1 else f"the best {one} keeps" if best else f"no {one} keeps"
        )
        return f"{those} violate a limit: {', '.join(broken)}; {keeps} all limits"
    if len(signs) == 1:
        return _single(summary, defaults, those, *signs)
    ahead = sum(
        all(gain >= 0 for gain in gains) and any(gain > 0 for gain in gains)
        for gains in zip(*_differences(summary, defaults).values(), strict=True)
    )
    of_many = (
        f"{ahead} of the {len(summary.best)} best {several}" if len(summary.best) > 1 else f"the best {one}"
    )
    beat = "beat" if ahead > 1 else "beats"
    return f"{of_many if ahead else f'no {one}'} {beat} {those} in every objective"


def _without_result(status: TrialStatus, who: str) -> str:
    if not status.is_final:
        return f"the defaults ({who}) have no result yet"
    return f"the defaults ({who}) have no result to compare with: {STATUS_WORDS[status.value]}"


def _single(summary: Summary, defaults: TrialRow, those: str, name: str) -> str:
    gain = max(_differences(summary, defaults)[name], default=0.0)
    if gain <= 0:
        return f"no {nouns(2 if isinstance(defaults, FamilyRow) else 1)[0]} is better than {those}"
    base = defaults.values[name]
    best = base - _signs(summary.objectives)[name] * gain
    # Where the sign changes, a percentage says nothing.
    percent = gain / abs(base) * 100 if (base > 0) == (best > 0) and base else math.inf
    share = f" ({percent:.3g} %)" if percent < math.inf else ""
    return f"{number_text(gain)}{share} better than {those}"


def changes_text(changes: Sequence[ChangedParameter]) -> str:
    """Return changes on one line.

    >>> changes_text([ChangedParameter("lr", 0.1, 0.01), ChangedParameter("momentum", ABSENT, 0.9)])
    'lr 0.1 -> 0.01, momentum 0.9'
    """
    return ", ".join(
        f"{one.parameter} {number_text(one.value)}"
        if one.default is ABSENT
        else f"{one.parameter} {number_text(one.default)} -> {number_text(one.value)}"
        for one in changes
    )


def closeness_lines(found: ClosestTrial | None) -> Iterator[str]:
    """Yield which trial, or family, is closest to the defaults, and which changes of it and of the best one matter."""
    if found is None:
        return
    trial, best = found.trial, found.best
    number = trial.sequence_id
    is_best = number == best.sequence_id
    one = "family" if repeats_text(trial) else "trial"
    by = found.best_by
    goal = "" if by is None else f" in {by}"
    what, named = ("knee", "the knee") if by == "knee" else (f"best{goal}", f"the best {one}{goal}")
    compared = (
        named if is_best else f"{what}: {values_text(best, list(best.values))}, {one} {best.sequence_id}"
    )
    text = _changes_of(found.changes, found.unimportant)
    yield f"closest to your defaults: {one} {number}, {values_text(trial, list(trial.values))} ({compared}); {text}"
    if not is_best:
        text = _changes_of(found.best_changes, found.best_unimportant)
        yield f"{named} ({best.sequence_id}): {text}"


def _changes_of(changes: Sequence[ChangedParameter], unimportant: int) -> str:
    others = f"{unimportant} {'other' if changes else 'change'}{'s' if unimportant > 1 else ''}"
    ignored = f"{others} {'seems' if unimportant == 1 else 'seem'} not to matter"
    if not changes:
        return ignored if unimportant else "no changes"
    text = f"changes: {changes_text(changes)}"
    return f"{text}; {ignored}" if unimportant else text
