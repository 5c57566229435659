"""A dispatcher that starts before its experiment."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.dispatcher_link.dispatcher import Dispatcher, DispatcherSetup
from pitchpipe.manager.dispatcher_link.dispatcher_process import dispatcher_environment
from pitchpipe.manager.standby import SpawnedDispatcher, StandbyDispatcher
from pitchpipe.protocol import CommandType, encode_frame

TUNER = """
import os, sys
from pitchpipe.tuners import RandomTuner

class Telling(RandomTuner):
    def __init__(self, **options):
        super().__init__(**options)
        print(sys.argv[1:], os.environ["HOME"], "LEFT_OUT" in os.environ, file=sys.stderr)
"""

pytestmark = pytest.mark.dispatcher_process


def environment(folder: Path) -> dict[str, str]:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "telling.py").write_text(TUNER)
    tuner = {"className": "telling.Telling", "codeDirectory": str(folder)}
    found = dispatcher_environment({"tuner": tuner}, folder, mode="start", log_level="info")
    del found["LEFT_OUT"]
    return {**found, "HOME": "/home/ada"}


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def close(spawned: SpawnedDispatcher) -> None:
    os.close(spawned.reads)
    os.close(spawned.writes)


@pytest.fixture
def standby(monkeypatch: pytest.MonkeyPatch) -> StandbyDispatcher:
    monkeypatch.setenv("LEFT_OUT", "")
    return StandbyDispatcher()


def test_standby_serves_with_the_environment_it_is_given(standby: StandbyDispatcher, tmp_path: Path) -> None:
    taken = standby.take(environment(tmp_path), tmp_path / "out")
    os.write(taken.writes, encode_frame(CommandType.Initialize, "{}") + encode_frame(CommandType.Terminate))
    assert exit_code(taken.pid) == 0
    assert os.read(taken.reads, 2) == b"ID"
    assert (tmp_path / "out").read_text() == "['--standby'] /home/ada False\n"
    close(taken)


def test_standby_is_taken_once(standby: StandbyDispatcher, tmp_path: Path) -> None:
    taken = standby.take(environment(tmp_path), tmp_path / "out")
    assert standby.take(environment(tmp_path), tmp_path / "out") is None
    standby.close()  # nothing: it serves
    close(taken)  # the manager is gone
    assert exit_code(taken.pid) == 0


def test_standby_that_is_dead_is_not_taken(standby: StandbyDispatcher, tmp_path: Path) -> None:
    os.kill(standby.pid, signal.SIGKILL)
    os.waitid(os.P_PID, standby.pid, os.WEXITED | os.WNOWAIT)
    assert standby.take(environment(tmp_path), tmp_path / "out") is None
    assert standby.pid is None


def test_environment_that_is_too_large_to_hand_over_is_not_handed_over(
    standby: StandbyDispatcher, tmp_path: Path
) -> None:
    assert standby.take({"LARGE": "x" * 10_000_000}, tmp_path / "out") is None
    assert standby.pid is None
    assert not (tmp_path / "out").exists()


def test_standby_that_is_closed_has_ended(standby: StandbyDispatcher) -> None:
    pid = standby.pid
    assert pid is not None
    standby.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_session_that_never_begins_ends_its_standby(standby: StandbyDispatcher, tmp_path: Path) -> None:
    setup = DispatcherSetup(config={}, folder=tmp_path, clock=time.time, standby=standby)
    nothing: Any = None
    asyncio.run(Dispatcher(setup, nothing, dict, nothing).terminate(1.0))
    assert standby.pid is None
