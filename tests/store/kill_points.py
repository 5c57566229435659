"""What a process leaves that is killed before one of its system calls: `python kill_points.py ACT SOURCE FOLDER`.

ACT is done to a copy of SOURCE in FOLDER by a child that stops before each of its calls. A kill at that moment would
leave the files as they are, so all readers have to find what they should in a copy of them; what they did not is
printed, as one JSON object. The process has one thread, so that it can fork, and traces its child.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from pitchpipe.runner.effects import Changes
from pitchpipe.runner.trial import Trial
from pitchpipe.store import ExperimentRow, Store, StoreTick
from pitchpipe.store.errors import StoreError
from pitchpipe.store.reading.view import ExperimentView

_TRACE_ME, _NEXT_CALL = 0, 24
_LIBRARY = ctypes.CDLL(None, use_errno=True)
TRIALS = 5


def row(**config: Any) -> ExperimentRow:
    return ExperimentRow(id="exp", name="first", status="DONE", config=config, token="secret", created=12.5)


def a_trial(number: int = 0, **values: Any) -> Trial:
    """Return a trial that waits."""
    made = {
        "sequence_id": number,
        "parameter_id": number,
        "record": '{"parameters": {"x": 1}}',
        "created": 1.0,
    }
    return Trial(trial_id=f"T{number:04}", **made, **values)


def tick(reason: str = "") -> StoreTick:
    trials = {f"T{number:04}": a_trial(number, reason=reason) for number in range(TRIALS)}
    return StoreTick(changes=Changes(trials=trials), status="DONE")


def create(path: Path) -> None:
    store = Store.create(path, row(), ("default",))
    store.commit(tick())
    store.close()


def rename(path: Path) -> None:
    store = Store.open(path)
    store.set_name("second")
    store.close()


def rename_as_before(path: Path) -> None:
    """Do what versions did that changed the header through a journal on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE experiment SET name = 'second'")
        db.execute("PRAGMA journal_mode = DELETE")


def leave_journal(path: Path) -> None:
    """Leave a database as a process does that is killed while it writes through a journal."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE experiment SET name = 'half'")
        db.execute("CREATE TABLE half AS SELECT randomblob(50000)")
        for end in ("", "-journal"):
            shutil.copyfile(f"{path}{end}", f"{path}{end}.kept")
    for end in ("", "-journal"):
        Path(f"{path}{end}.kept").rename(f"{path}{end}")


ACTS: dict[str, Callable[[Path], None]] = {
    "create": create,
    "rename": rename,
    "rename as before": rename_as_before,
}
Files = frozenset[tuple[str, bytes]]


def files_in(folder: Path) -> Files:
    return frozenset((one.name, one.read_bytes()) for one in folder.iterdir())


def stops(act: Callable[[Path], None], path: Path) -> Iterator[None]:
    """Do something in a child that stops twice for each system call: where it begins, and where it ends."""
    child = os.fork()
    if not child:
        if _LIBRARY.ptrace(_TRACE_ME, 0, None, None):
            os._exit(ctypes.get_errno())
        os.kill(os.getpid(), signal.SIGSTOP)
        act(path)
        os._exit(0)
    _, state = os.waitpid(child, 0)
    while not os.WIFEXITED(state):
        _LIBRARY.ptrace(_NEXT_CALL, child, None, None)
        _, state = os.waitpid(child, 0)
        if os.WIFSTOPPED(state):
            yield
    if os.WEXITSTATUS(state):
        raise OSError(os.WEXITSTATUS(state), "the child cannot be traced")


def view(path: Path) -> tuple[str | None, int]:
    with closing(Store.view(path)) as store:
        return store.experiment().name, len(list(store.trials()))


def read_model(path: Path) -> tuple[str | None, int]:
    with ExperimentView(path.parent) as found:
        summary = found.summary()
        found.check()
        return summary.name, summary.trials


def writer(path: Path) -> tuple[str | None, int]:
    with closing(Store.open(path)) as store:
        return store.experiment().name, len(list(store.trials()))


def state_of(path: Path) -> str:
    """Return which files there are, with the mode that the header of the database names."""
    modes = path.read_bytes()[18:20].hex() if path.exists() else ""
    return " ".join([modes, *sorted(one.name.removeprefix(path.name) for one in path.parent.iterdir())])


def main(act: str, source: Path, folder: Path) -> dict[str, Any]:
    live, copy = folder / "live", folder / "copy"
    shutil.copytree(source, live)
    begins = islice(stops(ACTS[act], live / "experiment.db"), 0, None, 2)
    was_killed = {files_in(live): True for _ in begins}
    was_killed[files_in(live)] = False
    wrong, states = [], set[str]()
    for files in was_killed:
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name, content in files:
            (copy / name).write_bytes(content)
        path = copy / "experiment.db"
        states.add(state_of(path))
        for reader in (view, read_model, view, writer, view):
            try:
                found: Any = reader(path)
            except StoreError as error:
                found = str(error)
            if not is_right(act, found, was_killed=was_killed[files]):
                wrong.append((state_of(path), reader.__name__, found))
    return {"states": sorted(states), "wrong": wrong}


def is_right(act: str, found: Any, *, was_killed: bool) -> bool:
    if act == "create" and was_killed:
        return found in (("first", 0), ("first", TRIALS)) or "never started" in found or "not exist" in found
    names = ("first", "second") if was_killed else ("first" if act == "create" else "second",)
    return found in [(name, TRIALS) for name in names]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
