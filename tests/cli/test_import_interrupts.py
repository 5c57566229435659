"""Ctrl-C while a verb is imported."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitchpipe.cli.import_interrupts import ended_by_interrupts

# Runs a script of ours, and interrupts it where Python drops a KeyboardInterrupt: while it deletes an object, when a
# module is about to be imported.
INTERRUPTED_AT = """
import signal
import sys

module, *words = sys.argv[1:]


class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            Deleted()


sys.meta_path.insert(0, Finder())
sys.argv = ["pitchpipe", *words]

from pitchpipe import cli
from pitchpipe.compat import nni

{script}()
"""


def interrupted_at(module: str, *words: str, script: str = "cli.main") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED_AT.replace("{script}", script), module, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("module", ["click", "pitchpipe.cli.verbs.run", "pydantic"])
def test_an_interrupt_during_an_import_ends_the_process(module: str, config: Path, directory: Path) -> None:
    ended = interrupted_at(module, "run", str(config))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
    assert not directory.exists()


@pytest.mark.parametrize(
    ("module", "words", "script"),
    [
        ("pitchpipe.cli.verbs.create", ["resume", "--dir", "nowhere"], "cli.main"),
        ("pitchpipe.compat.nni.nnictl_script", ["--version"], "nni.nnictl"),
    ],
)
def test_an_interrupt_ends_resume_and_nnictl(module: str, words: list[str], script: str) -> None:
    ended = interrupted_at(module, *words, script=script)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.fixture
def effect_comes_back() -> Iterator[None]:
    """Give an interrupt its effect again after the test."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("effect_comes_back")
def test_another_effect_of_an_interrupt_stays() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ended_by_interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("effect_comes_back")
def test_the_effect_is_that_of_before_afterwards() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ended_by_interrupts():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("effect_comes_back")
def test_other_threads_change_nothing() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[object] = []

    def look() -> None:
        with ended_by_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(30)
    assert seen == [signal.default_int_handler]
