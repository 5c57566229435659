"""What users read from the API, on the pages and in reports: each input is a request, a field, or a text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from pitchpipe.server.experiments import Experiments
from pitchpipe.server.pages.experiments_page import sparkline
from pitchpipe.server.pages.settings_page import changes_of
from pitchpipe.server.secrecy import hidden

from ..sentences import SentencesFile, answered
from ..stored import MadeExperiment, a_trial
from .asking import Asking


def reply_to(asking: Asking, line: str) -> Iterator[str]:
    """Answer a request: method, path, and a body, if there is one."""
    method, path, *body = line.split(" ", 2)
    where = path.replace("~", "/api/v1/experiments/made1234")
    reply = asking.ask(method, where, json.loads(body[0]) if body else None)
    assert reply.headers["content-type"] == "application/json"
    yield f"{reply.status} {reply.error}"


def limit(line: str) -> Iterator[str]:
    """Answer the name of a limit, and the text in its field, where 7 was before."""
    name, text = line.split(": ")
    try:
        yield json.dumps(changes_of({name: json.loads(text)}, {name: "7"}))
    except ValueError as error:
        yield str(error)


def line_of(line: str) -> Iterator[str]:
    yield json.dumps(sparkline(json.loads(line)))


def without_secrets(line: str) -> Iterator[str]:
    yield hidden(line)


def test_sentences(snapshot: SnapshotAssertion) -> None:
    made = MadeExperiment(Path("exps/made1234").absolute())
    made.commit(a_trial(0, value=0.5), a_trial(3, "RUNNING"))
    (made.folder.logs / "manager.log").write_text("one\n")
    experiments = Experiments(made.folder.path.parent)
    sections = {
        "refusals of the API": partial(reply_to, Asking(experiments)),
        "limits on a page": limit,
        "lines in the list of experiments": line_of,
        "texts without secrets": without_secrets,
    }
    assert answered(Path(__file__).parent, sections) == snapshot(extension_class=SentencesFile)
    experiments.close()
    made.store.close()
