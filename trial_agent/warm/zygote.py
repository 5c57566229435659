"""Runs in the trial's own Python, while it starts: imports what trials import first, then forks a trial per request.

In a trial the interpreter continues from here: it reads the script and runs it as if nothing had happened before. So
what a trial inherits must be what it would have made itself; an import that does more than import ends the list.

A request is one packet with three descriptors: stdout, stderr and the channel of the start. The trial is a grandchild
that the agent adopts. It sends its pid and waits for the agent's word, so that a start that fails before can be
repeated elsewhere. Its environment in /proc holds the mark of the attempt from its first moment.

Standard library only, for Python 3.9 and newer, and of that only what every interpreter imports at its start: a module
loaded here would hide a file of its name beside the script. `run` is called by `hook/sitecustomize.py`.
"""

from __future__ import annotations

import _socket
import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

# Some interpreters have it as a file, and a script would see that it is loaded.
if "socket" not in sys.modules:
    del sys.modules["_socket"]
_BASELINE = frozenset(sys.modules)
_SETTINGS = "PITCHPIPE_WARM"
_PACKET = 1 << 18
_ENV_START, _ENV_END = 47, 48  # fields of /proc/PID/stat after the name
_CUSTOMIZATION = "sitecustomize"


def run(hook: str, load: Callable[[str], ModuleType]) -> bool:
    """Serve the agent; return in a trial, and say whether the interpreter has a `sitecustomize` of its own.

    `hook` is the folder to remove from the search path; `load` returns a module beside this one.
    """
    beside = load("side_effects")
    settings = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
    agent = _socket.socket(fileno=int(settings[f"{_SETTINGS}_SOCKET"]))
    folder = settings[f"{_SETTINGS}_FOLDER"]
    area = _EnvironmentArea()
    before = _reset_environment({name: value for name, value in os.environ.items() if name not in settings})
    sys.path[:] = [entry for entry in sys.path if entry != hook]
    sys.path_importer_cache.pop(hook, None)
    own = [entry for entry in (folder, *sys.path) if entry and not beside.is_installed(entry)]
    kept: list[Any] = []
    if not (sys.flags.dev_mode or sys.flags.verbose or sys.warnoptions):
        atexit.register(_leave_alone, kept)  # first, and so called last
    watch = beside.SideEffects(folder)
    customized = _customize()
    _import_all(settings, folder, watch)
    watch.close()
    if note := settings.get(f"{_SETTINGS}_NOTE"):
        agent.send(b"note " + note.encode("utf-8", "replace"))
    changes = beside.FileChanges([path for path in settings[f"{_SETTINGS}_FILES"].split("\x1f") if path], own)
    generators = beside.generators_to_seed()
    kept += [item for item in sys.modules.items() if item[0] not in _BASELINE]
    kept.append(kept)  # a cycle that no collector sees: it is there to the very end
    _freeze()
    agent.send(b"ready")
    request = _serve(agent, changes, area)
    _become(request, before, area)
    for each in generators:  # `random` is seeded by itself at a fork
        each.state = type(each)().state
    for entry in own:
        sys.path_importer_cache.pop(entry, None)
    return customized


def _reset_environment(environment: dict[str, str]) -> dict[str, str]:
    """Replace the environment, in the order given; C's copy of it no longer lies where /proc reads it. Return it."""
    for name in list(os.environ):
        del os.environ[name]
    for name, value in environment.items():
        os.environ[name] = value
    return environment


def _customize() -> bool:
    """Run the interpreter's own `sitecustomize`, in whose place this runs; return whether there is one."""
    this = sys.modules.pop(_CUSTOMIZATION)
    if sys.modules["_frozen_importlib_external"].PathFinder.find_spec(_CUSTOMIZATION) is None:
        sys.modules[_CUSTOMIZATION] = this
        return False
    __import__(_CUSTOMIZATION)
    return True


def _import_all(settings: dict[str, str], folder: str, watch: Any) -> None:
    """Import until one has side effects that a fork does not carry over; then start again without it and the rest.

    The rest may depend on what that one does.
    """
    main: Any = sys.modules["__main__"]
    main.__file__ = sys.argv[0]
    if folder:
        sys.path.insert(0, folder)
    entries = settings[f"{_SETTINGS}_MODULES"].split()
    for number, entry in enumerate(entries):
        module, _, names = entry.partition(":")
        try:
            __import__(module, {}, {}, names.split(",") if names else [], 0)
            why = watch.problem(module)
        except BaseException as error:  # noqa: BLE001 (the trial will raise it)
            why = f"cannot be imported ({type(error).__name__}: {error})"
        if why is not None:
            note = f"{module} {why}; it and the imports after it are not kept ready"
            fewer = {f"{_SETTINGS}_MODULES": " ".join(entries[:number]), f"{_SETTINGS}_NOTE": note}
            _start_again({**settings, **fewer}, watch)
    if folder:
        del sys.path[0]
    del main.__file__


def _start_again(settings: dict[str, str], watch: Any) -> NoReturn:
    """Become a new interpreter with other settings."""
    socket = int(settings[f"{_SETTINGS}_SOCKET"])
    os.closerange(3, socket)
    os.closerange(socket + 1, os.sysconf("SC_OPEN_MAX"))
    for output in (1, 2):
        os.ftruncate(output, 0)
        os.lseek(output, 0, os.SEEK_SET)
    os.chdir(watch.directory)
    command = settings[f"{_SETTINGS}_COMMAND"].split("\x1f")
    os.execve(command[0], command, {**watch.environment, **settings})


