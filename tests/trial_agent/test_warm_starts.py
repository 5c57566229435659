"""Warm starts: a trial does not see how it was started, and a zygote that fails costs nothing but time."""

import contextlib
import itertools
import os
import shlex
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.trial_agent import WatchdogClient
from pitchpipe.trial_agent.command_trial import spawn
from pitchpipe.trial_agent.warm import Launch, WarmStarts

from .awkward_scripts import BESIDE, SCRIPTS
from .client import LocalAgent, is_gone, start, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="warm starts need Linux")


class Lab:
    """A folder with a script, and the starts of an agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watchdog = WatchdogClient()
        self.watchdog.expect(b"NOTHING=1")
        self.starts = WarmStarts(self.watchdog)
        self.environment = {"PYTHONDONTWRITEBYTECODE": "1"}
        self.number = 0
        self.written: set[Path] = set()

    def write(self, text: str, name: str = "trial.py") -> None:
        path = self.folder / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.written |= {path, *path.parents}
        path.write_text(textwrap.dedent(text))

    def start(self, how: str, *words: str) -> tuple[Any, Path] | None:
        """Start the script; return its process and the folder of its output, or None if it cannot start warm."""
        self.number += 1
        output = self.folder / str(self.number)
        output.mkdir()
        variables = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            **self.environment,
            "PYTHONUNBUFFERED": "1",
            "PITCHPIPE_REPORTS": f"{output}/reports",
        }
        with open(output / "stdout", "wb") as stdout, open(output / "stderr", "wb") as stderr:
            launch = Launch(
                arguments=[sys.executable, *(words or ("trial.py", "--lr", "0.5", "a b"))],
                directory=str(self.folder / "code"),
                environment=variables,
                mark=f"PITCHPIPE_REPORTS={output}/reports".encode(),
                stdout=stdout.fileno(),
                stderr=stderr.fileno(),
            )
            if how == "prepare":
                return self.starts.prepare(launch, self.folder, eager=True)
            process = spawn(launch) if how == "cold" else self.starts.start(launch)
        return None if process is None else (process, output)

    def warm(self, *words: str) -> tuple[Any, Path]:
        """Start the script warm, as soon as that is possible."""
        found: list[tuple[Any, Path]] = []

        def is_started() -> bool:
            self.start("prepare", *words)
            found.extend(filter(None, [self.start("warm", *words)]))
            return bool(found)

        wait_until(is_started, "a warm start")
        return found[0]

    def zygote_is_settled(self) -> bool:
        """Return whether the zygote is ready, or has ended."""
        zygote = self.starts._zygote
        return zygote is None or not zygote.look() or zygote.is_ready

    def outcome(self, started: tuple[Any, Path] | None) -> dict[str, Any]:
        """Wait for the end and return everything that the script has left; remove it."""
        assert started is not None
        process, output = started
        process.wait()
        names = ("stdout", "stderr", "reports")
        texts = {name: (output / name).read_text() for name in names if (output / name).exists()}
        found = {name: text.replace(str(output), "OUTPUT") for name, text in texts.items()}
        for path in sorted((self.folder / "code").rglob("*"), reverse=True):
            if path not in self.written and "__pycache__" not in path.parts:
                found[path.name] = path.read_bytes() if path.is_file() else b""
                path.unlink() if path.is_file() else path.rmdir()
        return {**found, "code": process.returncode}

    def zygote(self) -> int:
        """Return the pid of the zygote."""
        zygote = self.starts._zygote
        assert zygote is not None
        return zygote.pid

    def why(self, *words: str) -> str:
        """Return why the script is not started warm, as soon as that is known."""
        notes: list[str] = []

        def has_note() -> bool:
            self.start("prepare", *words)
            assert self.start("warm", *words) is None
            notes.extend(filter(None, [self.starts.note()]))
            return bool(notes)

        wait_until(has_note, "a note")
        return notes[0]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.starts.close()
    lab.watchdog.close()


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_does_not_see_how_it_was_started(lab: Lab, name: str) -> None:
    for library in ("numpy", "joblib"):
        if library in SCRIPTS[name]:
            pytest.importorskip(library)
    for path, text in BESIDE.items():
        lab.write(text, path)
    lab.write(SCRIPTS[name])
    cold = lab.outcome(lab.start("cold"))
    assert lab.outcome(lab.warm()) == cold
    assert lab.outcome(lab.start("warm")) == cold  # the first has left no trace
    assert lab.starts.note() is None


def test_trials_of_one_zygote_draw_different_numbers(lab: Lab) -> None:
    pytest.importorskip("numpy")
    lab.write("import random\nimport numpy\nimport numpy.random\nprint(random.random(), numpy.random.rand())")
    drawn = [lab.outcome(lab.warm())["stdout"] for _ in range(3)]
    assert len(set(" ".join(drawn).split())) == 6


@pytest.mark.parametrize(
    "words",
    [
        ["-u", "-O", "-W", "error", "-X", "dev", "trial.py"],
        ["-P", "trial.py"],
        ["-m", "package", "-m"],
    ],
)
def test_options_and_hash_seed_of_the_user_are_kept(lab: Lab, words: list[str]) -> None:
    for path, text in BESIDE.items():
        lab.write(text, path)
    text = "import sys, warnings\nprint(sys.flags, sys.warnoptions, sys._xoptions, sys.path, hash('a'))\n"
    lab.environment = {"PYTHONHASHSEED": "1"}
    lab.write(f"import json\n{text}1/0")
    package = f"from . import inner\n{text}print(__name__, __spec__.name, __file__, sys.argv)\n1/0"
    lab.write(package, "package/__main__.py")
    cold = lab.outcome(lab.start("cold", *words))
    assert lab.outcome(lab.warm(*words)) == cold


def test_script_is_stopped_by_a_signal(lab: Lab) -> None:
    lab.write("import time\ntime.sleep(60)")
    started = lab.warm()
    os.killpg(started[0].pid, signal.SIGTERM)
    assert lab.outcome(started)["code"] == -signal.SIGTERM


LIBRARY = "site-packages/library.py"


@pytest.mark.parametrize("changed", ["trial.py", "helper.py", LIBRARY])
def test_change_means_another_zygote(lab: Lab, changed: str) -> None:
    lab.environment = {"PYTHONPATH": str(lab.folder / "code" / "site-packages")}
    lab.write("VALUE = 1\n", "helper.py")
    lab.write("VALUE = 1\n", LIBRARY)
    lab.write("import helper\nimport library\nVALUE = 1\nprint(VALUE, helper.VALUE, library.VALUE)")
    assert lab.outcome(lab.warm())["stdout"] == "1 1 1\n"
    first = lab.zygote()
    path = lab.folder / "code" / changed
    path.write_text(path.read_text().replace("VALUE = 1", "VALUE = 22"))
    assert lab.outcome(lab.warm())["stdout"].count("22") == 1
    assert lab.zygote() != first


def test_module_that_comes_to_hide_a_library_is_found(lab: Lab) -> None:
    lab.write("import decimal\nprint(decimal.__file__)")
    assert "python" in lab.outcome(lab.warm())["stdout"]
    lab.write("", "decimal.py")
    assert lab.start("warm") is None


def test_other_environment_means_another_zygote(lab: Lab) -> None:
    lab.write("import os\nprint(os.environ['OMP_NUM_THREADS'])")
    for number in ("1", "2"):
        lab.environment = {"OMP_NUM_THREADS": number}
        assert lab.outcome(lab.warm())["stdout"] == f"{number}\n"


LIBRARIES = {
    "starts a thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    "prints something": "print('welcome')",
    "opens /": "import os\nfile = open(os.path.abspath(__file__))",
    "starts a process": "import subprocess\nprocess = subprocess.Popen(['sleep', '60'])",
    "reads PITCHPIPE_TRIAL_ID": "import os\nid = os.environ.get('PITCHPIPE_TRIAL_ID')",
    "reads the arguments": "import sys\nfirst = sys.argv[1:]",
    "makes a random generator": "import random\ngenerator = random.Random()",
    "shares memory": "import mmap\nmemory = mmap.mmap(-1, 4096)",
    "changes the working directory": "import os\nos.chdir('/')",
    "changes sys.path": "import sys\nsys.path.insert(0, '/nowhere')",
    "imports your module helper": "import helper",
    "cannot be imported": "1 / 0",
}


@pytest.mark.parametrize("reason", LIBRARIES)
def test_library_that_does_more_than_to_import_is_left_to_the_trials(lab: Lab, reason: str) -> None:
    lab.environment = {"PYTHONPATH": str(lab.folder / "code" / "site-packages")}
    lab.write(BESIDE["helper.py"], "helper.py")
    lab.write(LIBRARIES[reason], LIBRARY)
    lab.write("import decimal\nimport library\nimport fractions\nprint('done')\nimport os\nos._exit(0)")
    trial = lab.warm()
    note = lab.starts.note()
    assert note is not None
    assert note.startswith(f"library {reason}")
    assert ("done" in lab.outcome(trial)["stdout"]) == (reason != "cannot be imported")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-c", "pass"], "Python's option -c is not known to work"),
        (["-I", "trial.py"], "ended before it was ready"),
        (["missing.py"], "missing.py is not a file"),
    ],
)
def test_command_that_cannot_be_warm_is_refused_with_the_reason(
    lab: Lab, words: list[str], reason: str
) -> None:
    lab.write("print(1)")
    assert reason in lab.why(*words)


@pytest.mark.parametrize("option", ["-P", "-E", "-S", "-I"])
def test_script_runs_only_as_a_trial(lab: Lab, option: str) -> None:
    """Even where Python ignores the folder by which it would become a zygote."""
    lab.write("open('ran', 'w')")
    lab.start("prepare", option, "trial.py")
    wait_until(lambda: lab.zygote_is_settled(), "a zygote, or its end")
    assert not (lab.folder / "code" / "ran").exists()


def test_zygote_killed_while_it_waits_costs_a_cold_start(lab: Lab) -> None:
    lab.write("print(1)")
    lab.outcome(lab.warm())
    os.kill(lab.zygote(), signal.SIGKILL)
    assert lab.start("warm") is None
    assert lab.outcome(lab.warm())["stdout"] == "1\n"


def test_trial_outlives_its_zygote(lab: Lab) -> None:
    lab.write("import time, os\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')\nos._exit(5)")
    started = lab.warm()
    os.kill(lab.zygote(), signal.SIGKILL)
    (lab.folder / "code" / "go").touch()
    outcome = lab.outcome(started)
    assert (outcome["stdout"], outcome["code"]) == ("done\n", 5)


def kill_at_last(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_zygote_killed_at_any_moment_of_a_start_loses_and_doubles_nothing(lab: Lab) -> None:
    lab.write("import os\nopen('ran', 'a').write(os.environ['PITCHPIPE_REPORTS'] + chr(10))")
    warm = 0
    for number in range(12):
        lab.outcome(lab.warm()) if lab.number == 0 else lab.start("prepare")
        wait_until(lambda: lab.zygote_is_settled(), "a zygote")
        killer = threading.Timer(number % 10 * 0.0003, kill_at_last, [lab.zygote()])
        killer.start()
        started = lab.start("warm")
        killer.join()
        warm += started is not None
        process, _ = started or lab.start("cold") or pytest.fail("no start")
        assert process.wait() == 0
        lab.starts = WarmStarts(lab.watchdog) if started is None else lab.starts
    ran = (lab.folder / "code" / "ran").read_text().splitlines()
    assert len(ran) == len(set(ran)) == 12


def test_nothing_of_a_warm_trial_outlives_its_agent(agent: LocalAgent) -> None:
    client = agent.command(f"{shlex.quote(sys.executable)} trial.py cold", trial_start="warm")
    (agent.folder / "trial.py").write_text(
        "import os, time\n"
        "if b'cold' in open('/proc/self/cmdline', 'rb').read(): os._exit(0)\n"  # a zygote has no arguments
        "if os.fork() == 0: os.setsid()\n"
        "open(os.environ['PITCHPIPE_REPORTS'], 'a').write('{\"intermediate\": 1}\\n')\n"
        "time.sleep(600)\n"
    )
    events: list[dict[str, Any]] = []
    for attempt in itertools.count(1):
        client.tell(start(attempt=attempt))
        events = client.events_until(lambda event: event["e"] in ("report", "ended"))
        if events[-1]["e"] == "report":
            break
    pids = {child.pid for child in psutil.Process(agent.process.pid).children(recursive=True)}
    assert len(pids) == 4  # the trial, its child, the zygote, the watchdog
    assert {event["pid"] for event in events if event["e"] == "started"} < pids
    agent.process.kill()
    agent.process.wait()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid), f"the end of process {pid}")
