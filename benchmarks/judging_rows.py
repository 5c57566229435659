"""Rows: how soon a verdict takes effect, and what the dispatcher itself costs."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Peer, Row
from units import microseconds, milliseconds, rate

__all__ = ["GROUPS"]

GROUPS = [
    Group(
        "verdicts",
        [
            Probe("Pitchpipe", "ours_verdicts.py", 60, 6),
            Probe("NNI", "nni_verdicts.py", 8, 2, needs="nni"),
        ],
        [
            Row(
                "report -> bad verdict -> process gone, p50, script trials",
                "seconds",
                Limit(0.020, at_least=False),
                milliseconds,
                peers=(Peer("NNI"),),
            ),
        ],
    ),
    Group(
        "dispatcher",
        [Probe("Pitchpipe", "ours_dispatcher.py", 100_000, 5_000)],
        [
            Row(
                "dispatcher: request -> new trial round trip, p50",
                "round_trip",
                Limit(150e-6, at_least=False),
                microseconds,
            ),
            Row(
                "dispatcher: metric frames assessed",
                "frames_per_second",
                Limit(50_000, at_least=True),
                rate,
                higher_is_better=True,
            ),
        ],
    ),
]
