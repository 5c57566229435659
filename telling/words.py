"""Statuses, numbers, durations, parameters and counts as text for users."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..protocol import rounded
from ..runner import ExperimentStatus
from ..store.reading import ABSENT, Summary, flat

# In the order in which counts are shown.
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


def status_text(status: str) -> str:
    """Return the status of a trial for users.

    >>> status_text("EARLY_STOPPED"), status_text("SOMETHING_NEW")
    ('stopped early', 'something new')
    """
    return STATUS_WORDS.get(status, status.lower().replace("_", " "))


# In these two statuses an experiment runs but begins no trial; their names are NNI's.
_EXPERIMENT_WORDS: Mapping[str, str] = MappingProxyType(
    {"NO_MORE_TRIAL": "RUNNING, last trials", "TUNER_NO_MORE_TRIAL": "RUNNING, tuner waits for results"}
)


def experiment_text(status: str, has_program: bool | None = None) -> str:
    """Return the status of an experiment for users; `--json` and the HTTP API have the status itself.

    `has_program` says whether a living program runs a trial of a search; None for anything else.

    >>> experiment_text("NO_MORE_TRIAL"), experiment_text("RUNNING", has_program=False), experiment_text("DONE", False)
    ('RUNNING, last trials', 'RUNNING (search, no program runs it)', 'DONE')
    """
    text = _EXPERIMENT_WORDS.get(status, status)
    if has_program is None or ExperimentStatus(status).is_final:
        return text
    return f"{text} (search)" if has_program else f"{text} (search, no program runs it)"


def standing_text(summary: Summary) -> str:
    """Return the status of an experiment as `experiment_text` does, and whether its manager is gone."""
    text = experiment_text(summary.status, summary.has_program)
    return f"{text} (manager gone)" if summary.is_abandoned else text


# Characters that show nothing, move the cursor, or turn the direction of the text around them.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"\s")


def escaped(text: str, keep: str = "") -> str:
    """Return a text in which control and invisible characters are escaped as in JSON, except those in `keep`.

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
    """Return whether a text without quotes still reads as a text: it is neither empty nor another JSON value.

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
    return rounded(value) if isinstance(value, float) else option_text(value)


def metric_text(value: object) -> str:
    """Return what a trial reported under a name; empty for null, and for a name that it did not report.

    >>> metric_text(0.123456789), metric_text(float("nan")), metric_text(None), metric_text([1, 2]), metric_text(True)
    ('0.123457', 'nan', '', '[1, 2]', 'true')
    """
    return "" if value is None else number_text(value)


def margin_text(value: object, margin: float | None) -> str:
    """Return a result, and half of the 95 % confidence interval of a mean, if there is one.

    >>> margin_text(0.123456789, 0.0123), margin_text(512.5, 123.4), margin_text(0.5, None)
    ('0.123457 ± 0.012', '512.5 ± 120', '0.5')
    """
    return number_text(value) if margin is None else f"{number_text(value)} ± {float(f'{margin:.2g}'):g}"


def results_text(
    values: Mapping[str, float], margins: Mapping[str, float | None] | None = None, *, is_named: bool = False
) -> str:
    """Return results by metric, with their margins, if there are any; with names if there are several, or `is_named`.

    >>> results_text({"default": 0.5}), results_text({"accuracy": 0.98, "ms": 3.25}, {"ms": 0.5})
    ('0.5', 'accuracy 0.98, ms 3.25 ± 0.5')
    """
    texts = {visible(name): margin_text(value, (margins or {}).get(name)) for name, value in values.items()}
    return ", ".join(map(" ".join, texts.items()) if is_named or len(texts) > 1 else texts.values())


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
        return float(rounded(value))
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


def nouns(repeats: int) -> tuple[str, str]:
    """Return the singular and the plural for what has a result: a trial, or a family where configurations are repeated.

    >>> nouns(1), nouns(5)
    (('trial', 'trials'), ('family', 'families'))
    """
    return ("trial", "trials") if repeats == 1 else ("family", "families")


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


def rate_text(rate: float, noun: str = "trials") -> str:
    """Return a throughput in the unit that reads best.

    >>> rate_text(12.5), rate_text(0.5), rate_text(0.001), rate_text(1.4, "results")
    ('12.5 trials/s', '30 trials/min', '3.6 trials/h', '84 results/min')
    """
    for unit, seconds in (("s", 1), ("min", 60)):
        if rate * seconds >= 2:
            return f"{rate * seconds:.3g} {noun}/{unit}"
    return f"{rate * 3600:.3g} {noun}/h"


_FEW = 2.0  # trials a minute


def pace_text(trials_per_minute: float, results_per_minute: float) -> str:
    """Return how many trials end and, where these are few, how many results the running ones report; empty if none.

    >>> pace_text(120.0, 600.0), pace_text(0.0, 84.0), pace_text(1.0, 84.0)
    ('2 trials/s', '84 results/min', '60 trials/h, 84 results/min')
    """
    trials = rate_text(trials_per_minute / 60.0) if trials_per_minute else ""
    is_slow = trials_per_minute < _FEW and results_per_minute > 0
    results = rate_text(results_per_minute / 60.0, "results") if is_slow else ""
    return ", ".join(filter(None, (trials, results)))


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
        f"{counts[status]:,} {word}" for status, word in STATUS_WORDS.items() if counts.get(status)
    )


def parameter_texts(parameters: object) -> dict[str, str]:
    """Return the values of parameters as texts by name, as many as there are; a nested choice is shown by its name.

    >>> parameter_texts({"lr": 0.123456789, "solver": {"_name": "sgd", "momentum": 0.9}})
    {'lr': '0.123457', 'solver': 'sgd', 'solver.momentum': '0.9'}
    """
    return {
        visible(name.removesuffix("._name")): number_text(value) for name, value in flat(parameters).items()
    }


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


def differing_parameters(several: Sequence[object]) -> list[str]:
    """Return each of several sets of parameters on one line, without those that are the same in all.

    >>> differing_parameters([{"lr": 0.1, "units": 8}, {"lr": 0.2, "units": 8}])
    ['lr=0.1', 'lr=0.2']
    """
    flattened = [flat(parameters) for parameters in several]
    first = flattened[0] if flattened else {}
    same = {name for name, value in first.items() if all(one.get(name, ABSENT) == value for one in flattened)}
    if len(same) == len(first):  # there would be nothing to show
        return [parameters_text(parameters) for parameters in several]
    return [
        parameters_text({name: value for name, value in one.items() if name not in same}) for one in flattened
    ]


def _word(text: str, end: str = " ") -> str:
    """Return a text, delimited so that its end is visible on a line."""
    return (
        escaped(json.dumps(text, ensure_ascii=False)) if end in text or _SPACE.search(text) else visible(text)
    )
