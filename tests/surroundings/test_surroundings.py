"""Machines of another kind: verbs and `Experiment.run` where homes, locales, limits and rights are not the usual ones.

A surrounding is a prefix of a command line. What this machine or this user cannot make is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pitchpipe.store import ExperimentFolder
from pitchpipe.store.reading import ExperimentView

pytestmark = pytest.mark.slow

DRIVE = str(Path(__file__).with_name("drive.py"))
CONFIG = """\
trial_command: sh trial.sh
max_trial_number: 2
search_space: {x: {_type: uniform, _value: [0, 1]}}
tuner: {name: Random}
training_service: {platform: local}
"""
TRIAL = """echo printed; echo '{"final": 1}' >> "$PITCHPIPE_REPORTS"\n"""
ALL = ("run", "list", "trials", "log", "export", "resume", "stop", "doctor", "python")
PRINTING = ("list", "trials", "log")

NAMELESS = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
BY_SHELL = ("sh", "-c")
# Those that go together share a run of all verbs.
SURROUNDINGS: dict[str, Sequence[str]] = {
    "no home and no passwd entry": (*NAMELESS, "env", "-u", "HOME"),
    "the C locale alone in the environment, one CPU": (
        *("taskset", "--cpu-list", "{cpu}", "env", "-i", "PATH={path}", "TMPDIR={folder}/tmp"),
        *("LC_ALL=C", "PYTHONUTF8=0", "PYTHONCOERCECLOCALE=0"),
    ),
    "a long TMPDIR, variables that change Python, time and devices, a working directory that was deleted": (
        *("env", "TMPDIR={folder}/" + 90 * "t", "PYTHONSAFEPATH=1", "TZ=Pacific/Kiritimati"),
        *("CUDA_VISIBLE_DEVICES=2,3", os.fsdecode(b"NAME=\xff")),
        *(*BY_SHELL, 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0" "$@"'),
    ),
    "a home that is read-only": (*NAMELESS, "env", "HOME={folder}/closed"),
    "another user": ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    "closed streams, files that only the user reads, and few of them open": (
        *BY_SHELL,
        'umask 077; ulimit -n 64; exec "$0" "$@" <&- >&- 2>&-',
    ),
    "another process namespace, files that all may write": (
        *("unshare", "--pid", "--fork", "--mount-proc", *BY_SHELL),
        'umask 000; exec "$0" "$@"',
    ),
}
HOSTNAME = ("unshare", "--uts", *BY_SHELL)
NO_LOCKS = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOSYS")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with a short path, in which all users may work."""
    folder = Path(tempfile.mkdtemp(prefix="pp-", dir="/tmp"))
    prepare(folder)
    yield folder
    shutil.rmtree(folder)


def prepare(folder: Path) -> Path:
    for each in (folder, folder / "tmp", folder / "home", folder / ("t" * 90)):
        each.mkdir(exist_ok=True)
        each.chmod(0o777)
    (folder / "closed").mkdir(mode=0o555)
    colleague = folder / "runs" / "colleague"
    colleague.mkdir(parents=True)
    colleague.parent.chmod(0o777)
    if os.getuid() == 0:
        os.chown(colleague, 4711, 4711)
        colleague.chmod(0o700)
    (folder / "experiment.yml").write_text(CONFIG)
    (folder / "trial.sh").write_text(TRIAL)
    return folder


def command(folder: Path, prefix: Sequence[str], *words: str) -> list[str]:
    """Return a command line in a surrounding; skip the test if it cannot be made here."""
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    made = [part.replace("{folder}", str(folder)) for part in prefix]
    made = [part.replace("{path}", os.environ["PATH"]).replace("{cpu}", str(cpu)) for part in made]
    if made:
        probe = [*made, "env", sys.executable, "-c", "import os; os.listdir(os.environ['TMPDIR'])"]
        if shutil.which(made[0]) is None or subprocess.run(probe, env=environment(folder)).returncode != 0:
            pytest.skip(f"this machine cannot make it: {' '.join(prefix)}")
    return [*made, sys.executable, "-P", *words]


def environment(folder: Path) -> dict[str, str]:
    unwanted = ("PITCHPIPE_RUNTIME_DIR", "PITCHPIPE_DIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}


def drive(folder: Path, prefix: Sequence[str], *verbs: str) -> dict[str, int]:
    """Run verbs in a surrounding; return their exit codes, and fail if one printed a traceback."""
    line = command(folder, prefix, DRIVE, str(folder), *verbs)
    done = subprocess.run(line, env=environment(folder), cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    printed = {path.name: path.read_text(errors="replace") for path in folder.glob("???-*")}
    assert [name for name, text in printed.items() if "Traceback" in text] == [], printed
    return json.loads((folder / "codes.json").read_text())


def assert_done(folder: Path, trials: int) -> None:
    with ExperimentView(ExperimentFolder(folder / "runs" / "one")) as view:
        summary = view.summary()
    assert (summary.status, summary.counts) == ("DONE", {"SUCCEEDED": trials})


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_experiment_runs_continues_and_is_read(name: str, folder: Path) -> None:
    lost = PRINTING if "closed streams" in name else ()
    assert drive(folder, SURROUNDINGS[name], *ALL) == {**dict.fromkeys(ALL, 0), **dict.fromkeys(lost, 1)}
    assert_done(folder, 3)
    assert len((folder / "one.csv").read_text().splitlines()) == 3
    if (folder / "out-trials").exists():
        assert len(json.loads((folder / "out-trials").read_text())) == 2
        assert [one["id"] for one in json.loads((folder / "out-list").read_text())] == ["one"]
        assert (folder / "out-log").read_text() == "printed\n"


def test_folder_may_have_a_name_that_is_not_utf_8(folder: Path) -> None:
    place = folder / os.fsdecode(b"caf\xe9")
    place.mkdir()
    assert drive(prepare(place), (), *ALL) == dict.fromkeys(ALL, 0)
    assert_done(place, 3)


def test_killed_experiment_continues_under_another_hostname(folder: Path) -> None:
    (folder / "trial.sh").write_text("until [ -e go ]; do sleep 0.1; done\n" + TRIAL)
    words = ("run", str(folder / "experiment.yml"), "--experiment-id", "one", "--dir", str(folder / "runs"))
    line = command(folder, (*HOSTNAME, 'hostname first; exec "$0" "$@"'), "-m", "pitchpipe", *words)
    process = subprocess.Popen(line, env=environment(folder), cwd=folder, stdout=subprocess.DEVNULL)
    until(lambda: (folder / "runs" / "one" / "trials" / "0" / "stdout").exists())
    process.kill()  # `exec` has made it the manager
    process.wait()
    second = (*HOSTNAME, 'hostname second; exec "$0" "$@"')
    assert drive(folder, second, "list") == {"list": 0}
    (listed,) = json.loads((folder / "out-list").read_text())
    assert (listed["status"], listed["running"]) == ("RUNNING", False)
    (folder / "go").touch()
    assert drive(folder, second, "resume", "stop") == {"resume": 0, "stop": 0}
    assert_done(folder, 3)


def test_without_locks_nothing_is_started(folder: Path) -> None:
    assert drive(folder, NO_LOCKS, "run", "list") == {"run": 2, "list": 0}
    assert not (folder / "runs" / "one").exists()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
