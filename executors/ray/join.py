"""Joining a Ray cluster: which one an address means, its token, and errors in plain words.

Ray itself would try for minutes to reach a cluster that does not listen, so that is checked first.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from ...protocol import JsonObject
from ..errors import ExecutorError
from ..private_ray import TEMP_PREFIX, take_back_signals
from ..tasks import in_daemon_thread
from .actor_calls import ray_errors

_log = logging.getLogger(__name__)

_JOIN_TIMEOUT = 60.0
_PROBE_TIMEOUT = 5.0
_GCS_FLAG = "--gcs-address="
# How long (s) Ray tries to reach a cluster when we check whether it accepts our token.
_CONNECT_TIMEOUT = "5"
_AUTH_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN")
# Ray ends a process that has not reached its cluster for so many seconds.
_PATIENCE_VARIABLE = "RAY_gcs_rpc_server_reconnect_timeout_s"
_PATIENCE = "1000000"
_CONNECT_VARIABLE = "RAY_py_gcs_connect_timeout_s"
_REFUSED = 3
_KNOCK = f"""
import json, sys, traceback
import ray._raylet as raylet
try:
    hasattr(raylet, "AuthenticationTokenLoader") and raylet.GcsClient(address=sys.argv[1])
except Exception as error:
    print(json.dumps([str(error), traceback.format_exc()]))
    sys.exit({_REFUSED})
"""


async def join(
    address: str, namespace: str, *, token_path: str | None = None, runtime_env: JsonObject | None = None
) -> None:
    """Connect this process to the cluster at `address` ("host:port" or "auto").

    This ends a connection to another cluster. The token is the one in `token_path`, or by default what Ray finds
    by its own rules. Raise `ExecutorError` if there is no cluster, it refuses the token, or Ray cannot start a
    driver.
    """
    address = await find_cluster(address)
    try:
        joining = in_daemon_thread(lambda: _init(address, namespace, token_path, runtime_env))
        await asyncio.wait_for(joining, _JOIN_TIMEOUT)
    except TimeoutError:
        why = f"the Ray cluster at {address} did not reply within {_JOIN_TIMEOUT:.0f} s"
        raise ExecutorError(why) from None
    take_back_signals()


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
    hint = "start one with `ray start --head`, or give host:port"
    raise ExecutorError(f"no Ray cluster runs on this machine: {hint}")


def _running_here() -> set[str]:
    """Return the addresses of the clusters that have a node here, from the command lines of their raylets."""
    addresses: set[str] = set()
    for process in psutil.process_iter():
        try:
            if process.name() == "raylet":
                addresses |= _cluster_of(process.cmdline())
        except psutil.Error:
            continue
    return addresses


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
    """Raise `ExecutorError` if nothing listens there."""
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


def connected_to() -> str | None:
    """Return the address of the Ray to which this process is connected; None if there is none."""
    if "ray" not in sys.modules:
        return None
    # Ray's own functions for this would start a Ray if another thread closes the connection meanwhile.
    client = getattr(_ray_worker().global_worker, "gcs_client", None)
    return None if client is None else client.address


def is_connected_elsewhere() -> bool:
    """Return whether the user's program has connected this process to a Ray that is not our private one."""
    if connected_to() is None:
        return False
    node = _ray_worker()._global_node
    return node is None or not Path(node.get_session_dir_path()).parent.name.startswith(TEMP_PREFIX)


async def leave() -> None:
    """Disconnect from the cluster; detached actors stay."""
    import ray

    await in_daemon_thread(ray.shutdown)


def _init(address: str, namespace: str, token_path: str | None, runtime_env: JsonObject | None) -> None:
    with _ray_environment(token_path):
        import ray

        _keep_from_starting()
        if connected_to() is not None:
            ray.shutdown()
        _quieten()
        try:
            if token_path is None:  # the supervisor made the token of the private Ray
                _knock(address)
            _reload_settings()
            ray.init(
                address=address,
                namespace=namespace,
                log_to_driver=False,
                configure_logging=False,
                runtime_env=runtime_env,
                job_config=_job_config(),
            )
        except (ray_errors().RayError, ConnectionError, RuntimeError, ValueError) as error:
            raise ExecutorError(_why_not_joined(address, error)) from error


