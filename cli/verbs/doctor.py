"""`pitchpipe doctor`: checks of the machine and the installation, one function each, and a small experiment."""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Literal

import click
import psutil

from ...protocol import install_command, libraries_by_extra, size_text, too_old
from ...store import (
    ExperimentFolder,
    RuntimeDirectoryError,
    is_default,
    problem_of_link,
    runtime_directory,
    shell_word,
)
from ...trial_agent import available_bytes, usable_bytes, usable_cpus
from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..lookup import experiments_directory
from ..printing import print_line
from ..verb import directory_option, verb
from .validate import tried_lines, try_config

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}
_PATIENCE = 60.0
_SCRIPT = 'echo \'{"final": 1}\' >> "$PITCHPIPE_REPORTS"'
_PACKAGES = ("ray", "numpy", "scipy", "json_tricks", "cloudpickle", "psutil", "pydantic")
# Extras that only developers of Pitchpipe install.
_OF_DEVELOPERS = frozenset({"benchmarks", "docs", "examples", "test", "test-integrations"})
_LITTLE_DISK, _NO_DISK = 2e9, 1e8
_FEW_FILES = 1024
_LITTLE_MEMORY = 1e9


@verb("doctor", "pitchpipe doctor", "pitchpipe doctor --ray --json")
@directory_option
@click.option("--ray", "with_ray", is_flag=True, help="Also run the small experiment on Ray.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def doctor(directory: Path | None, with_ray: bool, as_json: bool) -> int:
    """Check this machine and this installation, and run an experiment of one trial.

    Prints one line per check: ok, warn or FAIL, and what to do about it. Exit code: 0, or 1 if a check fails.
    """
    from ...config import PLATFORMS

    places = [place for place in PLATFORMS if with_ray or place != "ray"]
    diagnoses = list[Diagnosis]()
    with Interrupts() as interrupts:
        interrupts.hold()
        trials = (_one_trial(place, interrupts) for place in places)
        for diagnosis in chain(checks(experiments_directory(directory)), trials):
            diagnoses.append(diagnosis)
            if not as_json:
                _show(diagnosis)
            if interrupts.count:
                return INTERRUPTED
    if as_json:
        click.echo(json.dumps([asdict(diagnosis) for diagnosis in diagnoses]))
    return FAILED if any(diagnosis.level == "fail" for diagnosis in diagnoses) else 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check of a subject; `hint` says what to do about it."""

    level: Literal["ok", "warn", "fail"]
    subject: str
    text: str
    hint: str = ""


def _show(diagnosis: Diagnosis) -> None:
    mark, colour = _MARKS[diagnosis.level]
    print_line(mark, fg=colour, nl=False)
    print_line(f"  {diagnosis.subject:16}  {diagnosis.text}")
    if diagnosis.hint:
        print_line(f"{'':24}{diagnosis.hint}")


def checks(directory: Path) -> Iterator[Diagnosis]:
    """Make all checks that start no trial; `directory` is where experiments are stored."""
    yield _python()
    yield _packages()
    yield _extras()
    yield _machine()
    yield _open_files()
    yield _gpus()
    yield _directory(directory)
    yield _database(directory)
    yield _runtime()
    yield _experiments(directory)
    yield _private_ray()


def _python() -> Diagnosis:
    text = f"{platform.python_version()} on {platform.platform(terse=True)}, in {sys.prefix}"
    return Diagnosis("ok", "Python", text)


def _packages() -> Diagnosis:
    installed, missing = [], []
    for name in _PACKAGES:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Diagnosis("fail", "packages", f"missing: {', '.join(missing)}", install_command(""))
    return Diagnosis("ok", "packages", f"pitchpipe {version('pitchpipe')}, {', '.join(installed)}")


def _extras() -> Diagnosis:
    """Tell which extras are there, without a warning about old libraries: another program may need those."""
    installed, others = [], []
    for extra, libraries in sorted(libraries_by_extra().items()):
        if extra == "" or extra in _OF_DEVELOPERS:
            continue
        if all(each.is_usable for each in libraries):
            installed.append(extra)
        else:
            old = too_old(libraries)
            others.append(f"{extra} ({old})" if old else extra)
    text = f"installed: {', '.join(installed) or 'none'}; not installed: {', '.join(others) or 'none'}"
    hint = "" if "ui" in installed else f"for web pages, figures and reports: {install_command('ui')}"
    return Diagnosis("ok", "extras", text, hint)


def _machine() -> Diagnosis:
    memory, free = psutil.virtual_memory().total, available_bytes()
    cpus = f"{usable_cpus()} of {os.cpu_count()} CPUs"
    text = f"{cpus}, {size_text(usable_bytes())} of {size_text(memory)} of memory, {size_text(free)} free"
    if free < _LITTLE_MEMORY:
        hint = "trials may be killed: lower trial_concurrency, or set trial_memory_size"
        return Diagnosis("warn", "machine", text, hint)
    return Diagnosis("ok", "machine", text)


def _open_files() -> Diagnosis:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{soft} open files at most"
    if soft < _FEW_FILES:
        return Diagnosis("warn", "limits", text, f"ulimit -n {min(hard, 65536) if hard > 0 else 65536}")
    return Diagnosis("ok", "limits", text)


def _gpus() -> Diagnosis:
    from ...executors.local import hidden_by, local_totals
    from ...runner import Request

    every = local_totals(Request(gpus=1), use_active_gpus=True).devices
    free = local_totals(Request(gpus=1)).devices
    visible = f" by {hidden_by()}" if hidden_by() else ""
    if not every:
        return Diagnosis("ok", "GPUs", f"none is visible{visible}" if visible else "nvidia-smi finds none")
    if busy := [str(index) for index in every if index not in free]:
        text = f"{len(every)}{visible}, in use by others: {', '.join(busy)}"
        return Diagnosis("warn", "GPUs", text, "to use them anyway, set use_active_gpu: true")
    return Diagnosis("ok", "GPUs", f"{len(every)}{visible}, all free")


def _directory(directory: Path) -> Diagnosis:
    hint = "choose another directory with --dir or $PITCHPIPE_DIR"
    if problem := problem_of_link(directory):
        return Diagnosis("fail", "directory", problem, hint)
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Diagnosis("fail", "directory", f"{existing} cannot be written to", hint)
    free = shutil.disk_usage(existing).free
    text = f"{directory}, {size_text(free)} free"
    if free < _LITTLE_DISK:
        level = "fail" if free < _NO_DISK else "warn"
        return Diagnosis(level, "directory", text, "free some space, or choose another directory")
    return Diagnosis("ok", "directory", text)


def _database(directory: Path) -> Diagnosis:
    """Check SQLite's locks: on some network file systems they do not work, so no experiment can be stored there."""
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".pitchpipe-doctor-", dir=existing) as scratch:
            mode = _try_database(Path(scratch) / "try.db")
    except (OSError, sqlite3.Error) as error:
        problem = f"SQLite cannot work in {existing}: {error}"
        return Diagnosis("fail", "database", problem, "choose a local disk")
    if mode != "wal":
        problem = f"SQLite has no write-ahead log in {existing}"
        return Diagnosis("fail", "database", problem, "choose a local disk")
    return Diagnosis("ok", "database", f"SQLite {sqlite3.sqlite_version} works there")


