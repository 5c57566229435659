"""Named crash points: a process of the fault campaign kills itself there, or closes a connection.

The product has no hooks for this: a point is the beginning or the end of one of its functions, or any moment in
between, and the function is wrapped when its module is imported. The folder of this file is on PYTHONPATH of the
campaign's processes, so that Python loads `sitecustomize.py` beside it when they start, which installs the points:

    PPFAULTS_CRASH   where to die, each the n-th time: `manager:after-commit:7,dispatcher:handled:2`
    PPFAULTS_HITS    a folder in which a dying process leaves a file named after the point, so that it happens once

A process that passes a point whose file already exists continues.
"""

import functools
import os
import random
import signal
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

__all__ = ["POINTS", "Point", "install", "role"]

CRASH, HITS = "PPFAULTS_CRASH", "PPFAULTS_HITS"


SHORTEST, LONGEST = 5e-5, 2e-2  # seconds into a function in which a process dies at any moment


class Point(NamedTuple):
    """A crash point: before, after or within a function, how often it is passed, and in which experiments.

    With an `action`, the process does not die: the action takes the place of the function, with its arguments.
    """

    module: str
    function: str
    after: bool
    often: int = 6  # at least this many times in an experiment of the campaign
    kinds: tuple[str, ...] = ("command", "function")
    # What else there must be: "slow tuner", "start" (of the experiment), "resume", "dead agent", "end".
    needs: str = ""
    places: tuple[str, ...] = ("local", "ray")
    within: bool = False
    counts: Callable[..., bool] = lambda *arguments: True  # which calls
    action: Callable[..., Any] | None = None


def _writes(store: Any) -> bool:
    return not store._is_view


def _close_connection(link: Any, data: bytes) -> None:
    """Close the manager's end; what has arrived is lost."""
    link._transport.abort()


def _reset_connection(server: Any, connection: Any) -> None:
    """Close the agent's end of a connection while there is something to read: the manager gets ECONNRESET."""
    server._drop_manager()


_P, _S, _A = "pitchpipe.", "pitchpipe.sdk.", "pitchpipe.trial_agent."
_D = "pitchpipe.dispatcher."
_COMMAND, _FUNCTION = ("command",), ("function",)

POINTS: dict[str, Point] = {
    "manager:before-commit": Point(_P + "store.store", "Store.commit", False, 40),
    "manager:after-commit": Point(_P + "store.store", "Store.commit", True, 40),
    "manager:dispatcher-written": Point(
        _P + "manager.dispatcher_link.dispatcher", "Dispatcher.write", True, 30
    ),
    "manager:before-start": Point(_P + "executors.agents", "AgentTrialExecutor.start_trial", False, 4),
    "manager:after-start": Point(_P + "executors.agents", "AgentTrialExecutor.start_trial", True, 4),
    "manager:agent-spawned": Point(
        _P + "executors.local.local_executor", "LocalTrialExecutor._spawn", True, 2, places=("local",)
    ),
    "manager:reports-taken": Point(_P + "executors.agents", "AgentTrialExecutor.on_batch", True, 30),
    "manager:replies-taken": Point(
        _P + "manager.dispatcher_link.dispatcher", "Dispatcher._on_frames", True, 10
    ),
    "manager:before-acknowledge": Point(_P + "executors.agents", "AgentTrialExecutor.acknowledge", False, 40),
    "manager:dispatcher-restored": Point(
        _P + "manager.dispatcher_link.dispatcher", "Dispatcher.start", True, 1, needs="resume"
    ),
    "manager:attached": Point(_P + "executors.agents", "AgentTrialExecutor.attach", True, 1, needs="resume"),
    "manager:making-store": Point(_P + "store.store", "Store.create", False, 1, needs="start", within=True),
    "manager:opening-store": Point(_P + "store.store", "Store.open", False, 1, needs="resume", within=True),
    "manager:closing-store": Point(
        _P + "store.store", "Store.close", False, 1, needs="end", within=True, counts=_writes
    ),
    "manager:before-attach": Point(
        _P + "executors.agents", "AgentTrialExecutor.attach", False, 1, needs="resume"
    ),
    "manager:agent-taken-up": Point(
        _P + "executors.agents", "AgentTrialExecutor._take_up", True, 2, needs="resume"
    ),
    "manager:attempts-taken-over": Point(
        _P + "executors.agents", "AgentTrialExecutor._take_over", True, 1, needs="dead agent"
    ),
    "manager:agent-met": Point(_P + "executors.agents", "AgentTrialExecutor.on_met", True, 1, needs="resume"),
    "manager:reports-recovered": Point(
        _P + "executors.agents", "AgentTrialExecutor._recover", True, 1, needs="resume"
    ),
    "manager:connection-closed": Point(
        _P + "executors.socket_link",
        "SocketLink.data_received",
        False,
        20,
        places=("local",),
        action=_close_connection,
    ),
    "manager:before-agents-end": Point(_P + "executors.agents", "AgentTrialExecutor.close", False, 1),
    "manager:before-the-end": Point(_P + "manager.manager", "Manager._write_end", False, 1),
    "agent:start-taken": Point(_A + "core", "Agent._start", True, 2),
    "agent:process-started": Point(_A + "command_trial", "CommandTrial._start", True, 2, _COMMAND),
    "agent:reports-read": Point(_A + "command_trial", "CommandTrial._send", False, 5, _COMMAND),
    "agent:spool-written": Point(_S + "line_file", "LineFile.append", True, 16, _FUNCTION),
    "agent:before-end-recorded": Point(_A + "core", "Agent._note_if_idle", False, 1),
    "agent:end-recorded": Point(_A + "core", "Agent._note_if_idle", True, 2),
    "agent:checkpoint-named": Point(_S + "checkpoint", "save_folder", True, 4, _FUNCTION),
    "agent:before-forgetting": Point(
        _A + "agent_events",
        "Outbox._acknowledge",
        False,
        8,
        counts=lambda outbox, after: after >= outbox._first,
    ),
    "agent:forgotten": Point(
        _A + "agent_events", "Outbox._acknowledge", True, 8, counts=lambda outbox, after: outbox._first > 1
    ),
    "agent:connection-reset": Point(
        _A + "unix_server",
        "UnixServer._serve_manager",
        False,
        8,
        places=("local",),
        action=_reset_connection,
    ),
    "agent:checkpoint-announced": Point(_A + "checkpoint_store", "CheckpointStore.prune", False, 3),
    "dispatcher:handled": Point(_D + "msg_dispatcher_base", "MsgDispatcherBase.process_command", True, 10),
    "dispatcher:before-sending": Point(_D + "channel", "FdChannel.flush", False, 10),
    "dispatcher:after-sending": Point(_D + "channel", "FdChannel.flush", True, 10),
    "dispatcher:checkpoint-written": Point(_D + "checkpointing", "Saver._write", True, 1, needs="slow tuner"),
    "trial:before-report": Point(_S + "line_file", "LineFile.append", False, 7, _COMMAND),
    "trial:after-report": Point(_S + "line_file", "LineFile.append", True, 7, _COMMAND),
    "trial:checkpoint-named": Point(_S + "checkpoint", "save_folder", True, 3, _COMMAND),
}


