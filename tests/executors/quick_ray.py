"""A Ray whose processes start quickly: workers are forked from a loaded process, agents of nodes only wait.

    python quick_ray.py supervisor ...     the supervisor of a private Ray, with these words
    python quick_ray.py nursery FD         the process from which workers are forked, until its input ends
    python quick_ray.py stand-in COMMAND   what a raylet starts in place of a worker or an agent

A worker has the arguments, environment, working directory and output that it would have with an interpreter of its
own; only its parent is the nursery. That has loaded most of what Ray imports, but not Ray itself, which reads its
settings in the environment while it is loaded. Workers with a runtime environment start as usual. No test needs the
agent of the dashboard; that of runtime environments starts with its first request.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import sys
from importlib import import_module
from subprocess import list2cmdline
from typing import Any

NURSERY_VARIABLE = "PPTEST_RAY_NURSERY"
_LIMIT = 1 << 18  # bytes of a request
_PRELOADED = (
    "asyncio",
    "cloudpickle",
    "concurrent.futures.process",
    "filelock",
    "google.protobuf.internal.builder",
    "google.protobuf.json_format",
    "http.client",
    "jsonschema",
    "logging.handlers",
    "msgpack",
    "multiprocessing.pool",
    "pdb",
    "requests",
    "tqdm.auto",
    "uvloop",
    "yaml",
    "pitchpipe.executors.ray.ray_agent",
)
_REPLACED = "_private/workers/setup_worker.py", "dashboard/agent.py", "_private/runtime_env/agent/main.py"


def quicken() -> None:
    """Let the nodes that Ray starts in this process start their own processes quickly."""
    services: Any = import_module("ray._private.services")
    start, folder = services.start_ray_process, os.path.dirname(os.path.dirname(services.__file__))
    stand_in = list2cmdline(["-I", "-S", os.path.abspath(__file__), "stand-in"])

    def start_quickly(command: list[str], *arguments: Any, **options: Any) -> Any:
        for name in _REPLACED:
            path = list2cmdline([os.path.join(folder, name)])
            command = [word.replace(path, f"{stand_in} {path}") for word in command]
        return start(command, *arguments, **options)

    services.start_ray_process = start_quickly


def supervise(words: list[str]) -> int:
    head: Any = import_module("pitchpipe.executors.private_ray.head")
    start_only_what_trials_need = head._start_quickly

    def start_quickly() -> None:
        start_only_what_trials_need()
        quicken()

    head._start_quickly = start_quickly
    return import_module("pitchpipe.executors.private_ray.supervisor").main(words)


# --------------------------------------------------------------------------- what a raylet starts


def stand_in(program: str, words: list[str]) -> None:
    if program.endswith("dashboard/agent.py"):
        for port in ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port"):
            write_port(words, port, -1)  # as Ray says that there is none
        wait_for_client_or_orphanhood()
    elif program.endswith("agent/main.py"):
        with socket.create_server(("", 0)) as server:
            port = server.getsockname()[1]
            write_port(words, "runtime_env_agent_port", port)
            wait_for_client_or_orphanhood(server)
        words = [word for word in words if not word.startswith("--runtime-env-agent-port=")]
        os.execv(sys.executable, [sys.executable, program, *words, f"--runtime-env-agent-port={port}"])
    elif any(word.startswith("--serialized-runtime-env-context") for word in words):
        os.execv(sys.executable, [sys.executable, program, *words])
    else:
        # The program that this one replaces takes it.
        words = [word for word in words if word != "--language=PYTHON"]
        blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
        request = {"words": words, "cwd": os.getcwd(), "environment": dict(os.environ), "blocked": blocked}
        with nursery() as line:
            socket.send_fds(line, [json.dumps({"raylet": os.getppid(), **request}).encode()], [0, 1, 2])
            line.recv(1)


def write_port(words: list[str], name: str, port: int) -> None:
    options = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    path = os.path.join(options["session-dir"], f"{name}_{options['node-id']}")
    with open(f"{path}.new", "w") as file:
        file.write(str(port))
    os.rename(f"{path}.new", path)


def wait_for_client_or_orphanhood(*servers: socket.socket) -> None:
    raylet = os.getppid()
    while not select.select(servers, [], [], 0.5)[0]:
        if os.getppid() != raylet:
            sys.exit()


# --------------------------------------------------------------------------- where workers come from


def nursery() -> socket.socket:
    """Return a connection to the nursery."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(os.environ[NURSERY_VARIABLE])
    return line


def workers_of(raylet: int) -> list[int]:
    """Return the process ids of the workers that a raylet has started."""
    with nursery() as line:
        line.send(json.dumps({"workers_of": raylet}).encode())
        return json.loads(line.recv(_LIMIT))


def serve(server: socket.socket) -> None:
    """Fork workers until the input of this process ends."""
    psutil: Any = import_module("psutil")
    for name in _PRELOADED:
        import_module(name)
    raylets: dict[int, int] = {}  # by the process ids of their workers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while 0 not in select.select([0, server], [], [])[0]:
        line, _ = server.accept()
        data, descriptors, *_ = socket.recv_fds(line, _LIMIT, 3)
        request = json.loads(data)
        if raylet := request.get("workers_of"):
            children = [child.pid for child in psutil.Process().children()]
            line.send(json.dumps([pid for pid in children if raylets.get(pid) == raylet]).encode())
        elif pid := os.fork():
            raylets[pid] = request["raylet"]
        else:
            server.close()
            line.close()
            be_worker(request, descriptors)
            break
        for one in (*descriptors, line.detach()):
            os.close(one)


def be_worker(request: dict[str, Any], descriptors: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])
    for number, one in enumerate(descriptors):
        os.dup2(one, number)
        os.close(one)
    os.setpgid(0, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "supervisor":
        sys.exit(supervise(sys.argv[2:]))
    elif sys.argv[1] == "nursery":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        stand_in(sys.argv[2], sys.argv[3:])
