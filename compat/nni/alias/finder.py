"""The alias `nni`: a module finder that comes after all others, so that an installed nni wins."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from .names import INSTEAD, MODULES

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
"""The folder that gives a script the alias when it is the last one in PYTHONPATH."""

_PACKAGE = __name__.partition(".")[0]


class Alias(MetaPathFinder, Loader):
    """Finds and loads `nni` and its modules; their names are imported on first use."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that the alias knows; raise ModuleNotFoundError for another of NNI's."""
        del path, target
        if fullname.startswith("nni.") and fullname not in MODULES:
            raise ModuleNotFoundError(_without_counterpart(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=True) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the module to the import system."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names."""
        name = module.__name__
        vars(module).update(__all__=sorted(MODULES[name]), __getattr__=partial(_find, name))


def activate() -> ModuleSpec:
    """Let this process import the alias, and return the spec of `nni`; a second call changes nothing.

    >>> activate().name
    'nni'
    >>> from nni.assessor import AssessResult
    >>> AssessResult.Good
    <AssessResult.Good: True>
    """
    alias = next((finder for finder in sys.meta_path if isinstance(finder, Alias)), None)
    if alias is None:
        alias = Alias()
        sys.meta_path.append(alias)
    return ModuleSpec("nni", alias, is_package=True)


def variables(job: Any) -> dict[str, str]:
    """Return the environment variables that scripts written for NNI read, for a job of a trial agent."""
    return {
        "NNI_EXP_ID": job.run.experiment,
        "NNI_TRIAL_JOB_ID": job.trial,
        "NNI_TRIAL_SEQ_ID": str(job.sequence_id),
        "NNI_OUTPUT_DIR": job.folder,
        "NNI_SYS_DIR": job.folder,
        "NNI_CODE_DIR": job.run.code_directory or os.getcwd(),
        # Scripts take it for the sign of an experiment. A real nni would wait for a manager of its own.
        **({} if PathFinder.find_spec("nni") else {"NNI_PLATFORM": "local"}),
    }


def _find(module: str, name: str) -> Any:
    """Return the value of a name in a module of the alias."""
    if name in MODULES[module]:
        home, _, attribute = MODULES[module][name].partition(":")
        found = importlib.import_module(_PACKAGE + home)
        return getattr(found, attribute) if attribute else found
    if f"{module}.{name}" in MODULES:
        return importlib.import_module(f"{module}.{name}")
    raise AttributeError(_without_counterpart(f"{module}.{name}"))


def _without_counterpart(name: str) -> str:
    """Say that Pitchpipe has no such module or name of NNI, and what to use instead."""
    instead = f": {INSTEAD[name]}" if name in INSTEAD else ""
    return (
        f"{name} of NNI has no counterpart here{instead}; docs/reference/nni.md lists the names that have one"
    )
