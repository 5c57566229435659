"""The edges of the product, simulated: time, threads, what it waits for, random bytes, and calls to the kernel.

Sockets, pipes and files are real; whoever would wait for one gives its turn away instead. `install` must be called
before anything of the product is imported, because defaults of its functions name the clock.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import queue
import random
import select
import selectors
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any

import filelock
from machine import Machine, Process, Task

__all__ = ["REAL", "SimulatedLoop", "activate", "install", "machine", "put_into_product"]

ENOSPC, EIO = errno.ENOSPC, errno.EIO


class REAL:
    """What the simulated calls are made of."""

    monotonic = time.monotonic
    poll = select.poll
    exit = os._exit
    connect = sqlite3.connect


# Calls that change what others can see: a process may die in them, lose its turn, or be refused by the disk.
_CALLS = ("write", "replace", "rename", "mkdir", "unlink", "rmdir", "fsync", "link", "open")
_NEED_NO_ROOM = ("unlink", "rmdir")

_active: Machine | None = None
Refusal = Callable[[Process, str], int | None]
"""Returns the number of the error with which the disk refuses a call of a process now."""
_refuse: Refusal = lambda process, what: None  # noqa: E731
_silent: dict[int, float] = {}  # until when nothing arrives, by descriptor


def machine() -> Machine:
    """Return the machine that runs."""
    assert _active is not None
    return _active


def activate(new: Machine, refuse: Refusal) -> None:
    """Let the product live on this machine."""
    global _active, _refuse
    _active, _refuse = new, refuse


def delay(descriptor: int, seconds: float) -> None:
    """Let nothing be seen to arrive at a descriptor for a while."""
    _silent[descriptor] = machine().now + seconds


def _is_here() -> bool:
    return _active is not None and _active.is_here()


# ---------------------------------------------------------------------- the clock, random bytes, the kernel


def install() -> None:
    """Replace the clock and the calls to the kernel of this interpreter; they are the real ones until `activate`."""
    time.time = _switch(time.time, lambda: machine().time())
    time.time_ns = _switch(time.time_ns, lambda: int(machine().time() * 1e9))
    for name in ("monotonic", "perf_counter", "clock_gettime", "thread_time"):
        setattr(time, name, _switch(getattr(time, name), lambda *_: machine().monotonic()))
    time.sleep = _switch(time.sleep, lambda seconds: machine().sleep(seconds))
    urandom = _switch(os.urandom, lambda count: machine().draw.randbytes(count))
    os.urandom = random._urandom = urandom  # type: ignore[attr-defined]
    for name in _CALLS:
        setattr(os, name, _seen(name, getattr(os, name)))
    sqlite3.connect = _connect


def _switch(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is the real one until there is a machine, and outside of its threads."""

    def call(*arguments: Any, **named: Any) -> Any:
        return (simulated if _is_here() else real)(*arguments, **named)

    return call


