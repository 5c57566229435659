"""Holds a Ray cluster of several nodes on this machine, for tests: one JSON object per line, there and back.

    {"op": "add", "name": "b", "resources": {"CPU": 1}}   -> {"pid": ...}      of its raylet
    {"op": "kill", "name": "b"}                           -> {}                as if its power were cut
    {"op": "head", "resources": {"CPU": 1}}               -> {"address": ...}  the same address again
    {"op": "freeze", "frozen": true}                      -> {}                its control service does not answer
    {"op": "end"}                                         without a reply: all nodes end, and this process

The first node, "head", is there when the address is printed. A process of its own: the tests' process joins and
leaves the cluster like any manager, and its end is the cluster's.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

# A node is given up half a second after its raylet was heard last, instead of 15 s.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 250, "health_check_timeout_ms": 500}
QUICK |= {"health_check_failure_threshold": 2}
_VITAL = ("raylet", "gcs_server")
QUICK_RAY = runpy.run_path(str(Path(__file__).with_name("quick_ray.py")))


class Host:
    """The nodes by name."""

    def __init__(self, temp_dir: str) -> None:
        self._temp_dir = temp_dir
        self._nodes: dict[str, Any] = {}
        self._address = ""

    def head(self, resources: dict[str, float]) -> dict[str, Any]:
        """Start the head; again at the same address if it was started before."""
        port = int(self._address.rpartition(":")[2]) if self._address else 0
        node = self._start("head", resources, head=True, gcs_server_port=port, _system_config=QUICK)
        self._address = node.gcs_address
        return {"address": self._address}

    def add(self, name: str, resources: dict[str, float], environment: dict[str, str]) -> dict[str, Any]:
        """Start another node."""
        node = self._start(name, resources, head=False, gcs_address=self._address, env_vars=environment)
        return {"pid": _pid(node, "raylet")}

    def kill(self, name: str) -> dict[str, Any]:
        """End a node at once: its raylet (and, of the head, the control service) and all its workers."""
        node = self._nodes.pop(name)
        doomed = [process for kind in _VITAL for process in _processes(node, kind)]
        started = [
            pid for raylet in _processes(node, "raylet") for pid in QUICK_RAY["workers_of"](raylet.pid)
        ]
        doomed += [psutil.Process(pid) for pid in started if psutil.pid_exists(pid)]
        workers = [child for process in doomed for child in process.children(recursive=True)]
        for process in (*doomed, *workers):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        return {}

    def freeze(self, frozen: bool) -> dict[str, Any]:
        """Suspend the control service, or resume it."""
        for process in _processes(self._nodes["head"], "gcs_server"):
            process.suspend() if frozen else process.resume()
        return {}

    def end(self) -> None:
        """End all nodes."""
        for name in [name for name in self._nodes if name != "head"] + ["head"] * ("head" in self._nodes):
            self.kill(name)

    def _start(self, name: str, resources: dict[str, float], *, head: bool, **options: Any) -> Any:
        from ray._private.node import Node
        from ray._private.parameter import RayParams

        custom = {key: amount for key, amount in resources.items() if key not in ("CPU", "GPU")}
        params = RayParams(
            temp_dir=self._temp_dir,
            num_cpus=int(resources.get("CPU", 0)),
            num_gpus=int(resources.get("GPU", 0)),
            resources=custom,
            object_store_memory=80 * 2**20,
            min_worker_port=0,
            max_worker_port=0,
            include_dashboard=False,
            no_monitor=True,  # no test needs the autoscaler
            **({} if head else {"node_manager_port": 0, "dashboard_agent_listen_port": None}),
            **options,
        )
        params.include_log_monitor = False  # type: ignore[assignment]

        class QuietNode(Node):
            """A node without a dashboard: Ray starts its process even if it is not asked for."""

            def start_api_server(self, **_: Any) -> None:
                """Start nothing."""

        node = QuietNode(params, head=head, shutdown_at_exit=False, spawn_reaper=False)
        self._nodes[name] = node
        return node


def _processes(node: Any, kind: str) -> list[psutil.Process]:
    infos = node.all_processes.get(kind, [])
    return [psutil.Process(info.process.pid) for info in infos if info.process.poll() is None]


def _pid(node: Any, kind: str) -> int:
    return _processes(node, kind)[0].pid


def main(temp_dir: str, resources: str) -> None:
    """Serve until `end`, the end of the input, or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    QUICK_RAY["quicken"]()
    host = Host(temp_dir)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        print(json.dumps(host.head(json.loads(resources))), flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "end":
                break
            reply = getattr(host, request.pop("op"))(**request)
            print(json.dumps(reply), flush=True)
    finally:
        host.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
