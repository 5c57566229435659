"""Branches of the product that are rarely taken: each must be taken in an hour of simulation."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import edges
from machine import Machine

__all__ = ["BRANCHES", "plant"]

_EXECUTORS, _AGENT, _MANAGER = "pitchpipe.executors.", "pitchpipe.trial_agent.", "pitchpipe.manager."
Counts = Callable[..., object]


def _always(*arguments: Any, **named: Any) -> bool:
    return True


BRANCHES: dict[str, tuple[str, str, Counts]] = {
    "agent taken over by the next manager": (
        _EXECUTORS + "agents",
        "AgentTrialExecutor.on_met",
        lambda self, agent, running, seen: running,
    ),
    "attempts of a dead agent taken over": (_EXECUTORS + "agents", "AgentTrialExecutor._take_over", _always),
    "results read from a spool": (_EXECUTORS + "agents", "AgentTrialExecutor._recover", _always),
    "agent ended by a later manager": (_EXECUTORS + "local.local_executor", "_end_stranger", _always),
    "agent silent": (
        _EXECUTORS + "agents",
        "AgentTrialExecutor.on_silent",
        lambda self, agent, silent: silent,
    ),
    "agent heard again": (
        _EXECUTORS + "agents",
        "AgentTrialExecutor.on_silent",
        lambda self, agent, silent: not silent,
    ),
    "agent given up": (_EXECUTORS + "socket_link", "SocketLink._on_silence", _always),
    "agent replaced because its trial does not end": (
        _EXECUTORS + "agents",
        "AgentTrialExecutor._replace_agent",
        lambda self, order: (
            (order.trial_id, order.attempt) in self._attempts.orders and order.agent in self._links
        ),
    ),
    "agent lost": (_EXECUTORS + "agents", "AgentTrialExecutor.on_lost", _always),
    "connection made again": (_EXECUTORS + "socket_link", "SocketLink._say_again", _always),
    "start given back": (_EXECUTORS + "running_attempts", "RunningAttempts._given_back", _always),
    "start repeated": (_AGENT + "core", "Agent._reply_to_repeated_start", _always),
    "end forgotten by its agent": (_AGENT + "agent_events", "Forgotten.__init__", _always),
    "agent without a manager leaves": (
        _AGENT + "unix_server",
        "UnixServer._on_time",
        lambda self: (at := self._orphaned_at()) is not None and at <= edges.machine().now,
    ),
    "agent runs what the database does not know": (
        _EXECUTORS + "agents",
        "AgentTrialExecutor.on_met",
        lambda self, agent, running, seen: (
            not {(order.trial_id, order.attempt) for order in self._attempts.of(agent)} >= set(running)
        ),
    ),
    "request of a user handled by the next manager": (
        _MANAGER + "manager",
        "Manager._first_of_all",
        lambda self, runner, own: own.get("accepted"),
    ),
    "checkpoint given up": ("pitchpipe.runner.attempts", "forget_checkpoint", lambda trial: trial.checkpoint),
    "trial waits for another one's checkpoint": (
        "pitchpipe.runner.trial_moves",
        "Trials._resume_heirs",
        lambda self: self._heirs,
    ),
    "trial killed while it waited": (
        _AGENT + "core",
        "Agent._end",
        lambda self, request: (request.trial, request.attempt) in self._waiting,
    ),
    "trial refused by its machine": (
        _AGENT + "core",
        "Agent._add_end",
        lambda self, ended, **named: ended.infra,
    ),
    "dispatcher restored": (_MANAGER + "dispatcher_link.dispatcher", "Dispatcher.restore", _always),
    "dispatcher not reproducible": (
        _MANAGER + "dispatcher_link.dispatcher",
        "Dispatcher.begin_record",
        _always,
    ),
    "dispatcher started from a checkpoint": (
        _MANAGER + "dispatcher_link.dispatcher",
        "Dispatcher._start",
        lambda self, recall, saved=None, mode="start": saved is not None,
    ),
    "turn waits for room on the disk": (
        _MANAGER + "disk_space",
        "DiskSpaceGuard._try_again",
        lambda self: self._held is not None,
    ),
    "replies of an earlier manager handled": (
        _MANAGER + "manager",
        "Manager._missed_replies",
        lambda self, last: last is not None,
    ),
    "trials paused": (_EXECUTORS + "agents", "AgentTrialExecutor.pause_trial", _always),
    "trials stopped": (_EXECUTORS + "agents", "AgentTrialExecutor.stop_trial", _always),
    "checkpoint copied": ("pitchpipe.store.folder", "clone_checkpoint", _always),
    "agents killed at the end of the grace": (_MANAGER + "timers", "ExperimentTimers._kill_agents", _always),
    "clock set between two managers": ("pitchpipe.runner", "TrialRunner.shift_starts", _always),
}
"""By name: where it is, and which calls count."""


def plant(machine: Machine) -> None:
    """Count the calls of the branches."""
    for name, (module_name, path, counts) in BRANCHES.items():
        owner: Any = importlib.import_module(module_name)
        *owners, last = path.split(".")
        for each in owners:
            owner = getattr(owner, each)
        function = getattr(owner, last)
        counted = _counted(machine, name, function, counts)
        if owners:
            setattr(owner, last, counted)
        else:
            edges.replace_everywhere(function, counted)


def _counted(machine: Machine, name: str, function: Any, counts: Counts) -> Any:
    def count(*arguments: Any, **named: Any) -> None:
        if counts(*arguments, **named):
            machine.hits[name] += 1
            machine.note(name)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call(*arguments: Any, **named: Any) -> Any:
            count(*arguments, **named)
            return await function(*arguments, **named)
    else:

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            count(*arguments, **named)
            return function(*arguments, **named)

    return call
