"""What outlives a lost agent on Ray is ended before its reports are read."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pitchpipe.executors.running_attempts import spool_path
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import Reported

from ..bench import Bench
from ..ray_support import lives

pytestmark = pytest.mark.ray


REPORT = r"""echo "{\"intermediate\": $n}" >> $PITCHPIPE_REPORTS"""
REPORTING = f"n=0; while true; do {REPORT}; n=$((n+1)); sleep 0.01; done"


def watchdogs(agent: psutil.Process) -> list[psutil.Process]:
    return [each for each in agent.children() if any("watchdog.py" in word for word in each.cmdline())]


@pytest.mark.parametrize("way", ["here", "there"])
async def test_trial_that_outlives_its_agent_and_watchdog_is_ended_before_its_reports_are_read(
    bench: Bench, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "there":  # the manager takes its own machine for another one
        monkeypatch.setattr(
            "pitchpipe.executors.ray.file_transfer.socket", SimpleNamespace(gethostname=lambda: "elsewhere")
        )
    async with bench.session(kind="command", command=REPORTING, code_directory=str(tmp_path)) as session:
        order = session.start()
        await session.until(lambda: len(session.of(order, Reported)) > 2)
        trial = psutil.Process((await session.started(order)).pid)
        agent = trial.parent()
        assert agent is not None
        for each in (*watchdogs(agent), agent):
            each.kill()
        await session.end_of(order)
        assert not lives(trial.pid)
        spool = spool_path(session.setup, order).read_text()
        assert {report.sequence for report in session.of(order, Reported)} == set(range(spool.count("\n")))


async def test_trial_that_outlived_its_manager_and_agent_is_ended_by_the_next_manager(
    bench: Bench, tmp_path: Path
) -> None:
    async with bench.session(kind="command", command="true", code_directory=str(tmp_path)) as session:
        order = AttemptOrder(
            trial_id="T0001", attempt=1, sequence_id=1, record="{}", slot=0, agent="0-0", start_time=1.0
        )
        spool = spool_path(session.setup, order)
        spool.parent.mkdir(parents=True)
        spool.write_text('{"intermediate": 1}\n')
        environment = {**os.environ, "PITCHPIPE_REPORTS": str(spool)}
        orphan = subprocess.Popen(["sleep", "600"], env=environment)
        await session.executor.attach([order])
        ended = await session.end_of(order)
        assert ended.lost
        assert orphan.wait(5.0) == -signal.SIGKILL
        assert session.outcome(order) == [("intermediate", 0, 1), "ended"]
