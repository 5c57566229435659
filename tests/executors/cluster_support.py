"""A real Ray cluster of several nodes that the tests of one session share; each test adds the nodes it needs.

A resource with its name identifies each node. Trials of commands that wait for a file end when it is there.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.private_ray.supervisor_files import TEMP_PREFIX, remove_session

HOST = Path(__file__).with_name("cluster_host.py")
HEAD = {"CPU": 2.0, "head": 8.0}


class Cluster:
    """Talks to a process that holds the nodes."""

    def __init__(self) -> None:
        # Its name keeps others on this machine from taking it for "the" cluster that runs here.
        self.directory = tempfile.mkdtemp(prefix=TEMP_PREFIX, dir="/tmp")
        self.token_path = os.path.join(self.directory, "token")
        Path(self.token_path).write_text(secrets.token_hex(32))
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HOST), self.directory, json.dumps(HEAD)],
            env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": self.token_path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self._reply()["address"]
        self.nodes: list[str] = []

    def ask(self, op: str, **request: Any) -> dict[str, Any]:
        """Do something with a node; return the host's reply."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **request}) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def add(self, name: str, *, environment: dict[str, str] | None = None, **resources: float) -> int:
        """Start a node that has 8 of a resource with its name; return the process id of its raylet."""
        asked = {"name": name, "resources": {name: 8.0, **resources}, "environment": environment or {}}
        self.nodes.append(name)
        return self.ask("add", **asked)["pid"]

    def kill(self, name: str) -> None:
        """Cut the power of a node."""
        self.nodes = [each for each in self.nodes if each != name]
        self.ask("kill", name=name)

    def clear(self) -> None:
        """Remove all nodes but the head."""
        for name in list(self.nodes):
            self.kill(name)

    def close(self) -> None:
        """End everything; the end of the input may not come, as a child forked meanwhile may hold it open."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": "end"}) + "\n")
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        remove_session(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="session")
def real_cluster(ray_nursery: None) -> Iterator[Cluster]:
    """Start the cluster of this session."""
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(real_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Give a test the cluster, which this process may join; nodes that it adds stay until `clear`."""
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", real_cluster.token_path)
    # A child process finds out whether the cluster accepts our token; test_join has one that does not.
    monkeypatch.setattr("pitchpipe.executors.ray.join._knock", lambda address: None)
    return real_cluster
