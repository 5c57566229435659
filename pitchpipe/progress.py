"""The progress of a running experiment: a line on a terminal, a bar in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import html
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import monotonic, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .manager import Manager, SearchSession
    from .runner import TrialRunner
    from .server import ServerProcess
    from .store import ExperimentFolder

_INTERVAL = 0.5
_LINES_INTERVAL = 5.0

Look = tuple[str, int, int | None]
"""A line of text, how many trials have ended, and how many there will be, if that is known."""


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
    """Show the progress of a manager in a block: on a terminal, in a notebook, or as lines on stderr."""
    screen = _screen() if is_wanted else None
    if screen is None:
        yield
        return
    latest: list[Any] = []
    due = monotonic()

    def look() -> None:
        nonlocal due
        if manager.runner is not None and monotonic() >= due:
            latest[:] = [screen.look(manager.runner)]
            due = monotonic() + _INTERVAL

    manager.watch(look)
    try:
        with _drawn(screen, latest):
            yield
    finally:
        if manager.runner is not None:
            screen.draw(screen.look(manager.runner), is_last=True)


@contextmanager
def _drawn(screen: _Screen, latest: list[Any]) -> Iterator[None]:
    """Draw the latest look regularly, in a thread, so that a slow terminal does not delay trials."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(screen.interval):
            if latest:
                screen.draw(latest[0], is_last=False)

    thread = threading.Thread(target=work, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _screen() -> _Screen | None:
    """Return where progress is drawn: a cell, a terminal or lines; None for a program without stderr."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return _Cell()
    if sys.stderr is None:
        return None
    return _Terminal() if sys.stderr.isatty() else _Lines()


def forget_closed_stderr() -> None:
    """Let a program go on that has closed stderr, as one without it: messages to a closed one raise ValueError."""
    if sys.stderr is not None and sys.stderr.closed:
        sys.stderr = None


class _Screen(ABC):
    """Where progress is drawn, every `interval` seconds."""

    interval = _INTERVAL

    def look(self, runner: TrialRunner) -> Any:
        """Return what `draw` draws of an experiment; called where that runs."""
        return line_of(runner)

    @abstractmethod
    def draw(self, look: Any, *, is_last: bool) -> None:
        """Draw a look in place of the one before; the last one stays."""


class _Cell(_Screen):
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


class _Terminal(_Screen):
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


class _Lines(_Screen):
    """Lines on stderr, those of `pitchpipe run` without a terminal; none for a run that is over before the first."""

    interval = _LINES_INTERVAL

    def __init__(self) -> None:
        from .runner import RateMeter
        from .telling import ProgressLines

        self._meter = RateMeter()
        self._lines = ProgressLines()
        self._has_begun = False

    def look(self, runner: TrialRunner) -> Any:
        """Return the progress, and when it was that."""
        from .telling import RunProgress

        limits = runner.limits
        progress = RunProgress.of(
            runner,
            time(),
            self._meter,
            experiment_id=runner.experiment_id,
            total=limits.max_trial_number,
            longest=limits.max_experiment_duration,
        )
        return progress, monotonic()

    def draw(self, look: Any, *, is_last: bool) -> None:
        """Print a line if one is due; the last one always, if there is one before it."""
        from .telling import escaped, progress_line

        progress, moment = look
        # It is as old as the last event, which may be long ago.
        progress = replace(progress, elapsed=progress.elapsed + monotonic() - moment)
        line = escaped(progress_line(progress)) if is_last else self._lines.next(progress)
        if line is not None and (self._has_begun or not is_last):
            self._has_begun = True
            with suppress(OSError, ValueError):  # nobody reads it, or the program has closed it
                print(line, file=sys.stderr, flush=True)


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
