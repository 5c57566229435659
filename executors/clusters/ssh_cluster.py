"""A Ray cluster on machines that ssh reaches: started, looked at and ended from here.

One file remembers it, beside the experiments; another one holds its token. An experiment that joins the address of
the cluster finds the token by itself.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...protocol import JsonObject
from ...store import default_directory

if TYPE_CHECKING:
    from .node import NodeRequest

_T = TypeVar("_T")
_TIMEOUT = 180.0
# Without a terminal ssh must not ask for passwords.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15")


class ClusterError(Exception):
    """A machine of a cluster cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that was started: its hosts (the first one is the head), and their folder for Ray's files."""

    address: str
    hosts: tuple[str, ...]
    folder: str
    python: str
    ssh: tuple[str, ...]

    @classmethod
    def current(cls) -> Cluster | None:
        """Return the cluster that was started last and not ended, if any."""
        try:
            stored = json.loads(_file().read_text())
        except FileNotFoundError:
            return None
        return cls(**{**stored, "hosts": tuple(stored["hosts"]), "ssh": tuple(stored["ssh"])})

    @property
    def reached(self) -> _Hosts:
        """How its hosts are reached."""
        return _Hosts(self.ssh, self.python)


def cluster_up(hosts: Sequence[str], *, port: int, python: str, ssh: Sequence[str]) -> Cluster:
    """Start Ray on all hosts; raise `ClusterError`, with nothing left running, if one of them cannot."""
    if (there := Cluster.current()) is not None:
        what = f"there is a cluster already, at {there.address}"
        raise ClusterError(f"{what}: end it with `pitchpipe cluster down`")
    reached, token = _Hosts(tuple(ssh), python), secrets.token_hex(32)
    folder = f"/tmp/pitchpipe-cluster-{secrets.token_hex(4)}"
    _require_same_versions(reached, hosts)
    start: NodeRequest = {"op": "start", "folder": folder, "token": token}
    try:
        address = reached.ask(hosts[0], {**start, "port": port})["address"]
        joined = _on_each(hosts[1:], lambda host: reached.ask(host, {**start, "address": address}))
        _raise_errors(joined.values())
    except BaseException:
        _on_each(hosts, lambda host: reached.ask(host, {"op": "stop", "folder": folder}))
        raise
    cluster = Cluster(address=address, hosts=tuple(hosts), folder=folder, python=python, ssh=tuple(ssh))
    _write(_token_file(), token)
    _write(_file(), json.dumps(asdict(cluster), indent=1))
    return cluster


def cluster_down(cluster: Cluster) -> dict[str, str]:
    """End Ray on all hosts; return why it may still run, by host.

    If some cannot be reached, the cluster is remembered, so that this can be done again.
    """
    stop: NodeRequest = {"op": "stop", "folder": cluster.folder}
    ended = _on_each(cluster.hosts, lambda host: cluster.reached.ask(host, stop))
    failed = {host: str(result) for host, result in ended.items() if isinstance(result, ClusterError)}
    if not failed:
        for file in (_file(), _token_file()):
            file.unlink(missing_ok=True)
    return failed


def cluster_status(cluster: Cluster) -> dict[str, str]:
    """Return the state of each host, in words."""
    look: NodeRequest = {"op": "look", "folder": cluster.folder}
    seen = _on_each(cluster.hosts, lambda host: cluster.reached.ask(host, look))
    return {
        host: str(result)
        if isinstance(result, ClusterError)
        else ("running" if result["is_running"] else "not running")
        for host, result in seen.items()
    }


def token_path_of(address: str) -> str | None:
    """Return the file with the token of a cluster that was started here; None for all others."""
    cluster = Cluster.current()
    return str(_token_file()) if cluster is not None and cluster.address == address else None


@dataclass(frozen=True, slots=True)
class _Hosts:
    """How machines are reached (`ssh`: the program and its options), and which Python has Pitchpipe there."""

    ssh: tuple[str, ...]
    python: str

    def ask(self, host: str, request: NodeRequest) -> JsonObject:
        """Have a machine do something and return its reply; raise `ClusterError`."""
        remote = shlex.join([self.python, "-P", "-m", f"{__package__}.node"])
        command = [*self.ssh, *_OPTIONS, host, remote]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(request) + "\n",
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except FileNotFoundError as error:
            raise ClusterError(f"there is no {self.ssh[0]} here: install an ssh client") from error
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{host}: no answer after {_TIMEOUT:g} s") from error
        if done.returncode:
            raise ClusterError(f"{host}: {self._why(done)}")
        return json.loads(done.stdout.splitlines()[-1])

    def _why(self, done: subprocess.CompletedProcess[str]) -> str:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        if "No module named" in said[-1] or done.returncode == 127:
            return f"Pitchpipe is not installed for {self.python} ({said[-1]}); install it there, or give --python"
        return said[-1]


def _on_each(hosts: Sequence[str], action: Callable[[str], _T]) -> dict[str, _T | ClusterError]:
    """Do something on all hosts at once; return the results or errors by host."""

    def attempt(host: str) -> _T | ClusterError:
        try:
            return action(host)
        except ClusterError as error:
            return error

    with ThreadPoolExecutor(max_workers=32) as pool:
        return dict(zip(hosts, pool.map(attempt, hosts), strict=True))


def _require_same_versions(reached: _Hosts, hosts: Sequence[str]) -> None:
    """Raise `ClusterError` unless all hosts, and this machine, have the same versions."""
    from .node import do

    here = do({"op": "check"})["versions"]
    checked = _on_each(hosts, lambda host: reached.ask(host, {"op": "check"})["versions"])
    _raise_errors(checked.values())
    for host, versions in checked.items():
        for name, there in versions.items() if isinstance(versions, dict) else ():
            if there != here[name]:
                raise ClusterError(f"{host} has {name} {there}, and this machine has {here[name]}")


def _raise_errors(results: Iterable[object]) -> None:
    errors = [str(result) for result in results if isinstance(result, ClusterError)]
    if errors:
        raise ClusterError("\n".join(errors))


def _file() -> Path:
    return default_directory() / "cluster.json"


def _token_file() -> Path:
    return default_directory() / "cluster.token"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
