"""Folders that earlier versions made (see make.py): each is listed, shown, exported, resumed and extended.

What was there is there afterwards, once and unchanged; new trials succeed.
"""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
import socket
import sqlite3
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pitchpipe
from pitchpipe.cli.app import run
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager import resume_experiment
from pitchpipe.manager.control import Extension, extend_experiment
from pitchpipe.store.folder import ExperimentFolder

from ..dispatcher_threads import dispatchers_on_threads

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
MADE_ON = "corpus"  # the host in make.py
LOCAL = ("done", "done-two", "function", "killed-ended", "killed-running", "stopped-two")
"""Run by agents of this version; the others are about the tuner, and their new trials are simulated."""
# Python before 3.11.4 has no such filter.
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the directory with the folders of a version, as if they had been made on this machine."""
    directory = tmp_path_factory.mktemp("corpus")
    with tarfile.open(request.param) as archive:
        archive.extractall(directory, **SAFELY)
    for info in directory.glob("*/manager.json"):
        info.write_text(info.read_text().replace(f'"{MADE_ON}"', json.dumps(socket.gethostname())))
    yield directory
    shutil.rmtree(directory)


def query(folder: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "experiment.db")) as db:
        return db.execute(sql).fetchall()


def finals(folder: Path) -> list[Any]:
    """All final results that count."""
    return query(
        folder,
        "SELECT sequence_id, value FROM metrics JOIN trials USING (sequence_id)"
        " WHERE metrics.kind = 'FINAL' AND NOT superseded AND status = 'SUCCEEDED' ORDER BY 1",
    )


def ids(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_folders_are_listed_shown_and_exported(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def output(*command: object) -> str:
        assert run([str(word) for word in command]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    listed = json.loads(output("list", "--dir", folders, "--json"))
    assert {row["id"] for row in listed} == set(ids(folders))
    for name in ids(folders):
        found = finals(folders / name)
        summary = json.loads(output("status", name, "--dir", folders, "--json"))
        assert summary["id"] == name
        exported = list(
            csv.DictReader(output("export", name, "--dir", folders, "--format", "csv").splitlines())
        )
        succeeded = [int(row["sequence_id"]) for row in exported if row["status"] == "SUCCEEDED"]
        assert succeeded == [number for number, _ in found]


def simulated_executor() -> SimulatedTrialExecutor:
    def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
        return SimulatedRun(parameters["x"], [parameters["x"]] * 3, checkpoint_every=1)

    return SimulatedTrialExecutor(behave, VirtualClock(2e9))


async def continued(path: Path, at_once: asyncio.Semaphore) -> None:
    """Resume an experiment with two more trials, and wait for its end."""
    if path.name == "search":
        search = pitchpipe.Search(folder=path)
        search.tell(search.ask(), 0.5)
        search.close()
        return
    folder = ExperimentFolder(path)
    ((trials,),) = query(path, "SELECT count(*) FROM trials")
    extend_experiment(folder, Extension(max_trial_number=trials + 2))
    async with at_once:
        executor = None if path.name in LOCAL else simulated_executor()
        clock = None if executor is None else executor._clock
        manager = resume_experiment(folder, executor=executor, clock=clock)
        try:
            assert (await manager.run()).value == "DONE", path.name
        finally:
            manager.store.close()
            folder.disown()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_agents")
def test_folders_are_resumed_and_extended(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatchers_on_threads(monkeypatch)
    # The code of a function is bytecode, of the Python that made these folders.
    names = [name for name in ids(folders) if name != "function" or sys.version_info[:2] == (3, 11)]
    before = {name: finals(folders / name) for name in names}

    async def continue_all() -> None:
        at_once = asyncio.Semaphore(4)
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(continued(folders / name, at_once))

    asyncio.run(continue_all())
    for name in names:
        after = finals(folders / name)
        assert [row for row in after if row in before[name]] == before[name], name
        assert len({number for number, _ in after}) == len(after) > len(before[name]), name
        assert not query(folders / name, "SELECT * FROM trials WHERE status = 'FAILED'"), name
