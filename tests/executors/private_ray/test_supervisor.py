"""A real supervisor: shared by managers that start it at once, gone without a trace when it ends or is killed."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.private_ray.lease import RayLease, acquire, ray_status, stop_ray
from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, session_processes
from pitchpipe.trial_agent import usable_cpus

from ..ray_support import eventually, lives, shared_memory

PATIENCE = 20.0


class Traces:
    """What a running supervisor could leave behind."""

    def __init__(self, lease: RayLease) -> None:
        state = SupervisorFiles.current().read_state()
        assert state is not None
        self.temp_dir = Path(state.temp_dir)
        self.processes = [psutil.Process(lease.supervisor_pid), *session_processes(state.temp_dir)]

    def wait_for_processes(self) -> None:
        psutil.wait_procs(self.processes, timeout=PATIENCE)

    def left(self) -> list[str]:
        directory = SupervisorFiles.current().directory
        files = [path.name for path in directory.iterdir() if path.name != "private-ray.lock"]
        pids = [str(process.pid) for process in self.processes if lives(process.pid)]
        return files + pids + ([str(self.temp_dir)] if self.temp_dir.exists() else [])


@pytest.mark.ray
async def test_supervisor_is_shared_apart_from_the_terminal_and_leaves_no_trace() -> None:
    memory = shared_memory()
    first, second = await asyncio.gather(acquire(0.0, {"CPU": 1, "widget": 3}), acquire(0.0))
    assert first.supervisor_pid == second.supervisor_pid
    traces = Traces(first)
    assert len(traces.processes) > 4
    scripts = {Path(word).name for each in traces.processes for word in each.cmdline()}
    assert scripts.isdisjoint({"dashboard.py", "monitor.py", "log_monitor.py"})  # no trial needs these
    # Ctrl-C in the terminal goes to its own session only.
    assert os.getsid(0) not in {os.getsid(process.pid) for process in traces.processes}
    status = ray_status()
    assert status is not None
    assert (status["pid"], status["leases"], status["agents"]) == (first.supervisor_pid, 2, [])
    with pytest.raises(ExecutorError, match=r"was started with 3 widget, not 4; .*pitchpipe ray stop"):
        await acquire(0.0, {"widget": 4})
    await first.close()
    assert not psutil.wait_procs(traces.processes[:1], timeout=0.2)[0]
    await second.close()
    assert traces.left() == []
    assert shared_memory() <= memory
    assert ray_status() is None
    assert stop_ray() is False


@pytest.mark.ray
async def test_supervisor_that_is_killed_is_replaced_and_one_that_is_asked_to_end_leaves_no_trace() -> None:
    """The first is killed while its Ray starts; the second ends whatever its leases."""
    acquiring = asyncio.create_task(acquire(60.0))
    place = SupervisorFiles.current()
    await asyncio.to_thread(eventually, place.read_state)
    killed = place.read_state()
    assert killed is not None
    assert (killed.address, killed.resources["CPU"]) == ("", usable_cpus())
    os.kill(killed.pid, signal.SIGKILL)
    lease = await acquiring
    assert lease.supervisor_pid != killed.pid
    traces = Traces(lease)
    os.kill(lease.supervisor_pid, signal.SIGTERM)
    await asyncio.wait_for(lease.until_lost(), PATIENCE)
    await asyncio.to_thread(traces.wait_for_processes)
    assert traces.left() == []
    await lease.close()
    await asyncio.to_thread(eventually, lambda: not Path(killed.temp_dir).exists())
