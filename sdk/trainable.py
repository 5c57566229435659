"""Trials as classes: `Trainable`, which trains step by step, and functions wrapped as such classes.

A class can be paused and continued between any two steps, and its instance can be used again for other
parameters, so that expensive setup (data, a model on a GPU) happens once.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..protocol import Json, JsonObject, Parameters
from .checkpoint import write_data
from .current_trial import TrialStopped, metric_text
from .trial_threads import using_channel

if TYPE_CHECKING:
    from .checkpoint import Fill, SavedState
    from .current_trial import ReportKind

TrialFunction = Callable[[Parameters], Any]


class Trainable:
    """The base of users' trial classes: `setup` and `step` are required, the other methods are optional.

    The trial runs until `step` returns a dict with a true `done`, until it has made as many steps as its budget, or
    until it is stopped. `parameters` are the trial's own, `iteration` counts the steps made, over all attempts.

    >>> class Train(Trainable):
    ...     def setup(self, parameters):
    ...         self.score = 0.0
    ...     def step(self):
    ...         self.score += self.parameters["lr"]
    ...         return {"default": self.score, "done": self.iteration == 2}
    >>> Train({"lr": 0.5}).step()
    {'default': 0.5, 'done': False}
    """

    export_formats: Sequence[str] = ()  # a good end calls `export_model` with these

    def __init__(self, parameters: Mapping[str, Json] | None = None) -> None:
        self.parameters: Parameters = dict(parameters or {})
        self.iteration = 0
        try:
            self.setup(self.parameters)
        except BaseException:
            clean_up(self)
            raise

    def setup(self, parameters: Parameters) -> None:
        """Prepare to train with these parameters."""

    def step(self) -> Any:
        """Train for one step and return its result: a number, or a dict with a number under `default`."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def save_checkpoint(self, directory: str) -> SavedState | None:
        """Return the state as a dict, or write files into the directory; do neither for no checkpoint."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Restore a state: the dict that was returned, or the path of the directory that was written."""
        raise NotImplementedError(f"{type(self).__name__} has no load_checkpoint()")

    def reset_config(self, new: Parameters) -> bool:
        """Begin again with other parameters and return True; False asks for a new instance instead."""
        del new
        return False

    def export_model(self, formats: Sequence[str], directory: str) -> dict[str, str]:
        """Write the model into the directory in each of the formats and return the paths by format."""
        raise NotImplementedError(f"{type(self).__name__} has no export_model() for {list(formats)}")

    def cleanup(self) -> None:
        """Release what `setup` acquired; called once per instance, however its last trial ended."""


def clean_up(trainable: Trainable) -> None:
    """Call `cleanup`; print what it raises and continue, since the trial is over.

    >>> clean_up(Trainable())
    """
    try:
        trainable.cleanup()
    except Exception:  # noqa: BLE001 - users' code may raise anything
        import traceback

        traceback.print_exc()


class FunctionTrainable(Trainable):
    """A function as a class: each of its intermediate results is the result of one step.

    An agent calls the function like any other. Driven by hand, the function runs in a thread of its own,
    which waits in each report for the next `step`; one instance can be driven at a time.
    """

    function: ClassVar[TrialFunction]

    def setup(self, parameters: Parameters) -> None:
        """Prepare the thread; it starts with the first step."""
        self._run = _StepwiseRun(type(self).function, parameters)

    def step(self) -> JsonObject:
        """Return the next result, or after the function's end the last one with a true `done`."""
        return self._run.step()

    def save_checkpoint(self, directory: str) -> None:
        """Write the function's last checkpoint."""
        self._run.copy_checkpoint(directory)

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Let the function continue from a checkpoint, a dict or a path; call this before the first step."""
        self._run.continue_from(checkpoint)

    def cleanup(self) -> None:
        """End the function, by TrialStopped in its report, and wait for it."""
        self._run.close()


class _StepwiseRun:
    """The thread of one function, and the channel through which it passes on its results one by one.

    >>> run = _StepwiseRun(lambda parameters: parameters["x"], {"x": 0.5})
    >>> run.step(), run.close()
    ({'default': 0.5, 'done': True}, None)
    """

    experiment_id = trial_id = "STANDALONE"
    sequence_id = 0
    budget: float | None = None
    seed: int | None = None

    def __init__(self, function: TrialFunction, parameters: Parameters) -> None:
        self.checkpoint: str | None = None
        self._saved: str | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="trial-")
        self._function = function
        self._parameters = parameters
        self._go, self._there = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._result: JsonObject = {}
        self._error: BaseException | None = None
        self._over = self._closing = False

    def step(self) -> JsonObject:
        """Let the function run up to its next report; raise what it raises."""
        if not self._over:
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, daemon=True)
                self._thread.start()
            else:
                self._go.release()
            self._there.acquire()
        if self._error is not None:
            raise self._error
        return {**self._result, "done": self._over}

    def close(self) -> None:
        """Stop the function in the report where it waits, if any, and wait for its end."""
        self._closing = True
        if self._thread is not None:
            self._go.release()
            self._thread.join()
            self._thread = None
        self._folder.cleanup()

    def copy_checkpoint(self, directory: str) -> None:
        """Copy the function's last checkpoint into a directory."""
        if self._saved is not None:
            write_data(directory, self._saved)

    def continue_from(self, data: Any) -> None:
        """Give the function a checkpoint: a dict, or a path."""
        self.checkpoint = self._new_folder()
        write_data(self.checkpoint, data)

    def parameters(self) -> Parameters:
        """Return the parameters, a new dict each time."""
        return dict(self._parameters)

    def report(self, kind: ReportKind, value: str) -> None:
        """Pass a result on and wait for the next step; pass a final result on at the end."""
        result = json.loads(value)
        self._result = result if isinstance(result, dict) else {"default": result}
        if kind == "intermediate":
            self._there.release()
            self._go.acquire()
        if self._closing:
            raise TrialStopped

    def save(self, fill: Fill) -> None:
        """Keep a checkpoint until the run is closed."""
        folder = self._new_folder()
        fill(folder)
        self._saved = folder

    def _new_folder(self) -> str:
        return tempfile.mkdtemp(dir=self._folder.name)

    def _main(self) -> None:
        try:
            with using_channel(self):
                returned = self._function(self.parameters())
            if returned is not None:
                self.report("final", metric_text(returned))
        except TrialStopped:
            pass
        except BaseException as error:  # noqa: BLE001 - step() raises it again
            self._error = error
        self._over = True
        self._there.release()


def wrap_function(train_func: TrialFunction, name: str | None = None) -> type[FunctionTrainable]:
    """Return a class whose trials call the function; raise TypeError if it does not take the parameters alone.

    >>> made = wrap_function(lambda parameters: parameters["x"] ** 2, name="Square")({"x": 3})
    >>> made.step(), made.cleanup()
    ({'default': 9, 'done': True}, None)
    """
    import inspect

    try:
        inspect.signature(train_func).bind({})
    except ValueError:  # a built-in function without a signature
        pass
    except TypeError as error:
        raise TypeError(f"{train_func!r} cannot be called with the parameters alone: {error}") from error
    class_name = name or getattr(train_func, "__name__", type(train_func).__name__)
    return type(class_name, (FunctionTrainable,), {"function": staticmethod(train_func)})
