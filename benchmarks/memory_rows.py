"""Rows: what a finished trial leaves behind."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Peer, Row
from units import count, kib

__all__ = ["GROUPS"]

GROUPS = [
    Group(
        "memory",
        [
            Probe("Pitchpipe", "ours_memory.py", 6000, 300),
            Probe("Pitchpipe, local", "ours_functions.py", 500, 50, ("--reports", "10")),
            Probe(
                "Optuna, journal",
                "optuna_functions.py",
                500,
                20,
                ("--storage", "journal", "--reports", "10"),
                "optuna",
            ),
            Probe("Ray Tune", "tune_functions.py", 500, 10, ("--reports", "10"), "ray", repetitions=2),
        ],
        [
            Row(
                "manager memory per finished trial with 10 results",
                "bytes_per_trial",
                Limit(2048, at_least=False),
                kib,
                peers=(Peer("Optuna, journal"), Peer("Ray Tune")),
            ),
            Row(
                "files per function trial with 10 results (all files / trials)",
                "files_per_trial",
                Limit(0.1, at_least=False),
                count,
                ours="Pitchpipe, local",
                peers=(Peer("Optuna, journal"), Peer("Ray Tune")),
            ),
        ],
    ),
]
