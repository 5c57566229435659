"""Runs the examples in the docstrings of every module of the package that is imported as `pitchpipe`.

    python tests/run_doctests.py [PREFIX]

A runner that walks the folders would import `protocol/frames.py` as a top-level module, or nothing at all;
this one imports each module that has examples by its real name, and prints one line `module: failed/attempted`.
With a prefix, it takes only the modules whose names start with it.
"""

import contextlib
import doctest
import importlib.util
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


def module_names(prefix: str) -> Iterator[str]:
    """Yield the name of every module of the package that has examples and its library."""
    for package in packages():
        spec = importlib.util.find_spec(package)
        folders = spec.submodule_search_locations if spec is not None else None
        listed = {f"{package}.{module.name}" for module in pkgutil.iter_modules(folders)}
        names = [package, *sorted(listed - set(packages()))]
        yield from (name for name in names if name.startswith(prefix) and has_examples(name))


def has_examples(name: str) -> bool:
    """Return whether a module has examples, and can be imported; an adapter to a library cannot be without it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or ">>>" not in Path(spec.origin).read_text(encoding="utf-8"):
        return False
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
    """Run all; the exit code is 1 when an example failed, none was found, or a folder became a top-level module."""
    failed = attempted = 0
    for name in module_names(prefix):
        results, output = run(importlib.import_module(name))
        failed, attempted = failed + results.failed, attempted + results.attempted
        if results.attempted:
            print(f"{name}: {results.failed}/{results.attempted}\n{output}", end="")
    print(f"{attempted} examples, {failed} failed")
    strays = {name.split(".")[1] for name in packages() if "." in name} & sys.modules.keys()
    if strays:
        print(f"imported as top-level modules: {', '.join(sorted(strays))}")
    return 1 if failed or not attempted or strays else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
