"""Slices of the experiments whose calls fail, whose processes die at a call, or whose disk loses power."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from .test_campaign import HERE, imported

needs_compiler = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")),
    reason="there is no C compiler",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported("system_calls").build_library(tmp_path_factory.mktemp("library"))


def run_with(library: Path, folder: Path, script: str, call: str = "") -> tuple[int, Any]:
    """Run a script as a trial with the library; return its exit code and the counts of calls."""
    counts = imported("system_calls").Counts(folder / "counts")
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "PPFAULTS_COUNTS": str(counts.path),
        "PPFAULTS_CALLS": call,
        "PPFAULTS_ROOT": str(folder / "disk"),
        "PPFAULTS_RECORD": str(folder / "record"),
        "PITCHPIPE_REPORTS": "x",  # the sign of a trial
    }
    (folder / "disk").mkdir(exist_ok=True)
    (folder / "record").touch()
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, env=environment, cwd=folder / "disk", timeout=60, check=False)
    return done.returncode, counts.read()


THREE_SYNCS = """
import os
file = os.open("file", os.O_CREAT | os.O_WRONLY)
failed = []
for n in range(3):
    os.write(file, b"x")
    try:
        os.fsync(file)
    except OSError as error:
        failed.append((n, error.errno))
os._exit(10 * failed[0][0] + len(failed) if failed and {e for _, e in failed} == {5} else 99)
"""


@needs_compiler
@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("", 99),
        ("trial sync 2 5", 11),
        ("trial sync 2 5+", 12),
        ("agent sync 2 5", 99),
        ("trial sync 4 5", 99),
    ],
)
def test_the_nth_call_fails_once_or_for_a_while(library: Path, tmp_path: Path, call: str, code: int) -> None:
    assert errno.EIO == 5
    exit_code, counts = run_with(library, tmp_path, THREE_SYNCS, call)
    assert exit_code == code
    assert counts["trial", "sync"] == 3
    assert counts["manager", "sync"] == 0


@needs_compiler
def test_a_process_is_killed_before_its_nth_call(library: Path, tmp_path: Path) -> None:
    script = THREE_SYNCS.replace("failed = []", "failed = []; os.ftruncate(file, 0)")
    _, counts = run_with(library, tmp_path, script)
    last = counts["trial", "every"]
    (tmp_path / "disk" / "file").unlink()
    code, _ = run_with(library, tmp_path, script, f"trial every {last - 1} 0")  # the last write
    assert code == -9
    assert (tmp_path / "disk" / "file").read_bytes() == b"xx"


MANY_CHANGES = """
import os, shutil
os.mkdir("folder")
def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
def sync(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
write("folder/first", b"a" * 1000)
os.replace("folder/first", "folder/second")
sync("folder")
sync(".")
with open("folder/second", "r+b", buffering=0) as file:
    os.pwrite(file.fileno(), b"b" * 600, 512)
    os.ftruncate(file.fileno(), 2000)
shutil.copyfile("folder/second", "folder/copy")
os.link("folder/copy", "folder/link")
os.symlink("link", "folder/symbolic")
os.mkdir("folder/inner")
write("folder/inner/last", b"c")
shutil.rmtree("folder/inner")
os.unlink("folder/copy")
"""


@needs_compiler
def test_the_recorded_disk_is_the_real_one(library: Path, tmp_path: Path) -> None:
    code, _ = run_with(library, tmp_path, MANY_CHANGES)
    assert code == 0
    changes = list(imported("system_calls").read_record(tmp_path / "record"))
    disk = imported("disk").Disk(tmp_path / "disk")
    for change in changes:
        disk.apply(change)
    disk.write(tmp_path / "rebuilt")
    real, rebuilt = (
        {p.relative_to(d): p for p in d.rglob("*")} for d in (tmp_path / "disk", tmp_path / "rebuilt")
    )
    assert sorted(real) == sorted(rebuilt)
    for name, path in real.items():
        assert path.is_dir() or path.read_bytes() == rebuilt[name].read_bytes()
    # What was synced, with the folders that lead to it, is there after every power cut; nothing else needs to be.
    disk.write_least(tmp_path / "least")
    names = [path.relative_to(tmp_path / "least").as_posix() for path in (tmp_path / "least").rglob("*")]
    assert sorted(names) == ["folder", "folder/second"]
    assert (tmp_path / "least" / "folder" / "second").read_bytes() == b"a" * 1000
    seconds = set()
    for seed in range(60):
        disk.write(tmp_path / f"cut-{seed}", random.Random(seed))
        seconds.add((tmp_path / f"cut-{seed}" / "folder" / "second").read_bytes())
    b_then_zeros = b"a" * 512 + b"b" * 600 + bytes(888)
    assert {b"a" * 1000, b_then_zeros, b"a" * 1000 + bytes(1000)} <= seconds
    assert len(seconds) > 4


def campaign(program: str, *arguments: str) -> str:
    with tempfile.TemporaryDirectory(prefix="pf-", dir="/tmp") as keep:  # paths of sockets are short
        line = [sys.executable, "-P", str(HERE / program), *arguments, "--keep", keep]
        done = subprocess.run(line, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["--kill", "--fail"])
def test_slice_of_the_calls_at_which_something_happens(what: str) -> None:
    """Run a few of the experiments of `make nth` and `make kills`."""
    out = campaign("nth.py", what, "--most", "6")
    rows = [line.split("|") for line in out.splitlines() if line.startswith(("| command", "| function"))]
    assert sum(int(row[5]) for row in rows) > 0


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_slice_of_the_power_cuts_loses_nothing() -> None:
    """Run a few of the experiments of `make powercuts`."""
    out = campaign("powercuts.py", "--cuts", "12")
    assert "12 power cuts" in out
    assert "| readable |" in out
