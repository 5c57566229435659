"""Readers, who came with the token of `--share`: their pages have no button, and no event, that changes something."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ...stored import MadeExperiment, a_config, a_trial
from .conftest import WINDOW

pytestmark = pytest.mark.timeout(180)

SECRETS = {"trial_command": "./train --token=abcdef", "trial_environment": {"WANDB_API_KEY": "abcdef"}}
CHANGING = (
    *("Resume", "Rename", "Save limits", "Change the search space", "Stop the experiment"),
    *("Delete the experiment", "Save the note", "Add trial", "Rerun", "Kill"),
)
# The last event that a page sent, noted by a wrapper around what sends it.
NOTE_EVENTS = """() => {
    const emit = window.socket.emit.bind(window.socket);
    window.socket.emit = (kind, ...rest) => { if (kind === "event") window.sent = rest[0]; return emit(kind, ...rest) };
}"""
FORGE = """message => new Promise(done => window.socket.emit("event", message, () => done(true)))"""


@dataclass(frozen=True)
class Shared:
    """An experiment whose manager is gone, with the addresses of its pages for its owner and for readers."""

    folder: Path
    owner: str
    reader: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("shared")
    made = MadeExperiment(directory / "made1234", a_config(**SECRETS), name="digits")
    made.commit(a_trial(0, value=0.5), a_trial(1, value=0.25))
    made.store.close()
    (made.folder.path / "experiment.yml").write_text("trial_environment: {WANDB_API_KEY: abcdef}\n")
    words = ["ui", "made1234", "--dir", str(directory), "--port", "0", "--no-browser", "--share"]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        owner, readers = (server.stdout.readline().strip() for _ in range(2))
        assert readers.startswith("to read only: ")
        try:
            yield Shared(made.folder.path, owner, readers.removeprefix("to read only: "))
        finally:
            server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
    assert "--host 0.0.0.0 lets others in" in said


def opened(chromium: Any, address: str) -> Any:
    """Open an address in a browser of its own, without cookies of another."""
    page = chromium.new_context(viewport=WINDOW, reduced_motion="reduce").new_page()
    page.set_default_timeout(60_000)
    page.goto(address)
    page.wait_for_function("window.did_handshake")
    return page


def buttons(page: Any) -> set[str]:
    return {name for name in CHANGING if page.get_by_role("button", name=name, exact=True).count()}


def test_reader_sees_every_page_and_no_button_that_changes_something(shared: Shared, chromium: Any) -> None:
    owner, reader = opened(chromium, shared.owner), opened(chromium, shared.reader)
    root = reader.url
    assert "token" not in root
    found: set[str] = set()
    for page in ("", "/trials", "/trials/0", "/compare?trials=0,1", "/plots", "/settings", "/logs"):
        for one in (owner, reader):
            one.goto(root + page)
            one.wait_for_function("window.did_handshake")
        assert reader.get_by_text("read only", exact=True).is_visible()
        assert buttons(reader) == set()
        found |= buttons(owner)
    assert found > {"Resume", "Rename", "Save limits", "Delete the experiment", "Save the note"}
    reader.goto(f"{root}/settings")
    assert reader.get_by_text("WANDB_API_KEY: (hidden)").is_visible()
    assert reader.get_by_role("textbox").count() == 0
    owner.goto(f"{root}/settings")
    assert owner.get_by_text("WANDB_API_KEY: abcdef").is_visible()
    for one in (owner, reader):
        one.context.close()


def test_event_that_a_reader_forges_for_the_page_of_the_owner_is_ignored(
    shared: Shared, chromium: Any
) -> None:
    """The reader is given what it could only guess: the names of the owner's page and of its field."""
    owner, reader = opened(chromium, shared.owner), opened(chromium, shared.reader)
    owner.goto(f"{owner.url}/settings")
    owner.wait_for_function("window.did_handshake")
    owner.evaluate(NOTE_EVENTS)
    owner.get_by_label("Note", exact=True).fill("mine")
    owner.wait_for_function("JSON.stringify(window.sent ?? '').includes('mine')")
    message = owner.evaluate("window.sent")

    def write(text: str) -> dict[str, Any]:
        return json.loads(json.dumps(message).replace("mine", text))

    assert reader.evaluate(FORGE, write("forged"))
    assert saved_note(shared, owner) == "mine"
    assert owner.evaluate(FORGE, write("written otherwise"))  # the same message, from where it may come
    assert saved_note(shared, owner) == "written otherwise"
    for one in (owner, reader):
        one.context.close()


def saved_note(shared: Shared, owner: Any) -> str:
    """Save the note of the experiment in the owner's page, and return what was saved."""
    file = shared.folder / "annotations.json"
    file.unlink(missing_ok=True)
    owner.get_by_role("button", name="Save the note").click()
    while not file.exists():  # until the time limit of the test
        owner.evaluate("new Promise(requestAnimationFrame)")
    return json.loads(file.read_text())[""]["note"]


def test_wrong_token_and_none_show_no_page(shared: Shared, chromium: Any) -> None:
    address = shared.reader.partition("?")[0]
    page = chromium.new_context().new_page()
    for query in ("", "?token=a-token-of-somebody-else"):
        assert page.goto(address + query).status == 401
    page.context.close()
