"""`pitchpipe ui` with a token: nobody else on the machine can read it, and the browser still gets in."""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from pitchpipe.cli.app import run

TOKEN = "a-token-of-this-test-0123456789"
# It notes its command line, and what the file that it was given holds.
BROWSER = """
import json, os, sys, urllib.parse
path = urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path)
file = {{"mode": os.stat(path).st_mode, "text": open(path).read()}} if sys.argv[1].startswith("file:") else None
with open({pipe!r}, "w") as pipe:
    json.dump({{"words": sys.argv, "file": file}}, pipe)
"""


@contextmanager
def opened(directory: Path, *words: str, **environment: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run `pitchpipe ui`; yield the printed address, and how the browser was started."""
    pipe, browser = directory / "pipe", directory / "browser"
    os.mkfifo(pipe)
    browser.write_text(BROWSER.format(pipe=str(pipe)))
    runs = directory / "runs"
    runs.mkdir()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", "ui", "--dir", str(runs), "--port", "0", *words],
        env={**os.environ, "BROWSER": f"{shlex.quote(sys.executable)} {browser} %s", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            yield address, json.loads(pipe.read_text())
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


def test_the_token_is_in_a_private_file_by_which_a_browser_gets_in(tmp_path: Path, chromium: Any) -> None:
    """No command line shows it; the cookie must reach the page although a file led to it: in a real browser."""
    with opened(tmp_path, PITCHPIPE_SERVER_TOKEN=TOKEN) as (address, browser):
        assert address.endswith(f"/ui/?token={TOKEN}")
        (given,) = browser["words"][1:]
        assert TOKEN not in given
        assert stat.S_IMODE(browser["file"]["mode"]) == 0o600
        assert f'url={address}"' in browser["file"]["text"]
        path = Path(unquote(urlsplit(given).path))
        assert path.parent.stat().st_mode & 0o077 == 0
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address.partition("?")[0], timeout=30)
        page = chromium.new_page()
        page.goto(given)
        page.wait_for_url(address.partition("?")[0])
        page.wait_for_selector("main, .q-page, .nicegui-content")
        assert "needs its token" not in page.content()
        page.close()
    assert not path.exists()


class ServerThatIsReady:
    """A server whose pages nobody opens."""

    def __init__(self, *_: Any, on_ready: Callable[[str], None], **__: Any) -> None:
        self._on_ready = on_ready

    def run(self) -> None:
        self._on_ready("http://127.0.0.1:1")


def test_without_a_token_the_address_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.server.Serving", ServerThatIsReady)
    monkeypatch.delenv("PITCHPIPE_SERVER_TOKEN", raising=False)
    found: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(webbrowser, "open", lambda address, *_: found.put(address))
    assert run(["ui", "--dir", str(tmp_path)]) == 0
    assert found.get(timeout=30) == "http://127.0.0.1:1/ui/"
