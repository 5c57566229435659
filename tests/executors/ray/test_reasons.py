"""Ray's errors in one sentence; no Ray runs here."""

from __future__ import annotations

import pytest
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    ActorUnschedulableError,
    GetTimeoutError,
    RayActorError,
    RayTaskError,
)

from pitchpipe.executors.ray.reasons import ray_error, reason_of, task_error

FAILED = RayTaskError("f", "Traceback\n  ...\nKeyError: 'lr'\n", KeyError("lr"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FAILED, "its agent failed: KeyError: 'lr'"),
        (ConnectionError("its agent closed the connection"), "its agent closed the connection"),
        (ActorUnavailableError("no reply", None), "its agent cannot be reached (its node may be gone)"),
        (
            ActorUnschedulableError("no node has 3 widget\nadvice"),
            "its agent cannot be placed: The actor is not schedulable: no node has 3 widget",
        ),
        (RayActorError(error_msg="the node was terminated: missing too many heartbeats"), "its agent's node is gone"),
        (RayActorError(error_msg="it was killed by `ray.kill`"), "its agent was killed"),
        (ActorDiedError(FAILED), "its agent could not start: KeyError: 'lr'"),
        (RayActorError(error_msg="worker exited"), "its agent's process has ended or was killed"),
        (GetTimeoutError("too slow\nadvice"), "its agent is gone (GetTimeoutError: too slow)"),
        (GetTimeoutError(), "its agent is gone (GetTimeoutError: )"),
    ],
)  # fmt: skip
def test_reason_is_one_sentence(error: BaseException, reason: str) -> None:
    assert reason_of(error) == reason


def test_error_of_the_agents_code_is_one_of_rays() -> None:
    assert issubclass(task_error(), ray_error())
    assert not issubclass(ConnectionError, ray_error())
