"""`pitchpipe ui`: the web pages, served from this terminal until Ctrl-C."""

from __future__ import annotations

import contextlib
import html
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...store import runtime_directory
from ..failures import Failure
from ..lookup import chosen_experiment, chosen_name, experiments_directory
from ..verb import experiment_options, verb

if TYPE_CHECKING:
    from ...server import Serving

_USUAL_PORT = 8080


@verb("ui", "pitchpipe ui", "pitchpipe ui k3x9a2bq --port 8888 --no-browser")
@experiment_options
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port; 0 for any free one.  [default: 8080, if free]"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def ui(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    port: int | None,
    host: str,
    no_browser: bool,
) -> None:
    """Show the experiments of a directory in a web browser, and control those that are running.

    It needs no network, and also shows experiments that are over. On an address that other machines can reach, a
    token is required: $PITCHPIPE_SERVER_TOKEN, or a random one that is part of the printed address. Needs the extra
    ui.
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
    _serve(directory, page, host, port, open_browser=not no_browser)


def _serve(directory: Path, page: str, host: str, port: int | None, *, open_browser: bool) -> None:
    token = _token(host)
    address_end = f"{page}?token={token}" if token else page

    def say(url: str) -> None:
        click.echo(f"{url}{address_end}")
        click.echo(
            f"showing the experiments in {directory}; Ctrl-C stops the server, not the experiments", err=True
        )
        if open_browser:
            _open(opened.enter_context(_without_secret(url, address_end)) if token else url + address_end)

    with contextlib.ExitStack() as opened:
        _listening(directory, host, port, token, say).run()


@contextlib.contextmanager
def _without_secret(url: str, address_end: str) -> Iterator[str]:
    """Yield the address of a file that redirects the browser to the page, and that only this user can read.

    All users of the machine can read the browser's command line, which must not show the token.
    """
    with tempfile.NamedTemporaryFile(
        "w", dir=runtime_directory(), prefix="ui-", suffix=".html", encoding="utf-8"
    ) as file:  # mode 0600
        address = html.escape(url + address_end)
        file.write(f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Pitchpipe</a>')
        file.flush()
        yield Path(file.name).as_uri()


def _token(host: str) -> str | None:
    from ...server import TOKEN_VARIABLE, is_loopback

    given = os.environ.pop(TOKEN_VARIABLE, None)
    return given or (None if is_loopback(host) else secrets.token_urlsafe(24))


def _listening(
    directory: Path, host: str, port: int | None, token: str | None, say: Callable[[str], None]
) -> Serving:
    """Return the server on the requested port; without one, on the usual port or else on any free one."""
    from ...server import Experiments, SecurityError, ServerSettings, Serving, ServingError

    why: Exception | None = None
    for number in (_USUAL_PORT, 0) if port is None else (port,):
        try:
            return Serving(
                Experiments(directory), ServerSettings(host=host, port=number, token=token), on_ready=say
            )
        except SecurityError as error:
            raise Failure(str(error)) from error
        except ServingError as error:
            why = error
    raise Failure(str(why))


def _open(address: str) -> None:
    """Open a browser without waiting for it; without a browser, the printed address remains."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
