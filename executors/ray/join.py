"""Joining a Ray cluster: at an explicit address, with its token, and with errors in plain sentences."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base import ExecutorError
from ..daemon_thread import in_daemon_thread
from ..private_ray import TEMP_PREFIX, take_back_signals
from .address import find_cluster

__all__ = [
    "connected_to",
    "import_ray",
    "is_connected_elsewhere",
    "join",
    "leave",
]

_log = logging.getLogger(__name__)

_JOIN_TIMEOUT = 60.0
# So long Ray tries to reach a cluster that does not answer as one (s), while we ask whether it takes our token.
_CONNECT_TIMEOUT = "5"
_AUTH_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN")
# Ray ends a process that has not reached its cluster for so long (s).
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
    address: str, namespace: str, *, token_path: str | None = None, runtime_env: dict[str, Any] | None = None
) -> None:
    """Connect this process to the cluster at `address` ("host:port" or "auto").

    A connection of this process to another one is ended. The token is `token_path`'s, else what Ray finds by
    its own rules. Raises `ExecutorError` when nothing answers there, the token is refused, or Ray cannot
    start a driver.
    """
    address = await find_cluster(address)
    try:
        await asyncio.wait_for(
            in_daemon_thread(lambda: _init(address, namespace, token_path, runtime_env)), _JOIN_TIMEOUT
        )
    except TimeoutError:
        raise ExecutorError(
            f"the Ray cluster at {address} did not answer within {_JOIN_TIMEOUT:.0f} s"
        ) from None
    take_back_signals()


def connected_to() -> str | None:
    """The address of the Ray that this process is connected to; None if there is none."""
    ray = sys.modules.get("ray")
    return ray.get_runtime_context().gcs_address if ray is not None and ray.is_initialized() else None


def is_connected_elsewhere() -> bool:
    """Whether the user's program has connected this process to a Ray, other than by us to a private one."""
    if connected_to() is None:
        return False
    node = _ray_worker()._global_node
    return node is None or not Path(node.get_session_dir_path()).parent.name.startswith(TEMP_PREFIX)


def import_ray() -> None:
    """Import Ray (0.3 s) where it does not disturb."""
    importlib.import_module("ray")


async def leave() -> None:
    """Disconnect from the cluster; detached actors stay."""
    import ray

    await in_daemon_thread(ray.shutdown)


def _init(address: str, namespace: str, token_path: str | None, runtime_env: dict[str, Any] | None) -> None:
    with _ray_environment(token_path):
        import ray

        if connected_to() is not None:
            ray.shutdown()
        _quieten()
        try:
            if token_path is None:  # the keeper has joined the private Ray with this token itself
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
        except _ray_errors() as error:
            raise ExecutorError(_why_not_joined(address, error)) from error


def _job_config() -> Any:
    """Return a job whose workers keep their own module search path.

    Ray puts the driver's working directory and that of its script first in it, and whatever lies there would
    hide installed packages of the same name, ours too. The agents append these folders at the end.
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
    """Tell Ray its token by the environment, only while it looks: our children must not inherit it.

    And that it shall not end this process when the cluster is gone: we wait for it, or end in order.
    """
    before = {name: os.environ.get(name) for name in (*_AUTH_VARIABLES, _PATIENCE_VARIABLE)}
    os.environ[_PATIENCE_VARIABLE] = _PATIENCE
    if token_path is not None:
        os.environ.pop("RAY_AUTH_TOKEN", None)
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=token_path)
    elif before["RAY_AUTH_MODE"] is None and _has_token():
        # What Ray itself does for "auto" only: with an explicit address it would be refused.
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
    return named or (Path.home() / ".ray" / "auth_token").is_file()


def _knock(address: str) -> None:
    """Raise ConnectionError if Ray cannot join there: with a wrong token, `ray.init` itself tries for 20 s.

    A process of its own asks, because Ray's C++ code prints to standard error, which others of this process use.
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
    """Let Ray forget what it read of the environment when it was imported, or for an earlier cluster."""
    raylet: Any = importlib.import_module("ray._raylet")
    if not hasattr(raylet, "AuthenticationTokenLoader"):
        return  # another version of Ray, which reads its settings when it connects
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _ray_errors() -> tuple[type[BaseException], ...]:
    from ray.exceptions import RayError

    return RayError, ConnectionError, RuntimeError, ValueError


def _ray_worker() -> Any:
    return importlib.import_module("ray._private.worker")


def _quieten() -> None:
    """Ray prints about lost workers, even without `log_to_driver`; we say it ourselves."""
    worker = _ray_worker()
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = _log_instead
    logging.getLogger("ray").setLevel(logging.CRITICAL)


def _log_instead(data: dict[str, Any], *_rest: Any, **_options: Any) -> None:
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
