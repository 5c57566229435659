"""A machine in one process: processes and threads that take turns as a seed says, and a clock that only they move.

Each simulated thread is a real one, but only the one with the baton runs. It gives the baton away where it would wait,
and at some of the calls in between; a seeded draw decides who gets it. If nobody can run, the clock jumps to the next
deadline. So the same seed gives the same story, step for step.
"""

from __future__ import annotations

import _thread
import hashlib
import random
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Killed", "Machine", "Process", "Stuck", "Task"]

_START = _thread.start_new_thread
EPOCH = 1_750_000_000.0
_SIGCONT = 18
_TURN = 2e-4  # seconds that a turn takes, on average
_LOOK = 1e-6  # seconds that a look at the clock takes: who waits for a moment in a loop gets there


class Killed(BaseException):
    """The process that makes this call dies in it (raised only where nobody can catch it)."""


class Stuck(Exception):
    """Nothing can go on, or everything goes on for ever."""


class Process:
    """A simulated process; `at_end` is what the kernel does when it is gone, such as closing its descriptors."""

    def __init__(self, machine: Machine, role: str, name: str) -> None:
        self.role, self.name = role, name
        self.pid = machine.next_pid()
        self.group = self.pid
        self.mark = b""
        self.returncode: int | None = None
        self.signal_handler: Callable[[int], None] | None = None
        self.frozen_until = 0.0
        self.speed = 1.0
        self.steps = 0  # calls that something outside of it could see
        self.dies_at: int | None = None
        self.at_end: list[Callable[[], object]] = []

    @property
    def is_alive(self) -> bool:
        return self.returncode is None


