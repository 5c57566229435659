"""Ctrl-C while a verb is imported."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pitchpipe.cli.imports import ended_by_interrupts

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

cli.{script}()
"""


def interrupted_at(module: str, *words: str, script: str = "main") -> subprocess.CompletedProcess[str]:
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
    assert (ended.stdout, ended.stderr) == ("", "")
    assert ended.returncode == 130
    assert not directory.exists()


def test_an_interrupt_ends_resume(directory: Path) -> None:
    ended = interrupted_at("pitchpipe.cli.background", "resume", "--dir", str(directory))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_an_interrupt_ends_nnictl() -> None:
    ended = interrupted_at("pitchpipe.cli.nnictl_script", "--version", script="nnictl")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_another_effect_of_an_interrupt_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_by_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_effect_is_that_of_before_afterwards() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ended_by_interrupts():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_change_nothing() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[object] = []

    def look() -> None:
        with ended_by_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    try:
        thread.start()
        thread.join(30)
        assert seen == [signal.default_int_handler]
    finally:
        signal.signal(signal.SIGINT, before)
