"""Failed trials as users see them: kind, exit code or signal, the end of the traceback, and where trials fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from ..protocol import JsonObject, counted
from ..runner import FailureKind, Trial, last_line, signal_name
from ..store.reading import FailureGroup, FailureRegion, TrialDetail
from .words import number_text, option_text

_MAX_LINES = 3
# The head of a traceback, the marks under the part of a line that failed, and empty lines say nothing in an excerpt.
_IDLE = re.compile(r"Traceback \(most recent call last\):|[ ~^]*")
_NNI = re.compile(r"No module named '?nni(\.|'|$)")
# Pitchpipe's own functions: the last line says what is wrong, and the caller's frame says where.
_OWN_FRAME = re.compile(r'  File ".*[\\/](site|dist)-packages[\\/]pitchpipe[\\/]')
_FRAME = re.compile(r'  File "(.+)", line \d+')
_LIBRARY = re.compile(
    r"[\\/](site|dist)-packages[\\/]|[\\/]lib[\\/]python3[^\\/]*[\\/]|<frozen |<__array_function__"
)
_OWN_FAULT = (FailureKind.USER_ERROR, FailureKind.IMPORT, FailureKind.OOM, FailureKind.KILLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A failed trial, why it failed, and the last lines of its traceback or stderr.

    `ending` is its exit code in words, `lines` are those before `last_line`; `has_output` says
    that the trial's process ran, so that its output may say more. `hint` is what the user can do, if that is clear.
    """

    sequence_id: int
    reason: str
    last_line: str
    kind: str = ""
    ending: str = ""
    attempts: int = 1
    lines: tuple[str, ...] = ()
    has_output: bool = False
    hint: str = ""

    @classmethod
    def of(cls, failed: Trial | TrialDetail | FailureGroup, most_lines: int = _MAX_LINES) -> FailedTrial:
        """Return what to say of a failed trial, with at most so many `lines`."""
        last = last_line(failed.error)
        return cls(
            sequence_id=failed.sequence_id,
            reason=failed.reason,
            last_line="" if last in failed.reason else last,
            kind=failed.kind or "",
            ending=ending_beside(failed.reason, failed.exit_code),
            attempts=failed.attempt,
            lines=tuple(_excerpt(failed.error, most_lines)),
            has_output=failed.kind in _OWN_FAULT,
            hint=_hint(failed.reason, failed.error or ""),
        )

    def __str__(self) -> str:
        return f"{self.reason}: {self.last_line}" if self.last_line else self.reason

    @property
    def facts(self) -> str:
        """The kind, the ending and the number of attempts, without the empty ones.

        >>> FailedTrial(sequence_id=3, reason="KeyError: 'lr'", last_line="", kind="USER_ERROR", attempts=2).facts
        'USER_ERROR, 2 attempts'
        """
        attempts = counted(self.attempts, "attempt") if self.attempts > 1 else ""
        return ", ".join(fact for fact in (self.kind, self.ending, attempts) if fact)


def _hint(reason: str, error: str) -> str:
    """Return what the user can do about a failure, if that is clear from its reason or its traceback.

    >>> _hint("exit code 1", "ModuleNotFoundError: No module named 'nni.retiarii'")
    'docs/reference/nni.md lists the names of NNI that have a counterpart'
    >>> _hint("ModuleNotFoundError: No module named 'torch'", "")
    ''
    >>> _hint("ran longer than max_trial_duration (3 s)", "")
    'to give trials more time, raise max_trial_duration in the config'
    """
    if _NNI.search(f"{reason}\n{error}"):
        return "docs/reference/nni.md lists the names of NNI that have a counterpart"
    is_overdue = reason.startswith("ran longer than max_trial_duration")
    return "to give trials more time, raise max_trial_duration in the config" if is_overdue else ""


def ending_beside(reason: str, exit_code: int | None) -> str:
    """Return the ending of a failed trial, unless its reason says it.

    The reason names every signal except those that Pitchpipe sent itself, and those say nothing about the trial.

    >>> ending_beside("KeyError: 'lr'", 3), ending_beside("ran longer than 2 s", -15), ending_beside("no result", 0)
    ('exit code 3', '', '')
    """
    ending = ending_text(exit_code)
    return "" if not exit_code or exit_code < 0 or ending in reason else ending