def _try_database(path: Path) -> str:
    database = sqlite3.connect(path)
    try:
        (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (1)")
        database.commit()
        return mode
    finally:
        database.close()


def _runtime() -> Diagnosis:
    try:
        return Diagnosis("ok", "sockets", f"in {runtime_directory()}")
    except RuntimeDirectoryError as error:
        return Diagnosis("fail", "sockets", str(error))


def _experiments(directory: Path) -> Diagnosis:
    from ...store import ComputingError, StoreError
    from ...store.reading import ExperimentView

    running, left, torn, is_damaged = 0, [], [], False
    for folder in ExperimentFolder.all(directory):
        try:
            with ExperimentView(folder) as view:
                summary = view.summary()
                view.check()
        except StoreError as error:
            torn.append(f"{folder.experiment_id} ({error})")
            is_damaged |= not isinstance(error, ComputingError)
            continue
        running += summary.is_running
        if summary.is_abandoned:
            left.append(folder.experiment_id)
    if left or torn:
        parts = [f"without a manager: {', '.join(left)}"] if left else []
        parts += [f"unreadable: {', '.join(torn)}"] if torn else []
        at = "" if is_default(directory) else f" --dir {shell_word(directory)}"
        hints = [f"to continue or end one: pitchpipe resume ID{at} or pitchpipe stop ID{at}"] if left else []
        if is_damaged:
            hints.append(f"unreadable: restore experiment.db from a copy, or pitchpipe delete ID{at}")
        return Diagnosis("warn", "experiments", "; ".join(parts), "; ".join(hints))
    return Diagnosis("ok", "experiments", f"{running} running, none left without a manager")


def _private_ray() -> Diagnosis:
    from ...executors.private_ray import ray_status

    try:
        state = ray_status()
    except RuntimeDirectoryError:
        return Diagnosis("warn", "Ray", "without a place for sockets no private Ray can be found")
    except OSError as error:
        return Diagnosis("warn", "Ray", f"the private Ray does not respond: {error}", "pitchpipe ray stop")
    if state is None:
        return Diagnosis("ok", "Ray", "no private Ray is running; one is started when needed")
    return Diagnosis(
        "ok", "Ray", f"a private Ray is running (process {state['pid']}): see pitchpipe ray status"
    )


def _one_trial(place: str, interrupts: Interrupts) -> Diagnosis:
    """Run an experiment of one trial: manager, dispatcher, agent and store must work together."""
    from ...config import ExperimentConfig
    from ...executors import ExecutorError

    service = {"platform": place} | ({"idle_timeout": 0} if place == "ray" else {})
    config = ExperimentConfig.from_dict(
        {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trial_command": _SCRIPT,
            "tuner": {"name": "Random"},
            "training_service": service,
        },
        "/",  # the working directory may have been deleted
    )
    began = time.monotonic()
    subject = f"a trial ({place})"
    try:
        tried = try_config(config, _PATIENCE, interrupts)
    except (ExecutorError, RuntimeDirectoryError) as error:
        return Diagnosis("fail", subject, str(error))
    if not tried.is_whole:
        return Diagnosis("fail", subject, "; ".join(tried_lines(tried, config)))
    return Diagnosis("ok", subject, f"ran and reported, {time.monotonic() - began:.1f} s in all")
