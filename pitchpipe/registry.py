"""Names of trainables and environments.

A name belongs to the process that registered it. An `Experiment` sends its trial together with all environments, so
that the process that unpickles it has the same names.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .sdk import Trainable, wrap_function

Registered = TypeVar("Registered")
Creator = Callable[[dict[str, Any]], Any]


class NotRegistered(LookupError):
    """Nothing is registered under this name; the message suggests the nearest names."""


class Registry:
    """Trainables and creators of environments by name."""

    def __init__(self) -> None:
        self._trainables: dict[str, type[Trainable]] = {}
        self._creators: dict[str, Creator] = {}

    def keep_trainable(self, name: str, trainable: Any) -> None:
        """Register a class or a function, replacing an earlier one; raise `TypeError` for anything else."""
        if isinstance(trainable, type):
            if not issubclass(trainable, Trainable):
                raise TypeError(f"{trainable.__name__} is not a subclass of pitchpipe.Trainable")
        elif callable(trainable):
            trainable = wrap_function(trainable, name=name)
        else:
            raise TypeError(f"{trainable!r} is neither a function nor a subclass of pitchpipe.Trainable")
        self._trainables[_checked(name)] = trainable

    def keep_env(self, name: str, creator: Creator) -> None:
        """Register a function that makes an environment; raise `TypeError` for anything that cannot be called."""
        if not callable(creator):
            raise TypeError(f"{creator!r} is not a function that makes an environment")
        self._creators[_checked(name)] = creator

    def trainable(self, name: str) -> type[Trainable]:
        """Return the class of this name; raise `NotRegistered` if there is none."""
        return _looked_up(self._trainables, name, "trainable")

    def creator(self, name: str) -> Creator:
        """Return the function that makes the environment of this name; raise `NotRegistered` if there is none."""
        return _looked_up(self._creators, name, "environment")

    def has_trainable(self, name: str) -> bool:
        """Return whether there is a trainable of this name."""
        return name in self._trainables

    def creators(self) -> dict[str, Creator]:
        """Return all functions that make environments, by name."""
        return dict(self._creators)


# One for each process.
registered = Registry()


def register_trainable(name: str, trainable: Any) -> None:
    """Register a `Trainable` class or a function, so that `Experiment(name, ...)` finds it.

    A function becomes a class, as by `wrap_function`. Raise `TypeError` for anything else.

    >>> register_trainable("square", lambda parameters: parameters["x"] ** 2)
    >>> registered.trainable("square").__name__
    'square'
    """
    registered.keep_trainable(name, trainable)


def register_env(name: str, creator: Creator) -> None:
    """Register a function that makes an environment from a dict; trials call it by `make_env`, wherever they run.

    >>> register_env("corridor", lambda config: list(range(config["length"])))
    >>> make_env("corridor", {"length": 3})
    [0, 1, 2]
    """
    registered.keep_env(name, creator)


def make_env(name: str, config: Mapping[str, object] | None = None) -> Any:
    """Make the environment of this name; raise `NotRegistered` if there is none."""
    return registered.creator(name)(dict(config or {}))


def shipped(trial: Any) -> Any:
    """Wrap a trial for pickling: unpickling returns the trial and registers the environments of this process."""
    creators = registered.creators()
    return _Shipment(trial, creators) if creators else trial


class _Shipment:
    """A trial that is pickled as a call of `_unpack`."""

    def __init__(self, trial: Any, creators: dict[str, Creator]) -> None:
        self._packed = trial, creators

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpack, self._packed


def _unpack(trial: Any, creators: dict[str, Creator]) -> Any:
    for name, creator in creators.items():
        register_env(name, creator)
    return trial


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{name!r} is not a name")
    return name


def _looked_up(table: Mapping[str, Registered], name: str, kind: str) -> Registered:
    if name in table:
        return table[name]
    nearest = difflib.get_close_matches(name, table, 3, 0.0)
    known = f"registered: {', '.join(nearest)}" if nearest else "nothing is registered"
    raise NotRegistered(f"there is no {kind} '{name}': {known}")
