"""The one place where tuner names become classes, and where their arguments are checked before a run.

A name is looked up in the literal table below, then among the entry points of installed packages.
Classes are imported only when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..search_space import Problem
    from .base import Tuner

GROUP = "pitchpipe.tuners"
BUILT_IN = {
    "Batch": ".batch:BatchTuner",
    "GridSearch": ".grid_search:GridSearchTuner",
    "Hyperband": ".hyperband:HyperbandTuner",
    "PBT": ".pbt:PBTTuner",
    "Random": ".random:RandomTuner",
    "TPE": ".tpe:TPETuner",
}
ALIASES = {"batchtuner": "batch", "pbttuner": "pbt"}


class UnknownAlgorithm(LookupError):
    """No tuner has this name; the message lists the nearest names and all of them."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        self.nearest = _nearest(name, known, 3)
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(f"no tuner is called {name!r}{hint} (known: {', '.join(known)})")

    def __reduce__(self) -> tuple[Any, ...]:
        return UnknownAlgorithm, (self.name, self.known)


def names() -> list[str]:
    """Return the names that :func:`create` knows, in alphabetical order.

    >>> "Random" in names()
    True
    """
    return sorted({*BUILT_IN, *_entry_points()}, key=str.lower)


def find(name: str) -> type[Tuner]:
    """Return the class of a name in any spelling of upper and lower case; raises :class:`UnknownAlgorithm`.

    >>> find("random").__name__
    'RandomTuner'
    """
    wanted = name.lower()
    built_in = {key.lower(): target for key, target in BUILT_IN.items()}
    target = built_in.get(ALIASES.get(wanted, wanted))
    if target is not None:
        return _load(target)
    plugins = {key.lower(): entry for key, entry in _entry_points().items()}
    if wanted in plugins:
        return plugins[wanted].load()
    raise UnknownAlgorithm(name, names())


def create(name: str, /, **class_args: Any) -> Tuner:
    """Return a new tuner by name.

    Raises :class:`UnknownAlgorithm`, TypeError for an argument that the class does not have, and ValueError
    for a value that it refuses.

    >>> type(create("Random")).__name__
    'RandomTuner'
    >>> create("Random", sead=1)
    Traceback (most recent call last):
    TypeError: RandomTuner: unknown argument 'sead'; did you mean 'seed'?
    """
    cls = find(name)
    for problem in signature_problems(cls, class_args):
        raise TypeError(f"{cls.__name__}: {problem.message}{'; ' if problem.hint else ''}{problem.hint}")
    return cls(**class_args)


def check(cls: type, class_args: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the arguments of a class, built in or not; constructs it, runs nothing.

    The path of a problem starts with the argument's name; it is empty when no argument is to blame.

    >>> [problem.path for problem in check(find("Random"), {"seed": "x"})]
    [('seed',)]
    """
    from ..search_space import Problem

    if problems := signature_problems(cls, class_args):
        return problems
    try:
        cls(**class_args)
    except (TypeError, ValueError, KeyError) as error:
        return [Problem(_blamed(str(error), class_args), str(error))]
    return []


def signature_problems(cls: type, class_args: Mapping[str, Any]) -> list[Problem]:
    """Return the arguments that the constructor does not have, and those that it needs and are missing."""
    import inspect

    from ..search_space import Problem

    parameters = inspect.signature(cls).parameters
    accepted = [key for key, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if anything else [key for key in class_args if key not in accepted]
    needed = [key for key in accepted if parameters[key].default is inspect.Parameter.empty]
    return [
        *(Problem((key,), f"unknown argument {key!r}", _hint(key, accepted)) for key in unknown),
        *(Problem((key,), f"argument {key!r} is missing") for key in needed if key not in class_args),
    ]


def _hint(name: str, accepted: list[str]) -> str:
    nearest = _nearest(name, accepted, 1)
    if nearest:
        return f"did you mean {nearest[0]!r}?"
    return f"it takes {', '.join(accepted)}" if accepted else "it takes no arguments"


def _blamed(message: str, class_args: Any) -> tuple[str, ...]:
    """Return the path of keys that the message of a constructor mentions, outermost first."""
    import re

    if not isinstance(class_args, Mapping):
        return ()
    words = re.findall(r"\w+", message)
    mentioned = [key for key in class_args if key in words]
    if not mentioned:
        return ()
    first = min(mentioned, key=words.index)
    return (first, *_blamed(message, class_args[first]))


def _nearest(name: str, known: list[str], count: int) -> list[str]:
    import difflib

    by_lower = {key.lower(): key for key in known}
    return [by_lower[key] for key in difflib.get_close_matches(name.lower(), by_lower, count, 0.5)]


def _load(target: str) -> Any:
    import importlib

    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module, __package__), attribute)


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}
