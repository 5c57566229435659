"""The progress of a running experiment: a line on a terminal, a bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import html
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .manager import Manager, SearchSession
    from .runner import TrialRunner
    from .server import ServerProcess
    from .store import ExperimentFolder

_INTERVAL = 0.5

Look = tuple[str, int, int | None]
"""A line of text, how many trials have ended, and how many there will be, if that is known."""


class Draw(Protocol):
    """Where progress is drawn."""

    def __call__(self, look: Look, *, is_last: bool) -> None:
        """Draw a look in place of the one before; the last one stays."""
        ...


def line_of(runner: TrialRunner) -> Look:
    """Return what is shown of a running experiment."""
    from .telling import counts_text, front_text, nouns, results_text

    ended = len(runner.trials) - len(runner.live)
    total = runner.limits.max_trial_number
    counts = counts_text({status.value: count for status, count in runner.counts.items() if count})
    repeats = runner.families.repeats.count
    best = front_text(runner.best.points(), repeats=repeats)
    for trial in () if best else runner.best.front[:1]:
        values = {
            objective.name: value
            for objective, value in zip(runner.objectives, trial.values or (), strict=False)
        }
        best = f"best: {results_text(values)} ({nouns(repeats)[0]} {trial.sequence_id})"
    of_total = f" of {total}" if total else ""
    return " | ".join(filter(None, [f"{ended}{of_total} trials", counts, best])), ended, total


@contextmanager
def shown_progress(manager: Manager | SearchSession, *, is_wanted: bool) -> Iterator[None]:
    """Show the progress of a manager in a block, on a terminal or in a notebook."""
    draw = _drawer() if is_wanted else None
    if draw is None:
        yield
        return
    latest: list[Look] = []
    due = monotonic()

    def look() -> None:
        nonlocal due
        if manager.runner is not None and monotonic() >= due:
            latest[:] = [line_of(manager.runner)]
            due = monotonic() + _INTERVAL

    manager.watch(look)
    try:
        with _drawn(draw, latest):
            yield
    finally:
        if manager.runner is not None:
            draw(line_of(manager.runner), is_last=True)


@contextmanager
def _drawn(draw: Draw, latest: list[Look]) -> Iterator[None]:
    """Draw the latest look regularly, in a thread, so that a slow terminal does not delay trials."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(_INTERVAL):
            if latest:
                draw(latest[0], is_last=False)

    thread = threading.Thread(target=work, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _drawer() -> Draw | None:
    """Return a function that draws a look in a cell or on a terminal; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return _Cell().draw
    return _Terminal().draw if sys.stderr is not None and sys.stderr.isatty() else None


def forget_closed_stderr() -> None:
    """Let a program go on that has closed stderr, as one without it: messages to a closed one raise ValueError."""
    if sys.stderr is not None and sys.stderr.closed:
        sys.stderr = None


class _Cell:
    """A bar under the cell of a notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, look: Look, *, is_last: bool) -> None:
        del is_last
        from IPython.display import HTML, display

        line, ended, total = look
        bar = f'<progress value="{ended}" max="{total}"></progress> ' if total else ""
        cell = HTML(f"{bar}{html.escape(line)}")
        if self._handle is None:
            self._handle = display(cell, display_id=True)
        else:
            self._handle.update(cell)


class _Terminal:
    """A line that is overwritten."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status = self._console.status("")

    def draw(self, look: Look, *, is_last: bool) -> None:
        from rich.markup import escape

        if is_last:
            self._status.stop()
            self._console.print(escape(look[0]), highlight=False)
            return
        self._status.update(escape(look[0]))
        self._status.start()


@contextmanager
def shown_pages(folder: ExperimentFolder, *, is_wanted: bool) -> Iterator[None]:
    """Serve the pages of an experiment in a block, and print their address once they respond."""
    if not is_wanted:
        yield
        return
    from .server import ServerProcess

    with ServerProcess(folder.path.parent, folder.experiment_id) as server:
        threading.Thread(target=_print_address, args=(server, folder), name="pages", daemon=True).start()
        yield


def _print_address(server: ServerProcess, folder: ExperimentFolder) -> None:
    from .server import ServerError

    try:
        print(f"web pages: {server.url()}/ui/{folder.experiment_id}", file=sys.stderr, flush=True)
    except (ServerError, OSError, ValueError) as error:
        if server.is_running:  # a run may end before its pages respond
            print(f"there are no web pages: {error}", file=sys.stderr, flush=True)
