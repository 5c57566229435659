"""Which private Ray is announced."""

from typing import Any

import pytest

from pitchpipe.cli.verbs.ray import staying_line

from .results import RAY_RUNS

RAY = {"trainingService": {"platform": "ray"}}


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        (RAY, None),
        (RAY, {"pid": 5, "starting": True}),
        (RAY, {**RAY_RUNS, "leases": 1}),
        (RAY, {**RAY_RUNS, "idle_timeout": 0.0}),
        ({"trainingService": {"platform": "ray", "address": "auto"}}, RAY_RUNS),
        ({"trainingService": {"platform": "local"}}, RAY_RUNS),
    ],
)
def test_a_ray_that_leaves_or_is_used_or_is_not_ours_is_not_announced(
    config: dict[str, Any], answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitchpipe.executors.private_ray.ray_status", lambda: answer)
    assert staying_line(config) == ""
