"""Rows: how soon an experiment goes on after it was stopped, or one of its processes killed."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Row
from units import milliseconds, seconds

__all__ = ["GROUPS"]

GROUPS = [
    Group(
        "resume",
        [
            Probe("Pitchpipe", "ours_resume.py", 100_000, 20, timeout=900.0, repetitions=1),
            Probe(
                "Pitchpipe, TPE, killed",
                "ours_resume.py",
                100_000,
                20,
                ("--tuner", "TPE", "--ending", "killed"),
                timeout=1800.0,
                repetitions=1,
            ),
        ],
        [
            Row(
                "resume of a 100,000-trial experiment, to its next trial done",
                "seconds",
                Limit(5.0, at_least=False),
                seconds,
            ),
            Row(
                "the same with TPE, after `kill -9` of its manager",
                "seconds",
                Limit(5.0, at_least=False),
                seconds,
                ours="Pitchpipe, TPE, killed",
            ),
        ],
    ),
    Group(
        "recovery",
        [Probe("Pitchpipe", "ours_recovery.py", 9, 1)],
        [
            Row("after `kill -9` of a trial: its next attempt has reported", "trial", None, milliseconds),
            Row("after `kill -9` of an agent: the next attempt has reported", "agent", None, seconds),
            Row(
                "after `kill -9` of the dispatcher: a trial of the new one is there",
                "dispatcher",
                None,
                seconds,
            ),
            Row(
                "after `kill -9` of the manager: `pitchpipe resume` has committed a result",
                "manager",
                None,
                seconds,
            ),
        ],
    ),
]
