"""Imports the modules of the benchmarks, which are not a package of ours."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def benchmark_modules(folder: Path) -> Iterator[Callable[[str], Any]]:
    """Yield a function that imports a module of a folder; others may have modules of the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