def _excerpt(error: str | None, most: int) -> list[str]:
    """Return at most so many of the lines before the last one of an error, after the last frame in the user's code.

    >>> theirs = 'Traceback ...\\n  File "train.py", line 2, in <module>\\n    model.fit(x, y)\\n'
    >>> library = '  File "/x/site-packages/lib/a.py", line 9, in fit\\n    check(x)\\n'
    >>> _excerpt(f"{theirs}{library}{library}ValueError: x is 2d", 2)[:3]
    ['  File "train.py", line 2, in <module>', '    model.fit(x, y)', '  ...']
    """
    before = _without_own_frames((error or "").rstrip().splitlines())[:-1]
    first = max(0, len(before) - most)
    begin = max((place for place, line in enumerate(before) if _is_users(line)), default=first)
    if begin >= first:
        return before[first:]
    end = next(place for place in range(begin + 1, len(before) + 1) if not _is_inside(before, place))
    gap = ["  ..."] if end < first else []
    return [*before[begin:end], *gap, *before[max(end, first) :]]


def _is_users(line: str) -> bool:
    """Return whether a line of a traceback names one of the user's own files."""
    frame = _FRAME.match(line)
    return frame is not None and not _LIBRARY.search(frame[1])


def _is_inside(lines: Sequence[str], place: int) -> bool:
    """Return whether there is a line at a place that continues a frame."""
    return place < len(lines) and lines[place].startswith("    ")


def _without_own_frames(lines: Iterable[str]) -> list[str]:
    """Return the lines of a traceback without idle ones, and without the frames of Pitchpipe's own functions.

    >>> theirs = ['  File "train.py", line 2, in <module>', "    merge_parameter(a, b)"]
    >>> ours = ['  File "/x/site-packages/pitchpipe/utils.py", line 9, in merge_parameter', "    raise ValueError"]
    >>> _without_own_frames([*theirs, *ours, "ValueError: no lr"])
    ['  File "train.py", line 2, in <module>', '    merge_parameter(a, b)', 'ValueError: no lr']
    """
    kept: list[str] = []
    is_own = False
    for line in lines:
        is_own = bool(_OWN_FRAME.match(line)) or (is_own and line.startswith("    "))
        if not is_own and not _IDLE.fullmatch(line):
            kept.append(line)
    return kept


def ending_text(exit_code: int | None) -> str:
    """Return an exit code of the store in words: negative ones are signals.

    >>> ending_text(3), ending_text(-9), ending_text(None)
    ('exit code 3', 'signal SIGKILL', '')
    """
    if exit_code is None:
        return ""
    return f"signal {signal_name(-exit_code)}" if exit_code < 0 else f"exit code {exit_code}"


_KINDS_OF_REGIONS: Mapping[str, str] = MappingProxyType(
    {
        FailureKind.OOM: "out of memory",
        FailureKind.TIMEOUT: "too slow",
        FailureKind.NAN: "NaN",
        FailureKind.KILLED: "killed",
        FailureKind.USER_ERROR: "an error of the script",
    }
)


def trials_text(group: FailureGroup) -> str:
    """Return how many trials failed, or which one."""
    return counted(group.count, "trial") if group.count > 1 else f"trial {group.sequence_id}"


def failed_text(group: FailureGroup) -> str:
    """Return how many trials failed, or which one, and why, such as `4 trials failed: ValueError: no luck`."""
    return f"{trials_text(group)} failed: {FailedTrial.of(group)}"


def region_object(region: FailureRegion) -> JsonObject:
    """Return a region as JSON, with its sentence as `text`."""
    return {**asdict(region), "text": region_text(region)}


def region_text(region: FailureRegion) -> str:
    """Return the values of a parameter with which trials fail, and whether a tuner that learns still goes there.

    >>> wide = FailureRegion(kind="OOM", parameter="width", side="above", value=64.0, failed=5, well=0, is_avoided=True,
    ...                      recent=1, of_recent=20)
    >>> region_text(wide)
    'most trials with width above 64 fail (out of memory); 1 of the last 20 trials was there'
    """
    is_option = region.side == "is"
    values = option_text(region.value) if is_option else f"{region.side} {number_text(region.value)}"
    share = f"{region.failed} of {region.failed + region.well}" if region.has_others else "most"
    aside = ", other failures aside" if region.has_others else ""
    were = "was" if region.recent < 2 else "were"
    there = f"; {region.recent or 'none'} of the last {region.of_recent} trials {were} there"
    recent = there if region.is_avoided else ""
    return f"{share} trials with {region.parameter} {values} fail ({_KINDS_OF_REGIONS[region.kind]}){aside}{recent}"
