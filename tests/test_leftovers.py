"""The guard against what tests leave behind (conftest.py), tried on test sessions of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

LEAVES_ONE_BEHIND = """
import subprocess

def test_passes_but_leaves_a_process_in_a_session_of_its_own():
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("left", process.pid)
    process.returncode = 0  # no warning that it still runs
"""

LEAVES_NOTHING = """
import os
from pathlib import Path

from pitchpipe import sdk

def test_has_a_runtime_directory_and_works_in_it(runtime_directory):
    assert os.environ["PITCHPIPE_RUNTIME_DIR"] == str(runtime_directory)
    assert runtime_directory.parent in Path.cwd().parents
    assert len(str(runtime_directory)) < 40
    Path("left").touch()

def test_call_outside_a_trial_makes_a_channel():
    assert sdk.get_trial_id() == "STANDALONE"
    assert sdk.current.channel is not None

def test_next_test_finds_neither():
    assert sdk.current.channel is None
    assert not list(Path.cwd().iterdir())
"""


def without_fixtures_of_others(tree: Path) -> str:
    """Return the tests' conftest.py without what it imports from folders that a planted session does not have."""
    text = (tree / "tests" / "conftest.py").read_text()
    return re.sub(r"(?m)^from \..*\n|^__all__ \+?= .*\n", "", text)


def run_session(folder: Path, tree: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(without_fixtures_of_others(tree))
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_planted.py").write_text(source)
    command = [
        *(sys.executable, "-P", "-c", "import sys, pytest; sys.exit(pytest.main())"),
        *("-p", "no:cacheprovider", "-s", *arguments),
    ]
    # A session inside a session: the variables of the outer one's workers are not for the inner one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plug-ins take seconds to load
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tree: Path) -> Path:
    """Copy the tests' conftest.py and let it wait for 0.1 s only."""
    patched = tmp_path / "tree" / "tests"
    patched.mkdir(parents=True)
    text = without_fixtures_of_others(tree)
    assert "SECONDS_TO_LEAVE = 10.0" in text
    (patched / "conftest.py").write_text(text.replace("SECONDS_TO_LEAVE = 10.0", "SECONDS_TO_LEAVE = 0.1"))
    return patched.parent


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("arguments", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_session_that_leaves_a_process_behind_fails_and_names_it(
    tmp_path: Path, impatient: Path, arguments: tuple[str, ...]
) -> None:
    result = run_session(tmp_path, impatient, LEAVES_ONE_BEHIND, *arguments)
    assert "1 passed" in result.stdout
    assert "ERROR: 1 processes were left behind" in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.endswith(" sleep 600"))
    assert result.returncode == 1
    assert is_gone(int(line.split()[0]))


def test_session_that_leaves_nothing_behind_passes(tmp_path: Path, impatient: Path) -> None:
    """Neither a process, nor, from one test to the next, the channel of a call outside a trial."""
    result = run_session(tmp_path, impatient, LEAVES_NOTHING)
    assert (result.returncode, "3 passed" in result.stdout) == (0, True), result.stdout
    assert "left behind" not in result.stdout
