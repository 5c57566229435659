"""`TuneServer` and `TuneClient`: a server of one experiment and its client, with Ray Tune's names.

Nothing is pickled in either direction: `config` and `result` are plain JSON.
"""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from ...protocol import JsonObject
from ...server import ServerProcess, ServerSettings, require_server
from ...store import absolute


class TuneServerError(Exception):
    """The server refused a request or cannot be reached; `status` is its HTTP status, None without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class TuneServer:
    """Serves one experiment on this machine from a child process, which ends with this one.

    `experiment` is an `Experiment`, or the folder of one. Raises `ServerError` when the port is taken,
    and `MissingExtraError` without the extra `ui`.
    """

    DEFAULT_PORT = 4321

    def __init__(self, experiment: Any, port: int | None = None, *, token: str | None = None) -> None:
        require_server(pages=False)
        folder = absolute(experiment.create() if hasattr(experiment, "create") else experiment)
        settings = ServerSettings(port=self.DEFAULT_PORT if port is None else port, token=token)
        self._process = ServerProcess(folder.parent, folder.name, settings, pages=False)
        self._process.start()
        try:
            self.url = self._process.url()
        except BaseException:
            self._process.stop()
            raise
        self.port = int(self.url.rpartition(":")[2])

    def __enter__(self) -> TuneServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """End the server, and wait until it is gone."""
        self._process.stop()


class TuneClient:
    """A client of a running server.

    All methods raise `TuneServerError` with the message of a refusal. `timeout` is in seconds.
    """

    def __init__(self, tune_address: str, port_forward: int, *, token: str | None = None) -> None:
        self._address = tune_address
        self._port = port_forward
        self._token = token

    @property
    def server_address(self) -> str:
        """The address of the server."""
        return self._address

    @property
    def server_port(self) -> int:
        """The port of the server."""
        return self._port

    def get_all_trials(self, timeout: float | None = None) -> JsonObject:
        """Return all trials: `{"trials": [...]}`."""
        return self._ask("GET", "/trials", timeout=timeout)

    def get_trial(self, trial_id: str, timeout: float | None = None) -> JsonObject:
        """Return one trial: `{"trial": {...}}`."""
        return self._ask("GET", f"/trials/{quote(trial_id, safe='')}", timeout=timeout)

    def add_trial(self, name: str, specification: JsonObject) -> JsonObject:
        """Add the trials of a specification, such as `{"config": {"lr": {"grid_search": [0.1, 0.2]}}}`."""
        return self._ask("POST", "/trials", {"name": name, "spec": specification})

    def stop_trial(self, trial_id: str) -> JsonObject:
        """Kill one trial."""
        return self._ask("PUT", f"/trials/{quote(trial_id, safe='')}")

    def stop_experiment(self) -> JsonObject:
        """Stop the experiment."""
        return self._ask("PUT", "/stop_experiment")

    def _ask(
        self, method: str, path: str, body: JsonObject | None = None, timeout: float | None = None
    ) -> JsonObject:
        host = f"[{self._address}]" if ":" in self._address else self._address
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        request = urllib.request.Request(f"http://{host}:{self._port}{path}", data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout or socket.getdefaulttimeout()) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise TuneServerError(_message(error), error.code) from error
        except (OSError, ValueError) as error:
            raise TuneServerError(f"{self._address}:{self._port} cannot be reached: {error}") from error


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return json.load(error)["error"]
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
