"""What is said of the private Ray."""

from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.cli.verbs.ray import staying_line

RUNS: dict[str, Any] = {
    "pid": 123,
    "address": "10.0.0.1:6379",
    "since": 1.7e9,
    "temp_dir": "/tmp/pitchpipe-ray-1",
    "versions": {"ray": "2.40.0", "python": "3.11"},
    "leases": 0,
    "idle_timeout": 300.0,
    "seconds_left": 250.0,
    "agents": [],
}
RAY = {"trainingService": {"platform": "ray"}}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Return a function that sets the reply of the supervisor."""
    return lambda answer: monkeypatch.setattr("pitchpipe.executors.private_ray.ray_status", lambda: answer)


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, ["used by  no experiment", "stops    in 4 min 10 s, unless an experiment uses it"]),
        (
            {"leases": 2, "seconds_left": None, "agents": ["k3x9a2bq/1-0", "k3x9a2bq/2-0", "other/1-0"]},
            [
                "used by  experiment k3x9a2bq (2 agents), experiment other (1 agent)",
                "stops    5 min after the last experiment",
            ],
        ),
        (
            {"leases": 1, "seconds_left": None, "idle_timeout": 0.0},
            ["used by  1 experiment", "stops    with the last experiment"],
        ),
    ],
)
def test_ray_status_in_words(
    more: dict[str, Any], lines: list[str], answers: Callable[[Any], None], call: Callable[..., Any]
) -> None:
    answers({**RUNS, **more})
    first, process, *others, files = call("ray", "status").out.splitlines()
    assert first == "a private Ray is running at 10.0.0.1:6379 (ray 2.40.0, python 3.11)"
    assert process.startswith("  process  123, since 2023-11-1")
    assert [line.strip() for line in others] == lines
    assert files == "  files    /tmp/pitchpipe-ray-1"


def test_a_ray_that_starts_and_one_that_is_not_there(
    answers: Callable[[Any], None], call: Callable[..., Any]
) -> None:
    answers({"pid": 5, "starting": True})
    assert call("ray", "status").out == "a private Ray is starting (process 5)\n"
    answers(None)
    assert call("ray", "status").out == "no private Ray is running\n"


def test_a_ray_that_stays_is_announced(answers: Callable[[Any], None]) -> None:
    answers(RUNS)
    line = staying_line(RAY)
    assert line.startswith("the private Ray stays for 5 min; ")
    assert "pitchpipe ray stop" in line


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        (RAY, None),
        (RAY, {"pid": 5, "starting": True}),
        (RAY, {**RUNS, "leases": 1}),
        (RAY, {**RUNS, "idle_timeout": 0.0}),
        ({"trainingService": {"platform": "ray", "address": "auto"}}, RUNS),
        ({"trainingService": {"platform": "local"}}, RUNS),
    ],
)
def test_a_ray_that_leaves_or_is_used_or_is_not_ours_is_not_announced(
    config: dict[str, Any], answer: Any, answers: Callable[[Any], None]
) -> None:
    answers(answer)
    assert staying_line(config) == ""
