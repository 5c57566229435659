"""Checks of the plug-ins that a config names: can they be loaded and constructed?

A tuner and an assessor are user code, so the manager never imports them: a dispatcher process does, and replies with
one JSON line. It may start before there is a config to check; so this module loads quickly. Trackers, such as MLflow's,
live in the manager, and are loaded here.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import IO, TYPE_CHECKING, Any

from ..protocol import Config, JsonObject, JsonPath, camel_case, refuse_while_loading, snake_case
from .problems import ConfigError, Finding

if TYPE_CHECKING:
    from .root_fields import ConfigFields

# The configuration comes by the standard input: a variable is limited to 128 KiB, and must be there at the start.
CHECK_COMMAND = (sys.executable, "-P", "-m", "pitchpipe.dispatcher", "--check", "--exp_params", "-")
# Importing a large framework from a slow disk takes tens of seconds; more than this is a hang.
CHECK_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class PluginCheck:
    """The problems of the plug-ins, the default directions of their classes by role, and warnings."""

    findings: Sequence[Finding] = ()
    directions: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Checker:
    """A dispatcher process that checks the plug-ins of one config, and loads what it needs until it is asked.

    The end of the `with` block ends it, with every process of its process group.
    """

    def __init__(self, command: Sequence[str] = CHECK_COMMAND) -> None:
        refuse_while_loading("plug-in")
        # Files, not pipes: a descendant that keeps a pipe open would delay this beyond the timeout.
        with contextlib.ExitStack() as stack:
            self._output = stack.enter_context(tempfile.TemporaryFile())
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._files = stack.pop_all()
        self._line = command
        self._process: subprocess.Popen[bytes] | OSError  # why there is none is said when it is asked
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=self._errors,
                # As for the dispatcher of an experiment: numpy starts no threads.
                env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
                start_new_session=True,
            )
        except OSError as error:
            self._process = error

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *error: object) -> None:
        if not isinstance(self._process, OSError):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._files.close()

    def ask(self, parameters: Config, timeout: float) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr; raise `OSError` if it did not start, `TimeoutExpired` if it is late."""
        process = self._process
        if isinstance(process, OSError):
            raise process
        # A wait with a timeout polls, and returns up to 50 ms late, which would delay every start.
        text = base64.b64encode(json.dumps(parameters).encode())
        asking = threading.Thread(target=process.communicate, args=(text,), daemon=True)
        asking.start()
        asking.join(timeout)
        if asking.is_alive():
            raise subprocess.TimeoutExpired(self._line, timeout)
        return process.returncode, _text(self._output), _text(self._errors)


def ask_dispatcher(
    config: ConfigFields, checker: Checker | None = None, *, without: Sequence[str] = ()
) -> PluginCheck:
    """Ask a dispatcher about the plug-ins of a config, leaving out the fields in `without`.

    A default direction is left out too, so that the classes use their own.
    """
    parameters = config.canonical()
    hidden = without if "objectives" in config.model_fields_set else (*without, "objectives")
    for name in (*hidden, "initial_points", "warm_start"):
        parameters.pop(camel_case(name), None)
    return check_parameters(parameters, checker)


def check_parameters(
    parameters: Config, checker: Checker | None = None, timeout: float = CHECK_TIMEOUT
) -> PluginCheck:
    """Ask a dispatcher, or the `checker`, about the plug-ins of a canonical config; `timeout` is in seconds."""
    try:
        with Checker() if checker is None else contextlib.nullcontext(checker) as started:
            code, output, errors = started.ask(parameters, timeout)
    except subprocess.TimeoutExpired:
        hint = "is its import or its constructor waiting for something?"
        slow = f"the tuner and the assessor were not ready after {timeout:g} s"
        return PluginCheck([Finding(path=("tuner",), message=slow, hint=hint)])
    except OSError as error:
        return PluginCheck(
            [Finding(path=("tuner",), message=f"the check of the tuner could not start: {error}")]
        )
    return _read(output) or PluginCheck([Finding(path=("tuner",), message=_failure(code, errors))])


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _read(output: str) -> PluginCheck | None:
    """Return what the last line that is a reply says; plug-ins may print other lines."""
    for line in reversed(output.splitlines()):
        try:
            reply = json.loads(line)
        except ValueError:
            continue
        if isinstance(reply, dict) and isinstance(reply.get("problems"), list):
            problems = [_finding(problem) for problem in reply["problems"]]
            return PluginCheck(problems, reply.get("directions") or {}, reply.get("warnings") or ())
    return None


def _failure(code: int, errors: str) -> str:
    last = (errors.strip().splitlines() or ["it printed nothing"])[-1]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the check of the tuner and the assessor ended with {ended}: {last}"


def _finding(problem: JsonObject) -> Finding:
    return Finding(
        path=_path(problem.get("path") or ["tuner"]),
        message=str(problem["message"]),
        hint=str(problem.get("hint") or ""),
    )


def _path(steps: Sequence[Any]) -> JsonPath:
    """Return the canonical path of a camelCase path from the dispatcher.

    >>> _path(["tuner", "classArgs", "myArg"])
    ('tuner', 'class_args', 'myArg')
    """
    count = 2 if steps[0] in ("tuner", "assessor") else 1  # how many of them are fields
    return (*(snake_case(str(step)) for step in steps[:count]), *steps[count:])


def tracker_classes(config: ConfigFields) -> dict[str, Callable[..., Any]]:
    """Return the class of each of the `trackers`; raise `ConfigError` for those that cannot be made."""
    classes, findings = _load_trackers(config)
    if findings:
        raise ConfigError.of(findings)
    return classes


def check_trackers(config: ConfigFields) -> list[Finding]:
    """Return which trackers cannot be made: their library is missing or too old, or an option is unknown."""
    return _load_trackers(config)[1]


def _load_trackers(config: ConfigFields) -> tuple[dict[str, Callable[..., Any]], list[Finding]]:
    if not config.trackers:
        return {}, []
    from importlib.metadata import entry_points  # most experiments have none

    registered = entry_points(group="pitchpipe.trackers")
    classes: dict[str, Callable[..., Any]] = {}
    findings: list[Finding] = []
    for name, options in config.trackers.items():
        try:
            classes[name] = registered[name].load()
            signature(classes[name]).bind(**options)
        except (ImportError, TypeError) as error:
            findings.append(Finding(path=("trackers", name), message=str(error)))
    return classes, findings
