"""What is done on one machine; starting a Ray is tested with whole clusters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pitchpipe.executors.clusters import node
from pitchpipe.executors.clusters.node import NodeError, do, start_node


def test_versions_are_those_of_this_environment() -> None:
    versions = do({"op": "check"})["versions"]
    assert versions.keys() == {"Pitchpipe", "Ray", "Python"}
    assert versions["Python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")


def test_folder_that_holds_no_ray_is_not_running_and_can_be_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    folder.mkdir()
    assert do({"op": "look", "folder": str(folder)}) == {"is_running": False}
    assert do({"op": "stop", "folder": str(folder)}) == {}
    assert not folder.exists()


def test_what_ray_says_last_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "_RAY", ("sh", "-c", "echo starting; echo no room; exit 1", "sh"))
    with pytest.raises(NodeError, match=r"^Ray does not start: no room$"):
        start_node(str(tmp_path / "ray"), "secret")
    assert (tmp_path / "ray" / "token").stat().st_mode & 0o777 == 0o600


def test_ray_on_a_node_gets_what_its_process_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "_RAY", ("sh", "-c", 'echo "$@"', "sh"))
    monkeypatch.setattr(node, "limits_of_this_machine", lambda: {"CPU": 3, "memory": 2.0**40})
    start_node(str(tmp_path / "ray"), "secret", address="head:1")
    options = (tmp_path / "ray" / "start.log").read_text().split()
    assert options[-2:] == ["--num-cpus=3", f"--memory={2**40}"]


def test_node_that_stays_is_stopped_at_the_end_of_the_input(tmp_path: Path) -> None:
    request = '{"op": "look", "folder": "%s", "stays": true}\n'
    command = [sys.executable, "-P", "-m", "pitchpipe.executors.clusters.node"]
    done = subprocess.run(command, input=request % tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == '{"is_running": false}\n'
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_ray_that_takes_too_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "_RAY", ("sh", "-c", "exec sleep 60", "sh"))
    monkeypatch.setattr(node, "_START_TIMEOUT", 0.1)
    with pytest.raises(NodeError, match=r"^Ray does not start within 0\.1 s$"):
        start_node(str(tmp_path / "ray"), "secret")
