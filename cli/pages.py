"""The web pages of a run: a server process that ends with the run unless it is asked to stay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .interrupts import Interrupts

if TYPE_CHECKING:
    from ..server import ServerProcess
    from ..store import ExperimentFolder

__all__ = ["RunPages", "pages_options"]


def pages_options(function: Any) -> Any:
    """Add `--ui`, `--ui-port` and `--keep-ui`."""
    function = click.option(
        "--keep-ui", is_flag=True, help="Like --ui; the pages stay after the end, until Ctrl-C."
    )(function)
    function = click.option(
        "--ui-port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Like --ui, on this port.  [default: any]",
    )(function)
    return click.option("--ui", "with_pages", is_flag=True, help="Serve web pages, and print their address.")(
        function
    )


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
        from ..server import ServerProcess, ServerSettings

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
        from ..server import ServerError

        server = self._server
        try:
            self._address = f"{server.url()}/ui/{self._folder.experiment_id}" if server is not None else ""
            self._say(f"web pages: {self._address}")
        except (ServerError, OSError, ValueError) as error:
            self._problem = f"there are no web pages: {error}"
            self._say(self._problem)
