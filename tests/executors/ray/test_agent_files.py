"""What is sent to an agent that works in a folder of its own."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import ObjectLostError, RayTaskError

from pitchpipe.executors.ray.agent_files import AgentFiles
from pitchpipe.executors.ray.file_transfer import AgentLocation, pack
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.trial_agent import Ended, Event, Ping, RunSpec, Saved

from ..bench import setup_of

RUN = RunSpec(
    kind="function", experiment="exp", folder="/exp", path="/exp/trial.pkl", code_directory="/home/ada"
)


@pytest.fixture
def files() -> AgentFiles:
    return AgentFiles("0-0", setup_of(Path("/exp"), RUN), list, list)


def location(**where: str) -> AgentLocation:
    return AgentLocation(node="n", host="far", pid=1, created=0.0, **where)


def test_request_has_the_folders_of_the_agent(files: AgentFiles) -> None:
    files.where = location(folder="/scratch/exp/0-0", code_directory="/ray/code")
    folder = "/scratch/exp/0-0"
    assert files.localized(RUN) == replace(
        RUN, folder=folder, path=f"{folder}/trial.pkl", code_directory="/ray/code"
    )


def test_request_stays_as_it_is_for_an_agent_that_sees_the_experiments_folder(files: AgentFiles) -> None:
    files.where = location()
    assert files.localized(RUN) is RUN
    assert files.localized(Ping()) == Ping()


# --------------------------------------------------------------------------- files that do not arrive


ORDER = AttemptOrder(trial_id="T1", attempt=1, sequence_id=3, record="{}", slot=0, agent="0-0")


def saved(number: int) -> Saved:
    return Saved(trial="T1", attempt=1, name=f"1-{number}", sequence=number, time=0.0)


ENDED = Ended(trial="T1", attempt=1, exit_code=0, time=0.0)


def fetched(tmp_path: Path, fetch: Callable[[str], bytes], *events: Event, **methods: Any) -> list[Event]:
    """Return the events that are passed on after their files were fetched; `methods` are others of the agent."""
    files = AgentFiles("0-0", setup_of(tmp_path, RUN), lambda: [ORDER], list)
    replies = {"fetch": fetch, "checkpoints": lambda folder: [], "forget": lambda name: None, **methods}

    async def call(method: str, *arguments: Any) -> Any:
        return replies[method](*arguments)

    return asyncio.run(files.fetch_for(call, events))


def test_checkpoint_that_was_pruned_before_it_was_fetched_does_not_count(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "trials/3/checkpoints/1-2").mkdir(parents=True)
    (there / "trials/3/checkpoints/1-2/data").touch()
    here = tmp_path / "here"
    here.mkdir()
    first, second = saved(1), saved(2)
    found = fetched(here, lambda name: pack(str(there), [name]), first, second, ENDED)
    assert found == [second, ENDED]


FAILED = RayTaskError("f", "OSError: [Errno 5] Input/output error", OSError(5, "Input/output error"))


@pytest.mark.parametrize("error", [FAILED, ObjectLostError("1f", None, "")])
def test_file_that_cannot_be_fetched_is_missed_and_the_events_are_passed_on(
    error: Exception, tmp_path: Path
) -> None:
    def fail(name: str) -> Any:
        raise error

    forgotten: list[str] = []
    assert fetched(tmp_path, fail, saved(1), ENDED, forget=forgotten.append) == [ENDED]
    assert forgotten == []  # it stays where it is
    assert fetched(tmp_path, lambda name: b"", ENDED, checkpoints=fail, forget=fail) == [ENDED]


def test_files_are_removed_at_their_agent_only_when_they_have_arrived(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "trials/3").mkdir(parents=True)
    (there / "trials/3/stdout").write_text("12 steps")
    here.mkdir()
    found: list[str] = []

    def forget(name: str) -> None:
        found.append((here / name / "stdout").read_text())

    assert fetched(here, lambda name: pack(str(there), [name]), ENDED, forget=forget) == [ENDED]
    assert found == ["12 steps"]


def test_file_that_cannot_be_kept_is_missed_and_the_events_are_passed_on(tmp_path: Path) -> None:
    assert fetched(tmp_path / "gone", lambda name: pack(str(tmp_path), []), ENDED) == [ENDED]


def test_files_wait_until_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [errno.ENOSPC, errno.EDQUOT]
    taken: list[bytes] = []

    def unpack_when_there_is_room(data: bytes, folder: Path) -> None:
        if refusals:
            raise OSError(refusals[-1], os.strerror(refusals.pop()))
        taken.append(data)

    monkeypatch.setattr("pitchpipe.executors.ray.agent_files.unpack", unpack_when_there_is_room)
    monkeypatch.setattr("pitchpipe.executors.ray.agent_files._TRY_AGAIN", 0.0)
    assert fetched(tmp_path, lambda name: b"data", ENDED) == [ENDED]
    assert taken == [b"data"]
