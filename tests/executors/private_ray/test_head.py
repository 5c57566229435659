"""How a supervisor starts and ends its Ray, with a Ray that only records."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pitchpipe.executors.private_ray.head import RayHead

ADDRESS = "10.0.0.1:6379"
NODE = b"the node"
VARIABLES = (
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN_PATH",
    "RAY_USAGE_STATS_ENABLED",
    "RAY_ADDRESS",
    "RAY_AUTH_TOKEN",
)


class FakeRay:
    """Records how it is started and whether it is shut down."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.environment: dict[str, str | None] = {}
        self.is_shut_down = False
        self.started: list[str] = []
        self.looks = 0
        self.util = SimpleNamespace(
            list_named_actors=lambda all_namespaces: [{"namespace": "exp", "name": "0-0"}]
        )

    def init(self, **options: Any) -> SimpleNamespace:
        self.options = options
        node = sys.modules["ray._private.node"].Node()
        node.start_gcs_server()
        node.start_api_server(include_dashboard=False)
        node.start_monitor()
        node.start_log_monitor()
        assert sys.modules["ray._private.services"].get_node(ADDRESS, NODE.hex()) == {"looks": 3}
        self.environment = {name: os.environ.get(name) for name in VARIABLES}
        return SimpleNamespace(address_info={"gcs_address": ADDRESS})

    def shutdown(self) -> None:
        self.is_shut_down = True

    def get_all_node_info(self, timeout: float) -> list[bytes]:
        """Return the nodes that have registered: ours has at the third look."""
        self.looks += 1
        return [b"another", NODE] if self.looks == 3 else [b"another"]

    def modules(self) -> dict[str, Any]:
        """Return the modules of this Ray that start its processes, by name."""

        def starting(process: str) -> Callable[..., None]:
            return lambda _node, **_options: self.started.append(process)

        names = ("gcs_server", "api_server", "monitor", "log_monitor")
        return {
            "ray": self,
            "ray.util": self.util,
            "ray._raylet": SimpleNamespace(GcsClient=lambda address: self),
            "ray._private.node": SimpleNamespace(
                Node=type("Node", (), {f"start_{each}": starting(each) for each in names})
            ),
            "ray._private.services": SimpleNamespace(get_node=lambda *_: {"looks": self.looks}),
        }


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in VARIABLES:
        monkeypatch.setenv(name, "of the user's cluster")
    return fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pitchpipe-ray-x"
    folder.mkdir()
    return folder


def test_ray_starts_apart_from_the_users_cluster_with_a_private_token(ray: FakeRay, folder: Path) -> None:
    head = RayHead(folder, {"CPU": 2.0, "widget": 3.0})
    assert head.start() == ADDRESS
    assert stat.S_IMODE(head.token_path.stat().st_mode) == 0o600
    assert len(head.token_path.read_text()) == 64
    assert ray.environment == {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(head.token_path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ADDRESS": None,
        "RAY_AUTH_TOKEN": None,
    }
    assert (ray.options["address"], ray.options["_temp_dir"]) == ("local", str(folder))
    assert (ray.options["num_cpus"], ray.options["resources"]) == (2.0, {"widget": 3.0})


def test_ray_starts_only_what_trials_need_and_is_there_as_soon_as_its_node(
    ray: FakeRay, folder: Path
) -> None:
    RayHead(folder, {}).start()
    assert ray.started == ["gcs_server"]
    assert ray.looks == 3


def test_agents_are_the_named_actors(ray: FakeRay, folder: Path) -> None:
    assert RayHead(folder, {}).agents() == ["exp/0-0"]


def test_end_shuts_ray_down_and_leaves_nothing(ray: FakeRay, folder: Path) -> None:
    (folder / "session").mkdir()
    leaving = subprocess.Popen(["cat", f"{folder}/session", "-"], stdin=subprocess.PIPE)
    assert leaving.stdin is not None
    ray.shutdown = leaving.stdin.close  # type: ignore[method-assign]
    RayHead(folder, {}).end()
    assert leaving.wait(5) is not None
    assert not folder.exists()


def test_vital_processes_are_those_of_this_ray_alone(folder: Path, tmp_path: Path) -> None:
    programs = [tmp_path / name for name in ("raylet", "dashboard")]
    for program in programs:
        program.symlink_to("/bin/cat")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE}
    commands = [[str(program), f"{folder}/x", "-"] for program in programs] + [
        [str(programs[0]), "/tmp/other", "-"]
    ]
    started = [subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes) for command in commands]
    try:
        assert [process.pid for process in RayHead(folder, {}).vital()] == [started[0].pid]
    finally:
        for process in started:
            process.communicate()
