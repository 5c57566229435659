"""Drives a `Trainable` through one attempt: makes or reuses, restores, steps, saves, exports and cleans it up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..sdk import (
    Checkpoint,
    FunctionTrainable,
    Trainable,
    TrialFunction,
    TrialStopped,
    clean_up,
    metric_text,
    own_calls,
    write_data,
)
from .function_channel import FunctionChannel
from .job import Job


class Stable:
    """The instance of a class that an agent keeps for the next trial, if any."""

    def __init__(self) -> None:
        self._kept: Trainable | None = None
        self._made_for: tuple[TrialFunction, Sequence[int | str] | None] | None = None

    def call(
        self, function: TrialFunction, parameters: dict[str, Any], gpus: Sequence[int | str] | None
    ) -> Any:
        """Return what the function returns, or a Trainable when it is a class or makes one.

        The Trainable is the one that was kept, if it was made for the same GPUs and can be reset.
        """
        kept, self._kept = self._kept, None
        if kept is not None:
            if self._made_for == (function, gpus) and _is_reset(kept, parameters):
                return kept
            clean_up(kept)
        return function(parameters)

    def keep(self, trainable: Trainable, function: TrialFunction, gpus: Sequence[int | str] | None) -> None:
        """Keep an instance that its attempt left in order."""
        self._kept = trainable
        self._made_for = function, gpus

    def close(self) -> None:
        """Clean up what was kept."""
        if self._kept is not None:
            clean_up(self._kept)
            self._kept = None


def _is_reset(trainable: Trainable, parameters: dict[str, Any]) -> bool:
    try:
        if not trainable.reset_config(parameters):
            return False
    except BaseException:
        clean_up(trainable)
        raise
    trainable.parameters = parameters
    return True


def unwrapped(function: TrialFunction) -> TrialFunction:
    """Return the function in a FunctionTrainable class, and anything else as it is.

    >>> from pitchpipe import wrap_function
    >>> unwrapped(wrap_function(len)) is len, unwrapped(Trainable) is Trainable
    (True, True)
    """
    if isinstance(function, type) and issubclass(function, FunctionTrainable):
        return function.function
    return function


def run_class(
    trainable: Trainable, channel: FunctionChannel, job: Job, keep: Callable[[], None]
) -> dict[str, str]:
    """Drive an instance to the end of an attempt and return the paths of what it exported, by format.

    Raises what the class raises, and TrialStopped at a stop or pause. The instance is cleaned up, or passed to `keep`
    if it may be used again.
    """
    in_order = False
    try:
        exported = _Drive(trainable, channel, job).run()
        in_order = True
        return exported
    except TrialStopped:
        in_order = True
        raise
    finally:
        if in_order and job.run.reuse_actors:
            keep()
        else:
            clean_up(trainable)


class _Drive:
    def __init__(self, trainable: Trainable, channel: FunctionChannel, job: Job) -> None:
        self._trainable = trainable
        self._channel = channel
        self._job = job
        self._pauses_at_budget = job.pauses_at_budget
        self._last: str | None = None

    def run(self) -> dict[str, str]:
        self._restore()
        while not self._step():
            if self._is_budget_spent:
                if not self._pauses_at_budget:
                    break
                self._channel.pausing = True  # the tuner has said so before
            pausing = self._channel.pausing
            if pausing or self._is_save_due():
                self._channel.save(self._fill)
            if pausing:  # nothing was saved: a save would have raised it
                raise TrialStopped
        if self._job.keep.at_end or self._job.budget is not None or self._is_save_due():
            self._channel.save_at_end(self._fill)
        if self._last is not None and not self._channel.has_final:
            self._channel.report("final", self._final(self._last))
        return self._export()

    def _restore(self) -> None:
        self._trainable.iteration = self._job.first_sequence
        if self._job.checkpoint is not None:
            checkpoint = Checkpoint(self._job.checkpoint)
            self._trainable.load_checkpoint(checkpoint.to_dict() if checkpoint.is_dict else checkpoint.path)

    def _step(self) -> bool:
        """Make one step, report its result and return whether the trainable is done."""
        metric, done = _result(self._trainable, self._trainable.step())
        self._trainable.iteration += 1
        if metric is not None:
            self._last = metric_text(metric)
            self._channel.report("intermediate", self._last)
        return done

    @property
    def _is_budget_spent(self) -> bool:
        return self._job.budget is not None and self._trainable.iteration >= self._job.budget

    def _final(self, last: str) -> str:
        """Return the final result; it says that a trial that is to be paused is done instead."""
        if not self._pauses_at_budget:
            return last
        result = json.loads(last)
        return metric_text({**result, "done": True} if isinstance(result, dict) else result)

    def _is_save_due(self) -> bool:
        frequency = self._job.keep.frequency
        return frequency > 0 and self._trainable.iteration % frequency == 0

    def _fill(self, folder: str) -> None:
        data = self._trainable.save_checkpoint(folder)
        if data is not None and data != folder:  # a class may also return the directory that it wrote
            write_data(folder, data)

    def _export(self) -> dict[str, str]:
        formats = list(self._trainable.export_formats)
        if not formats:
            return {}
        directory = os.path.join(self._job.folder, "export")
        with own_calls():
            os.makedirs(directory, exist_ok=True)
        exported = self._trainable.export_model(formats, directory)
        if not isinstance(exported, dict):
            raise TypeError(
                f"export_model returned {exported!r:.200}, which is not a dict of paths by format"
            )
        return {
            str(name): _relative(os.fspath(path), self._job.run.folder) for name, path in exported.items()
        }


def _result(trainable: Trainable, result: Any) -> tuple[Any, bool]:
    """Return the metric in the result of a step (None: there is none) and whether the trial is done."""
    if result is None:
        raise TypeError(f"{type(trainable).__name__}.step() returned None: return a number or a dict")
    if not isinstance(result, dict):
        return result, False
    metric = {name: value for name, value in result.items() if name != "done"}
    return metric or None, bool(result.get("done"))


def _relative(path: str, folder: str) -> str:
    """Return a path in the experiment's folder relative to that folder, and any other as it is.

    >>> _relative("/exp/trials/0/export/model.onnx", "/exp"), _relative("/models/a", "/exp")
    ('trials/0/export/model.onnx', '/models/a')
    """
    inside = os.path.commonpath([os.path.abspath(path), folder]) == folder
    return os.path.relpath(path, folder) if inside else path
