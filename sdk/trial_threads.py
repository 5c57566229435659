"""Which trial a thread works for, in a process that calls trial functions itself: an agent, or `minimize`.

Such a process runs one trial after another, and a thread may outlive the trial that started it. So every thread
belongs to the trial of the thread that started it, and a task of a ThreadPoolExecutor or of asyncio to the trial that
submitted it. A call for a trial that is over, or from a thread that no trial started, never reaches another trial.
What `multiprocessing` starts as a new Python knows by the environment that it belongs to such a process.
"""

from __future__ import annotations

import _thread
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .current_trial import CurrentTrial, NoRunningTrial, current
from .variables import Variables

if TYPE_CHECKING:
    from .current_trial import TrialChannel

_ATTRIBUTE = "_pitchpipe_trial"  # of a thread: the trial that started it
_TRIAL: ContextVar[CurrentTrial | None] = ContextVar(_ATTRIBUTE, default=None)


class using_channel:  # a class costs each function trial less than a generator
    """A block that uses `channel` in this thread and in what it starts."""

    def __init__(self, channel: TrialChannel) -> None:
        _follow_threads()
        current.find_trial = _trial_here
        self._trial = CurrentTrial()
        self._trial.enter(channel)

    def __enter__(self) -> None:
        self._token = _TRIAL.set(self._trial)

    def __exit__(self, *_: object) -> None:
        _TRIAL.reset(self._token)


class hosted(using_channel):
    """A block inside the trial of `channel`: this thread, and what it starts; no stray thread may report meanwhile."""

    def __enter__(self) -> None:
        super().__enter__()
        current.hosted.add(self._trial)
        os.environ[Variables.FUNCTIONS] = str(os.getpid())

    def __exit__(self, *_: object) -> None:
        current.hosted.discard(self._trial)
        if not current.hosted:
            os.environ.pop(Variables.FUNCTIONS, None)
        super().__exit__()


def channel_here() -> TrialChannel | None:
    """Return the channel of this thread's trial, which may be over; None if no trial is known to have started it."""
    trial = _of_this_thread()
    return None if trial is None else trial.channel


def _trial_here() -> CurrentTrial:
    """Return the trial of this thread; raise NoRunningTrial if that cannot be known."""
    trial = _of_this_thread()
    if trial is not None:
        return trial
    if current.hosted:
        raise NoRunningTrial(
            f"no trial has started this thread ({threading.current_thread().name}): start it inside the trial's"
            " function, or let it run in contextvars.copy_context() of that function"
        )
    return current


def _of_this_thread() -> CurrentTrial | None:
    return _TRIAL.get() or vars(threading.current_thread()).get(_ATTRIBUTE)


def _follow_threads() -> None:
    """Let threads and tasks remember the trial that started them; Python hands down no context to threads."""
    if hasattr(threading.Thread.start, _ATTRIBUTE):
        return
    _replace(threading.Thread, "start", _following_start)
    _replace(ThreadPoolExecutor, "submit", _following_submit)
    _replace(_thread, "start_new_thread", _following_new_thread)


def _replace(owner: Any, name: str, following: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        return following(original, *arguments, **named)

    setattr(call, _ATTRIBUTE, True)
    setattr(owner, name, call)


def _following_start(start: Callable[..., Any], thread: threading.Thread) -> Any:
    trial = _of_this_thread()
    if trial is not None:
        vars(thread)[_ATTRIBUTE] = trial
    return start(thread)


def _following_submit(
    submit: Callable[..., Any],
    pool: ThreadPoolExecutor,
    task: Callable[..., Any],
    /,
    *arguments: Any,
    **named: Any,
) -> Any:
    trial = _of_this_thread()
    if trial is None:
        return submit(pool, task, *arguments, **named)
    return submit(pool, _work_for, trial, task, *arguments, **named)


def _following_new_thread(start: Callable[..., Any], function: Callable[..., Any], *rest: Any) -> Any:
    trial = _of_this_thread()
    return start(function if trial is None else functools.partial(_work_for, trial, function), *rest)


def _work_for(trial: CurrentTrial, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Do a task in a thread of a pool, which from now on belongs to this trial: so do the task's callbacks."""
    _TRIAL.set(trial)
    return task(*arguments, **named)
