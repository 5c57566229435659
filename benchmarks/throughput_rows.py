"""Rows: how many trials and results a second."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Peer, Row
from units import rate

__all__ = ["GROUPS"]

_FUNCTION_PEERS = (Peer("Optuna, SQLite"), Peer("Optuna, journal"), Peer("Ray Tune"))

GROUPS = [
    Group(
        "scripts",
        [
            Probe("Pitchpipe", "ours_scripts.py", 400, 20),
            Probe("NNI", "nni_scripts.py", 20, 4, needs="nni"),
        ],
        [
            Row(
                "script trials, no-op `python trial.py`, cold, 2 at once",
                "trials_per_second",
                Limit(60, at_least=True),
                rate,
                peers=(Peer("NNI"),),
                higher_is_better=True,
            ),
            Row(
                "script trials, started warm",
                "trials_per_second",
                Limit(150, at_least=True),
                rate,
                ours="Pitchpipe, warm",
                higher_is_better=True,
                note="later",
            ),
        ],
    ),
    Group(
        "functions",
        [
            Probe("Pitchpipe, local", "ours_functions.py", 5000, 200),
            Probe("Optuna, SQLite", "optuna_functions.py", 500, 20, ("--storage", "sqlite"), "optuna"),
            Probe("Pitchpipe, Ray", "ours_functions.py", 3000, 200, ("--platform", "ray")),
            Probe("Optuna, journal", "optuna_functions.py", 500, 50, ("--storage", "journal"), "optuna"),
            Probe("Ray Tune", "tune_functions.py", 500, 10, needs="ray"),
        ],
        [
            Row(
                "function trials, no-op, 2 at once, every result committed, local",
                "trials_per_second",
                Limit(3000, at_least=True),
                rate,
                ours="Pitchpipe, local",
                peers=_FUNCTION_PEERS,
                higher_is_better=True,
            ),
            Row(
                "the same on Ray",
                "trials_per_second",
                Limit(1000, at_least=True),
                rate,
                ours="Pitchpipe, Ray",
                peers=_FUNCTION_PEERS,
                higher_is_better=True,
            ),
        ],
    ),
    Group(
        "results",
        [
            Probe("Pitchpipe", "ours_results.py", 100_000, 2_000),
            Probe("Optuna, SQLite", "optuna_results.py", 500, 50, ("--storage", "sqlite"), "optuna"),
            Probe("Optuna, journal", "optuna_results.py", 2000, 50, ("--storage", "journal"), "optuna"),
            Probe("Ray Tune", "tune_results.py", 2000, 50, needs="ray"),
        ],
        [
            Row(
                "intermediate results stored and assessed, 2 trials at once",
                "results_per_second",
                Limit(30_000, at_least=True),
                rate,
                peers=_FUNCTION_PEERS,
                higher_is_better=True,
            ),
        ],
    ),
]
