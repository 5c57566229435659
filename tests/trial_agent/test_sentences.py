"""What an agent says of values, parameters, commands and lines: inputs and answers are in test_sentences.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
from syrupy.assertion import SnapshotAssertion

from pitchpipe.sdk.command_arguments import parsed_with
from pitchpipe.sdk.current_trial import metric_text
from pitchpipe.trial_agent import Keeping
from pitchpipe.trial_agent.agent_events import Saved
from pitchpipe.trial_agent.checkpoint_store import CheckpointStore
from pitchpipe.trial_agent.launcher import StartError, arguments_of
from pitchpipe.trial_agent.placeholders import Misfit, filled
from pitchpipe.trial_agent.spool import SpoolReader

from ..sdk.test_command_arguments import parser
from ..sentences import SentencesFile, answered
from .client import messages, read_spool
from .test_spool import GOOD_END

ARGUMENTS = {"model": "it's; touch ran", "lr": 0.1, "fast": True, "off": False}
PLAIN = {"lr": 0.1, "m": {"_name": "knn", "p": 2.0}}


def whole(line: str) -> str:
    """Return a line with its long numbers."""
    return line.replace("0…0", "0" * 400)


def of_report(line: str) -> list[str]:
    """Return the problem that a line of the reports is, once it is admitted, or what its event holds."""
    store = CheckpointStore("checkpoints", 1, Keeping(), None)
    found = SpoolReader(trial="AbCdE", attempt=1).feed(whole(line).encode() + b"\n")
    admitted = [store.admit(event) if isinstance(event, Saved) else event for event in found]
    return [str(event.get("message") or event.get("value")) for event in messages(admitted)]


def of_end(line: str) -> list[str]:
    """Return the events of a line that says how an attempt has ended, and of a report and an end after it."""
    lines = f'{{"ended": {whole(line)}}}\n{{"final": 1, "time": 2}}\n'
    Path("reports").write_bytes(lines.encode() + GOOD_END)
    events = read_spool("reports", "AbCdE", 1)
    return [", ".join(event["e"] for event in events)]


def of_command(line: str) -> list[str]:
    """Return the words that run a command, or the exit code of one that cannot run and the reason."""
    try:
        program, *words = arguments_of(line, ".", {"PATH": "/bin"})
        return [f"{'a shell' if program in ('/bin/bash', '/bin/sh') else program} {words}"]
    except StartError as error:
        return [f"{error.exit_code}: {error}"]


def of_arguments(line: str) -> list[str]:
    """Return a command with values that a shell would change, or, before ` with plain values`, with others."""
    command, _, plain = line.partition(" with ")
    try:
        return [filled(command, PLAIN if plain else ARGUMENTS)]
    except Misfit as error:
        return [f"! {error}"]


def of_value(line: str) -> list[str]:
    try:
        return [metric_text(eval(line, {"numpy": numpy}))]
    except TypeError as error:
        return [f"TypeError: {error}"]


def of_parameters(line: str) -> list[str]:
    """Return how words and parameters change what a parser makes of a command line with neither."""
    words, _, parameters = line.partition("{")
    try:
        found = vars(
            parsed_with(parser(), ["file.csv", "--depth=0", *words.split()], json.loads("{" + parameters))
        )
    except ValueError as error:
        return [f"ValueError: {error}"]
    usual = vars(parser().parse_args(["file.csv", "--depth=0"]))
    changed = {name: value for name, value in found.items() if repr(value) != repr(usual[name])}
    return [", ".join(f"{name}={value!r}" for name, value in changed.items()) or "as usual"]


SECTIONS: dict[str, Any] = {
    "lines of reports": of_report,
    "ends of attempts": of_end,
    "commands": of_command,
    "arguments in a command": of_arguments,
    "reported values": of_value,
    "parameters for a parser": of_parameters,
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    Path("plain").touch()
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)
