"""Joining a cluster that another program has started, by its address and token; it is left as it was.

The shared private Ray serves as that cluster: it has a head and a token of its own.
"""

import asyncio
import os
from pathlib import Path

import psutil
import pytest
import ray

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.private_ray.lease import ray_status
from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, SupervisorState
from pitchpipe.executors.ray.actor_calls import ray_errors
from pitchpipe.executors.ray.ray_executor import RayTrialExecutor

from ..bench import Bench

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster(shared_ray: Path, monkeypatch: pytest.MonkeyPatch) -> SupervisorState:
    state = SupervisorFiles.current().read_state()
    assert state is not None
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", state.token_path)
    return state


async def test_cluster_that_auto_means_is_joined_and_left_without_a_trace(
    cluster: SupervisorState, own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    async with own_bench.session(executor=RayTrialExecutor("auto")) as joined:
        assert joined.totals.amounts["widget"] == 2.0
        assert await joined.outcome_of(final=3) == [("final", 0, 3), "ended"]
    status = ray_status()
    assert status is not None
    assert (status["pid"], status["agents"]) == (cluster.pid, [])
    # A call after that starts no Ray.
    with pytest.raises(ray_errors().RayError, match="not been started"):
        ray.put(1)
    assert not ray.is_initialized()


def test_wrong_token_is_an_error_in_words_and_nothing_is_printed(
    cluster: SupervisorState,
    own_bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(wrong))
    redirected: list[int] = []
    redirect = os.dup2
    monkeypatch.setattr(os, "dup2", lambda old, new: redirected.append(new) or redirect(old, new))
    opening = RayTrialExecutor(cluster.address).open(own_bench.setup(), lambda events: None)
    with pytest.raises(ExecutorError, match=f"the Ray cluster at {cluster.address} refuses our token: set "):
        asyncio.run(asyncio.wait_for(opening, 15.0))
    assert redirected == []  # what else this process prints meanwhile must not be lost
    assert capfd.readouterr() == ("", "")
    assert "RAY_AUTH_MODE" not in os.environ
    assert psutil.pid_exists(cluster.pid)
