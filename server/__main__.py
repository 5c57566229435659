"""`python -P -m pitchpipe.server DIRECTORY`: the server as a separate process; `process.py` starts it.

Once it listens, it prints one line of JSON, `{"url": ..., "pid": ...}`; if it cannot, it prints `{"error": ...}` and
its exit code is 2.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..protocol import MissingExtraError
from .process import TOKEN_VARIABLE, require_server


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the end; return the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        require_server(pages=not asked.no_pages)
    except MissingExtraError as error:
        _say({"error": str(error)})
        return 2
    from .experiments import Experiments
    from .security import SecurityError, ServerSettings
    from .serving import Serving, ServingError

    try:
        settings = ServerSettings(
            host=asked.host,
            port=asked.port,
            token=os.environ.pop(TOKEN_VARIABLE, None),
            allowed_hosts=tuple(asked.allow_host),
        )
        experiments = Experiments(asked.directory, asked.experiment)
        serving = Serving(experiments, settings, pages=not asked.no_pages, on_ready=_say_ready)
    except (SecurityError, ServingError) as error:
        _say({"error": str(error)})
        return 2
    if asked.end_with_stdin:
        serving.end_with_stdin()
    serving.run()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -P -m pitchpipe.server", description=__doc__)
    parser.add_argument("directory", type=Path, help="the directory of the experiments")
    parser.add_argument("--experiment", metavar="ID", help="show only this experiment")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; any but loopback needs a token"
    )
    parser.add_argument(
        "--port", type=int, default=0, help="0 for any free one; the one of TuneServer was 4321"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name to accept"
    )
    parser.add_argument("--no-pages", action="store_true", help="serve only the API")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input is closed")
    return parser


def _say_ready(url: str) -> None:
    _say({"url": url, "pid": os.getpid()})


def _say(news: dict[str, object]) -> None:
    try:
        print(json.dumps(news), flush=True)
    except BrokenPipeError:
        sys.stdout = None  # the parent does not read the pipe; the address is also in the file


if __name__ == "__main__":
    sys.exit(main())
