"""Rows: how long until something happens."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Peer, Row
from units import milliseconds, seconds

__all__ = ["GROUPS"]

GROUPS = [
    Group(
        "start",
        [
            Probe("Pitchpipe, local", "ours_start.py", 5, 1),
            Probe("Pitchpipe, Ray", "ours_start.py", 1, 1, ("--platform", "ray")),
            Probe("NNI", "nni_start.py", 1, 1, needs="nni"),
            Probe("Ray Tune", "tune_start.py", 1, 1, needs="ray"),
        ],
        [
            Row(
                "`pitchpipe run` to first trial running, local",
                "seconds",
                Limit(0.7, at_least=False),
                seconds,
                ours="Pitchpipe, local",
                peers=(Peer("NNI"), Peer("Ray Tune")),
            ),
            Row(
                "`pitchpipe run` to first trial running, with a private Ray",
                "seconds",
                None,
                seconds,
                ours="Pitchpipe, Ray",
                peers=(Peer("NNI"), Peer("Ray Tune")),
            ),
            Row(
                "of that, beyond Ray's own start",
                "beyond_ray",
                Limit(0.3, at_least=False),
                seconds,
                ours="Pitchpipe, Ray",
                note="Ray's own start is python, `import ray` and `ray.init(address='local')`, side by side",
            ),
        ],
    ),
    Group(
        "imports",
        [
            Probe("Pitchpipe", "imports.py", 15, 3, ("--module", "pitchpipe", "--command", "pitchpipe")),
            Probe("NNI", "imports.py", 5, 1, ("--module", "nni", "--command", "nnictl"), "nni"),
            Probe("Optuna", "imports.py", 10, 1, ("--module", "optuna", "--command", "optuna"), "optuna"),
            Probe("Ray Tune", "imports.py", 5, 1, ("--module", "ray.tune"), "ray"),
        ],
        [
            Row(
                "`import pitchpipe` in a trial (beyond bare python)",
                "import",
                Limit(0.030, at_least=False),
                milliseconds,
                peers=(Peer("NNI"), Peer("Optuna"), Peer("Ray Tune")),
            ),
            Row(
                "`pitchpipe --help`",
                "help",
                Limit(0.150, at_least=False),
                milliseconds,
                peers=(Peer("NNI"), Peer("Optuna")),
            ),
        ],
    ),
]
