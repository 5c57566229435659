"""How much better the best trial is than the user's present setting, the `defaults` of the configuration."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import objectives_of
from ..runner import TrialStatus
from ..store.reading import FamilyRow, Goal, Summary, TrialRow
from .words import STATUS_WORDS, nouns, number_text, repeats_text


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
        return _without_result(TrialStatus(defaults.status), _who(defaults))
    signs = _signs(summary.objectives)
    values = [number_text(defaults.values[name]) for name in signs]
    named = values[0] if len(signs) == 1 else ", ".join(map(" ".join, zip(signs, values, strict=True)))
    those = f"the defaults ({named}, {_who(defaults)})"
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


def _who(defaults: TrialRow) -> str:
    """Return which trial the defaults are; where configurations run several times, of how many it is the mean."""
    number, repeats = defaults.sequence_id, repeats_text(defaults)
    return f"{repeats}, family {number}" if repeats else f"trial {number}"


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
    share = f" ({100 * gain / abs(base):.3g} %)" if base * best > 0 else ""
    return f"{number_text(gain)}{share} better than {those}"
