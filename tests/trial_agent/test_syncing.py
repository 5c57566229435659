"""What is forced to the disk if an experiment asks for it, and that this happens before the manager gets it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.trial_agent import sync_tree
from pitchpipe.trial_agent.agent_events import Event

from .client import REPORTS_AND_SAVES, Actor, reports_and_saves


class Disk:
    """Notes what is forced to the disk, as paths in `root`, interleaved with the events that others may see."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log: list[str] = []

    def fsync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self.log.append(os.path.relpath(path, self.root))

    def before(self, event: str) -> list[str]:
        """Return what was forced to the disk before an event could be seen."""
        return self.log[: self.log.index(event)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(tmp_path)
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


def run_trial(disk: Disk, monkeypatch: pytest.MonkeyPatch, kind: str, **run: Any) -> None:
    """Run a trial in an agent; the disk's log also has its events."""
    with Actor(disk.root) as actor:
        add = actor.agent.outbox.add

        def noting(events: Iterable[Event], **how: Any) -> int:
            events = list(events)
            disk.log += [event.e for event in events]
            return add(events, **how)

        monkeypatch.setattr(actor.agent.outbox, "add", noting)
        if kind == "command":
            actor.configure(kind=kind, command=REPORTS_AND_SAVES, **run)
        else:
            actor.configure_function(reports_and_saves, **run)
        actor.run()


def test_reports_and_checkpoint_of_a_function_are_on_the_disk_before_others_see_them(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_trial(disk, monkeypatch, "function", synced=True)
    spool, folder = "agents/agent-1.jsonl", "trials/0/checkpoints/1-1"
    assert disk.before("started") == [spool, "agents", "."]
    assert disk.before("report").count(spool) == 2
    assert disk.before("ended")[-1] == spool
    saved = disk.log[disk.log.index("report") + 1 : disk.log.index("checkpoint")]
    above = ["trials/0/checkpoints", "trials/0", "trials", "."]
    assert saved[:7] == [f"{folder}/data.json", folder, *above, spool]
    assert f"{folder}/checkpoint.json" in saved[7:]


def test_reports_and_checkpoint_of_a_command_are_on_the_disk_before_the_manager_learns_of_them(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_trial(disk, monkeypatch, "command", synced=True)
    spool, folder = "trials/0/reports-1.jsonl", "trials/0/checkpoints/1-1"
    assert disk.before("started") == [spool, "trials/0", "trials", "."]
    assert disk.before("report").count(spool) == 2
    assert disk.before("ended")[-1] == spool
    before = disk.before("checkpoint")
    assert {f"{folder}/weights", f"{folder}/checkpoint.json"} <= set(before)
    last = max(index for index, path in enumerate(before) if path == folder)
    assert before[last + 1 : last + 5] == ["trials/0/checkpoints", "trials/0", "trials", "."]


@pytest.mark.parametrize("kind", ["command", "function"])
def test_file_that_shows_a_checkpoint_to_be_whole_comes_after_all_others(
    kind: str, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "trials/0/checkpoints/1-1"
    data = f"{folder}/{'weights' if kind == 'command' else 'data.json'}"
    replaced = os.replace

    def replace(source: Any, target: Any) -> None:
        disk.log.append(f"now {os.path.relpath(target, disk.root)}")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", replace)
    run_trial(disk, monkeypatch, kind, synced=True)
    shown = disk.log.index(f"now {folder}/checkpoint.json")
    assert {data, folder} <= set(disk.log[:shown])
    assert f"{folder}/checkpoint.json" in disk.log[shown : disk.log.index("checkpoint")]


def test_reports_that_cannot_be_forced_to_the_disk_are_a_problem(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(descriptor: int) -> None:
        disk.fsync(descriptor)
        if disk.log[-1].endswith(".jsonl") and "started" in disk.log:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    run_trial(disk, monkeypatch, "command", synced=True)
    assert disk.log.index("problem") > disk.log.index("report")


@pytest.mark.parametrize("kind", ["command", "function"])
def test_nothing_is_forced_to_the_disk_by_default(
    kind: str, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_trial(disk, monkeypatch, kind)
    assert {"started", "report", "checkpoint", "ended"} >= set(disk.log)


def test_files_of_a_tree_come_before_their_folders_and_links_are_left_out(disk: Disk) -> None:
    inner = disk.root / "tree" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("1")
    (inner / "link").symlink_to("/nowhere")
    os.mkfifo(inner / "fifo")
    sync_tree(disk.root / "tree")
    assert disk.log == ["tree/inner/file", "tree/inner", "tree"]