def role(environment: "os._Environ[str] | dict[str, str]", arguments: "list[str]") -> str:
    """Return the role of a process, by its environment and command line."""
    line = " ".join(arguments)
    if "PITCHPIPE_REPORTS" in environment:
        return "trial"
    if "pitchpipe.trial_agent" in line or "default_worker.py" in line:
        return "agent"
    return "dispatcher" if "pitchpipe.dispatcher" in line else "manager"


class _Passing:
    """Counts how often a point is passed, and says when this process dies there: at the n-th time."""

    def __init__(self, name: str, n: int, folder: str) -> None:
        self._name, self._left, self._folder = name, n, folder

    def is_due(self) -> bool:
        self._left -= 1
        if self._left != 0:
            return False
        try:
            os.close(os.open(os.path.join(self._folder, self._name), os.O_CREAT | os.O_EXCL))
        except OSError:  # another process died here before, or the campaign is over
            return False
        return True


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_soon() -> None:
    """Let the kernel end this process at any moment from now, also within one statement of SQLite's."""
    signal.setitimer(signal.ITIMER_REAL, SHORTEST * (LONGEST / SHORTEST) ** random.random())


def _wrapped(function, passing, point):  # type: ignore[no-untyped-def]
    """Wrap the function, with a possible death before, in or after its work."""

    def begin(arguments) -> bool:  # type: ignore[no-untyped-def]
        is_due = not point.after and point.counts(*arguments) and passing.is_due()
        if is_due and point.within:
            _die_soon()
        elif is_due and point.action is None:
            _die()
        return is_due

    def end(arguments) -> None:  # type: ignore[no-untyped-def]
        if point.after and point.counts(*arguments) and passing.is_due():
            _die()

    if function.__code__.co_flags & 0x80:  # a coroutine

        @functools.wraps(function)
        async def dying(*args, **named):  # type: ignore[no-untyped-def]
            begin(args)
            result = await function(*args, **named)
            end(args)
            return result
    else:

        @functools.wraps(function)
        def dying(*args, **named):  # type: ignore[no-untyped-def]
            is_due = begin(args)
            if is_due and point.action is not None:
                return point.action(*args, **named)
            result = function(*args, **named)
            if is_due:  # it was over sooner
                _die()
            end(args)
            return result

    return dying


class _Finder:
    """Finds the modules that have points, and wraps their functions once they are loaded."""

    def __init__(self, passings: "dict[str, list[tuple[Point, _Passing]]]") -> None:
        self._passings = passings

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name not in self._passings:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):  # type: ignore[no-untyped-def]
                load(module)
                self._plant(name, module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _plant(self, name: str, module: object) -> None:
        for point, passing in self._passings[name]:
            *owners, last = point.function.split(".")
            owner = module
            for each in owners:
                owner = getattr(owner, each)
            setattr(owner, last, _wrapped(getattr(owner, last), passing, point))


def install() -> None:
    """Plant the crash points that the environment asks for in this process, if it has their role."""
    mine = role(os.environ, sys.orig_argv)
    passings: dict[str, list[tuple[Point, _Passing]]] = {}
    for entry in filter(None, os.environ.get(CRASH, "").split(",")):
        name, _, n = entry.rpartition(":")
        if name.startswith(f"{mine}:"):
            passing = _Passing(name, int(n), os.environ[HITS])
            passings.setdefault(POINTS[name].module, []).append((POINTS[name], passing))
    if passings:
        sys.meta_path.insert(0, _Finder(passings))  # type: ignore[arg-type]
