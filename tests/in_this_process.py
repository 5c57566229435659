"""Verbs and scripts in the test's process, which has imported their libraries already.

Their dispatchers are threads, and their agents are forked. For tests of what they do, not of how they start and end.
"""

import os
import runpy
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from pitchpipe.cli.app import run
from pitchpipe.sdk.current_trial import current

from .dispatcher_threads import dispatchers_on_threads


@pytest.fixture
def pitchpipe_run(
    request: pytest.FixtureRequest,
    forked_agents: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., str]:
    """Return a function that runs a command line in a folder, and returns what it printed."""
    if request.node.get_closest_marker("dispatcher_process") is None:
        dispatchers_on_threads(monkeypatch)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PITCHPIPE_DIR", "runs")

    def pitchpipe_run(folder: Path, *words: str, code: int = 0) -> str:
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            found = run(list(words))
        out, err = capsys.readouterr()
        assert found == code, out + err
        return out or err

    return pitchpipe_run


@pytest.fixture
def by_hand(
    forked_agents: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Return a function that does what `python SCRIPT WORDS` does in the script's folder, and returns the output."""
    dispatchers_on_threads(monkeypatch)
    monkeypatch.setenv("PITCHPIPE_DIR", "runs")

    def by_hand(script: Path, *words: str) -> str:
        current.enter(None)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of libraries, which are errors in tests
            patch.chdir(script.parent)
            patch.setattr(sys, "argv", [str(script), *words])
            patch.setattr(sys, "path", [str(script.parent), *sys.path])
            runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return by_hand
