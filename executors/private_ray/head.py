"""The Ray that a supervisor holds: what it can have, how it starts, which agents it runs, how it ends."""

from __future__ import annotations

import importlib
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil

from ...trial_agent import available_bytes, usable_bytes, usable_cpus
from .supervisor_files import SupervisorFiles, remove_session, session_processes

if TYPE_CHECKING:
    from ...runner import Request, Totals

# Ray has an argument for each of these amounts; all others are custom resources.
_INIT_ARGUMENTS = {
    "CPU": "num_cpus",
    "GPU": "num_gpus",
    "memory": "_memory",
    "object_store_memory": "object_store_memory",
}
# Ray is dead without these two processes.
_VITAL = ("gcs_server", "raylet")
# What else Ray's node would start: for a dashboard, for autoscaling, for drivers that print the output of workers. The
# private Ray has none of these. Each is half a second of CPU and 50 MB, and Ray waits for the first one to reply.
_UNUSED = ("start_api_server", "start_monitor", "start_log_monitor")
# How long (s) the node may take to start, and between two looks.
_NODE_TIMEOUT = 30.0
_LOOK_EVERY = 0.01


class RayHead:
    """A private Ray in `temp_dir`, with these `resources` (amounts by Ray's names)."""

    def __init__(self, temp_dir: Path, resources: dict[str, float]) -> None:
        self._temp_dir = temp_dir
        self._resources = resources

    @property
    def token_path(self) -> Path:
        """The file with the token that protects this Ray."""
        return self._temp_dir / "token"

    def start(self) -> str:
        """Start Ray and return its address; it ends with this process. Takes seconds."""
        self.token_path.touch(mode=0o600)
        self.token_path.write_text(secrets.token_hex(32), encoding="ascii")
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(self.token_path))
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.pop("RAY_ADDRESS", None)
        os.environ.pop("RAY_AUTH_TOKEN", None)
        import ray

        _start_quickly()
        context: Any = ray.init(
            address="local",
            include_dashboard=False,
            log_to_driver=False,
            namespace="pitchpipe-supervisor",
            _temp_dir=str(self._temp_dir),
            **_init_arguments(self._resources),
        )
        return context.address_info["gcs_address"]

    def agents(self) -> list[str]:
        """Return the live named actors of this Ray, all of them agents of experiments."""
        return [f"{each['namespace']}/{each['name']}" for each in named_actors()]

    def vital(self) -> list[psutil.Process]:
        """Return the processes without which this Ray is dead."""
        return [each for each in session_processes(str(self._temp_dir)) if each.name() in _VITAL]

    def end(self) -> None:
        """Shut Ray down, kill what does not end, and remove its folder."""
        processes = session_processes(str(self._temp_dir))
        if (ray := sys.modules.get("ray")) is not None:
            ray.shutdown()
        psutil.wait_procs(processes, timeout=5.0)
        remove_session(str(self._temp_dir))


def _start_quickly() -> None:
    """Have `ray.init` in this process start only what trials need, and wait no longer than necessary."""
    node: Any = importlib.import_module("ray._private.node").Node
    for name in _UNUSED:
        setattr(node, name, lambda *_arguments, **_options: None)
    services: Any = importlib.import_module("ray._private.services")
    services.get_node = _when_registered(services.get_node)


def _when_registered(get_node: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    """Return Ray's `get_node` with a wait before it: Ray itself looks for its node once a second."""

    def get(address: str, node_id: str) -> Any:
        raylet: Any = importlib.import_module("ray._raylet")
        client, deadline = raylet.GcsClient(address=address), time.monotonic() + _NODE_TIMEOUT
        while time.monotonic() < deadline:
            if node_id in [known.hex() for known in client.get_all_node_info(timeout=_NODE_TIMEOUT)]:
                break
            time.sleep(_LOOK_EVERY)  # Ray has no event for this
        return get_node(address, node_id)

    return get


def _init_arguments(resources: dict[str, float]) -> dict[str, Any]:
    """Return the arguments of `ray.init` for amounts by name.

    >>> _init_arguments({"CPU": 2, "GPU": 1, "widget": 3})
    {'num_cpus': 2, 'num_gpus': 1, 'resources': {'widget': 3}}
    """
    named = {_INIT_ARGUMENTS[name]: amount for name, amount in resources.items() if name in _INIT_ARGUMENTS}
    custom = {name: amount for name, amount in resources.items() if name not in _INIT_ARGUMENTS}
    return {**named, **({"resources": custom} if custom else {})}


def limits_of_this_machine() -> dict[str, float]:
    """Return the amounts that Ray would overestimate: it ignores the affinity and nested control groups.

    Without a limit, Ray is right about the memory: it keeps some for objects.
    """
    is_limited = usable_bytes() < psutil.virtual_memory().total
    return {"CPU": usable_cpus(), **({"memory": available_bytes()} if is_limited else {})}


def most_of_this_machine(request: Request) -> Totals:
    """Return what Ray can find on this machine; look for GPUs only if trials request them (half a second).

    Ray may offer less memory. One that runs already has what it was started with.
    """
    from ...runner import Totals  # the supervisor, which starts with Ray, needs the limits only

    state = SupervisorFiles.current().read_state()
    declared = {} if state is None else state.resources
    amounts = {"memory": float(usable_bytes()), **limits_of_this_machine(), **declared}
    gpus = amounts.pop("GPU", None)
    if not request.gpus:
        return Totals(amounts=amounts)
    return Totals(amounts=amounts, anonymous_gpus=_gpus() if gpus is None else gpus)


def _gpus() -> float:
    """Return how many GPUs of any vendor Ray itself would find."""
    accelerators: Any = importlib.import_module("ray._private.accelerators")
    vendor = accelerators.get_accelerator_manager_for_resource("GPU")
    count = vendor.get_current_node_num_accelerators()
    visible = vendor.get_current_process_visible_accelerator_ids()
    return float(count if visible is None else min(count, len(visible)))


def named_actors() -> list[dict[str, str]]:
    """Return the live named actors of the whole cluster: `{"namespace", "name"}`."""
    from ray.util import list_named_actors

    return cast(Any, list_named_actors(all_namespaces=True))


def take_back_signals() -> None:
    """Install Python's handler of SIGTERM again: Ray's C++ code, which replaced it, prints a page first."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
