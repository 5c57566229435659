"""What an experiment meets besides killed processes: full disks, damaged files, clocks that jump."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.executors.simulated import VirtualClock
from pitchpipe.manager.control.connection import ControlError, ask_manager
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.store import StoreError

from ..dispatcher_threads import dispatchers_on_threads
from ..end_to_end.running import PATIENCE, Lab, Started, lab
from ..manager.experiments import config, created, let_go, resumed, run, story, trials_of
from ..store.conftest import connections, medium

__all__ = ["connections", "lab", "medium"]

SCRIPT = """
import time, pitchpipe
x = pitchpipe.get_next_parameter()["x"]
for step in range(20):
    pitchpipe.report_intermediate_result(x + step)
    time.sleep(0.02)
pitchpipe.report_final_result(x)
"""


def waiting(script: str) -> str:
    """Let trials wait halfway for the file "go", so that they cannot have ended before the test acts."""
    wait = "import os\n    while step == 5 and not os.path.exists('go'):\n        time.sleep(0.01)\n"
    return script.replace("    time.sleep", f"    {wait}    time.sleep")


STEP = """
import time, pitchpipe

def get_step():
    checkpoint = pitchpipe.get_checkpoint()
    return checkpoint.to_dict()["step"] + 1 if checkpoint else 0
"""


@pytest.fixture(autouse=True)
def _no_new_interpreters(forked_agents: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the agents, and let this process host dispatchers."""
    dispatchers_on_threads(monkeypatch)


def check_all_succeeded(lab: Lab, trials: int = 3) -> None:
    ends = lab.query("SELECT status, reason, exit_code, error FROM trials")
    assert [status for status, *_ in ends] == ["SUCCEEDED"] * trials, ends
    counted = lab.query(
        "SELECT sequence_id, count(*), count(DISTINCT sequence) FROM metrics"
        " WHERE NOT superseded AND kind = 'PERIODICAL' GROUP BY 1"
    )
    assert counted == [(number, 20, 20) for number in range(trials)]


# --------------------------------------------------------------------------- no room


def warnings_of(lab: Lab) -> list[str]:
    """Return the warnings of the manager."""
    try:
        return ask_manager(lab.database.parent, {"op": "status"})["warnings"]
    except ControlError:
        return []


def until_it_waits_for_room(lab: Lab, process: Started) -> None:
    lab.until(lambda: any("waits for room" in warning for warning in warnings_of(lab)), process)


@pytest.mark.slow
def test_experiment_without_room_can_be_stopped_and_continues_when_there_is_some(lab: Lab) -> None:
    process = lab.start_run(lab.write(waiting(SCRIPT)))
    lab.until_reports(6, process)
    # Room for the index of the log (32 KiB), and none for the database, so that the log cannot be folded into it.
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (33 * 1024, resource.RLIM_INFINITY))
    lab.let_trials_go()
    until_it_waits_for_room(lab, process)
    code, output, _ = lab.run("status", "exp")
    assert code == 0
    assert "experiment.db cannot be written" in output
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (1, 130), errors
    summary = json.loads(output)
    assert summary["status"] == "ERROR"
    assert "experiment.db" in summary["reason"]
    assert "make room and resume" in summary["reason"]
    assert "Traceback" not in errors
    assert lab.resume_json()["status"] == "DONE"
    check_all_succeeded(lab)


def fill(path: Path) -> None:
    """Leave no byte free."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["process", "power"])
def test_trials_on_a_full_disk_are_run_again_when_there_is_room(
    durability: str, lab: Lab, medium: Path
) -> None:
    lab.directory = medium / "experiments"
    wordy = SCRIPT.replace("x + step)", "{'default': x + step, 'words': 'x' * 2000})")
    if durability == "power":  # with checkpoints, each of which needs its own files
        wordy = wordy.replace("range(20):", "range(get_step(), 20):").replace(
            "    time", "    pitchpipe.save_checkpoint({'step': step})\n    time"
        )
        wordy = STEP + wordy.replace("import time, pitchpipe\n", "")
    config = lab.write(waiting(wordy), durability=durability)
    process = lab.start_run(config)
    lab.until_reports(6, process)
    fill(medium / "ballast")
    lab.let_trials_go()
    until_it_waits_for_room(lab, process)
    (medium / "ballast").unlink()
    output, errors = process.communicate(timeout=PATIENCE)
    assert json.loads(output)["status"] == "DONE", errors
    assert "there is room again" in errors
    assert "Traceback" not in errors
    check_all_succeeded(lab)
    assert {kind for (kind,) in lab.query("SELECT kind FROM attempts")} <= {"INFRA"}


@pytest.mark.slow
@pytest.mark.parametrize("free", [0, 20480])
def test_no_experiment_begins_on_a_full_disk(free: int, lab: Lab, medium: Path) -> None:
    lab.directory = medium / "experiments"
    lab.directory.mkdir()
    fill(medium / "ballast")
    os.truncate(medium / "ballast", (medium / "ballast").stat().st_size - free)
    code, output, errors = lab.run("run", lab.write(SCRIPT), "--experiment-id", "exp", "--json")
    assert code != 0
    assert "cannot be written" in errors or "is full" in errors
    assert "no experiment can be made here" in errors or not free
    assert "Traceback" not in output + errors
    assert list(lab.directory.iterdir()) == []


def simulated(directory: Path, clock: VirtualClock) -> Manager:
    return created(directory, config(max_trial_number=12, trial_concurrency=3), clock=clock)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the experiment to its end without any trouble; return its directory."""
    directory = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        dispatchers_on_threads(patch)
        assert run(simulated(directory, VirtualClock(1000.0))) is ExperimentStatus.DONE
    return directory


