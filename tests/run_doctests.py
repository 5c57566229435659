"""Runs the examples in the docstrings of every module of the package that is imported as `pitchpipe`.

    python tests/run_doctests.py [PREFIX]

A runner that walks the folders would import `protocol/frames.py` as a top-level module, or nothing at all;
this one imports each module by its real name and prints one line `module: failed/attempted` for each. With a prefix,
it takes only the modules whose names start with it.
"""

import contextlib
import doctest
import importlib
import io
import pkgutil
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from types import ModuleType

SETUP = Path(__file__).resolve().parent.parent / "setup.cfg"


def packages() -> list[str]:
    """Return the names of the packages as setup.cfg lists them; that for Hydra is not below `pitchpipe`."""
    parser = ConfigParser()
    parser.read(SETUP, encoding="utf-8")
    names = parser["options"]["packages"].split()
    return [name for name in names if name.partition(".")[0] == "pitchpipe"]


def module_names() -> Iterator[str]:
    """Yield the name of every module of the package; a `__main__` is a program and not imported."""
    for package in packages():
        yield package
        folders = importlib.import_module(package).__path__
        listed = {f"{package}.{module.name}" for module in pkgutil.iter_modules(folders)}
        yield from filter(has_its_library, sorted(listed - set(packages()) - {f"{package}.__main__"}))


def has_its_library(name: str) -> bool:
    """Return whether a module can be imported; an adapter to a library cannot be without it."""
    if not name.startswith("pitchpipe.integrations."):
        return True
    try:
        importlib.import_module(name)
    except ImportError as error:
        if "pip install" not in str(error):
            raise
        return False
    return True


def run(module: ModuleType) -> tuple[doctest.TestResults, str]:
    """Run the examples of one module; return the counts and what the failed ones printed."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    return results, output.getvalue()


def main(prefix: str = "") -> int:
    """Run all; the exit code is 1 when an example failed or none was found."""
    failed = attempted = 0
    for name in filter(lambda name: name.startswith(prefix), module_names()):
        results, output = run(importlib.import_module(name))
        failed, attempted = failed + results.failed, attempted + results.attempted
        print(f"{name}: {results.failed}/{results.attempted}\n{output}", end="")
    print(f"{attempted} examples, {failed} failed")
    return 1 if failed or not attempted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
