"""The checks of `pitchpipe doctor`: one function each, which returns findings and hints."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil

from ..store import ExperimentFolder, RuntimeDirectoryError, is_default, runtime_directory, shell_word
from ..trial_agent import available_bytes, usable_bytes, usable_cpus
from .trying import size_text

__all__ = ["Finding", "Level", "findings"]

Level = Literal["ok", "warn", "fail"]

_PACKAGES = ("ray", "numpy", "scipy", "json_tricks", "cloudpickle", "psutil", "pydantic")
_LITTLE_DISK, _NO_DISK = 2e9, 1e8
_FEW_FILES = 1024
_LITTLE_MEMORY = 1e9


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about a subject; `hint` says what to do about it."""

    level: Level
    subject: str
    text: str
    hint: str = ""


def findings(directory: Path) -> Iterator[Finding]:
    """Run all checks that start no trial; `directory` is where experiments are stored."""
    questions: tuple[Callable[[Path], Finding], ...] = (
        _python,
        _packages,
        _machine,
        _open_files,
        _gpus,
        _directory,
        _database,
        _runtime,
        _experiments,
        _private_ray,
    )
    for question in questions:
        yield question(directory)


def _python(_directory: Path) -> Finding:
    text = f"{platform.python_version()} on {platform.platform(terse=True)}, in {sys.prefix}"
    return Finding("ok", "Python", text)


def _packages(_directory: Path) -> Finding:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("fail", "packages", f"missing: {', '.join(missing)}", "pip install pitchpipe")
    return Finding("ok", "packages", f"pitchpipe {version('pitchpipe')}, {', '.join(found)}")


def _machine(_directory: Path) -> Finding:
    memory, free = psutil.virtual_memory().total, available_bytes()
    cpus = f"{usable_cpus()} of {os.cpu_count()} CPUs"
    text = f"{cpus}, {size_text(usable_bytes())} of {size_text(memory)} of memory, {size_text(free)} free"
    if free < _LITTLE_MEMORY:
        return Finding(
            "warn", "machine", text, "trials may be killed: lower trial_concurrency, or set trial_memory_size"
        )
    return Finding("ok", "machine", text)


def _open_files(_directory: Path) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{soft} open files at most"
    if soft < _FEW_FILES:
        return Finding("warn", "limits", text, f"ulimit -n {min(hard, 65536) if hard > 0 else 65536}")
    return Finding("ok", "limits", text)


def _gpus(_directory: Path) -> Finding:
    from ..executors.local import hidden_by, local_totals
    from ..runner import Request

    every = local_totals(Request(gpus=1), use_active_gpus=True).devices
    free = local_totals(Request(gpus=1)).devices
    visible = f" by {hidden_by()}" if hidden_by() else ""
    if not every:
        return Finding("ok", "GPUs", f"none is visible{visible}" if visible else "nvidia-smi finds none")
    busy = [str(index) for index in every if index not in free]
    text = f"{len(every)}{visible}" + (f", in use by others: {', '.join(busy)}" if busy else ", all free")
    return Finding(
        "warn" if busy else "ok", "GPUs", text, "to use them anyway, set use_active_gpu: true" if busy else ""
    )


def _directory(directory: Path) -> Finding:
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        hint = "choose another directory with --dir or $PITCHPIPE_DIR"
        return Finding("fail", "directory", f"{existing} cannot be written to", hint)
    free = shutil.disk_usage(existing).free
    text = f"{directory}, {size_text(free)} free"
    if free < _LITTLE_DISK:
        return Finding(
            "fail" if free < _NO_DISK else "warn",
            "directory",
            text,
            "free some space, or choose another directory",
        )
    return Finding("ok", "directory", text)


def _database(directory: Path) -> Finding:
    """Check SQLite's locks: some network file systems have none that work, so no experiment can be stored there."""
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".pitchpipe-doctor-", dir=existing) as scratch:
            mode = _try_database(Path(scratch) / "try.db")
    except (OSError, sqlite3.Error) as error:
        return Finding(
            "fail", "database", f"SQLite cannot work in {existing}: {error}", "choose a local disk"
        )
    if mode != "wal":
        return Finding(
            "fail", "database", f"SQLite has no write-ahead log in {existing}", "choose a local disk"
        )
    return Finding("ok", "database", f"SQLite {sqlite3.sqlite_version} works there")


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


def _runtime(_directory: Path) -> Finding:
    try:
        return Finding("ok", "sockets", f"in {runtime_directory()}")
    except RuntimeDirectoryError as error:
        return Finding("fail", "sockets", str(error))


def _experiments(directory: Path) -> Finding:
    from ..store import ComputingError, StoreError
    from ..store.reading import ExperimentView

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
        return Finding("warn", "experiments", "; ".join(parts), "; ".join(hints))
    return Finding("ok", "experiments", f"{running} running, none left without a manager")


def _private_ray(_directory: Path) -> Finding:
    from ..executors.private_ray import ray_status

    try:
        found = ray_status()
    except RuntimeDirectoryError:
        return Finding("warn", "Ray", "without a place for sockets no private Ray can be found")
    except OSError as error:
        return Finding("warn", "Ray", f"the private Ray does not respond: {error}", "pitchpipe ray stop")
    if found is None:
        return Finding("ok", "Ray", "no private Ray is running; one is started when needed")
    return Finding(
        "ok", "Ray", f"a private Ray is running (process {found['pid']}): see pitchpipe ray status"
    )