def _seen(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call to the kernel in which a process may die, lose its turn, or be refused."""

    def call(*arguments: Any, **named: Any) -> Any:
        if not _is_here():
            return real(*arguments, **named)
        if name != "open" or arguments[1] & os.O_CREAT:
            at = machine()
            at.step(name)
            is_refused = name not in _NEED_NO_ROOM and (name != "write" or _is_file(arguments[0]))
            number = _refuse(at.current.process, name) if is_refused else None
            if number is not None:
                raise OSError(number, os.strerror(number))
        return real(*arguments, **named)

    return call


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


class _Connection(sqlite3.Connection):
    """A connection to a database: its process may die at any statement, and its disk be full."""

    def execute(self, statement: str, *rest: Any) -> sqlite3.Cursor:
        self._see(statement)
        return super().execute(statement, *rest)

    def executemany(self, statement: str, *rest: Any) -> sqlite3.Cursor:
        self._see(statement)
        return super().executemany(statement, *rest)

    def _see(self, statement: str) -> None:
        verb = statement.split(None, 1)[0].upper()
        if not _is_here() or verb not in ("INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT"):
            return
        at = machine()
        at.step(f"sql {verb}")
        if verb not in ("BEGIN", "COMMIT") and _refuse(at.current.process, "database") is not None:
            raise sqlite3.OperationalError("database or disk is full")


def _connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
    if not _is_here():
        return REAL.connect(*arguments, **named)
    named["check_same_thread"] = False
    connection = REAL.connect(*arguments, factory=_Connection, **named)
    machine().current.process.at_end.append(connection.close)  # a dead process holds no locks
    return connection


class FileLock:
    """A lock on a file, of a simulated process."""

    def __init__(self, path: str | os.PathLike[str], mode: int = 0o600) -> None:
        self._path, self._mode = path, mode
        self._descriptor: int | None = None

    @property
    def is_locked(self) -> bool:
        return self._descriptor is not None

    def acquire(self, timeout: float, poll_interval: float) -> None:
        at = machine()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, self._mode)
        end = at.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if at.monotonic() >= end:
                    os.close(descriptor)
                    raise filelock.Timeout(str(self._path)) from None
                at.sleep(poll_interval)
        self._descriptor = descriptor
        at.current.process.at_end.append(self.release)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Socket(socket.socket):
    """A socket of a caller who waits for a reply."""

    def recv(self, *arguments: Any) -> bytes:
        poll = REAL.poll()
        poll.register(self.fileno(), select.POLLIN)
        if not machine().wait(lambda: poll.poll(0), self.gettimeout()):
            raise TimeoutError
        return super().recv(*arguments)


# ---------------------------------------------------------------------- threads


class Thread:
    """A thread of a simulated process."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or getattr(target, "__name__", "thread")
        self.daemon = daemon
        self._target, self._arguments, self._named = target, tuple(args), kwargs or {}
        self._task: Task | None = None

    def start(self) -> None:
        at = machine()
        self._task = at.spawn(at.current.process, self.name, self.run)

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._arguments, **self._named)

    def join(self, timeout: float | None = None) -> None:
        machine().wait(lambda: self._task is None or self._task.is_done, timeout)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.is_done


class Lock:
    """A lock; to ask for it is to give others a chance."""

    _is_reentrant = False

    def __init__(self) -> None:
        self._owner: Task | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        at = machine()
        mine = at.current
        if self._owner is mine and self._is_reentrant:
            self._depth += 1
            return True
        if at.draw.random() < at.switching:
            at.wait()
        if self._owner is not None:
            if not blocking:
                return False
            if not at.wait(lambda: self._owner is None, None if timeout < 0 else timeout):
                return False
        self._owner, self._depth = mine, 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its owner may take again."""

    _is_reentrant = True


class Condition:
    """A condition variable."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock or RLock()
        self._waiting: list[list[bool]] = []

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()

    def wait(self, timeout: float | None = None) -> bool:
        told = [False]
        self._waiting.append(told)
        depth, self._lock._depth, self._lock._owner = self._lock._depth, 0, None
        was_told = machine().wait(lambda: told[0], timeout)
        if told in self._waiting:
            self._waiting.remove(told)
        self._lock.acquire()
        self._lock._depth = depth
        return was_told

    def wait_for(self, is_so: Callable[[], Any], timeout: float | None = None) -> Any:
        end = None if timeout is None else machine().monotonic() + timeout
        while not (result := is_so()):
            left = None if end is None else end - machine().monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, count: int = 1) -> None:
        for told in self._waiting[:count]:
            told[0] = True
            self._waiting.remove(told)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Event:
    """A flag that threads wait for."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            machine().wait(lambda: self._is_set, timeout)
        return self._is_set


class SimpleQueue:
    """A queue between threads."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items and block:
            machine().wait(lambda: self._items, timeout)
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


