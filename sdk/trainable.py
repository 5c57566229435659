"""Trials as classes: `Trainable`, which trains step by step, and functions wrapped as such classes.

A class can be paused and continued between any two steps, and its instance can be used again for other
parameters, so that expensive setup (data, a model on a GPU) happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .stepwise import StepwiseRun

__all__ = ["FunctionTrainable", "Trainable", "TrialFunction", "clean_up", "wrap_function"]

TrialFunction = Callable[[dict[str, Any]], Any]


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

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self.parameters: dict[str, Any] = dict(parameters or {})
        self.iteration = 0
        try:
            self.setup(self.parameters)
        except BaseException:
            clean_up(self)
            raise

    def setup(self, parameters: dict[str, Any]) -> None:
        """Prepare to train with these parameters."""

    def step(self) -> Any:
        """Train for one step and return its result: a number, or a dict with a number under `default`."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def save_checkpoint(self, directory: str) -> dict[str, Any] | None:
        """Return the state as a dict, or write files into the directory; do neither for no checkpoint."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Restore a state: the dict that was returned, or the path of the directory that was written."""
        raise NotImplementedError(f"{type(self).__name__} has no load_checkpoint()")

    def reset_config(self, new: dict[str, Any]) -> bool:
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

    def setup(self, parameters: dict[str, Any]) -> None:
        """Prepare the thread; it starts with the first step."""
        from .stepwise import StepwiseRun

        self._run: StepwiseRun = StepwiseRun(type(self).function, parameters)

    def step(self) -> dict[str, Any]:
        """Return the next result, or after the function's end the last one with a true `done`."""
        return self._run.step()

    def save_checkpoint(self, directory: str) -> None:
        """Write the function's last checkpoint."""
        self._run.copy_checkpoint(directory)

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Let the function continue from a checkpoint, a dict or a path; call this before the first step."""
        self._run.go_on_from(checkpoint)

    def cleanup(self) -> None:
        """End the function, by TrialStopped in its report, and wait for it."""
        self._run.close()


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
    shown = name or getattr(train_func, "__name__", type(train_func).__name__)
    return type(shown, (FunctionTrainable,), {"function": staticmethod(train_func)})
