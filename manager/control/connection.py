"""How a verb talks to the manager that runs an experiment: a Unix socket, one JSON line each way.

    {"op": "status"}                     -> {"ok": true, "pid": 4711, "status": "RUNNING", ...}
    {"op": "kill", "trial": "Xy3fA"}     -> {"ok": true, "sequence_id": 11, "trial_id": "Xy3fA"}
    anything that cannot be done         -> {"error": "a sentence", "kind": "conflict"}

The operations are in `operations.py` and `host.py`; callers use `steering.py`.
The socket has a short name in the user's runtime directory. `control.sock` in the experiment's folder links to it, so
that processes with another runtime directory find it, too. Requests of other users are refused.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, NotRequired, Required, TypedDict

from ...protocol import Json, JsonObject, Parameters
from ...store import ExperimentFolder, JsonConnection, discard, json_line, runtime_directory

Answer = Mapping[str, object]
Operation = Callable[[JsonObject], Answer | Awaitable[Answer]]
RefusalKind = Literal["unreachable", "not found", "conflict", "invalid", "failed"]
_log = logging.getLogger(__name__)
# What the HTTP API takes in one body (4 MiB) is up to three times as long with its characters escaped.
_MAX_LINE = 16 * 1024 * 1024
_TOO_LONG = {"error": f"a request has at most {_MAX_LINE:,} bytes", "kind": "invalid"}
_TIMEOUT = 10.0


class MeasuredResult(TypedDict):
    """A result measured elsewhere: a number, or an object with one for each objective."""

    parameter: Parameters
    value: Json


class ControlRequest(TypedDict, total=False):
    """What callers ask; the manager checks the values, which are often a user's."""

    op: Required[str]
    changes: JsonObject  # update: limits and the search space, by the names of the config; None lifts a limit
    parameters: Parameters | list[Parameters]  # add: of one trial; or of several, all of them or none
    trial: str | int  # rerun, kill, read_file: its id or number
    data: list[MeasuredResult]  # import
    reason: str  # stop
    name: str  # read_file: in the folder of the trial
    offset: int


class ManagerStatus(TypedDict):
    """What only the manager knows: why trials wait, by their ids, what is wrong, and what is left to do.

    `waits` are all that it waits for, as objects with the names of `Wait`.
    """

    pid: int
    status: str
    elapsed: float
    waiting: dict[str, str]
    warnings: list[str]
    waits: list[JsonObject]
    rate: NotRequired[float | None]
    remaining: NotRequired[float | None]
    is_bound: NotRequired[bool]


class ControlError(Exception):
    """The manager could not be asked, or refused; the message says why.

    `kind` is "unreachable", "not found", "conflict" (not possible at present), "invalid" (never possible) or "failed"
    (an error of the manager).
    """

    def __init__(self, message: str, kind: RefusalKind = "conflict") -> None:
        super().__init__(message)
        self.kind = kind


def control_socket(folder: Path) -> Path:
    """Return where the manager of an experiment listens."""
    name = hashlib.blake2b(os.fsencode(folder.absolute()), digest_size=6).hexdigest()
    return runtime_directory() / f"m-{name}.sock"


class ControlServer:
    """Replies to the requests of verbs while its `async with` block runs.

    `operations` maps an op to a function or coroutine function of the request; what it returns is sent back, and so is
    the message of a `ControlError`.
    """

    def __init__(self, folder: Path, operations: Mapping[str, Operation]) -> None:
        self._folder = folder
        self._operations = dict(operations)
        self._path = control_socket(folder)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ControlServer:
        # The owner of the folder may remove what a killed manager left.
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self._path, limit=_MAX_LINE)
        self._path.chmod(0o600)
        link = self._folder / "control.sock"
        link.unlink(missing_ok=True)
        link.symlink_to(self._path)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()
        discard(self._path)
        discard(self._folder / "control.sock")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from ...trial_agent import peer_uid

        peer = writer.get_extra_info("socket")
        if peer_uid(peer) not in (None, os.geteuid()):
            writer.close()
            return
        self._writers.add(writer)
        try:
            await self._converse(reader, writer)
        except ConnectionError:
            pass  # the caller is gone
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # where the next request begins is unknown
                writer.write(json_line(_TOO_LONG))
                await writer.drain()
                return
            if not line:
                return
            writer.write(await self._answer(line))
            await writer.drain()

    async def _answer(self, line: bytes) -> bytes:
        """Return the reply to a request; an unexpected error is logged, and is a reply, too."""
        try:
            return json_line(await self._perform(line))
        except Exception as error:  # noqa: BLE001  (the manager continues, and the caller must know)
            _log.exception("the request %r failed", line[:80])
            why = f"the manager failed at this ({type(error).__name__}: {error}): see logs/manager.log"
            return json_line({"error": why, "kind": "failed"})

    async def _perform(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
            operation = self._operations[request["op"]]
        except (ValueError, KeyError, TypeError):
            return {
                "error": f"a request is one of {', '.join(sorted(self._operations))}, not {line[:80]!r}",
                "kind": "invalid",
            }
        try:
            answer = operation(request)
            return {"ok": True, **(await answer if isinstance(answer, Awaitable) else answer)}
        except ControlError as error:
            return {"error": str(error), "kind": error.kind}


def ask_manager(folder: Path, request: ControlRequest, timeout: float = _TIMEOUT) -> Json:
    """Send a request to the manager of the experiment in `folder`; raise `ControlError` with its refusal.

    `timeout` is in seconds.
    """
    length = len(json_line(request))
    if length > _MAX_LINE:
        raise ControlError(f"{_TOO_LONG['error']}, this one {length:,}", "invalid")
    try:
        link = folder / "control.sock"
        path = link.readlink() if link.is_symlink() else control_socket(folder)
        with JsonConnection.to(path, timeout) as connection:
            answer = connection.ask_now(request, timeout)
    except EOFError:
        why = f"the manager of {folder.name} went away before it answered"
        raise ControlError(why, "unreachable") from None
    except TimeoutError:
        raise ControlError(f"the manager of {folder.name} does not answer", "unreachable") from None
    except (OSError, ValueError) as error:
        why = f"the manager of {folder.name} cannot be reached: {error}"
        raise ControlError(why, "unreachable") from error
    if "error" in answer:
        raise ControlError(answer["error"], answer.get("kind", "conflict"))
    return answer


def manager_status(folder: Path) -> ManagerStatus:
    """Return what the manager of the experiment in `folder` says of it."""
    return ask_manager(folder, {"op": "status"}, timeout=2.0)


def read_running(folder: Path, trial_id: str, name: str, offset: int) -> bytes:
    """Return a part of a file of a running trial, from `offset` on; nothing if its manager cannot read it."""
    try:
        part = ask_manager(folder, {"op": "read_file", "trial": trial_id, "name": name, "offset": offset})
    except ControlError:
        return b""
    return base64.b64decode(part["data"])


def why_waiting(folder: ExperimentFolder, trial_id: str) -> str:
    """Return why a trial has not started, which only its manager knows."""
    if folder.manager() is None:
        return "the experiment is not running"
    try:
        reasons = manager_status(folder.path)["waiting"]
    except ControlError as error:
        return f"its manager gave no reason: {error}"
    return reasons.get(trial_id) or "it starts as soon as resources are free"
