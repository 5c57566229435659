"""Processes of a running experiment are killed, one after another: how soon does the experiment continue?

A trial or an agent: until the next attempt of the trial has reported. The dispatcher: until the new one has proposed
a trial. The manager: from the start of `pitchpipe resume` to the first result that it commits.
"""

import asyncio
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
from harness import SPACE, answer, options

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.trial import Trial

PATIENCE = 60.0
# Reports every 10 ms; where trials are to be short, it ends after eight.
SCRIPT = """
step=0
while [ $step -lt $LAST ]; do
    echo '{"intermediate": 0.5}' >> "$PITCHPIPE_REPORTS"
    sleep 0.01
    step=$((step + 1))
done
echo '{"final": 0.5}' >> "$PITCHPIPE_REPORTS"
"""


def config(last: int, **more: Any) -> dict[str, Any]:
    """Return the config of an experiment whose trials report `last` times."""
    return {
        "search_space": SPACE,
        "tuner": {"name": "Random"},
        "trial_command": f"LAST={last} sh trial.sh",
        "max_trial_number": 1_000_000,
        "trial_concurrency": 2,
        "max_failures": -1,
        "max_identical_failures": 0,
        "kill_grace": 1,
        "training_service": {"platform": "local"},
        **more,
    }


Kill = Callable[[Manager], Callable[[], bool]]
"""Kills a process and returns a function that says whether the experiment has recovered."""


def running(manager: Manager) -> Trial:
    """Return a trial that has reported."""
    trials = () if manager.runner is None else manager.runner.live.values()
    return next(trial for trial in trials if trial.status == "RUNNING" and trial.next_sequence > 3)


def has_reported_again(trial: Trial) -> Callable[[], bool]:
    """Return a function that says whether the next attempt has reported."""
    attempt = trial.attempt
    return lambda: trial.attempt > attempt and trial.next_sequence > trial.first_sequence


def kill_trial(manager: Manager) -> Callable[[], bool]:
    """Kill the process of a trial."""
    trial = running(manager)
    os.kill(trial.pid or 0, signal.SIGKILL)
    return has_reported_again(trial)


def kill_agent(manager: Manager) -> Callable[[], bool]:
    """Kill the agent of a trial."""
    trial = running(manager)
    for child in psutil.Process().children():
        line = child.cmdline()
        if "pitchpipe.trial_agent" in line and trial.agent in line:
            child.kill()
    return has_reported_again(trial)


def kill_dispatcher(manager: Manager) -> Callable[[], bool]:
    """Kill the dispatcher; trials continue, and those that it had proposed are run."""
    running(manager)
    killed, known = manager.dispatcher_pid, list[int]()
    os.kill(killed or 0, signal.SIGKILL)

    def has_recovered() -> bool:
        if manager.dispatcher_pid in (None, killed) or manager.runner is None:
            return False
        known.append(manager.runner.created)
        return known[-1] > known[0]

    return has_recovered


def measured(kill: Kill, size: int, last: int) -> Iterator[float]:
    """Kill `size` times, each time after the last recovery; return the seconds to each recovery."""
    made = ExperimentConfig.from_dict(config(last))
    manager = create_experiment(made, directory=Path.cwd(), experiment_id=kill.__name__)
    found: list[float] = []
    pending: list[tuple[float, Callable[[], bool]]] = []

    def look() -> None:
        if pending and pending[0][1]():
            found.append(time.perf_counter() - pending.pop()[0])
        if len(found) == size:
            manager.stop()
        elif not pending:
            try:
                pending.append((time.perf_counter(), kill(manager)))
            except StopIteration:
                pass  # nothing runs at the moment

    manager.watch(look)
    asyncio.run(asyncio.wait_for(manager.run(), PATIENCE))
    manager.store.close()
    manager.folder.disown()
    return iter(found)


def results(database: Path) -> int:
    """Return how many results are committed."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM metrics").fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # the database is being made


def until_more_than(known: int, database: Path) -> None:
    """Wait until more results are committed than are known."""
    deadline = time.monotonic() + PATIENCE
    while results(database) <= known:
        if time.monotonic() > deadline:
            raise SystemExit("no more results are committed")
        time.sleep(0.002)


def kill_manager(size: int) -> Iterator[float]:
    """Kill `pitchpipe run` and then each `pitchpipe resume`."""
    Path("experiment.yml").write_text(json.dumps(config(1_000_000)))
    place = ["--dir", str(Path.cwd()), "--quiet"]
    line = [sys.executable, "-P", "-m", "pitchpipe"]
    database = Path.cwd() / "exp" / "experiment.db"
    manager = subprocess.Popen([*line, "run", "experiment.yml", "--experiment-id", "exp", *place])
    until_more_than(20, database)
    for _ in range(size):
        manager.kill()
        manager.wait()
        known, began = results(database), time.perf_counter()
        manager = subprocess.Popen([*line, "resume", "exp", *place])
        until_more_than(known, database)
        yield time.perf_counter() - began
    manager.terminate()
    manager.wait(PATIENCE)


Path("trial.sh").write_text(SCRIPT)
chosen = options()
answer(
    trial=statistics.median(measured(kill_trial, chosen.size, 1_000_000)),
    agent=statistics.median(measured(kill_agent, chosen.size, 1_000_000)),
    dispatcher=statistics.median(measured(kill_dispatcher, chosen.size, 8)),
    manager=statistics.median(kill_manager(chosen.size)),
)
