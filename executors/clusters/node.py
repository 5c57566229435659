"""What is done on one machine of a cluster: `python -m pitchpipe.executors.clusters.node`.

It reads one request from standard input, a line of JSON, and writes one reply to standard output:

    {"op": "check"}                                       -> {"versions": {...}}
    {"op": "start", "folder": F, "token": T, "port": P}   -> {"address": "10.0.0.1:6379"}    the head
    {"op": "start", "folder": F, "token": T, "address": A}-> {"address": A}                  another node
    {"op": "look", "folder": F}                           -> {"is_running": true}
    {"op": "stop", "folder": F}                           -> {}

With `"stays": true` a node that was started is stopped at the end of the input.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NotRequired, TypedDict

from ...protocol import JsonObject
from ..private_ray import limits_of_this_machine, remove_session, session_processes, versions_here

_RAY = (sys.executable, "-P", "-m", "ray.scripts.scripts")
_START_TIMEOUT = 120.0


class NodeRequest(TypedDict):
    """What a machine is asked to do, as above."""

    op: str
    folder: NotRequired[str]
    token: NotRequired[str]
    port: NotRequired[int]
    address: NotRequired[str]
    stays: NotRequired[bool]


class NodeError(Exception):
    """A machine cannot do what it is asked; the message is one sentence."""


def do(request: NodeRequest) -> JsonObject:
    """Do what a request asks and return the reply; raise `NodeError` or OSError."""
    folder = request.get("folder", "")
    match request["op"]:
        case "check":
            versions = {name: text for name, text in versions_here().items() if name != "environment"}
            return {"versions": {"Pitchpipe": version("pitchpipe"), **versions}}
        case "start" if "token" in request:
            address, port = request.get("address"), request.get("port", 0)
            return {"address": start_node(folder, request["token"], address=address, port=port)}
        case "look":
            return {"is_running": any(each.name() == "raylet" for each in session_processes(folder))}
        case "stop":
            remove_session(folder)
            return {}
        case other:
            raise NodeError(f"there is no request {other!r}")


def start_node(folder: str, token: str, *, address: str | None = None, port: int = 0) -> str:
    """Start Ray on this machine with its files in `folder`, and return the address of the cluster.

    It offers what this process may use. Without an address it is the head, at `port` (0: any). Raise `NodeError` if
    Ray does not start.
    """
    path = Path(folder)
    path.mkdir(mode=0o700, exist_ok=True)
    if path.lstat().st_uid != os.getuid():
        raise NodeError(f"{folder} belongs to another user")
    token_path = path / "token"
    token_path.touch(mode=0o600)
    token_path.write_text(token)
    place = _own_address()
    if address is None:
        address = f"{place}:{port or _free_port()}"
        options = ["--head", f"--port={address.rpartition(':')[2]}", "--include-dashboard=false"]
    else:
        options = [f"--address={address}"]
    options += [f"--node-ip-address={place}", f"--temp-dir={folder}", "--disable-usage-stats"]
    names = {"CPU": "--num-cpus", "memory": "--memory"}
    options += [f"{names[name]}={amount:.0f}" for name, amount in limits_of_this_machine().items()]
    _start(options, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_path)}, path / "start.log")
    return address


def _start(options: list[str], more: Mapping[str, str], log: Path) -> None:
    # A file, not a pipe: the processes of Ray keep it open.
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                [*_RAY, "start", *options],
                env={**os.environ, **more},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=_START_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NodeError(f"Ray does not start within {_START_TIMEOUT:g} s") from error
    if done.returncode:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise NodeError(f"Ray does not start: {lines[-1].strip() if lines else 'it says nothing'}")


def _own_address() -> str:
    """Return the address by which other machines reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet is sent: this only chooses a route
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def main() -> int:
    """Serve one request."""
    request = json.loads(sys.stdin.readline())
    try:
        print(json.dumps(do(request)), flush=True)
        if request.get("stays"):
            sys.stdin.read()
            remove_session(request["folder"])
    except (NodeError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
