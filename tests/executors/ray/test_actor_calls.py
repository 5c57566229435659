"""Errors of Ray by kind; the reasons they give are among the sentences of this room."""

from __future__ import annotations

from pitchpipe.executors.ray.actor_calls import ray_error, task_error


def test_error_of_the_agents_code_is_one_of_rays() -> None:
    assert issubclass(task_error(), ray_error())
    assert not issubclass(ConnectionError, ray_error())
