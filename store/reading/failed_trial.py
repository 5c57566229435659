"""Failed trials for people: what kind of failure it was, how it ended, the last lines of its traceback."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...runner import FailureKind, Trial, TrialStatus, fingerprint, last_line, signal_name

__all__ = ["FailedTrial", "ending_text", "failures_alike", "hint_text", "retries_by_kind"]

_MAX_LINES = 3
_NNI = re.compile(r"No module named '?nni(\.|'|$)")
_OWN_FAULT = (FailureKind.USER_ERROR, FailureKind.IMPORT, FailureKind.OOM, FailureKind.KILLED)


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A failed trial, why it failed, and the last lines of its traceback or stderr.

    `ending` is its exit code or signal in words, `lines` are those that stand before `last_line`; `has_output`
    says that the trial's process told the reason itself.
    """

    sequence_id: int
    reason: str
    last_line: str
    kind: str = ""
    ending: str = ""
    attempts: int = 1
    lines: tuple[str, ...] = ()
    has_output: bool = False

    @classmethod
    def of(cls, trial: Trial) -> FailedTrial:
        """What to say of a failed trial."""
        last = last_line(trial.error)
        before = [line for line in (trial.error or "").rstrip().splitlines() if line.strip()][:-1]
        ending = ending_text(trial.exit_code)
        return cls(
            trial.sequence_id,
            trial.reason,
            "" if last in trial.reason else last,
            trial.kind or "",
            "" if ending.removeprefix("signal ") in trial.reason else ending,
            trial.attempt,
            tuple(before[-_MAX_LINES:]),
            bool(last) and trial.kind in _OWN_FAULT,
        )

    def __str__(self) -> str:
        return f"{self.reason}: {self.last_line}" if self.last_line else self.reason

    @property
    def facts(self) -> str:
        """Kind, ending and number of attempts, as far as they say something.

        >>> FailedTrial(3, "KeyError: 'lr'", "", "USER_ERROR", "exit code 1", 2).facts
        'USER_ERROR, exit code 1, 2 attempts'
        """
        attempts = f"{self.attempts} attempts" if self.attempts > 1 else ""
        return ", ".join(fact for fact in (self.kind, self.ending, attempts) if fact)


def hint_text(error: str | None) -> str:
    """What the user can do about a failure, if that is plain from its traceback or its reason.

    >>> hint_text("ModuleNotFoundError: No module named 'nni'")
    'use `import pitchpipe` in place of `import nni`'
    >>> hint_text("ModuleNotFoundError: No module named 'torch'")
    ''
    """
    return "use `import pitchpipe` in place of `import nni`" if _NNI.search(error or "") else ""


def ending_text(exit_code: int | None) -> str:
    """An exit code of the store in words: negative ones are signals.

    >>> ending_text(3), ending_text(-9), ending_text(None)
    ('exit code 3', 'signal SIGKILL', '')
    """
    if exit_code is None:
        return ""
    return f"signal {signal_name(-exit_code)}" if exit_code < 0 else f"exit code {exit_code}"


def failures_alike(failed: Iterable[Trial]) -> list[tuple[int, FailedTrial]]:
    """How many trials failed in the same way, with the first of each; the most frequent way comes first.

    Failures that differ in numbers only (the value of a parameter, an address) are alike.
    """
    ways: dict[tuple[str, str], list[FailedTrial]] = {}
    for failure in map(FailedTrial.of, failed):
        ways.setdefault((failure.kind, fingerprint(str(failure))), []).append(failure)
    return [(len(way), way[0]) for way in sorted(ways.values(), key=len, reverse=True)]


def retries_by_kind(trials: Sequence[Trial]) -> dict[str, int]:
    """How many failed attempts were run again, by kind of failure."""
    counts: Counter[str] = Counter()
    for trial in trials:
        counts.update(trial.failed)
        if trial.status is TrialStatus.FAILED and trial.kind is not None and trial.failed:
            counts[trial.kind.value] -= 1  # the last failure had no next attempt
    return {kind: count for kind, count in counts.most_common() if count > 0}
