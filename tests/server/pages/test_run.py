"""`pitchpipe run --ui`: the pages start and end with the run."""

import json
import os
import shlex
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.verbs.run import RunPages
from pitchpipe.server.security import ServerSettings
from pitchpipe.store import ExperimentFolder

TRIAL = """
import pitchpipe

open("gate").close()  # a pipe: waits for the test
pitchpipe.report_final_result(1.0)
"""
CONFIG = {
    "trial_command": f"{shlex.quote(sys.executable)} trial.py",
    "max_trial_number": 1,
    "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
    "tuner": {"name": "Random"},
    "training_service": {"platform": "local"},
}


def test_pages_of_a_run_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "trial.py").write_text(TRIAL)
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "experiment.yml").write_text(json.dumps(CONFIG))
    words = ["run", "experiment.yml", "--dir", "runs", "--experiment-id", "e", "--ui", "--json"]
    command = [sys.executable, "-P", "-m", "pitchpipe", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr is not None
        line = next(line for line in run.stderr if line.startswith("web pages: "))
        address = line.removeprefix("web pages: ").strip()
        assert address.endswith("/ui/e")
        with urllib.request.urlopen(address, timeout=30) as page:
            assert "Best trial" in page.read().decode()
        with urllib.request.urlopen(address.removesuffix("e"), timeout=30) as listing:
            assert str(tmp_path / "runs" / "e") in listing.read().decode()
        (tmp_path / "gate").open("w").close()
        printed, _ = run.communicate(timeout=60)
    assert json.loads(printed)["status"] == "DONE"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


class SlowServer:
    """A server that is ready when `ready` is set."""

    is_running = True
    ready = threading.Event()

    def __init__(self, *arguments: object) -> None:
        self.ready.clear()

    def start(self) -> None:
        pass

    def url(self) -> str:
        assert self.ready.wait(30)
        return "http://127.0.0.1:1"

    def stop(self) -> None:
        self.ready.set()


class ImmediateCtrlC:
    count = 0

    @contextmanager
    def notifying(self, listener: Callable[[], object]) -> Iterator[None]:
        listener()
        yield


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPages:
    monkeypatch.setattr("pitchpipe.server.ServerProcess", SlowServer)
    return RunPages(ExperimentFolder(tmp_path / "e"), ServerSettings(), lambda text: None)


def test_a_run_that_ends_early_waits_for_pages_that_stay(
    pages: RunPages, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ctrl_c: Any = ImmediateCtrlC()
    join = pages._speaker.join

    def joined() -> None:
        SlowServer.ready.set()
        join()

    monkeypatch.setattr(pages._speaker, "join", joined)
    with pages:
        pages.stay(ctrl_c)
    assert capfd.readouterr().err == "the pages stay until Ctrl-C: http://127.0.0.1:1/ui/e\n"


def test_a_run_that_ends_before_its_pages_says_how_to_see_them(
    pages: RunPages, capfd: pytest.CaptureFixture[str]
) -> None:
    with pages:
        pass
    words = "the experiment ended before its web pages were ready: `pitchpipe ui e` shows them"
    assert capfd.readouterr().err == words + "\n"


def test_pages_of_a_run_that_was_interrupted_are_not_waited_for(
    pages: RunPages, capfd: pytest.CaptureFixture[str]
) -> None:
    ctrl_c: Any = ImmediateCtrlC()
    ctrl_c.count = 1

    def run() -> None:
        with pages:
            pages.stay(ctrl_c)  # the pages are not ready before the end
            raise RuntimeError("it was deleted")

    with pytest.raises(RuntimeError, match="it was deleted"):
        run()
    assert capfd.readouterr().err == ""
