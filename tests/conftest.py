"""What every test gets: a private runtime directory, an empty working directory, a guard against leftovers.

The guard marks the environment of this session, which every process started by a test inherits, whatever
its session and its parent. When the test session is over, a process that still carries the mark fails it.
"""

import asyncio
import contextlib
import gc
import inspect
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from pitchpipe.sdk.current_trial import current
from pitchpipe.trial_agent import ProcessTree

from .executors.cluster_support import cluster, real_cluster
from .executors.ray_support import ray_directory, ray_nursery, shared_ray
from .forked_agents import forked_agents, nursery
from .in_this_process import by_hand, pitchpipe_run

__all__ = ["by_hand", "cluster", "forked_agents", "nursery", "pitchpipe_run", "ray_directory"]
__all__ += ["ray_nursery", "real_cluster", "shared_ray"]

# As the dispatcher has it: on a busy machine, threads that wait for each other cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Ray would start a worker per CPU for its first driver, the supervisor, which runs no task.
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")

# Without the project's prefix: that one is taken out of a trial's environment.
MARK = "PPTEST_SESSION"
SECONDS_TO_LEAVE = 10.0

# ci: the same examples in every run. thorough: for a look around by hand, HYPOTHESIS_PROFILE=thorough.
settings.register_profile(
    "ci", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# What a wheel is built from.
SOURCES = ["README.md", "pyproject.toml", "setup.cfg"]
FOLDERS = ["pitchpipe", "protocol", "search_space", "numerics", "plugins", "config", "tuners", "assessors"]
FOLDERS += ["trial_agent", "runner", "dispatcher", "store", "executors", "manager", "server"]
FOLDERS += ["integrations", "cli", "compat", "sdk", "telling", "testing"]

LEFT_OVER = pytest.StashKey[list[str]]()
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def shelter() -> Iterator[Path]:
    """Return a folder for what the tests have apart, with a path short enough for sockets.

    What fixtures of a module make in other folders is linked from its directory of experiments, not from the user's.
    """
    directory = Path(tempfile.mkdtemp(prefix="pp-", dir="/tmp"))
    os.environ["PITCHPIPE_DIR"] = str(directory / "default")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


# One fixture for all, and no folder before somebody needs it: thousands of tests pay for it.
@pytest.fixture(autouse=True)
def apart(shelter: Path) -> Iterator[Path]:
    """Give each test a runtime directory, a directory of experiments and an empty working directory of its own.

    At the root of the tree, its folders would hide the package. A call outside a trial makes a channel, which
    stays, unless it is ended here.
    """
    runtime, working = shelter / f"{next(NUMBERS)}", shelter / "cwd"
    os.environ["PITCHPIPE_RUNTIME_DIR"] = str(runtime)
    os.environ["PITCHPIPE_DIR"] = str(shelter / "default")
    working.mkdir(exist_ok=True)
    with contextlib.chdir(working):
        yield runtime
    os.environ.pop("PITCHPIPE_RUNTIME_DIR", None)
    current.enter(None)
    shutil.rmtree(runtime, ignore_errors=True)
    if next(working.iterdir(), None):
        shutil.rmtree(working, ignore_errors=True)
    shutil.rmtree(shelter / "default", ignore_errors=True)


@pytest.fixture
def runtime_directory(apart: Path) -> Path:
    """Return the runtime directory of the test, made."""
    apart.mkdir(mode=0o700)
    return apart


@pytest.fixture(scope="session")
def tree() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that `make test` built, or build one from a copy of the tree."""
    if built := os.environ.get("PITCHPIPE_WHEEL"):
        return Path(built)
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in FOLDERS:
        shutil.copytree(tree / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SOURCES:
        shutil.copy(tree / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True, cwd=folder)
    return next(folder.glob("pitchpipe-*.whl"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function: with the fixture `runner` if it has one, or in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    values: dict[str, Any] = pyfuncitem.funcargs
    run = values["runner"].run if "runner" in values else asyncio.run
    run(pyfuncitem.obj(**{name: values[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True


def pytest_configure(config: pytest.Config) -> None:
    """Mark the session; the workers of xdist inherit the mark of the process that started them."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # nohup has started the tests
        signal.signal(signal.SIGHUP, lambda *_: None)  # programs inherit an ignored signal, but not a handler
    gc.disable()  # what is imported and collected stays until the end
    if _is_xdist_worker(config):
        return
    os.environ[MARK] = uuid.uuid4().hex
    # Scripts start what runs in their background with SIGINT ignored; tests send it to their children.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with slow tests first: one that starts last keeps one process busy and the others idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("ray")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what the tests make only, rather than at all modules and tests each time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)  # after xdist has ended its workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session when a process of its own is still there, and end that process."""
    if _is_xdist_worker(session.config):
        return
    _, alive = psutil.wait_procs(marked_processes(f"{MARK}={os.environ[MARK]}"), timeout=SECONDS_TO_LEAVE)
    if not alive:
        return
    session.config.stash[LEFT_OVER] = [described(process) for process in alive]
    for process in alive:
        _kill(process)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the processes that were left behind."""
    left_over = config.stash.get(LEFT_OVER, [])
    if left_over:
        terminalreporter.section(f"ERROR: {len(left_over)} processes were left behind", red=True)
        for line in left_over:
            terminalreporter.line(line)


def marked_processes(mark: str) -> list[psutil.Process]:
    """List the processes started under the mark, other than this one and those that started it."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for pid in set(ProcessTree(None, mark.encode()).members()) - own:
        with contextlib.suppress(psutil.NoSuchProcess):  # gone meanwhile
            found.append(psutil.Process(pid))
    return found


def described(process: psutil.Process) -> str:
    """Return the process id and the command line."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())}"[:500]
    except psutil.Error:
        return f"{process.pid} (gone meanwhile)"


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
