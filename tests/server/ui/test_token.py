"""`pitchpipe ui` with a token: nobody else on the machine can read it, and the browser still gets in."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "a-token-of-this-test-0123456789"
# It notes its command line, and what the file that it was given holds.
BROWSER = """#!{python}
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
    browser.write_text(BROWSER.format(python=sys.executable, pipe=str(pipe)))
    browser.chmod(0o755)
    runs = directory / "runs"
    runs.mkdir()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", "ui", "--dir", str(runs), "--port", "0", *words],
        env={**os.environ, "BROWSER": f"{browser} %s", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        yield address, json.loads(pipe.read_text())
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


def test_the_token_is_in_a_private_file_and_not_in_a_command_line(tmp_path: Path) -> None:
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
    assert not path.exists()


def test_without_a_token_the_address_is_opened(tmp_path: Path) -> None:
    with opened(tmp_path, PITCHPIPE_SERVER_TOKEN="") as (address, browser):
        assert browser == {"words": [browser["words"][0], address], "file": None}


def test_a_browser_gets_in_by_the_file(tmp_path: Path, chromium: Any) -> None:
    """The cookie must reach the page although a file led to it: in a real browser."""
    with opened(tmp_path, PITCHPIPE_SERVER_TOKEN=TOKEN) as (address, browser):
        page = chromium.new_page()
        page.goto(browser["words"][1])
        page.wait_for_url(address.partition("?")[0])
        page.wait_for_selector("main, .q-page, .nicegui-content")
        assert "needs its token" not in page.content()
        page.close()
