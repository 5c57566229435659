"""The extras of the installation: which libraries each brings, and how to install those that are missing.

The command names the libraries and not the extra, so it works wherever Pitchpipe came from: a wheel, a checkout that is
gone, an index without it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass

# Modules that are not named as their distributions.
_MODULES = {"scikit-learn": "sklearn", "hydra-core": "hydra"}


class MissingExtraError(ImportError):
    """A library of an extra is missing or too old; the message ends with the command that installs it."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library that Pitchpipe requires, as pip takes it: `nicegui>=3.13`."""

    requirement: str

    @property
    def name(self) -> str:
        """The name of its distribution.

        >>> Library("transformers[torch]>=4.52").name
        'transformers'
        """
        return re.split(r"[^\w.-]", self.requirement)[0]

    @property
    def is_there(self) -> bool:
        """Whether it can be imported, to judge by its files: nothing is imported here."""
        from importlib.util import find_spec

        module = _MODULES.get(self.name, self.name.replace("-", "_"))
        try:
            return find_spec(module) is not None
        except ImportError:
            return False
        except ValueError:  # a module that was made by hand has no spec
            return module in sys.modules

    @property
    def old_version(self) -> str:
        """The installed version if it is too old; else nothing."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            installed = version(self.name)
        except PackageNotFoundError:  # another distribution may bring the module, as mlflow-skinny does
            return ""
        least = re.search(r">=([\d.]+)", self.requirement)
        return installed if least and is_older(installed, least[1]) else ""

    @property
    def is_usable(self) -> bool:
        """Whether it is there, and new enough."""
        return self.is_there and not self.old_version


def libraries_by_extra() -> dict[str, list[Library]]:
    """Return the libraries of each extra, and with "" those of every installation.

    >>> [library.requirement for library in libraries_by_extra()["pandas"]]
    ['pandas>=2.2']
    """
    from importlib.metadata import requires

    found: dict[str, list[Library]] = {}
    for line in requires("pitchpipe") or ():
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"]([^'\"]+)", marker)
        found.setdefault(extra[1] if extra else "", []).append(Library(requirement.strip()))
    return found


def require_extra(needs: str, extra: str, *names: str) -> None:
    """Raise `MissingExtraError` unless all libraries of an extra, or those that are named, are there and new enough.

    >>> require_extra("a table needs", "pandas")
    """
    needed = [library for library in libraries_by_extra()[extra] if not names or library.name in names]
    if not all(library.is_usable for library in needed):
        old = too_old(needed)
        why = f" ({old})" if old else ""
        raise MissingExtraError(f"{needs} the extra {extra}{why}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs the missing and outdated libraries of an extra, or upgrades all if none is."""
    libraries = libraries_by_extra()[extra]
    wanted = [library.requirement for library in libraries if not library.is_usable]
    again = [] if wanted else ["--upgrade", *(library.requirement for library in libraries)]
    return shlex.join(["pip", "install", *wanted, *again])


def too_old(libraries: Iterable[Library]) -> str:
    """Say which of some libraries are too old; nothing if none is."""
    return ", ".join(f"{each.name} {each.old_version} is too old" for each in libraries if each.old_version)


def is_older(version: str, least: str) -> bool:
    """Return whether a version is older than another one, by their numbers up to any letter.

    >>> is_older("2.9.1", "2.10"), is_older("2.10rc1", "2.10"), is_older("2.1.0.dev3+cpu", "2.1")
    (True, False, False)
    """
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version without zeros at its end: 3 is no older than 3.0."""
    numbers = [int(number) for number in re.findall(r"\d+", re.split(r"[a-zA-Z+]", version)[0])]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
