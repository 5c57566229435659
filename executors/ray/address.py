"""Which Ray cluster an address means, and whether it is reachable: Ray itself would try for minutes."""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
from typing import Any

import psutil

from ..errors import ExecutorError
from ..private_ray import TEMP_PREFIX

_PROBE_TIMEOUT = 5.0
_GCS_FLAG = "--gcs-address="


async def find_cluster(address: str) -> str:
    """Return the "host:port" of the cluster that `address` means, after checking that something listens there.

    "auto" is the cluster that RAY_ADDRESS names, else the one that `ray start` recorded here, else the only one on
    this machine; a private Ray does not count. Raise `ExecutorError` if there is none.
    """
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "")
        if address in ("", "auto", "local"):
            return await _find_local()
    if "://" in address:
        raise ExecutorError(f"{address}: Ray client addresses do not work here, give host:port of the head")
    await _probe(address)
    return address


async def _find_local() -> str:
    utils: Any = importlib.import_module("ray._private.utils")
    latest = utils.read_ray_address(None)
    running = await asyncio.to_thread(_running_here)
    if latest in running:
        return latest
    if len(running) > 1:
        some = ", ".join(sorted(running))
        raise ExecutorError(f"several Ray clusters run on this machine ({some}): give the address of one")
    for address in running:
        await _probe(address)
        return address
    raise ExecutorError(
        "no Ray cluster runs on this machine: start one with `ray start --head`, or give host:port"
    )


def _running_here() -> set[str]:
    """Return the addresses of the clusters that have a node here, from the command lines of their raylets."""
    found: set[str] = set()
    for process in psutil.process_iter():
        try:
            if process.name() == "raylet":
                found |= _cluster_of(process.cmdline())
        except psutil.Error:
            continue
    return found


def _cluster_of(command: list[str]) -> set[str]:
    """Return the cluster of a raylet, unless it is a private Ray's.

    >>> _cluster_of(["raylet", "--gcs-address=10.0.0.1:6379", "--session_dir=/tmp/ray/session"])
    {'10.0.0.1:6379'}
    >>> _cluster_of(["raylet", "--gcs-address=10.0.0.1:6379", "--session_dir=/tmp/pitchpipe-ray-1/session"])
    set()
    """
    if any(TEMP_PREFIX in argument for argument in command):
        return set()
    return {argument.removeprefix(_GCS_FLAG) for argument in command if argument.startswith(_GCS_FLAG)}


async def _probe(address: str) -> None:
    """Raise if nothing listens there: Ray itself would try for ten minutes, and print."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ExecutorError(f"{address!r} is not the address of a Ray cluster: give host:port, or auto")
    try:
        connection = asyncio.open_connection(host.strip("[]"), int(port))
        _, writer = await asyncio.wait_for(connection, _PROBE_TIMEOUT)
    except (OSError, TimeoutError) as error:
        why = "no answer" if isinstance(error, TimeoutError) else _plain(error)
        raise ExecutorError(f"no Ray cluster answers at {address} ({why})") from None
    writer.close()


def _plain(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "the host name is unknown"
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
