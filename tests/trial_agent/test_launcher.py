"""Trials of several processes on one node: what each is told, who reports, and how all of them end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.trial_agent import launcher
from pitchpipe.trial_agent.launcher import StartError, arguments_of

from .client import LocalAgent, is_gone, start, wait_until

# The processes meet as those of torch do: rank 0 listens at MASTER_ADDR:MASTER_PORT, and the others send their rank.
MEETING = """
import json, os, socket
import pitchpipe
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
scale = pitchpipe.get_next_parameter()["scale"]
pitchpipe.report_intermediate_result(rank)
if rank == 0:
    with socket.create_server(place) as server:
        met = sum(json.loads(server.accept()[0].makefile().readline()) for _ in range(size - 1))
    pitchpipe.report_final_result(met * scale)
else:
    while True:
        try:
            with socket.create_connection(place) as there:
                there.sendall(json.dumps(rank).encode() + b"\\n")
            break
        except ConnectionRefusedError:
            pass
print(*(os.environ[name] for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")))
"""


def run(agent: LocalAgent, text: str, processes: int = 3, **more: Any) -> list[dict[str, Any]]:
    client = told(agent, text, processes, **more)
    return client.until_ended()


def told(agent: LocalAgent, text: str, processes: int = 3, **more: Any) -> Any:
    (agent.folder / "trial.py").write_text(text)
    client = agent.command(f"{shlex.quote(sys.executable)} trial.py", processes=processes)
    client.tell(start(**more))
    return client


def test_processes_meet_and_rank_0_alone_reports(agent: LocalAgent) -> None:
    events = run(agent, MEETING, parameters={"scale": 10})
    reports = [(event["kind"], json.loads(event["value"])) for event in events if event["e"] == "report"]
    assert reports == [("intermediate", 0), ("final", (1 + 2) * 10)]
    assert (events[-1]["exit_code"], events[-1]["error"]) == (0, None)
    assert agent.trial_file("stdout").read_text() == "0 0 3 0\n"
    assert agent.trial_file("stdout-rank2").read_text() == "2 2 3 0\n"
    said = "pitchpipe: results and checkpoints of rank 1 are ignored: rank 0 reports for the trial\n"
    assert agent.trial_file("stderr-rank1").read_text() == said


def test_failure_of_one_ends_all_and_is_the_error(agent: LocalAgent) -> None:
    text = "import os, time\n"
    text += "if os.environ['RANK'] == '2': raise ValueError('no luck')\n"
    text += "time.sleep(600)\n"
    (*_, ended) = run(agent, text)
    assert (ended["exit_code"], ended["killed"]) == (1, False)
    assert ended["error"].splitlines()[0] == "Traceback (most recent call last):"
    assert ended["error"].splitlines()[-3:] == [
        "ValueError: no luck",
        "",
        "rank 2 of 3 failed with exit code 1",
    ]


def test_processes_that_refuse_to_end_are_killed_after_the_grace(agent: LocalAgent) -> None:
    text = "import os, signal, time\nfrom pathlib import Path\n"
    text += "if os.environ['RANK'] == '1':\n"
    text += "    while not Path('ready').exists(): time.sleep(0.01)\n"
    text += "    os.kill(os.getpid(), signal.SIGSEGV)\n"
    text += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    text += "Path('ready').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    (*_, ended) = run(agent, text, 2)
    assert ended["exit_code"] == 128 + signal.SIGSEGV
    assert ended["error"].endswith("rank 1 of 2 failed with signal SIGSEGV")
    assert is_gone(int((agent.folder / "ready").read_text()))


def test_stopped_trial_leaves_no_process(agent: LocalAgent) -> None:
    text = "import os, time\nfrom pathlib import Path\n"
    text += "Path('pid' + os.environ['RANK']).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    client = told(agent, text)
    files = [agent.folder / f"pid{rank}" for rank in range(3)]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files), "three processes")
    (*_, ended) = client.kill()
    assert (ended["killed"], ended["error"]) == (True, None)
    assert all(is_gone(int(file.read_text())) for file in files)


def test_script_without_an_interpreter_runs_in_a_shell(agent: LocalAgent) -> None:
    script = agent.folder / "trial.sh"
    script.write_text("echo $RANK of $WORLD_SIZE\n")
    script.chmod(0o755)
    assert agent.command("./trial.sh", processes=2).run()[-1]["exit_code"] == 0
    assert agent.trial_file("stdout-rank1").read_text() == "1 of 2\n"


def test_port_that_is_in_use_is_named(agent: LocalAgent) -> None:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        (*_, ended) = run(agent, "", 2, master=f"127.0.0.1:{port}")
    assert ended["exit_code"] == 1
    assert f"port {port} is in use" in ended["error"]


def test_port_is_tried_without_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank of another node that connects meanwhile must be refused, and not reset: it tries again."""
    monkeypatch.setattr(socket.socket, "listen", lambda *_: pytest.fail("somebody could connect"))
    with socket.socket() as other:
        other.bind(("", launcher._free_port(0)))


def test_ranks_of_an_outer_launcher_are_not_those_of_a_trial(tmp_path: Path, socket_folder: str) -> None:
    agent = LocalAgent(tmp_path, socket_folder, RANK="3", WORLD_SIZE="4")
    try:
        agent.command("echo ${RANK-none} ${WORLD_SIZE-none}").run()
    finally:
        agent.stop()
    assert agent.trial_file("stdout").read_text() == "none none\n"


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_program_with_a_slash_is_relative_to_the_code_directory(tmp_path: Path) -> None:
    train = program(tmp_path / "train.sh")
    assert arguments_of("./train.sh", str(tmp_path), {}) == [os.path.join(tmp_path, "./train.sh")]
    assert train.exists()


def test_first_executable_file_on_the_path_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "one" / "train", 0o644)
    (tmp_path / "two" / "train").mkdir(parents=True)
    third = program(tmp_path / "three" / "train")
    path = os.pathsep.join(str(tmp_path / name) for name in ("one", "two", "three"))
    assert arguments_of("train", str(tmp_path), {"PATH": path}) == [str(third)]


def test_without_a_shell_its_characters_are_arguments(tmp_path: Path) -> None:
    train = program(tmp_path / "train")
    assert arguments_of("./train $HOME", str(tmp_path), {}, shell=False)[1:] == ["$HOME"]
    assert train.exists()


def test_empty_command_cannot_start() -> None:
    with pytest.raises(StartError, match="the command is empty"):
        arguments_of("", "/", {"PATH": "/bin"})


def test_missing_code_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"code directory does not exist: .*gone"):
        arguments_of("ls", str(tmp_path / "gone"), {"PATH": "/bin"})