class Task:
    """A simulated thread."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.name = process, name
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.ready: Callable[[], object] | None = None
        self.deadline: float | None = None
        self.is_done = False
        self.ident = 0
        self.interrupt: BaseException | None = None  # raised where it waits

    def can_run(self, now: float) -> bool:
        if self.interrupt is not None:
            return True
        if self.deadline is not None and self.deadline <= now:
            return True
        return bool(self.ready()) if self.ready is not None else self.deadline is None


class Machine:
    """The scheduler, the clock, and the record of what happened."""

    def __init__(self, seed: str, most_turns: int = 3_000_000, longest: float = 50_000.0) -> None:
        self.draw = random.Random(f"machine/{seed}")
        self.now = 0.0
        self.wall_offset = 0.0
        self.switching = 0.02  # how often a call that could be seen is followed by another thread's turn
        self.current: Task
        self.tasks: list[Task] = []
        self.processes: dict[int, Process] = {}
        self.hits: Counter[str] = Counter()
        self.failure = ""  # why the simulation itself cannot go on
        self.crashes: list[str] = []  # threads that an error has ended
        self.on_step: Callable[[Process, str], None] = lambda process, what: None
        self.turns = 0
        self._most_turns, self._longest = most_turns, longest
        self._last_pid = 4_200_000  # above those of real processes
        self._digest = hashlib.blake2b(digest_size=12)
        self.log: list[str] | None = None
        self._main: Task
        self._over = _thread.allocate_lock()
        self._over.acquire()

    # ------------------------------------------------------------------ the record

    def note(self, what: str) -> None:
        """Add a line to the record of what happened."""
        line = f"{self.now:.6f} {what}"
        self._digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
        if self.log is not None:
            self.log.append(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    # ------------------------------------------------------------------ processes and threads

    def next_pid(self) -> int:
        self._last_pid += 1
        return self._last_pid

    def process(self, role: str, name: str) -> Process:
        """Make a process; it has no threads yet."""
        process = Process(self, role, name)
        self.processes[process.pid] = process
        self.note(f"{name} is process {process.pid}")
        return process

    def spawn(self, process: Process, name: str, act: Callable[..., object], *arguments: Any) -> Task:
        """Start a thread in a process."""
        task = Task(process, name)

        def run() -> None:
            task.baton.acquire()
            try:
                act(*arguments)
            except SystemExit:
                pass
            except BaseException:  # noqa: BLE001 (it is a finding)
                self.crashes.append(f"{process.name}/{name}: {traceback.format_exc()}")
                if name == "main":
                    self.end(process, 1)
            task.is_done = True
            self.tasks.remove(task)
            self._give(self._choose())

        self.tasks.append(task)
        task.ident = _START(run, ())
        return task

    def run(self, process: Process, act: Callable[[], object]) -> None:
        """Run the machine until `act`, its first thread, has returned."""

        def main() -> None:
            try:
                act()
            except Stuck as stuck:
                self.failure = str(stuck)
            except BaseException:  # noqa: BLE001 (the caller reads it)
                self.failure = traceback.format_exc()
            self._over.release()
            self._main.baton.acquire()  # for ever

        self._main = self.current = self.spawn(process, "main", main)
        self.current.baton.release()
        self._over.acquire()

    def is_here(self) -> bool:
        """Return whether the calling thread is the one that has the turn."""
        return _thread.get_ident() == self.current.ident

    # ------------------------------------------------------------------ waiting

    def time(self) -> float:
        self.now += _LOOK
        return EPOCH + self.now + self.wall_offset

    def monotonic(self) -> float:
        self.now += _LOOK
        return self.now

    def sleep(self, seconds: float) -> None:
        self.wait(None, max(0.0, seconds))

    def wait(self, ready: Callable[[], object] | None = None, timeout: float | None = None) -> bool:
        """Let others run until `ready()` or for `timeout` seconds; without either, for one turn at least."""
        task = self.current
        task.ready, task.deadline = ready, None if timeout is None else self.now + max(0.0, timeout)
        following = self._choose()
        if following is not task:
            self._give(following)
            task.baton.acquire()
        task.ready = task.deadline = None
        if self.failure and task is self._main:
            raise Stuck(self.failure)
        if task.interrupt is not None:
            error, task.interrupt = task.interrupt, None
            raise error
        return ready is None or bool(ready())

    def step(self, what: str) -> None:
        """Note that the current process makes a call that others could see; it may die there, or lose its turn."""
        process = self.current.process
        process.steps += 1
        self.on_step(process, what)
        if process.dies_at is not None and process.steps >= process.dies_at:
            process.dies_at = None
            self.note(f"{process.name} dies at {what}")
            self.hits[f"died at a call: {process.role}"] += 1
            self.kill(process)
        if self.draw.random() < self.switching:
            self.wait()

    def _give(self, task: Task) -> None:
        self.current = task
        task.baton.release()

    def _choose(self) -> Task:
        """Return who runs next; move the clock if nobody can."""
        self.turns += 1
        self.now += self.draw.expovariate(1 / _TURN)
        while True:
            if self.turns > self._most_turns or self.now > self._longest:
                self.failure = f"the simulation does not end: {self.turns} turns, {self.now:.0f} s"
                return self._main
            now = self.now
            able = [task for task in self.tasks if task.process.frozen_until <= now and task.can_run(now)]
            if able:
                break
            due = [
                max(task.process.frozen_until, now if task.can_run(now) else task.deadline)
                for task in self.tasks
                if task.deadline is not None or task.can_run(now)
            ]
            if not due:
                self.failure = "nobody can run: " + ", ".join(
                    f"{task.process.name}/{task.name}" for task in self.tasks
                )
                return self._main
            self.now = max(now, min(due))
        task = able[0]
        if len(able) > 1:
            task = self.draw.choices(able, [each.process.speed for each in able])[0]
        self.note(f"{task.process.name}/{task.name}")
        return task

    # ------------------------------------------------------------------ the ends of processes

    def kill(self, process: Process, number: int = 9) -> None:
        """End a process at once, as a signal does; one that ends itself does not return."""
        if number == _SIGCONT:
            return
        if number == 15 and process.signal_handler is not None and process.is_alive:
            process.signal_handler(number)
            return
        self.end(process, -number)

    def end(self, process: Process, code: int) -> None:
        """End a process with this code; a call from the process itself does not return."""
        if not process.is_alive:
            return
        process.returncode = code
        self.note(f"{process.name} ended with {code}")
        mine = self.current.process is process
        self.tasks = [task for task in self.tasks if task.process is not process]
        for act in process.at_end:
            act()
        if mine:
            self._leave()

    def _leave(self) -> NoReturn:
        task = self.current
        self._give(self._choose())
        task.baton.acquire()
        raise Killed  # never: nobody gives it back

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop a process for a while, as a machine that swaps does."""
        self.note(f"{process.name} is frozen for {seconds:.3f} s")
        process.frozen_until = max(process.frozen_until, self.now + seconds)