def _freeze() -> None:
    """Keep the garbage collector from writing to, and so from copying, what all trials share.

    A frozen `__main__` would not be taken apart at the end of a trial, so it gets a new one.
    """
    gc.collect()
    gc.freeze()
    main = sys.modules["__main__"]
    names = [name for name, module in sys.modules.items() if module is main]
    if sys.getrefcount(main) > len(names) + 2:  # a library keeps it
        gc.unfreeze()
        return
    new = type(main)("__main__")
    vars(new).update(vars(main))
    for name in names:
        sys.modules[name] = new


def _leave_alone(kept: list[Any]) -> None:
    """At the end of a trial, leave what it has inherited to the system, which frees it at once.

    To take a library apart object by object copies all its pages, and takes ten times as long as a warm start. What
    the script keeps in its own modules ends as always; files that it has put elsewhere are flushed.
    """
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:  # a daemon thread may still import
        return
    for each in gc.get_objects():  # not of the frozen ones
        if isinstance(each, sys.modules["io"].IOBase) and not each.closed:
            try:
                each.flush()
            except (OSError, ValueError):  # the same happens unseen where the interpreter ends it
                pass
    for name, module in kept[:-1]:
        if sys.modules.get(name) is module:
            del sys.modules[name]


class _EnvironmentArea:
    """The memory that /proc/PID/environ shows, by which the processes of an attempt are found."""

    def __init__(self) -> None:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        self._start, self._end = int(fields[_ENV_START]), int(fields[_ENV_END])

    def show(self, entries: list[bytes]) -> None:
        """Show these entries as far as they fit; the first one must."""
        size = self._end - self._start
        while entries and sum(map(len, entries)) + len(entries) > size:
            entries = entries[:-1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(self._start)
            memory.write(b"".join(entry + b"\0" for entry in entries).ljust(size, b"\0"))

    def fits(self, mark: bytes) -> bool:
        """Return whether a mark fits."""
        return len(mark) < self._end - self._start


class _Request:
    """What a trial is: `mark\\0agent's pid\\0directory\\0number of arguments\\0arguments...\\0environment...`."""

    def __init__(self, data: bytes, descriptors: list[int]) -> None:
        mark, agent, directory, number, *rest = data.split(b"\0")
        self.mark = mark
        self.agent = int(agent)
        self.directory = directory
        self.arguments = [os.fsdecode(each) for each in rest[: int(number)]]
        self.entries = rest[int(number) :]
        self.stdout, self.stderr, self.channel = descriptors

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in (self.stdout, self.stderr, self.channel):
            os.close(descriptor)


def _receive(agent: _socket.socket) -> _Request:
    """Wait for a request; the end of the agent is the end of this process."""
    data, ancillary, _, _ = agent.recvmsg(_PACKET, _socket.CMSG_SPACE(3 * 4))
    if not data:
        os._exit(0)
    [(_, _, packed)] = ancillary
    return _Request(data, [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in (0, 4, 8)])


def _serve(agent: _socket.socket, changes: Any, area: _EnvironmentArea) -> _Request:
    """Fork a trial for each request; return in the trial."""
    while True:
        request = _receive(agent)
        if (why := changes.reason()) is not None:
            agent.send(b"changed " + os.fsencode(why))
            os._exit(0)
        if not area.fits(request.mark):
            agent.send(b"note the path of the experiment is too long")
            os._exit(0)
        if _fork(request, area):
            agent.close()
            return request
        request.close()


def _fork(request: _Request, area: _EnvironmentArea) -> bool:
    """Fork a trial; return whether this is the trial, adopted by the agent and told to run."""
    reader, writer = os.pipe()
    area.show([request.mark])
    child = os.fork()
    if child:
        area.show([])
        os.waitpid(child, 0)  # its end lets the agent adopt the trial
        os.close(writer)
        os.close(reader)
        return False
    if os.fork():
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)  # the end of the file
    os.close(reader)
    if os.getppid() != request.agent:
        os._exit(0)
    os.write(request.channel, b"%d" % os.getpid())
    if not os.read(request.channel, 1):
        os._exit(0)
    os.setsid()
    return True


def _become(request: _Request, before: dict[str, str], area: _EnvironmentArea) -> None:
    """Give this process what the trial would have been started with, and what its imports have changed since."""
    os.dup2(request.stdout, 1)
    os.dup2(request.stderr, 2)
    os.chdir(request.directory)
    now = dict(os.environ)
    _reset_environment(dict(os.fsdecode(entry).split("=", 1) for entry in request.entries))
    for name in now.keys() | before.keys():
        if name not in now:
            os.environ.pop(name, None)
        elif now[name] != before.get(name):
            os.environ[name] = now[name]
    area.show([request.mark, *(entry for entry in request.entries if entry != request.mark)])
    sys.argv[1:] = request.arguments
    if hasattr(sys, "orig_argv"):
        sys.orig_argv += request.arguments
    request.close()  # the agent sees that the trial runs, in a session of its own
