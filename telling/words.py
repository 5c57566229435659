"""Numbers, durations, parameters and counts as text for users."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..numerics import knee_of
from ..protocol import constraint_limits
from ..runner import ExperimentStatus
from ..store.reading import (
    ABSENT,
    ChangedParameter,
    ClosestTrial,
    FamilyRow,
    ParetoFront,
    Repeats,
    TrialRow,
    flat,
)

STATUS_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "RUNNING": "running",
        "WAITING": "waiting",
        "PAUSED": "paused",
        "SUCCEEDED": "succeeded",
        "EARLY_STOPPED": "stopped early",
        "FAILED": "failed",
        "USER_CANCELED": "killed by you",
        "SYS_CANCELED": "cancelled",
    }
)


# What the two statuses mean in which an experiment runs and begins no trial; NNI has their names.
_EXPERIMENT_WORDS: Mapping[str, str] = MappingProxyType(
    {"NO_MORE_TRIAL": "RUNNING, last trials", "TUNER_NO_MORE_TRIAL": "RUNNING, tuner waits for results"}
)


def experiment_text(status: str, has_program: bool | None = None) -> str:
    """Return the status of an experiment for users; `--json` and the HTTP API have the status itself.

    Of a search `has_program` says whether a living program runs a trial of it.

    >>> experiment_text("NO_MORE_TRIAL"), experiment_text("RUNNING", has_program=False), experiment_text("DONE", False)
    ('RUNNING, last trials', 'RUNNING (search, no program runs it)', 'DONE')
    """
    text = _EXPERIMENT_WORDS.get(status, status)
    if has_program is None or ExperimentStatus(status).is_final:
        return text
    return f"{text} (search)" if has_program else f"{text} (search, no program runs it)"


# Characters that show nothing, move the cursor, or turn the direction of the text around them.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"\s")


def escaped(text: str, keep: str = "") -> str:
    """Return a text with control and invisible characters, except those to `keep`, as JSON escapes them.

    >>> print(escaped("a\\tb\\x1b[2J\\n"), escaped("a\\tb", keep="\\t").isprintable())
    a\\tb\\u001b[2J\\n False
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keep else json.dumps(found[0])[1:-1], text)


def visible(text: str) -> str:
    """Return a user's text on one line, such that two different texts never look the same.

    It is the text itself, or, if that has control or invisible characters, spaces around it, or begins with a
    quotation mark, the text as JSON, in quotation marks.

    >>> print(visible("C:\\\\new"), visible("C:\\new"), visible('"C:"'))
    C:\\new "C:\\new" "\\"C:\\""
    """
    is_plain = not (_UNSEEN.search(text) or text.startswith('"') or text != text.strip())
    return text if is_plain else escaped(json.dumps(text, ensure_ascii=False))