def _keep_from_starting() -> None:
    """Keep a call that comes just after the connection has closed from starting a Ray of its own."""
    hook: Any = importlib.import_module("ray._private.auto_init_hook")
    hook.enable_auto_connect = False


def _job_config() -> Any:
    """Return a job whose workers keep their own module search path.

    Ray would put the driver's working directory and its script's first, where modules hide installed packages of
    the same name. What a function was pickled with says where its modules are.
    """
    job_config: Any = importlib.import_module("ray.job_config").JobConfig

    class JobConfig(job_config):
        @property
        def _py_driver_sys_path(self) -> list[str]:
            return []  # Ray extends this one

        @_py_driver_sys_path.setter
        def _py_driver_sys_path(self, paths: list[str]) -> None:
            pass

    return JobConfig()


@contextlib.contextmanager
def _ray_environment(token_path: str | None) -> Iterator[None]:
    """Give Ray its token in the environment while it reads it; child processes must not inherit it.

    Also keep Ray from ending this process when the cluster is gone: we wait for it, or end in order.
    """
    before = {name: os.environ.get(name) for name in (*_AUTH_VARIABLES, _PATIENCE_VARIABLE)}
    os.environ[_PATIENCE_VARIABLE] = _PATIENCE
    if token_path is not None:
        os.environ.pop("RAY_AUTH_TOKEN", None)
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=token_path)
    elif before["RAY_AUTH_MODE"] is None and _has_token():
        # Ray itself does so for "auto" only, so an explicit address would be refused.
        os.environ["RAY_AUTH_MODE"] = "token"
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _has_token() -> bool:
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or os.path.isfile(os.path.expanduser("~/.ray/auth_token"))


def _knock(address: str) -> None:
    """Raise `ConnectionError` if Ray cannot join there; with a wrong token, `ray.init` would try for 20 s.

    This asks in a child process, because Ray's C++ code prints to standard error.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", _KNOCK, address],
        env={**os.environ, _CONNECT_VARIABLE: _CONNECT_TIMEOUT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == _REFUSED:
        message, story = json.loads(done.stdout.splitlines()[-1])
        raise ConnectionError(message) from RuntimeError(story)


def _reload_settings() -> None:
    """Have Ray read the environment again, which it read at its import, or for an earlier cluster."""
    raylet: Any = importlib.import_module("ray._raylet")
    if not hasattr(raylet, "AuthenticationTokenLoader"):
        return  # this version of Ray reads its settings when it connects
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _ray_worker() -> Any:
    return importlib.import_module("ray._private.worker")


def _quieten() -> None:
    """Silence Ray, which prints about lost workers even without `log_to_driver`; we log them ourselves."""
    worker = _ray_worker()
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = _log_instead
    logging.getLogger("ray").setLevel(logging.CRITICAL)


def _log_instead(data: Mapping[str, object], *_rest: Any, **_options: Any) -> None:
    _log.debug("Ray: %s", data.get("lines"))


def _why_not_joined(address: str, error: BaseException) -> str:
    story = _story(error)
    if "uthenticat" in story or "InvalidAuthToken" in story:
        return (
            f"the Ray cluster at {address} refuses our token: "
            "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH to the file with the cluster's token"
        )
    if "ersion mismatch" in story:
        return f"the Ray cluster at {address} runs other versions: {str(error).strip()}"
    first_line = (str(error).strip().splitlines() or [repr(error)])[0]
    return f"cannot join the Ray cluster at {address}: {first_line}"


def _story(error: BaseException | None) -> str:
    parts = []
    while error is not None:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(parts)
