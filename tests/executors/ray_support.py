"""A private Ray that the tests of one session share, and what looks at the processes around it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.executors.private_ray.lease import acquire, stop_ray
from pitchpipe.store.runtime_folder import RUNTIME_DIRECTORY_ENVIRONMENT

from .quick_ray import NURSERY_VARIABLE

QUICK_RAY = Path(__file__).with_name("quick_ray.py")
RUN_PROCESS = subprocess.run
RUN = [sys.executable, "-P", "-m", "pitchpipe", "run", "experiment.json", "--dir", "runs"]
REPORT = """echo '{"final": 1}' >> $PITCHPIPE_REPORTS"""
# The GPUs are only counted by Ray: there need not be any.
RESOURCES = {"CPU": 2.0, "GPU": 2.0, "widget": 2.0}
# Ray puts the path into a line of shell as it is (its runtime_env/context.py).
needs_runtime_env = pytest.mark.skipif(
    " " in sys.executable, reason="with a runtime_env, Ray starts no Python whose path has a space"
)


@pytest.fixture(scope="session")
def ray_nursery() -> Iterator[None]:
    """Start the process from which the workers of the shared Ray and of clusters are forked."""
    folder = tempfile.mkdtemp(prefix="pp-", dir="/tmp")
    path = os.environ[NURSERY_VARIABLE] = f"{folder}/nursery.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen(64)
        command = [sys.executable, "-P", str(QUICK_RAY), "nursery", str(server.fileno())]
        nursery = subprocess.Popen(
            command, pass_fds=[server.fileno()], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
        )
    yield
    nursery.terminate()
    nursery.communicate()
    del os.environ[NURSERY_VARIABLE]
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def ray_directory(ray_nursery: None) -> Iterator[Path]:
    """Start the shared Ray for its first test, end it after the last; yield its runtime directory."""
    directory = Path(tempfile.mkdtemp(prefix="pp-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(directory))
        patch.setattr(subprocess, "run", run_quickly)
        lease = asyncio.run(acquire(0.0, RESOURCES))
    yield directory
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(directory))
        stop_ray()
    del lease
    shutil.rmtree(directory)


def run_quickly(command: list[str], **options: Any) -> Any:
    """Start a supervisor whose Ray starts its processes quickly."""
    words = command[command.index("pitchpipe.executors.private_ray.supervisor") + 1 :]
    return RUN_PROCESS([sys.executable, "-P", str(QUICK_RAY), "supervisor", *words], **options)


@pytest.fixture
def shared_ray(ray_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test use the shared Ray; return its runtime directory."""
    monkeypatch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(ray_directory))
    return ray_directory


def forbid_sockets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let agents make no socket: the paths in the directory for them are too long."""
    monkeypatch.setattr(
        "pitchpipe.executors.ray.ray_executor.agent_sockets", lambda folder: tmp_path / ("long" * 30)
    )


def connections(pid: int, folder: Path) -> int:
    """Return how many sockets a process has whose own path is below a folder."""
    paths = (Path(each.laddr) for each in psutil.Process(pid).net_connections("unix") if each.laddr)
    return sum(folder in path.parents and path.suffix == ".sock" for path in paths)


def write_config(folder: Path, command: str, **options: Any) -> None:
    config = {
        "trial_command": command,
        "trial_concurrency": 2,
        "max_trial_number": 3,
        "objectives": [{"name": "default", "direction": "maximize"}],
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "training_service": {"platform": "ray", "idle_timeout": 0},
        **options,
    }
    (folder / "experiment.json").write_text(json.dumps(config))


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and kill it at the end if it still runs."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def lives(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shared_memory() -> set[str]:
    """Return the names in the folder of shared memory."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def eventually(condition: Callable[[], Any], timeout: float = 60.0) -> None:
    """Wait until a condition on other processes holds, for which there is no event."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
