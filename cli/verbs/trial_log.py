"""`pitchpipe trial log`: the output of a trial, optionally as it grows."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import click

from ...runner import TrialStatus
from ...store import ExperimentFolder
from ...store.reading import ExperimentView
from ..failures import FAILED, Failure
from ..lookup import chosen_trial, split_names
from ..printing import TerminalBytes
from ..verb import WholeNumber, trial_options, verb

__all__ = ["log"]

_CHUNK = 1 << 16
# There is no notification when files on other nodes grow, so they are polled.
_LOOK_EVERY = 0.2
_OUTPUT = re.compile(r"std(out|err)(-rank\d+)?")


@verb("log", "pitchpipe trial log 17", "pitchpipe trial log k3x9a2bq 17 --follow")
@trial_options
@click.option("--follow", "-f", is_flag=True, help="Continue until the trial ends.")
@click.option("--stderr", "only", flag_value="stderr", help="Only what it wrote to stderr.")
@click.option("--stdout", "only", flag_value="stdout", help="Only what it wrote to stdout.")
@click.option("--rank", type=WholeNumber(0), default=0, help="Of several processes, the one with this rank.")
def log(
    names: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    follow: bool,
    only: str | None,
    rank: int,
) -> None:
    """Print what a trial printed: its stdout to stdout, its stderr to stderr.

    On a terminal, colours stay and other control characters are escaped; a file or a pipe gets every byte.
    """
    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        found, summary = chosen_trial(view, word), view.summary()
    of_rank = f"-rank{rank}" if rank else ""
    wanted = [f"{name}{of_rank}" for name in ([only] if only else ["stdout", "stderr"])]
    trial_id, here = found.trial_id, folder.trial(found.sequence_id)
    which = f"trial {found.sequence_id} ({trial_id})"
    runs = found.status == "RUNNING" and folder.manager() is not None
    if not follow and not runs and not any((here / name).exists() for name in wanted):
        if rank and (ranks := _ranks(here)):
            raise Failure(f"{which} has no output of rank {rank}: it has {ranks}", FAILED)
        # Trials of NNI's experiments stay where they are.
        elsewhere = (
            f"this is {summary.reason}"
            if summary.status == "VIEWED"
            else "what functions print is in logs/agents.log"
        )
        raise Failure(f"{which} has no output in {here}; {elsewhere}", FAILED)
    with ExitStack() as stack:
        tails = [
            stack.enter_context(_Tail(here / name, _stream(name), _asking(folder, trial_id, name)))
            for name in wanted
        ]
        _copy(folder, trial_id, tails, follow)
        if not any(tail.copied for tail in tails):
            where = f" to {only}" if only else ""
            click.echo(f"{which} has printed nothing{where}", err=True)


def _ranks(here: Path) -> str:
    """Return the ranks whose output is in the folder of a trial, in words; empty if there is none."""
    numbers = {name.partition("-rank")[2] or "0" for name in _names(here) if _OUTPUT.fullmatch(name)}
    *others, last = sorted(numbers, key=int) or [""]
    return f"ranks {', '.join(others)} and {last}" if others else last and f"rank {last}"


def _names(here: Path) -> list[str]:
    return [path.name for path in here.iterdir()] if here.is_dir() else []


def _copy(folder: ExperimentFolder, trial_id: str, tails: list[_Tail], follow: bool) -> None:
    while True:
        # Ask before copying, so that all output before the trial's end is copied.
        is_over = not follow or _has_ended(folder, trial_id)
        for tail in tails:
            tail.copy()
        if is_over:
            return
        time.sleep(_LOOK_EVERY)


def _has_ended(folder: ExperimentFolder, trial_id: str) -> bool:
    with ExperimentView(folder) as view:
        return TrialStatus(view.trial(trial_id).status).is_final or folder.manager() is None


def _stream(name: str) -> IO[bytes] | TerminalBytes:
    stream = sys.stdout if name.startswith("stdout") else sys.stderr
    return TerminalBytes(stream) if stream.isatty() else stream.buffer


def _asking(folder: ExperimentFolder, trial_id: str, name: str) -> Callable[[int], bytes]:
    """Return a function that reads part of a running trial's file from a node that does not see the folder."""

    def ask(offset: int) -> bytes:
        from ...manager.control import read_running

        return b"" if folder.manager() is None else read_running(folder.path, trial_id, name, offset)

    return ask


class _Tail:
    """Copies a growing file to a stream; until the file exists, `elsewhere` returns its content."""

    def __init__(
        self, path: Path, output: IO[bytes] | TerminalBytes, elsewhere: Callable[[int], bytes]
    ) -> None:
        self._path = path
        self._output = output
        self._elsewhere = elsewhere
        self._copied_from_elsewhere = 0
        self._file: IO[bytes] | None = None
        self.copied = False

    def __enter__(self) -> _Tail:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def copy(self) -> None:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
                self._file.seek(self._copied_from_elsewhere)
            except FileNotFoundError:
                self._copy_from_elsewhere()
                return
        while data := self._file.read(_CHUNK):
            self._output.write(data)
            self.copied = True
        self._output.flush()

    def _copy_from_elsewhere(self) -> None:
        while data := self._elsewhere(self._copied_from_elsewhere):
            self._output.write(data)
            self._copied_from_elsewhere += len(data)
            self.copied = True
        self._output.flush()
