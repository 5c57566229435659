"""What an import does beyond importing, and what may change behind it: why a module is not kept ready.

Runs in the trial's own Python, where `zygote` and `survey` load it. Standard library only, for Python 3.9 and newer; of
that only what every interpreter imports at its start.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BASELINE = frozenset(sys.modules)
_USUAL_FILES = ("/dev/null", "/dev/random", "/dev/urandom")
_GPU_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
_OF_ONE_TRIAL = ("PITCHPIPE_", "NNI_")
_SEED_BITS = 64  # a user's seed is shorter, the system's has 128 bits


def is_installed(path: str) -> bool:
    """Return whether a path belongs to Python or to an installed package, and not to the user's own code."""
    parts = path.split(os.sep)
    library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    is_library = (os.path.realpath(path) + os.sep).startswith(library)
    return is_library or "site-packages" in parts or "dist-packages" in parts


class SideEffects:
    """Finds what imports do beyond importing."""

    def __init__(self, folder: str) -> None:
        self.environment = dict(os.environ)
        self.directory = os.getcwd()
        self._folder = folder
        self._files = set(_open_files())
        self._had_children = _has_children()  # before it started again
        self._roots: set[str] = set()
        self._asked: list[str] = []  # what was read that differs from trial to trial
        self._environ_class = type(os.environ)
        self._argv = sys.argv
        asked = self._asked

        class Environment(self._environ_class):  # type: ignore[misc, name-defined]
            def __getitem__(self, name: str) -> str:
                if name.startswith(_OF_ONE_TRIAL):
                    asked.append(name)
                return super().__getitem__(name)

            def __iter__(self) -> Iterator[str]:
                asked.append("the whole environment")
                return super().__iter__()

        class Arguments(list):  # type: ignore[type-arg]
            def __getitem__(self, index: Any) -> Any:
                if index != 0:
                    asked.append("the arguments")
                return super().__getitem__(index)

            def __iter__(self) -> Iterator[str]:
                asked.append("the arguments")
                return super().__iter__()

        os.environ.__class__ = Environment
        sys.argv = Arguments(sys.argv)

    def close(self) -> None:
        """Leave the interpreter as it was."""
        os.environ.__class__ = self._environ_class
        sys.argv = self._argv

    def problem(self, module: str) -> str | None:
        """Return what the import of a module did beyond importing; None if nothing is known."""
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fstat(1).st_size or os.fstat(2).st_size:
            return "prints something when it is imported"
        if self._asked:
            return f"reads {self._asked[0]} when it is imported"
        if self._folder and sys.path[0] != self._folder:
            return "changes sys.path when it is imported"
        if os.getcwd() != self.directory:
            return "changes the working directory when it is imported"
        if (name := _own_module()) is not None:
            return f"imports your module {name}"
        for path in _open_files():
            if path.startswith(_GPU_FILES):
                return "uses a GPU when it is imported"
            if path not in self._files:
                return f"opens {path} when it is imported and keeps it open"
        if _has_children() and not self._had_children:
            return "starts a process when it is imported"
        if len(os.listdir("/proc/self/task")) > 1 and not _threads_end_at_a_fork():
            return "starts a thread when it is imported"
        return self._problem_of_root(module.partition(".")[0])

    def _problem_of_root(self, root: str) -> str | None:
        """Do the slower checks, once for each installed package."""
        if root in self._roots:
            return None
        self._roots.add(root)
        if _shares_memory():
            return "shares memory with other processes when it is imported"
        if _has_own_generator():
            return "makes a random generator of its own when it is imported"
        return None


def _open_files() -> list[str]:
    paths = []
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the list of them itself
            continue
        if path not in _USUAL_FILES:
            paths.append(path)
    return paths


def _own_module() -> str | None:
    """Return a module that was imported from the user's own code, which may change."""
    main = sys.modules["__main__"]
    for name, module in list(sys.modules.items()):
        file = None if module is main else getattr(module, "__file__", None)
        if name not in _BASELINE and name != "sitecustomize" and file and not is_installed(file):
            return name
    return None


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _threads_end_at_a_fork() -> bool:
    """Return whether a fork ends the threads, as OpenBLAS sees to it, which starts them again when needed."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) == 1


def _shares_memory() -> bool:
    with open("/proc/self/maps", "rb") as file:
        return any(line.split(None, 2)[1] == b"rw-s" for line in file)


def _has_own_generator() -> bool:
    """Return whether a library has a `random.Random` of its own, which each process might have to seed again."""
    random = sys.modules.get("random")
    if random is None:
        return False
    objects = gc.get_objects()
    sequences = getattr(sys.modules.get("tempfile"), "_RandomNameSequence", ())  # these look for forks
    usual = [random._inst, *(getattr(each, "_rng", None) for each in objects if isinstance(each, sequences))]
    return any(
        isinstance(each, random.Random)
        and not isinstance(each, random.SystemRandom)
        and not any(each is generator for generator in usual)
        for each in objects
    )


def generators_to_seed() -> list[Any]:
    """Return numpy's generators that were seeded by the system, and so differ in each process."""
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return []
    generators = [each for each in gc.get_objects() if isinstance(each, numpy.BitGenerator)]
    seeds = [getattr(each, "_seed_seq", None) for each in generators]  # None: `RandomState(3)`
    return [
        each
        for each, seed in zip(generators, seeds)  # noqa: B905 (3.9)
        if seed is not None and isinstance(seed.entropy, int) and seed.entropy.bit_length() > _SEED_BITS
    ]


class FileChanges:
    """Notices that a file that was imported has changed, or that a new one hides an installed module."""

    def __init__(self, files: list[str], own: list[str]) -> None:
        stdlib = os.path.dirname(os.__file__) + os.sep
        loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        paths = {path for path in loaded if path and ("site-packages" in path or not path.startswith(stdlib))}
        self._stamps = {path: _stamp(path) for path in (*files, *paths, os.__file__)}
        self._own = dict.fromkeys(own, 0)
        self._names = {name.partition(".")[0] for name in sys.modules if name not in _BASELINE} - {"__main__"}

    def reason(self) -> str | None:
        """Return what has changed."""
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp:
                return f"{path} has changed"
        for folder, stamp in self._own.items():
            now = os.stat(folder).st_mtime_ns if os.path.isdir(folder) else 0
            if now == stamp:
                continue
            self._own[folder] = now
            if now and (hidden := _hidden_in(folder, self._names)) is not None:
                return f"{os.path.join(folder, hidden)} has the name of an installed module"
        return None


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _hidden_in(folder: str, names: set[str]) -> str | None:
    for entry in os.listdir(folder):
        stem, _, ending = entry.partition(".")
        if stem in names and (
            ending in ("py", "pyc")
            or ending.endswith("so")
            or os.path.isfile(os.path.join(folder, entry, "__init__.py"))
        ):
            return entry
    return None
