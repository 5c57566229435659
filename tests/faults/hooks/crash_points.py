"""Named crash points: a process of the fault campaign kills itself there, by SIGKILL.

The product has no hooks for this: a point is the beginning or the end of one of its functions, which is wrapped when
its module is imported. The folder of this file is on PYTHONPATH of the campaign's processes, so that Python loads
`sitecustomize.py` beside it when they start, which installs the points:

    PPFAULTS_CRASH   where to die, each the n-th time: `manager:after-commit:7,dispatcher:handled:2`
    PPFAULTS_HITS    a folder in which a dying process leaves a file named after the point, so that it happens once

A process that passes a point whose file already exists continues.
"""

import functools
import os
import signal
import sys
from importlib.machinery import PathFinder
from typing import NamedTuple

__all__ = ["POINTS", "Point", "install", "role"]

CRASH, HITS = "PPFAULTS_CRASH", "PPFAULTS_HITS"


class Point(NamedTuple):
    """A crash point: before or after a function, how often it is passed, and in which experiments."""

    module: str
    function: str
    after: bool
    often: int = 6  # at least this many times in an experiment of the campaign
    kinds: tuple[str, ...] = ("command", "function")
    needs: str = ""  # what else the experiment must have: "assessor", "slow tuner", "resume"
    places: tuple[str, ...] = ("local", "ray")


_P, _A, _D = "pitchpipe.", "pitchpipe.trial_agent.", "pitchpipe.dispatcher."
_COMMAND, _FUNCTION = ("command",), ("function",)

POINTS: dict[str, Point] = {
    "manager:before-commit": Point(_P + "store.store", "Store.commit", False, 40),
    "manager:after-commit": Point(_P + "store.store", "Store.commit", True, 40),
    "manager:dispatcher-written": Point(
        _P + "manager.dispatcher_link.session", "DispatcherSession.write", True, 30
    ),
    "manager:before-start": Point(_P + "executors.agents", "AgentTrialExecutor.start_trial", False, 4),
    "manager:after-start": Point(_P + "executors.agents", "AgentTrialExecutor.start_trial", True, 4),
    "manager:agent-spawned": Point(
        _P + "executors.local.executor", "LocalTrialExecutor._spawn", True, 2, places=("local",)
    ),
    "manager:reports-taken": Point(_P + "executors.agents", "AgentTrialExecutor.on_batch", True, 30),
    "manager:replies-taken": Point(
        _P + "manager.dispatcher_link.session", "DispatcherSession._on_frames", True, 10
    ),
    "manager:before-acknowledge": Point(_P + "executors.agents", "AgentTrialExecutor.acknowledge", False, 40),
    "manager:dispatcher-restored": Point(
        _P + "manager.dispatcher_link.session", "DispatcherSession.start", True, 1, needs="resume"
    ),
    "manager:attached": Point(_P + "executors.agents", "AgentTrialExecutor.attach", True, 1, needs="resume"),
    "manager:before-agents-end": Point(_P + "executors.agents", "AgentTrialExecutor.close", False, 1),
    "manager:before-the-end": Point(_P + "manager.manager", "Manager._write_end", False, 1),
    "agent:start-taken": Point(_A + "core", "Agent._start", True, 2),
    "agent:process-started": Point(_A + "command_trial", "CommandTrial._start", True, 2, _COMMAND),
    "agent:reports-read": Point(_A + "command_trial", "CommandTrial._send", False, 5, _COMMAND),
    "agent:spool-written": Point(_A + "line_file", "LineFile.append", True, 16, _FUNCTION),
    "agent:before-end-recorded": Point(_A + "core", "Agent._look_idle", False, 1),
    "agent:end-recorded": Point(_A + "core", "Agent._look_idle", True, 2),
    "agent:checkpoint-named": Point(_A + "checkpoint", "save", True, 4, _FUNCTION),
    "agent:checkpoint-announced": Point(_A + "checkpoint_store", "CheckpointStore.prune", False, 3),
    "dispatcher:handled": Point(_D + "base", "MsgDispatcherBase.process_command", True, 10),
    "dispatcher:before-sending": Point(_D + "channel", "FdChannel.flush", False, 10),
    "dispatcher:after-sending": Point(_D + "channel", "FdChannel.flush", True, 10),
    "dispatcher:checkpoint-written": Point(_D + "saving", "Saver._write", True, 1, needs="slow tuner"),
    "trial:before-report": Point(_A + "line_file", "LineFile.append", False, 7, _COMMAND),
    "trial:after-report": Point(_A + "line_file", "LineFile.append", True, 7, _COMMAND),
    "trial:checkpoint-named": Point(_A + "checkpoint", "save", True, 3, _COMMAND),
}


def role(environment: "os._Environ[str] | dict[str, str]", arguments: "list[str]") -> str:
    """Return the role of a process, by its environment and command line."""
    line = " ".join(arguments)
    if "PITCHPIPE_REPORTS" in environment:
        return "trial"
    if "pitchpipe.trial_agent" in line or "default_worker.py" in line:
        return "agent"
    return "dispatcher" if "pitchpipe.dispatcher" in line else "manager"


class _Death:
    """Counts how often a point is passed, and kills this process at the n-th time."""

    def __init__(self, name: str, n: int, folder: str) -> None:
        self._name, self._left, self._folder = name, n, folder

    def reach(self) -> None:
        self._left -= 1
        if self._left == 0 and self._first():
            os.kill(os.getpid(), signal.SIGKILL)

    def _first(self) -> bool:
        try:
            os.close(os.open(os.path.join(self._folder, self._name), os.O_CREAT | os.O_EXCL))
        except OSError:  # another process died here before, or the campaign is over
            return False
        return True


def _wrapped(function, death, after):  # type: ignore[no-untyped-def]
    """Wrap the function, with a possible death before or after its work."""
    if function.__code__.co_flags & 0x80:  # a coroutine

        @functools.wraps(function)
        async def dying(*args, **named):  # type: ignore[no-untyped-def]
            if not after:
                death.reach()
            result = await function(*args, **named)
            if after:
                death.reach()
            return result
    else:

        @functools.wraps(function)
        def dying(*args, **named):  # type: ignore[no-untyped-def]
            if not after:
                death.reach()
            result = function(*args, **named)
            if after:
                death.reach()
            return result

    return dying


class _Finder:
    """Finds the modules that have points, and wraps their functions once they are loaded."""

    def __init__(self, deaths: "dict[str, list[tuple[Point, _Death]]]") -> None:
        self._deaths = deaths

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name not in self._deaths:
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
        for point, death in self._deaths[name]:
            *owners, last = point.function.split(".")
            owner = module
            for each in owners:
                owner = getattr(owner, each)
            setattr(owner, last, _wrapped(getattr(owner, last), death, point.after))


def install() -> None:
    """Plant the crash points that the environment asks for in this process, if it has their role."""
    mine = role(os.environ, sys.orig_argv)
    deaths: dict[str, list[tuple[Point, _Death]]] = {}
    for entry in filter(None, os.environ.get(CRASH, "").split(",")):
        name, _, n = entry.rpartition(":")
        if name.startswith(f"{mine}:"):
            death = _Death(name, int(n), os.environ[HITS])
            deaths.setdefault(POINTS[name].module, []).append((POINTS[name], death))
    if deaths:
        sys.meta_path.insert(0, _Finder(deaths))  # type: ignore[arg-type]