class Pool(ThreadPoolExecutor):
    """Runs each task in a simulated thread of its own."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()

        def run() -> None:
            try:
                result = work(*arguments, **named)
            except BaseException as error:  # noqa: BLE001 (whoever waits receives it)
                done.set_exception(error)
            else:
                done.set_result(result)

        at = machine()
        at.spawn(at.current.process, "pool", run)
        return done


# ---------------------------------------------------------------------- what is waited for


class Poll:
    """`select.poll`: waits by giving its turn away."""

    def __init__(self) -> None:
        self._real = REAL.poll()

    def register(self, descriptor: int, events: int) -> None:
        self._real.register(descriptor, events)

    def unregister(self, descriptor: int) -> None:
        self._real.unregister(descriptor)

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        machine().wait(self._look, None if timeout is None or timeout < 0 else timeout / 1000)
        return self._look()

    def _look(self) -> list[tuple[int, int]]:
        return sorted(each for each in self._real.poll(0) if _arrives(each[0]))


def _arrives(descriptor: int) -> bool:
    return not _silent or _silent.get(descriptor, 0.0) <= machine().now


class _Selector(selectors.SelectSelector):
    """The selector of an event loop: waits by giving its turn away, and sees what is ready in any order."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        super().__init__()
        self._poll = REAL.poll()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._watch(key)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._poll.unregister(key.fd)
        return key

    def _watch(self, key: selectors.SelectorKey) -> None:
        mask = select.POLLIN if key.events & selectors.EVENT_READ else 0
        mask |= select.POLLOUT if key.events & selectors.EVENT_WRITE else 0
        self._poll.register(key.fd, mask)

    def _look(self) -> list[tuple[int, int]]:
        return [each for each in self._poll.poll(0) if _arrives(each[0])]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        at = machine()
        if timeout is None or timeout > 0:
            at.wait(self._look, timeout)
        elif at.draw.random() < at.switching:
            at.wait()
        found = []
        for descriptor, mask in sorted(self._look()):
            key = self._fd_to_key[descriptor]
            events = selectors.EVENT_READ if mask & ~select.POLLOUT else 0
            events |= selectors.EVENT_WRITE if mask & ~select.POLLIN else 0
            if events & key.events:
                found.append((key, events & key.events))
        at.draw.shuffle(found)
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The event loop of a manager on the machine."""

    def __init__(self) -> None:
        super().__init__(_Selector())
        self._default_executor = Pool(1)

    def time(self) -> float:
        return machine().monotonic()

    def descriptors(self) -> list[int]:
        """Return what the kernel closes when the manager is killed."""
        return sorted(self._selector._fd_to_key)  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- into the product


def copied(module: ModuleType, **changed: Any) -> ModuleType:
    copy = ModuleType(module.__name__)
    vars(copy).update(vars(module))
    vars(copy).update(changed)
    return copy


def put_into_product(kernel: dict[str, Callable[..., Any]], popen: Callable[..., Any]) -> None:
    """Put the simulated threads and waits into all modules of the product that use the real ones."""
    primitives = (Thread, Lock, RLock, Condition, Event)
    replacements: dict[int, Any] = {id(getattr(threading, each.__name__)): each for each in primitives} | {
        id(queue.SimpleQueue): SimpleQueue,
        id(ThreadPoolExecutor): Pool,
        id(threading): copied(threading, **{each.__name__: each for each in primitives}),
        id(select): copied(select, poll=Poll),
        id(os): copied(os, **kernel),
        id(subprocess): copied(subprocess, Popen=popen),
    }
    for module in _modules_of_product():
        for name, value in list(vars(module).items()):
            if id(value) in replacements:
                setattr(module, name, replacements[id(value)])


def replace_everywhere(old: Any, new: Any) -> None:
    """Replace a function of the product in all modules that have imported it."""
    for module in _modules_of_product():
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def _modules_of_product() -> Iterator[ModuleType]:
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "pitchpipe":
            yield module


def refusal(process: Process, what: str) -> int | None:
    """Return the number of the error with which the disk refuses a call now."""
    return _refuse(process, what)
