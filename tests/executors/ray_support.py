"""A private Ray that the tests of one session share, and what looks at the processes around it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.executors.private_ray.lease import acquire, stop_ray
from pitchpipe.executors.ray.executor import RayTrialExecutor
from pitchpipe.store.runtime_folder import RUNTIME_DIRECTORY_ENVIRONMENT

# The GPUs are only counted by Ray: there need not be any.
RESOURCES = {"CPU": 2.0, "GPU": 2.0, "widget": 2.0}


@pytest.fixture(scope="session")
def ray_directory() -> Iterator[Path]:
    """The runtime directory of the shared Ray, which is started by its first test and ends with the last."""
    directory = Path(tempfile.mkdtemp(prefix="pp-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(directory))
        lease = asyncio.run(acquire(0.0, RESOURCES))
    yield directory
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(directory))
        stop_ray()
    del lease
    shutil.rmtree(directory)


@pytest.fixture
def shared_ray(ray_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test use the shared Ray; answers its runtime directory."""
    monkeypatch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(ray_directory))
    return ray_directory


def make_ray_executor(**options: Any) -> RayTrialExecutor:
    """An executor over the Ray of the test's runtime directory."""
    return RayTrialExecutor(**{"idle_timeout": 0.0, **options})


def lives(pid: int) -> bool:
    """Does the process still run? A killed one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shared_memory() -> set[str]:
    """What is in the folder of shared memory."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def eventually(condition: Callable[[], Any], timeout: float = 60.0) -> None:
    """Wait for what other processes do, of which there is no news to wait for."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
