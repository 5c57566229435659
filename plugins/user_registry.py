"""Algorithms that the user registered under a name of their own: one JSON file, for all experiments of the user."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Registered", "register", "registered", "registry_file", "unregister"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A class under a name: `kind` is "tuner" or "assessor", `class_args` are defaults.

    Without a `code_directory` the class is in an installed package. `validator` is a class that checks the arguments.
    """

    kind: str
    name: str
    class_name: str
    code_directory: str | None = None
    class_args: Mapping[str, Any] = field(default_factory=dict)
    accepts_class_args: bool = True
    validator: str | None = None


def registry_file() -> Path:
    """Return where the names are: `pitchpipe/algorithms.json` in `$XDG_CONFIG_HOME`, else in ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(home)) / "pitchpipe" / "algorithms.json"


def registered() -> list[Registered]:
    """Return what is registered, in alphabetical order; raise ValueError for a file that cannot be understood."""
    file = registry_file()
    try:
        found = [Registered(**one) for one in json.loads(file.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{file} is not a list of registered algorithms ({error}): mend or delete it"
        ) from error
    return sorted(found, key=lambda one: one.name.lower())


def register(algorithm: Registered) -> None:
    """Register an algorithm, replacing one of the same name."""
    _write([*_others(algorithm.name), algorithm])


def unregister(name: str) -> None:
    """Remove a name; nothing happens if it is not registered."""
    _write(_others(name))


def _others(name: str) -> list[Registered]:
    return [one for one in registered() if one.name.lower() != name.lower()]


def _write(algorithms: list[Registered]) -> None:
    file = registry_file()
    if not file.is_absolute():
        raise FileNotFoundError(errno.ENOENT, "set HOME or XDG_CONFIG_HOME to an absolute path", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps([asdict(one) for one in algorithms], indent=2), encoding="utf-8")
    new.replace(file)