def full(db: sqlite3.Connection, pages: int) -> Callable[[], None]:
    """Let the database grow by some pages only; return a function that lifts the limit."""
    (used,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {used + pages}")
    return lambda: db.execute("PRAGMA max_page_count = 100000") and None


def read_only(db: sqlite3.Connection, _pages: int) -> Callable[[], None]:
    db.execute("PRAGMA query_only = 1")
    return lambda: db.execute("PRAGMA query_only = 0") and None


CRAMPED = pytest.mark.parametrize(("cramp", "pages"), [(full, 0), (full, 2), (read_only, 0)])


@CRAMPED
async def test_experiment_without_room_waits_and_continues_as_if_nothing_had_happened(
    cramp: Callable[[sqlite3.Connection, int], Callable[[], None]],
    pages: int,
    connections: list[sqlite3.Connection],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pitchpipe.manager.disk_space._TRY_AGAIN", 0.01)
    manager = simulated(tmp_path, VirtualClock(1000.0))
    db = connections[-1]
    ticks, releases, waits = itertools.count(), list[Callable[[], None]](), 0

    def on_tick() -> None:
        if next(ticks) in (0, 5, 20):
            releases.append(cramp(db, pages))

    manager.watch(on_tick)
    running = asyncio.ensure_future(manager.run())
    while not running.done():
        if manager.warnings():
            assert "the experiment waits for" in manager.warnings()[0]
            waits += 1
            while releases:
                releases.pop()()
        await asyncio.sleep(0.001)
    assert await running is ExperimentStatus.DONE
    let_go(manager)
    assert waits  # how often depends on the time between two looks
    assert story(tmp_path) == story(whole)


def test_experiment_without_room_that_is_stopped_continues_as_if_nothing_had_happened(
    tmp_path: Path, whole: Path, connections: list[sqlite3.Connection]
) -> None:
    clock = VirtualClock(1000.0)
    manager = simulated(tmp_path, clock)
    db = connections[-1]
    ticks = itertools.count()

    def on_tick() -> None:
        if next(ticks) == 0:
            full(db, 1)

    async def stop_while_it_waits() -> None:
        manager.watch(on_tick)
        running = asyncio.ensure_future(manager.run())
        async with asyncio.timeout(PATIENCE):
            while not manager.warnings():
                assert not running.done()
                await asyncio.sleep(0.001)
        manager.stop()
        await running

    with pytest.raises(StoreError, match=r"experiment\.db"):
        asyncio.run(stop_while_it_waits())
    let_go(manager)
    assert run(resumed(tmp_path, clock=clock)) is ExperimentStatus.DONE
    assert story(tmp_path) == story(whole)


# --------------------------------------------------------------------------- damaged files


def newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")


def damaged(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("harm", "words"),
    [(newer, "newer Pitchpipe"), (damaged, "is damaged"), (cut, "is damaged")],
    ids=["newer", "damaged", "cut"],
)
def test_unusable_database_is_refused_by_name_and_the_others_stay_usable(
    harm: Callable[[Path], None], words: str, lab: Lab, whole: Path
) -> None:
    for name in ("exp", "other"):
        shutil.copytree(whole / "exp", lab.directory / name)
    harm(lab.database)
    for verb in ("resume", "status"):
        code, output, errors = lab.run(verb, "exp")
        assert code != 0
        assert f"{lab.database}" in errors
        assert words in errors
        assert "Traceback" not in output + errors
    code, output, errors = lab.run("list")
    assert code == 0, errors
    assert "DONE" in output  # the other one
    assert "Traceback" not in output + errors


@pytest.mark.slow
def test_trial_with_a_damaged_checkpoint_begins_again(lab: Lab) -> None:
    script = """
import os, signal, pitchpipe
pitchpipe.get_next_parameter()
saved = pitchpipe.get_checkpoint()
first = 0 if saved is None else saved.to_dict()["step"]
for step in range(first, 20):
    pitchpipe.report_intermediate_result(step)
    if step == 9:
        pitchpipe.save_checkpoint({"step": 10})
        if os.environ["PITCHPIPE_ATTEMPT"] == "1":
            name = os.listdir(os.environ["PITCHPIPE_CHECKPOINTS"])[0]
            open(os.path.join(os.environ["PITCHPIPE_CHECKPOINTS"], name, "data.json"), "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
pitchpipe.report_final_result(1)
"""
    result = lab.run_json(lab.write(script, max_trial_number=1, max_failures=3))
    assert result["status"] == "DONE"
    check_all_succeeded(lab, 1)
    reasons = lab.query("SELECT reason FROM attempts ORDER BY attempt")
    assert "SIGKILL" in reasons[0][0]
    assert "JSON" in reasons[1][0]


# --------------------------------------------------------------------------- a second manager, signals, lost agents


@pytest.mark.slow
def test_second_manager_is_refused_with_pid_and_host_while_the_first_continues(lab: Lab) -> None:
    config = lab.write(waiting(SCRIPT), max_trial_number=2)
    first = lab.start_run(config)
    lab.until_reports(2, first)
    code, _, errors = lab.run("resume", "exp")
    assert code == 2
    assert f"process {first.pid} on {socket.gethostname()}" in errors
    lab.let_trials_go()
    output, errors = first.communicate(timeout=PATIENCE)
    assert json.loads(output)["status"] == "DONE", errors
    check_all_succeeded(lab, 2)


def test_signal_stops_the_experiment_in_order_and_resume_continues(lab: Lab) -> None:
    process = lab.start_run(lab.write(waiting(SCRIPT)))
    lab.until_reports(4, process)
    process.terminate()
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert json.loads(output)["status"] == "STOPPED"
    lab.let_trials_go()
    assert lab.resume_json()["status"] == "DONE"


@pytest.mark.slow
def test_trial_whose_agent_and_watchdog_are_killed_reports_no_more(lab: Lab) -> None:
    report = "    pitchpipe.report_intermediate_result(x + step)\n"
    noting = report + "    open('witness', 'a').write('%r\\n' % (x + step))\n"
    config = lab.write(waiting(SCRIPT.replace(report, noting)), max_trial_number=1, trial_concurrency=1)
    process = lab.start_run(config)
    lab.until_reports(3, process)
    family = lab.family()
    (trial,) = [each for each in family if "trial.py" in each.cmdline()]
    doomed = [each for each in family if any(word.endswith("watchdog.py") for word in each.cmdline())]
    doomed += lab.agents()
    assert len(doomed) == 2
    for each in doomed:
        each.kill()
    lab.let_trials_go()
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    # A killed process that was not reaped is not running.
    assert not trial.is_running() or trial.status() == psutil.STATUS_ZOMBIE
    assert lab.query("SELECT status, attempt FROM trials") == [("SUCCEEDED", 2)]
    said = (lab.folder / "witness").read_text().splitlines()
    held = lab.query("SELECT count(*) FROM metrics WHERE kind = 'PERIODICAL'")[0][0]
    # It may have been killed between a report and the line about it.
    assert len(said) <= held <= len(said) + 1


@pytest.mark.slow
def test_late_agent_is_given_up_and_its_trial_counted_once(lab: Lab) -> None:
    """The agent is stopped in the middle of a trial, whose script continues, and woken when all is over."""
    hanging = "time.sleep(60 if step == 5 and os.environ['PITCHPIPE_ATTEMPT'] == '1' else 0.01)"
    hanging = f"import os\n{SCRIPT}".replace("time.sleep(0.02)", hanging)
    hanging = hanging.replace("step == 5", "step == 5 and pitchpipe.get_sequence_id() == 0")
    config = lab.write(hanging, max_trial_number=2, trial_concurrency=1, agent_timeout=1)
    process = lab.start_run(config)
    lab.until_reports(3, process)
    family = lab.family()
    (agent,) = lab.agents()
    agent.suspend()
    output, errors = process.communicate(timeout=PATIENCE)
    assert json.loads(output)["status"] == "DONE", errors
    assert "agent 0-0 is lost: gave no sign of life for 1 s" in errors
    # A killed process that was not reaped is not running.
    assert [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    check_all_succeeded(lab, 2)
    lost = lab.query("SELECT sequence_id, kind, reason FROM attempts")
    assert [row[:2] for row in lost] == [(0, "INFRA")]
    assert "no sign of life for 1 s" in lost[0][2]


# --------------------------------------------------------------------------- clocks


def slow(parameters: dict[str, Any]) -> float:
    import time

    from pitchpipe import report_intermediate_result

    for step in range(10):
        report_intermediate_result(step)
        time.sleep(0.02)
    return parameters["x"]


slow.__module__ = "__main__"


@pytest.mark.slow
@pytest.mark.parametrize("jump", [-7200.0, 7200.0])
def test_clock_of_an_agent_that_is_hours_away_ends_no_trial(jump: float, tmp_path: Path) -> None:
    """The manager's clock is the machine's, hours away from that of its agents, as after a jump."""
    limits = {"max_trial_duration": "1h", "max_experiment_duration": "2h", "max_trial_number": 2}
    given = config(**limits, trial_concurrency=2, training_service={"platform": "local"})
    manager = create_experiment(
        given, directory=tmp_path, experiment_id="exp", function=slow, clock=lambda: time.time() + jump
    )
    assert run(manager) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert [trial.status for trial in trials] == ["SUCCEEDED"] * 2
    for trial in trials:
        assert trial.start_time is not None
        assert trial.end_time is not None
        assert 0.0 <= trial.end_time - trial.start_time < 60.0
        assert abs(trial.created - trial.start_time) < 60.0
