"""How a name in a config becomes a class, and how its arguments are checked before a run.

A name is looked up in a literal table, then among the entry points of installed packages, then among those that the
user registered in a JSON file, for all their experiments. Classes are imported only when needed.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..protocol import Config
from ..search_space import Problem
from .arguments import as_json, hint, nearest, optional_mapping

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Algorithm = TypeVar("Algorithm")


class UnknownAlgorithm(LookupError):
    """An unknown name; the message lists the nearest names and all of them."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind, self.name, self.known = kind, name, known
        self.nearest = nearest(name, known, 3)
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(f"no {kind} is called {name!r}{hint} (known: {', '.join(known)})")

    def __reduce__(self) -> tuple[Any, ...]:
        return UnknownAlgorithm, (self.kind, self.name, self.known)


class Registry(Generic[Algorithm]):
    """The algorithms of one kind by name."""

    def __init__(
        self,
        kind: str,
        package: str,
        built_in: Sequence[str],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.group = f"pitchpipe.{kind}s"  # of the entry points by which other packages offer theirs
        self.built_in = tuple(built_in)  # named without the kind: TPE for the class TPETuner of the package
        self._package = package
        self._aliases = dict(aliases or {})  # from other names to those above, all in lower case

    def names(self) -> list[str]:
        """Return the names that `create` knows, in alphabetical order."""
        return sorted({*self.built_in, *self.entry_points()}, key=str.lower)

    def __contains__(self, name: str) -> bool:
        """Tell whether an algorithm has this name, in any mix of upper and lower case; aliases do not count."""
        # Built-in names come first: a look through the installed packages takes 10 ms.
        wanted = name.lower()
        return wanted in map(str.lower, self.built_in) or wanted in map(str.lower, self.entry_points())

    def find(self, name: str) -> type[Algorithm]:
        """Return the class of a name in any mix of upper and lower case; raise `UnknownAlgorithm`."""
        wanted = self._aliases.get(name.lower(), name.lower())
        for built_in in self.built_in:
            if built_in.lower() == wanted:
                package = import_module(self._package)
                return cast(type[Algorithm], getattr(package, f"{built_in}{self.kind.capitalize()}"))
        plugins = {key.lower(): entry for key, entry in self.entry_points().items()}
        if name.lower() in plugins:
            return plugins[name.lower()].load()
        raise UnknownAlgorithm(self.kind, name, self.names())

    def create(self, name: str, /, **class_args: Any) -> Algorithm:
        """Return a new algorithm by name.

        Raise `UnknownAlgorithm`, TypeError for an argument that the class does not have, and ValueError for a value
        that it refuses.
        """
        cls = self.find(name)
        for problem in signature_problems(cls, class_args):
            raise TypeError(f"{cls.__name__}: {problem.message}{'; ' if problem.hint else ''}{problem.hint}")
        return cls(**class_args)

    def create_inner(self, name: Any, class_args: Any, **shared: Any) -> Algorithm:
        """Return an algorithm that another of its kind uses; it gets those of the `shared` arguments that it accepts.

        `class_args` take precedence. Errors are ValueErrors that name the argument of the outer algorithm: the kind, as
        in `tuner`, or `tuner_args`.
        """
        if not isinstance(name, str):
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise ValueError(f"{self.kind} must be the name of {article} {self.kind}, not {as_json(name)}")
        given = optional_mapping(f"{self.kind}_args", class_args)
        try:
            accepted = inspect.signature(self.find(name)).parameters
        except LookupError as error:
            raise ValueError(f"{self.kind}: {error}") from error
        try:
            return self.create(name, **{key: shared[key] for key in shared if key in accepted} | given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.kind}_args: {error}") from error

    def entry_points(self) -> dict[str, EntryPoint]:
        """Return the entry points of installed packages, by name."""
        from importlib.metadata import entry_points

        return {entry.name: entry for entry in entry_points(group=self.group)}


def check(cls: type, class_args: Config) -> list[Problem]:
    """Return what is wrong with the arguments of a class, built in or not; construct it, run nothing.

    The path of a problem starts with the argument's name; it is empty when no argument is to blame.

    >>> class Tuner:
    ...     def __init__(self, seed=None): pass
    >>> check(Tuner, {"sead": 1})
    [Problem(path=('sead',), message="unknown argument 'sead'", hint="did you mean 'seed'?")]
    """
    if problems := signature_problems(cls, class_args):
        return problems
    try:
        cls(**class_args)
    except (TypeError, ValueError, KeyError, ImportError) as error:
        return [Problem(_blamed(str(error), class_args), str(error))]
    return []


def signature_problems(cls: type, class_args: Config) -> list[Problem]:
    """Return a problem for each argument that is unknown to the constructor, and for each that is missing."""
    parameters = inspect.signature(cls).parameters
    accepted = [key for key, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if anything else [key for key in class_args if key not in accepted]
    needed = [key for key in accepted if parameters[key].default is inspect.Parameter.empty]
    return [
        *(Problem((key,), f"unknown argument {key!r}", hint(key, accepted)) for key in unknown),
        *(Problem((key,), f"argument {key!r} is missing") for key in needed if key not in class_args),
    ]


def _blamed(message: str, class_args: Any) -> tuple[str, ...]:
    """Return the path of keys that the message of a constructor mentions, outermost first."""
    if not isinstance(class_args, Mapping):
        return ()
    words = re.findall(r"\w+", message)
    mentioned = [key for key in class_args if key in words]
    if not mentioned:
        return ()
    first = min(mentioned, key=words.index)
    return (first, *_blamed(message, class_args[first]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A class under a name, as the user registered it."""

    kind: str  # "tuner" or "assessor"
    name: str
    class_name: str
    code_directory: str | None = None  # None: the class is in an installed package
    class_args: Config = field(default_factory=dict)  # defaults
    accepts_class_args: bool = True
    validator: str | None = None  # a class that checks the arguments


def registry_file() -> Path:
    """Return where the names are: `pitchpipe/algorithms.json` in `$XDG_CONFIG_HOME`, else in ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(home)) / "pitchpipe" / "algorithms.json"


def registered() -> list[Registered]:
    """Return what is registered, in alphabetical order; raise ValueError for a file that cannot be understood."""
    file = registry_file()
    try:
        algorithms = [Registered(**algorithm) for algorithm in json.loads(file.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{file} is not a list of registered algorithms ({error}): mend or delete it"
        ) from error
    return sorted(algorithms, key=lambda algorithm: algorithm.name.lower())


def register(algorithm: Registered) -> None:
    """Register an algorithm, replacing one of the same name."""
    _write([*_others(algorithm.name), algorithm])


def unregister(name: str) -> None:
    """Remove a name; nothing happens if it is not registered."""
    _write(_others(name))


def _others(name: str) -> list[Registered]:
    return [algorithm for algorithm in registered() if algorithm.name.lower() != name.lower()]


def _write(algorithms: list[Registered]) -> None:
    file = registry_file()
    if not file.is_absolute():
        raise FileNotFoundError(errno.ENOENT, "set HOME or XDG_CONFIG_HOME to an absolute path", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps([asdict(algorithm) for algorithm in algorithms], indent=2), encoding="utf-8")
    new.replace(file)


class CheckpointFolder:
    """The folder for the checkpoints of tuners, assessors and dispatchers."""

    def get_checkpoint_path(self) -> str | None:
        """Return the folder for checkpoints, or None when there is none."""
        path = os.environ.get("NNI_CHECKPOINT_DIRECTORY")
        return path if path and Path(path).is_dir() else None
