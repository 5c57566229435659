"""What this machine does at most: bare processes, pipes and SQLite, with nothing of Pitchpipe or a peer."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from harness import answer, options

AT_ONCE = 2


def main() -> None:
    """Measure what `--what` names."""
    chosen = options(what="functions")
    MEASURED[chosen.what](chosen.size)


def scripts(size: int) -> None:
    """Start interpreters that end at once."""
    path = Path("nothing.py")
    path.touch()
    command = [sys.executable, str(path)]
    answer(trials_per_second=_in_turn(size, lambda: os.posix_spawn(command[0], command, os.environ)))


def forks(size: int) -> None:
    """Fork this process; the children end at once."""

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    answer(trials_per_second=_in_turn(size, fork))


def functions(size: int) -> None:
    """Send parameters to two processes and commit what they return, once for all that is there."""
    database = _database("CREATE TABLE trials (id INTEGER PRIMARY KEY, parameters, status, value)")
    with _workers(_return_values) as (waiting, sockets):
        begun, ended, turn = 0, 0, [(one, None) for one in sockets]
        began = time.perf_counter()
        while ended < size:
            rows = [(message["value"], message["id"]) for _, message in turn if message]
            orders = [(begun + n, json.dumps({"x": 0.5, "lr": 1e-3, "layers": 4})) for n in range(len(turn))]
            begun, ended = begun + len(orders), ended + len(rows)
            database.execute("BEGIN")
            database.executemany("UPDATE trials SET status = 'SUCCEEDED', value = ? WHERE id = ?", rows)
            database.executemany("INSERT INTO trials VALUES (?, ?, 'RUNNING', NULL)", orders)
            database.execute("COMMIT")
            for (one, _), (number, parameters) in zip(turn, orders, strict=True):
                one.sendall(f'{{"id": {number}, "parameters": {parameters}}}\n'.encode())
            turn = [(one, json.loads(line)) for one, data in _ready(waiting) for line in data.splitlines()]
        answer(trials_per_second=size / (time.perf_counter() - began))


def results(size: int) -> None:
    """Commit the results that two processes send as fast as they can."""
    database = _database("CREATE TABLE metrics (trial, sequence, value)")
    with _workers(lambda one: _send_results(one, size // AT_ONCE)) as (waiting, _):
        stored, rests = 0, defaultdict[socket.socket, bytes](bytes)
        began = time.perf_counter()
        while stored < size // AT_ONCE * AT_ONCE:
            rows = []
            for one, data in _ready(waiting):
                *lines, rests[one] = (rests[one] + data).split(b"\n")
                rows += [(each["trial"], each["sequence"], each["value"]) for each in map(json.loads, lines)]
            database.execute("BEGIN")
            database.executemany("INSERT INTO metrics VALUES (?, ?, ?)", rows)
            database.execute("COMMIT")
            stored += len(rows)
        answer(results_per_second=stored / (time.perf_counter() - began))


def start(size: int) -> None:
    """Start Python, which starts a command."""
    program = "import subprocess; subprocess.run(['true'])"
    answer(seconds=_median(size, lambda: subprocess.run([sys.executable, "-c", program], check=True)))


def verdicts(size: int) -> None:
    """End a process by a signal."""

    def end_one() -> float:
        process = subprocess.Popen(["sleep", "60"])
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        process.wait()
        return time.perf_counter() - began

    answer(seconds=statistics.median(end_one() for _ in range(size)))


def dispatcher(size: int) -> None:
    """Exchange short lines with a process that parses them."""
    with _workers(_echo) as (_, [one, _]):

        def exchange() -> None:
            one.sendall(b'{"id": 1}\n')
            json.loads(one.recv(4096))

        answer(round_trip=_median(size, exchange))


def rows(size: int) -> None:
    """Read the rows of as many trials from a database."""
    database = _database("CREATE TABLE trials (id INTEGER PRIMARY KEY, parameters, status, value)")
    parameters = json.dumps({"x": 0.5, "lr": 1e-3, "layers": 4})
    database.executemany(
        "INSERT INTO trials VALUES (?, ?, 'SUCCEEDED', 0.5)", ((n, parameters) for n in range(size))
    )
    answer(seconds=_median(3, lambda: database.execute("SELECT * FROM trials").fetchall()))


def _return_values(one: socket.socket) -> None:
    for line in one.makefile("rb"):
        order = json.loads(line)
        one.sendall(json.dumps({"id": order["id"], "value": order["parameters"]["x"]}).encode() + b"\n")


def _send_results(one: socket.socket, count: int) -> None:
    with one.makefile("wb", buffering=1 << 16) as stream:
        for sequence in range(count):
            stream.write(json.dumps({"trial": 1, "sequence": sequence, "value": 0.5}).encode() + b"\n")


def _echo(one: socket.socket) -> None:
    for line in one.makefile("rb"):
        one.sendall(json.dumps(json.loads(line)).encode() + b"\n")


@contextmanager
def _workers(
    work: Callable[[socket.socket], None],
) -> Iterator[tuple[selectors.BaseSelector, list[socket.socket]]]:
    """Fork two processes that work, each at the other end of a socket; they are killed in the end."""
    pairs = [socket.socketpair() for _ in range(AT_ONCE)]
    processes = [get_context("fork").Process(target=work, args=(theirs,)) for _, theirs in pairs]
    waiting = selectors.DefaultSelector()
    for process, (ours, theirs) in zip(processes, pairs, strict=True):
        process.start()
        theirs.close()
        waiting.register(ours, selectors.EVENT_READ)
    try:
        yield waiting, [ours for ours, _ in pairs]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _ready(waiting: selectors.BaseSelector) -> Iterator[tuple[socket.socket, bytes]]:
    for key, _ in waiting.select():
        if data := key.fileobj.recv(1 << 16):
            yield key.fileobj, data
        else:
            waiting.unregister(key.fileobj)  # it has sent everything


def _in_turn(size: int, begin: Callable[[], object]) -> float:
    """Return how many processes a second begin and end, two at once."""
    began = time.perf_counter()
    for number in range(size):
        begin()
        if number >= AT_ONCE - 1:
            os.wait()
    for _ in range(min(AT_ONCE - 1, size)):
        os.wait()
    return size / (time.perf_counter() - began)


def _median(size: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(size):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _database(schema: str) -> sqlite3.Connection:
    database = sqlite3.connect("limit.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(schema)
    return database


MEASURED = {
    each.__name__: each for each in (scripts, forks, functions, results, start, verdicts, dispatcher, rows)
}
main()
