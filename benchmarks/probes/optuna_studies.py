"""What the probes of Optuna share."""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
from pathlib import Path

import optuna

__all__ = ["study_in", "suggest"]

_SERVER = """
import sys
from optuna.storages import get_storage, run_grpc_proxy_server
run_grpc_proxy_server(get_storage(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]))
"""
optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_in(storage: str, **options: object) -> optuna.Study:
    """Create a study that stores its trials in SQLite (at once or through gRPC) or in a journal, in this folder."""
    place: object = f"sqlite:///{Path.cwd()}/study.db"
    if storage == "grpc":
        place = _served(place)
    elif storage == "journal":
        from optuna.storages.journal import JournalFileBackend

        place = optuna.storages.JournalStorage(JournalFileBackend(str(Path.cwd() / "journal.log")))
    return optuna.create_study(storage=place, sampler=optuna.samplers.RandomSampler(seed=1), **options)


def _served(url: str) -> optuna.storages.GrpcStorageProxy:
    """Serve a database by a process of its own, which ends with the probe."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", _SERVER, url, str(port)])
    atexit.register(server.kill)
    proxy = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
    proxy.wait_server_ready(timeout=60)
    return proxy


def suggest(trial: optuna.Trial) -> dict[str, float]:
    """Draw a point of the search space of the other probes."""
    return {
        "x": trial.suggest_float("x", 0, 1),
        "lr": trial.suggest_float("lr", 1e-5, 1, log=True),
        "layers": trial.suggest_int("layers", 1, 8),
    }
