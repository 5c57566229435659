"""Verbs and programs forked from the nursery of the agents: a manager that can be killed, and costs no new interpreter.

It hosts its dispatcher on a thread and forks its agents. They are no children of it, but survive it as others do.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pitchpipe.cli import app

from .dispatcher_threads import dispatchers_on_threads
from .forked_agents import NURSERY, Popen, fork_agents


class ForkedVerb(Popen):
    """A verb in a process of its own, as `subprocess.Popen` returns it."""

    modules = (
        "pitchpipe.cli.verbs.create",
        "pitchpipe.cli.new_experiment",
        "pitchpipe.cli.foreground",
        "pitchpipe.cli.verbs.resume",
        "pitchpipe.cli.verbs.run",
        "pitchpipe.config.checking",
        "pitchpipe.executors.local",
        "pitchpipe.manager.experiment_factory",
        "pitchpipe.tuners.random",
        __name__,
    )

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self._outputs = folder / "out", folder / "err"
        requests = NURSERY.requests().fileno()
        with self._outputs[0].open("wb") as out, self._outputs[1].open("wb") as err:
            super().__init__(
                [str(requests), *map(str, words)],
                pass_fds=[requests],
                env=os.environ,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def words(self, arguments: Sequence[str]) -> Sequence[str]:
        return arguments

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; return all that it has printed."""
        self.wait(timeout)
        out, err = (file.read_text() for file in self._outputs)
        return out, err


class ForkedProgram(ForkedVerb):
    """A Python script of a user's, named by the first of `words`, which ends as scripts do."""

    modules = ("pitchpipe.experiment", *ForkedVerb.modules)


def main(words: Sequence[str]) -> int:
    """Run a verb, or a script, in a process that was just forked."""
    requests, *arguments = words
    NURSERY.join(socket.socket(fileno=int(requests)))
    patch = pytest.MonkeyPatch()
    dispatchers_on_threads(patch)
    fork_agents(patch)
    if arguments[0].endswith(".py"):
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        return 0
    return app.run(arguments)
