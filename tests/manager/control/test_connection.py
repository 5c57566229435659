"""The control socket: requests of verbs, and the replies of the manager's process."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.control.connection import ControlError, ControlServer, ask_manager, control_socket


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an experiment's folder with a path that is too long for a socket."""
    path = tmp_path / ("x" * 100) / "experiment"
    path.mkdir(parents=True)
    return path


def refuse(request: dict[str, Any]) -> dict[str, Any]:
    raise ControlError(f"there is no trial {request['trial']}")


def served(folder: Path, ask: Callable[[], Any], **more: Callable[[dict[str, Any]], Any]) -> Any:
    """Return what `ask` returns, called on a thread while a server runs."""

    async def serve() -> Any:
        operations = {"status": lambda request: {"pid": 1, **request}, "kill": refuse, **more}
        async with ControlServer(folder, operations):
            return await asyncio.to_thread(ask)

    return asyncio.run(serve())


def test_answer_of_an_operation_comes_back(folder: Path) -> None:
    answer = served(folder, lambda: ask_manager(folder, {"op": "status", "more": [1]}))
    assert answer == {"ok": True, "pid": 1, "op": "status", "more": [1]}


def test_refusal_comes_back_as_its_sentence(folder: Path) -> None:
    with pytest.raises(ControlError, match=r"^there is no trial Xy3fA$"):
        served(folder, lambda: ask_manager(folder, {"op": "kill", "trial": "Xy3fA"}))


@pytest.mark.parametrize("request_", [{"op": "nonsense"}, {}, [1], "stop"])
def test_unknown_request_is_refused(folder: Path, request_: Any) -> None:
    with pytest.raises(ControlError, match="one of kill, status"):
        served(folder, lambda: ask_manager(folder, request_))


def test_operation_that_fails_is_answered_and_logged_and_the_next_is_served(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("7 is no step")

    def ask() -> Any:
        with pytest.raises(ControlError, match=r"failed at this \(ValueError: 7 is no step\)") as refused:
            ask_manager(folder, {"op": "step"})
        with pytest.raises(ControlError, match="JSON serializable"):
            ask_manager(folder, {"op": "object"})
        return refused.value.kind, ask_manager(folder, {"op": "status"})["ok"]

    assert served(folder, ask, step=fail, object=lambda request: {"it": object()}) == ("failed", True)
    assert "Traceback" in caplog.text


def test_request_of_the_size_that_the_api_takes_is_answered(folder: Path) -> None:
    parameters = {"words": "\N{LATIN SMALL LETTER E WITH ACUTE}" * (2 * 1024 * 1024)}  # 4 MiB in UTF-8
    asked: list[Any] = []

    def add(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["parameters"])
        return {}

    served(folder, lambda: ask_manager(folder, {"op": "add", "parameters": parameters}), add=add)
    assert asked == [parameters]


def test_request_that_is_too_long_is_refused_with_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_directly() -> bytes:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(control_socket(folder)))
            line.sendall(b"x" * 2000)
            return line.makefile("rb").readline()

    monkeypatch.setattr("pitchpipe.manager.control.connection._MAX_LINE", 1000)
    with pytest.raises(ControlError, match=r"at most .* bytes, this one 2,0") as refused:
        ask_manager(folder, {"op": "status", "more": "x" * 2000})
    assert refused.value.kind == "invalid"
    assert b"a request has at most" in served(folder, ask_directly)


def test_another_user_is_not_answered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    def add(request: dict[str, Any]) -> dict[str, Any]:
        done.append(request)
        return {}

    uid = os.geteuid() + 1
    monkeypatch.setattr("pitchpipe.trial_agent.unix_server.peer_uid", lambda peer: uid)
    with pytest.raises(ControlError, match=r"went away|cannot be reached"):
        served(folder, lambda: ask_manager(folder, {"op": "add"}), add=add)
    assert done == []


def test_rubbish_does_not_end_the_server(folder: Path) -> None:
    def ask() -> Any:
        for rubbish in (b"\xff\n", b"x" * 200_000, b"", b"{"):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(control_socket(folder)))
                try:
                    line.sendall(rubbish)
                except BrokenPipeError:
                    pass  # it had read enough
        return ask_manager(folder, {"op": "status"})

    assert served(folder, ask)["pid"] == 1


def test_socket_is_found_from_another_runtime_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve() -> Any:
        async with ControlServer(folder, {"status": lambda request: {}}):
            monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / "other"))
            return await asyncio.to_thread(ask_manager, folder, {"op": "status"})

    assert asyncio.run(serve()) == {"ok": True}


def test_socket_is_private_and_goes_with_the_server(folder: Path) -> None:
    mode = served(folder, lambda: control_socket(folder).stat().st_mode)
    assert mode & 0o077 == 0
    assert not control_socket(folder).exists()
    assert list(folder.iterdir()) == []


def test_socket_of_a_killed_manager_is_taken_over(folder: Path) -> None:
    with pytest.raises(ControlError, match="the manager of experiment cannot be reached"):
        ask_manager(folder, {"op": "status"})  # there was none yet
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(control_socket(folder)))
    (folder / "control.sock").symlink_to(control_socket(folder))
    with pytest.raises(ControlError, match="cannot be reached"):
        ask_manager(folder, {"op": "status"})
    assert served(folder, lambda: ask_manager(folder, {"op": "status"}))["ok"] is True


def test_a_manager_that_hangs_is_not_waited_for(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(control_socket(folder)))
        listener.listen()
        with pytest.raises(ControlError, match="does not answer"):
            ask_manager(folder, {"op": "status"}, timeout=0.05)


def test_a_manager_that_goes_away_before_it_replies_is_reported(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(control_socket(folder)))
        listener.listen()
        hanging_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging_up.start()
        with pytest.raises(ControlError, match=r"went away|cannot be reached"):
            ask_manager(folder, {"op": "stop"})
        hanging_up.join()


def test_socket_that_cannot_be_removed_is_only_logged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(5, "Input/output error", str(path))

    def ask() -> Any:
        monkeypatch.setattr(Path, "unlink", refused)
        return ask_manager(folder, {"op": "status"})["ok"]

    try:
        assert served(folder, ask)
    finally:
        monkeypatch.setattr(Path, "unlink", unlink)
    removed = [record.getMessage() for record in caplog.records if "cannot be removed" in record.getMessage()]
    assert removed == [
        f"{path} cannot be removed: Input/output error"
        for path in (control_socket(folder), folder / "control.sock")
    ]
