"""Asks a dispatcher process whether the tuner and the assessor can be loaded and constructed.

Plug-ins are user code, so the manager never imports them: another process does, and replies with one JSON line.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ..protocol import PARAMETERS_ENVIRONMENT
from .models import ConfigFields
from .problems import Finding, Path
from .section import camel_case

__all__ = ["PluginCheck", "ask_dispatcher"]

CHECK_COMMAND = (sys.executable, "-P", "-m", "pitchpipe.dispatcher", "--check")
# Importing a large framework from a slow disk takes tens of seconds; more than this is a hang.
CHECK_TIMEOUT = 120.0
# Linux limits one variable to 128 KiB; the tuner is not checked with a larger search space.
_MAX_VARIABLE = 120_000
_SECTIONS = {
    "tuner": "tuner",
    "assessor": "assessor",
    "searchSpace": "search_space",
    "constraints": "constraints",
}


@dataclass(frozen=True, slots=True)
class PluginCheck:
    """The problems of the plug-ins, the default directions of their classes by role, and warnings."""

    findings: Sequence[Finding] = ()
    directions: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


def ask_dispatcher(
    config: ConfigFields, command: Sequence[str] | None = None, *, without: Sequence[str] = ()
) -> PluginCheck:
    """Ask a dispatcher about the plug-ins of a config, leaving out the fields in `without`.

    A default direction is left out too, so that the classes use their own.
    """
    parameters = config.canonical()
    hidden = without if "objectives" in config.model_fields_set else (*without, "objectives")
    for name in (*hidden, "initial_points", "warm_start"):
        parameters.pop(camel_case(name), None)
    return check_parameters(parameters, command)


def check_parameters(
    parameters: Mapping[str, Any], command: Sequence[str] | None = None, timeout: float = CHECK_TIMEOUT
) -> PluginCheck:
    """Ask a dispatcher about the plug-ins of a canonical config; `timeout` is in seconds."""
    line = list(CHECK_COMMAND if command is None else command)
    environment = {**os.environ, PARAMETERS_ENVIRONMENT: _encoded(parameters)}
    try:
        code, output, errors = _run(line, environment, timeout)
    except subprocess.TimeoutExpired:
        hint = "is its import or its constructor waiting for something?"
        slow = f"the tuner and the assessor were not ready after {timeout:g} s"
        return PluginCheck([Finding(path=("tuner",), message=slow, hint=hint)])
    except OSError as error:
        return PluginCheck(
            [Finding(path=("tuner",), message=f"the check of the tuner could not start: {error}")]
        )
    reply = _reply(output)
    if reply is None:
        return PluginCheck([Finding(path=("tuner",), message=_failure(code, errors))])
    problems = [_finding(item) for item in reply["problems"]]
    return PluginCheck(problems, reply.get("directions") or {}, reply.get("warnings") or ())


def _run(line: Sequence[str], environment: Mapping[str, str], timeout: float) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr; end every process of the command's process group."""
    # Files, not pipes: a descendant that keeps a pipe open would delay this beyond the timeout.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        # `process.wait(timeout)` polls and returns up to 50 ms late, which would delay every start.
        ending = threading.Thread(target=process.wait, daemon=True)
        try:
            ending.start()
            ending.join(timeout)
            if ending.is_alive():
                raise subprocess.TimeoutExpired(line, timeout)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            ending.join()
        return process.returncode, _text(output), _text(errors)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _encoded(parameters: Mapping[str, Any]) -> str:
    encoded = base64.b64encode(json.dumps(parameters).encode()).decode()
    if len(encoded) > _MAX_VARIABLE and "searchSpace" in parameters:
        return _encoded({key: value for key, value in parameters.items() if key != "searchSpace"})
    return encoded


def _reply(output: str) -> Mapping[str, Any] | None:
    """Return the last line that is a reply; plug-ins may print other lines."""
    for line in reversed(output.splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("problems"), list):
            return value
    return None


def _failure(code: int, errors: str) -> str:
    last = (errors.strip().splitlines() or ["it printed nothing"])[-1]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the check of the tuner and the assessor ended with {ended}: {last}"


def _finding(problem: Mapping[str, Any]) -> Finding:
    return Finding(
        path=_path(problem.get("path") or ["tuner"]),
        message=str(problem["message"]),
        hint=str(problem.get("hint") or ""),
    )


def _path(steps: Sequence[Any]) -> Path:
    """Return the canonical path of a camelCase path from the dispatcher.

    >>> _path(["tuner", "classArgs", "myArg"])
    ('tuner', 'class_args', 'myArg')
    """
    section = _SECTIONS.get(steps[0], str(steps[0]))
    if section not in ("tuner", "assessor"):
        return (section, *steps[1:])
    fields = [re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), str(step)) for step in steps[1:2]]
    return (section, *fields, *steps[2:])
