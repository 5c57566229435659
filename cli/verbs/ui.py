"""`pitchpipe ui`: the web pages, served from this terminal until Ctrl-C."""

from __future__ import annotations

import contextlib
import html
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...store import runtime_directory
from ..failures import Failure
from ..lookup import chosen_experiment, chosen_name, experiments_directory
from ..page_addresses import addresses_for_others, page_address, page_settings
from ..verb import experiment_options, verb

if TYPE_CHECKING:
    from ...server import ServerSettings, Serving

_USUAL_PORT = 8080


@verb(
    "ui",
    "pitchpipe ui",
    "pitchpipe ui k3x9a2bq --port 8888 --no-browser",
    "pitchpipe ui --host 0.0.0.0 --share",
)
@experiment_options
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port; 0 for any free one.  [default: 8080, if free]"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--share", is_flag=True, help="Print an address, too, with which others can read and change nothing."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def ui(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    port: int | None,
    host: str,
    share: bool,
    no_browser: bool,
) -> None:
    """Show the experiments of a directory in a web browser, and control those that are running.

    It needs no network, and also shows experiments that are over. On an address that other machines can reach, a
    token is required: $PITCHPIPE_SERVER_TOKEN, or a random one that is part of the printed address. With --share
    there is a second token, $PITCHPIPE_SHARE_TOKEN or a random one, for readers. Needs the extra ui.
    """
    from ...server import require_server

    require_server(pages=True)
    chosen = chosen_name(experiment, experiment_id)
    page = "/ui/"
    if chosen is not None:
        folder = chosen_experiment(chosen, None, directory)
        directory, page = folder.path.parent, f"/ui/{folder.experiment_id}"
    directory = experiments_directory(directory)
    if not directory.is_dir():
        raise Failure(f"there is no folder {directory}: pitchpipe run CONFIG, or --dir DIR")
    _serve(directory, page, page_settings(host, share=share), port, open_browser=not no_browser)


def _serve(
    directory: Path, page: str, settings: ServerSettings, port: int | None, *, open_browser: bool
) -> None:
    from ...server import is_loopback

    def say(url: str) -> None:
        address = page_address(settings, url, page)
        click.echo(address)
        for line in addresses_for_others(settings, url, page):
            click.echo(line)
        if settings.share_token is not None and is_loopback(settings.host):
            click.echo("only this machine reaches these addresses: --host 0.0.0.0 lets others in", err=True)
        click.echo(
            f"showing the experiments in {directory}; Ctrl-C stops the server, not the experiments", err=True
        )
        if open_browser:
            _open(opened.enter_context(_without_secret(address)) if settings.token else address)

    with contextlib.ExitStack() as opened:
        _listening(directory, settings, port, say).run()


@contextlib.contextmanager
def _without_secret(address: str) -> Iterator[str]:
    """Yield the address of a file that redirects the browser to the page, and that only this user can read.

    All users of the machine can read the browser's command line, which must not show the token.
    """
    with tempfile.NamedTemporaryFile(
        "w", dir=runtime_directory(), prefix="ui-", suffix=".html", encoding="utf-8"
    ) as file:  # mode 0600
        address = html.escape(address)
        file.write(f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Pitchpipe</a>')
        file.flush()
        yield Path(file.name).as_uri()


def _listening(
    directory: Path, settings: ServerSettings, port: int | None, say: Callable[[str], None]
) -> Serving:
    """Return the server on the requested port; without one, on the usual port or else on any free one."""
    from ...server import Experiments, Serving, ServingError

    why: Exception | None = None
    for number in (_USUAL_PORT, 0) if port is None else (port,):
        try:
            return Serving(Experiments(directory), replace(settings, port=number), on_ready=say)
        except ServingError as error:
            why = error
    raise Failure(str(why))


def _open(address: str) -> None:
    """Open a browser without waiting for it; without a browser, the printed address remains."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