def is_bare(text: str) -> bool:
    """Return whether a text cannot be taken for nothing or for another JSON value when it is shown without quotes.

    >>> [text for text in ("relu", "1", "true", "null", "[1]", "", "yes") if is_bare(text)]
    ['relu', 'yes']
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return bool(text)
    return False


def option_text(value: object) -> str:
    """Return a value of a parameter on one line: a text as `visible` shows it if it is bare, all else as JSON.

    >>> option_text("relu"), option_text("1"), option_text(1), option_text(""), option_text(None)
    ('relu', '"1"', '1', '""', 'null')
    """
    if isinstance(value, str) and is_bare(value):
        return visible(value)
    return escaped(json.dumps(value, ensure_ascii=False, default=str))


def number_text(value: object) -> str:
    """Return a number in at most six significant digits, and anything else as `option_text` does.

    >>> number_text(0.123456789), number_text(64), number_text(1e-7), number_text("relu"), number_text([True, None])
    ('0.123457', '64', '1e-07', 'relu', '[true, null]')
    """
    return f"{value:.6g}" if isinstance(value, float) else option_text(value)


def margin_text(value: object, margin: float | None) -> str:
    """Return a result, and half of the 95 % confidence interval of a mean, if there is one.

    >>> margin_text(0.123456789, 0.0123), margin_text(512.5, 123.4), margin_text(0.5, None)
    ('0.123457 ± 0.012', '512.5 ± 120', '0.5')
    """
    return number_text(value) if margin is None else f"{number_text(value)} ± {float(f'{margin:.2g}'):g}"


def value_text(trial: TrialRow, name: str) -> str:
    """Return one metric of a trial or, with its margin, of a family."""
    margin = trial.repeats.interval.get(name) if isinstance(trial, FamilyRow) else None
    return margin_text(trial.values[name], margin)


def values_text(trial: TrialRow, names: Sequence[str]) -> str:
    """Return the metrics of a trial or a family, each with its name if there are several."""
    texts = [value_text(trial, name) for name in names]
    return texts[0] if len(names) == 1 else ", ".join(map(" ".join, zip(names, texts, strict=True)))


def best_result_text(best: float | Mapping[str, float] | None, front: int) -> str:
    """Return the best result, or the results of one trial among the `front` ones on the front of several objectives.

    >>> best_result_text({"accuracy": 0.98, "ms": 3.25}, 4), best_result_text(0.5, 1), best_result_text(None, 0)
    ('accuracy 0.98, ms 3.25 (one of 4 on the front)', '0.5', '')
    """
    if isinstance(best, Mapping):
        named = ", ".join(f"{name} {number_text(value)}" for name, value in best.items())
        return f"{named} (one of {front} on the front)" if front > 1 else named
    return "" if best is None else number_text(best)


def repeats_text(trial: TrialRow) -> str:
    """Return of how many repeats the result of a family is the mean, such as `1 of 5 repeats`; empty for a trial."""
    if not isinstance(trial, FamilyRow):
        return ""
    count, of = trial.repeats.count, trial.repeats.of
    if count < 2:
        return f"{count} of {of} repeats"
    return f"mean of {count} repeats" if count == of else f"mean of {count} of {of} repeats"


def repeat_text(trial: TrialRow) -> str:
    """Return which repeat a trial is, such as `1 of family 3`; empty if its configuration runs once."""
    return "" if trial.family is None else f"{trial.repeat} of family {trial.family}"


def result_text(value: object) -> str:
    """Return a result as it was reported, a number or JSON, with rounded numbers.

    >>> result_text(0.123456789), result_text({"default": 2 / 3, "note": "ok"})
    ('0.123457', '{"default": 0.666667, "note": "ok"}')
    """
    if isinstance(value, dict | list | str) or value is None:
        return escaped(json.dumps(_rounded(value), ensure_ascii=False))
    return number_text(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


def duration_text(seconds: float) -> str:
    """Return a duration, to the second.

    >>> duration_text(0.31), duration_text(42), duration_text(125), duration_text(7384), duration_text(200000)
    ('0.3 s', '42 s', '2 min 05 s', '2 h 03 min', '2 d 7 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def length_text(seconds: float) -> str:
    """Return a duration that a user has set.

    >>> length_text(300), length_text(3600), length_text(90)
    ('5 min', '1 h', '1 min 30 s')
    """
    return duration_text(seconds).removesuffix(" 00 s").removesuffix(" 00 min")


def moment_text(moment: float) -> str:
    """Return a moment (seconds since the epoch) in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def rate_text(rate: float) -> str:
    """Return a throughput in the unit that reads best.

    >>> rate_text(12.5), rate_text(0.5), rate_text(0.001)
    ('12.5 trials/s', '30 trials/min', '3.6 trials/h')
    """
    for unit, seconds in (("s", 1), ("min", 60)):
        if rate * seconds >= 2:
            return f"{rate * seconds:.3g} trials/{unit}"
    return f"{rate * 3600:.3g} trials/h"


def left_text(seconds: float, at_most: bool) -> str:
    """Return the remaining time, as an estimate or as a bound.

    >>> left_text(40, at_most=False), left_text(3600, at_most=True)
    ('about 40 s left', 'at most 1 h 00 min left')
    """
    return f"{'at most' if at_most else 'about'} {duration_text(seconds)} left"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero, in words.

    >>> counts_text({"SUCCEEDED": 12, "FAILED": 1, "RUNNING": 2, "WAITING": 0})
    '2 running, 12 succeeded, 1 failed'
    """
    return ", ".join(
        f"{counts[status]} {word}" for status, word in STATUS_WORDS.items() if counts.get(status)
    )


def closest_text(sequence_id: int, status: str, *, repeats: int = 1) -> str:
    """Return a sentence for an experiment, with its status, in which no trial keeps the limits of the objectives.

    With `repeats`, families keep them.

    >>> closest_text(7, "RUNNING"), closest_text(7, "DONE", repeats=5)
    ('no trial keeps the limits yet (closest: trial 7)', 'no family keeps the limits (closest: family 7)')
    """
    one, _ = nouns(repeats)
    yet = "" if status == "DONE" else " yet"
    return f"no {one} keeps the limits{yet} (closest: {one} {sequence_id})"


def violation_text(values: Mapping[str, float], limits: Mapping[str, str]) -> str:
    """Return which limits the results of a trial violate; empty if it keeps all.

    >>> violation_text({"loss": 0.5, "ms": 25.0}, {"ms": "<= 20", "loss": "<= 1"})
    'violates ms <= 20'
    """
    bounds = {name: constraint_limits(text) for name, text in limits.items() if name in values}
    broken = [name for name, (low, high) in bounds.items() if not low <= values[name] <= high]
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
    """Return how many of all repeats of a whole family have no result."""
    lacking = len(repeats.trials) - repeats.count
    if not lacking or repeats.end != "complete":
        return ""
    return f"{lacking} {'repeat has' if lacking == 1 else 'repeats have'} no result"


def front_lines(front: ParetoFront, *, repeats: int = 1) -> Iterator[str]:
    """Yield the size of a front, its hypervolume and its knee, and how many trials violate a limit.

    With `repeats`, these are families.

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
        count = len(front.trials)
        yield f"front: {count} {one if count == 1 else several}, {volume}{knee}"
    if front.limits:
        limits = ", ".join(f"{name} {limit}" for name, limit in front.limits.items())
        count = len(front.infeasible)
        violations = f"; {count or 'no'} {f'{one} violates' if count == 1 else f'{several} violate'} them"
        yield f"limits: {limits}{violations if count or front.trials else ''}"


def nouns(repeats: int) -> tuple[str, str]:
    """Return what to call the one that has a result, and several of them: a family where configurations are repeated.

    >>> nouns(1), nouns(5)
    (('trial', 'trials'), ('family', 'families'))
    """
    return ("trial", "trials") if repeats == 1 else ("family", "families")


def front_text(points: Mapping[int, tuple[float, ...]], *, repeats: int = 1) -> str:
    """Return the size of a front and its knee; empty for one of a single trial. With `repeats`, these are families.

    >>> front_text({3: (0.0, 1.0), 4: (0.1, 0.2), 9: (1.0, 0.0)}), front_text({3: (0.5,)})
    ('front: 3 trials, knee trial 4', '')
    """
    one, several = nouns(repeats)
    knee = knee_of(points)
    found = f"front: {len(points)} {several}" if len(points) > 1 else ""
    return found if knee is None else f"{found}, knee {one} {knee}"


def parameters_text(parameters: object) -> str:
    """Return parameters on one line; a nested choice is shown by its name, a text with spaces as JSON.

    >>> parameters_text({"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}, "mode": "a b=1"})
    'lr=0.1 solver=sgd solver.momentum=0.9 mode="a b=1"'
    """
    if not isinstance(parameters, Mapping):
        return number_text(parameters)
    found = flat(parameters)
    names = (_word(name.removesuffix("._name"), "=") for name in found)
    values = (
        _word(one) if isinstance(one, str) and is_bare(one) else number_text(one) for one in found.values()
    )
    return " ".join(map("=".join, zip(names, values, strict=True)))


def _word(text: str, end: str = " ") -> str:
    """Return a text such that it can be told where it ends among others."""
    return (
        escaped(json.dumps(text, ensure_ascii=False)) if end in text or _SPACE.search(text) else visible(text)
    )


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
    compared = named if is_best else f"{what}: {_values_text(best)}, {one} {best.sequence_id}"
    text = _changes_of(found.changes, found.unimportant)
    yield f"closest to your defaults: {one} {number}, {_values_text(trial)} ({compared}); {text}"
    if not is_best:
        text = _changes_of(found.best_changes, found.best_unimportant)
        yield f"{named} ({best.sequence_id}): {text}"


def _values_text(trial: TrialRow) -> str:
    return ", ".join(
        number_text(value) if name == "default" else f"{name} {number_text(value)}"
        for name, value in trial.values.items()
    )


def _changes_of(changes: Sequence[ChangedParameter], unimportant: int) -> str:
    others = f"{unimportant} {'other' if changes else 'change'}{'s' if unimportant > 1 else ''}"
    ignored = f"{others} {'seems' if unimportant == 1 else 'seem'} not to matter"
    if not changes:
        return ignored if unimportant else "no changes"
    text = f"changes: {changes_text(changes)}"
    return f"{text}; {ignored}" if unimportant else text
