"""`pitchpipe run`: an experiment in the foreground."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from ..failures import FAILED, INTERRUPTED, Failure
from ..interrupts import Interrupts
from ..printing import drawing_stream, print_line
from ..verb import FILE, new_experiment_options, resume_if_exists_option, verb, watch_options

if TYPE_CHECKING:
    from ...manager import Manager
    from ...server import ServerProcess
    from ...store import ExperimentFolder
    from ..display import Display

_COLOURS = {"DONE": "green", "ERROR": "red"}


@verb(
    "run",
    "pitchpipe run experiment.yml",
    "pitchpipe run experiment.yml --ui",
    "pitchpipe run experiment.yml --set max_trial_number=5 --set tuner.name=TPE",
    "pitchpipe run experiment.yml --dir runs --json > result.json",
    "pitchpipe run experiment.yml --experiment-id nightly --resume-if-exists",
)
@new_experiment_options
@resume_if_exists_option
@watch_options
@click.option("--ui", "with_pages", is_flag=True, help="Serve web pages, and print their address.")
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Like --ui, on this port.  [default: any]",
)
@click.option("--keep-ui", is_flag=True, help="Like --ui; the pages stay after the end, until Ctrl-C.")
@click.option(
    "--trace", type=FILE, metavar="FILE", help="Write where the time goes, for chrome://tracing or Perfetto."
)
def run(
    config: Path,
    overrides: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    resume_if_exists: bool,
    as_json: bool,
    quiet: bool,
    with_pages: bool,
    ui_port: int | None,
    keep_ui: bool,
    trace: Path | None,
) -> int:
    """Run the experiment that CONFIG describes, and watch it.

    CONFIG is a YAML or JSON file. Ctrl-C stops the experiment: results are kept, and `pitchpipe resume`
    continues it. A second Ctrl-C kills the running trials. Exit codes: 0 done, 1 the experiment failed or no
    trial has succeeded, 2 bad config or usage, 130 interrupted.
    """
    if trace is not None and not os.access(trace if trace.exists() else trace.parent, os.W_OK):
        raise Failure(f"--trace: {trace} cannot be written")
    wants_pages = with_pages or keep_ui or ui_port is not None
    if wants_pages:
        from ...server import require_server

        require_server(pages=True)
    with Interrupts() as interrupts:
        from ..new_experiment import make_experiment

        manager = make_experiment(
            config,
            experiment_id,
            directory,
            interrupts,
            overrides,
            runs_here=True,
            resume_if_exists=resume_if_exists,
        )
        if trace is not None:
            from ...manager import Trace

            manager.trace = Trace(trace)
        if not wants_pages:
            return watched(manager, interrupts, as_json=as_json, quiet=quiet)
        display = _display(as_json=as_json, quiet=quiet)
        with RunPages(manager.folder, ui_port, display.message) as pages:
            code = watched(manager, interrupts, as_json=as_json, quiet=quiet, display=display)
            if keep_ui:
                pages.stay(interrupts)
            return code


def watched(
    manager: Manager,
    interrupts: Interrupts,
    *,
    as_json: bool,
    quiet: bool,
    announce_fd: int | None = None,
    display: Display | None = None,
) -> int:
    """Run a manager with a display, report the outcome, and return the exit code.

    Writes to `announce_fd` when trials can run: another process waits for it.
    """
    from ..foreground import RunningExperiment

    folder = manager.folder
    display = display or _display(as_json=as_json, quiet=quiet)
    if not quiet and not as_json:
        click.echo(f"experiment {folder.experiment_id} in {folder.path}")
        for note in manager.notes:
            click.echo(note)

    def announce() -> None:
        if announce_fd is not None:
            # The waiting process may be gone.
            with suppress(BrokenPipeError), os.fdopen(announce_fd, "wb") as announcement:
                announcement.write(json.dumps({"pid": os.getpid()}).encode() + b"\n")

    running = RunningExperiment(manager, display, interrupts, announce)
    interrupted = running.run()
    if running.error and not folder.database.exists():  # it was deleted while the experiment ran
        raise Failure(running.error, FAILED)
    return report(folder, interrupted, running.error, as_json=as_json)


def _display(*, as_json: bool, quiet: bool) -> Display:
    return make_display(sys.stderr if as_json else sys.stdout, sys.stderr, quiet=quiet, lines=not as_json)


def make_display(output: IO[str], errors: IO[str], *, quiet: bool, lines: bool = True) -> Display:
    """Return a live display on a terminal that can draw, else one of lines (if `lines`) or of warnings only."""
    from ..display import PlainDisplay, SilentDisplay

    if output.isatty() and os.environ.get("TERM") != "dumb" and not quiet:
        from ..live_table import LiveDisplay  # imports rich, which takes 50 ms

        return LiveDisplay(drawing_stream(output))
    return PlainDisplay(output, errors) if lines and not quiet else SilentDisplay(errors)


def report(folder: ExperimentFolder, interrupted: bool, error: str, *, as_json: bool) -> int:
    """Print the outcome of a run, and return the exit code; `error` is why it could not continue."""
    from ...store.reading import ExperimentView, to_json
    from ..outcome import none_succeeded, outcome_lines, summary_object
    from .ray import staying_line

    with ExperimentView(folder) as view:
        summary, config = view.summary(), view.config()
        if error:
            # Show the error even if it could not be stored (the disk is full).
            summary = replace(summary, status="ERROR", reason=error)
        if as_json:
            click.echo(to_json(summary_object(view, summary)).decode())
        else:
            first, *others = outcome_lines(view, summary)
            print_line(first, bold=True, fg=_COLOURS.get(summary.status))
            for line in others:
                print_line(line, bold=line.startswith("best:"))
            if staying := staying_line(config):
                click.echo(staying)
    if summary.status == "DONE":
        return FAILED if none_succeeded(summary) else 0
    return INTERRUPTED if interrupted or summary.status == "STOPPED" else FAILED


class RunPages:
    """The pages of one experiment while its `with` block runs; `say` receives the address once they respond.

    If the server cannot start, `say` receives the reason, and the run continues without pages.
    """

    def __init__(self, folder: ExperimentFolder, port: int | None, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._port = port or 0
        self._say = say
        self._server: ServerProcess | None = None
        self._address = ""
        self._problem = ""
        self._speaker = threading.Thread(target=self._say_address, name="pages", daemon=True)

    def __enter__(self) -> RunPages:
        from ...server import ServerProcess, ServerSettings

        settings = ServerSettings(port=self._port)
        self._server = ServerProcess(self._folder.path.parent, self._folder.experiment_id, settings)
        self._server.start()
        self._speaker.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not (self._address or self._problem or any(error)):
            then = f"`pitchpipe ui {self._folder.experiment_id}` shows them"
            click.echo(f"the experiment ended before its web pages were ready: {then}", err=True)
        if self._server is not None:
            self._server.stop()

    def stay(self, interrupts: Interrupts) -> None:
        """Wait until there are pages, and keep them until Ctrl-C; return without pages, or after an earlier Ctrl-C."""
        if interrupts.count:
            return
        self._speaker.join()
        if not self._address:
            click.echo(self._problem, err=True)
        if self._server is None or not self._server.is_running or interrupts.count:
            return
        interrupted = threading.Event()
        click.echo(f"the pages stay until Ctrl-C: {self._address}", err=True)
        with interrupts.notifying(interrupted.set):
            interrupted.wait()

    def _say_address(self) -> None:
        from ...server import ServerError

        server = self._server
        try:
            self._address = f"{server.url()}/ui/{self._folder.experiment_id}" if server is not None else ""
            self._say(f"web pages: {self._address}")
        except (ServerError, OSError, ValueError) as error:
            self._problem = f"there are no web pages: {error}"
            self._say(self._problem)
