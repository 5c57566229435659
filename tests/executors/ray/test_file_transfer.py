"""Nodes that do not see the experiment's folder: their agents work elsewhere, and what trials leave is fetched."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import tarfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.ray.file_transfer import (
    NODE_FOLDER,
    SharedMark,
    forget_checkpoints,
    make_working_folder,
    pack,
    unpack,
    working_folder,
)
from pitchpipe.executors.ray.ray_executor import RayTrialExecutor
from pitchpipe.runner.events import AttemptEnded, CheckpointSaved, Reported
from pitchpipe.runner.ledger import Request
from pitchpipe.sdk import remove

from ..bench import Bench, Session
from ..cluster_support import Cluster
from ..ray_support import REPORT, RUN, eventually, started, write_config


def test_folder_is_shared_where_the_managers_mark_is_found(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    mark = SharedMark(tmp_path)
    assert working_folder(str(tmp_path), mark.name, "0-0", {}) == str(tmp_path)
    mark.remove()
    own = working_folder(str(tmp_path), mark.name, "0-0", {})
    assert own != str(tmp_path)
    assert own != working_folder(str(tmp_path), mark.name, "1-0", {})


def test_folder_of_an_agents_own_that_others_could_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = working_folder("/no/such/folder", "agents/.seen", "0-0", {})
    make_working_folder(own, {})
    assert Path(own).is_dir()
    Path(own).parent.parent.chmod(0o777)
    with pytest.raises(OSError, match=r"folder for trials .* is open to others .*PITCHPIPE_NODE_FOLDER"):
        make_working_folder(own, {})


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return the folder of a trial, below the folder there; that of the experiment is here."""
    (tmp_path / "here").mkdir()
    folder = tmp_path / "there" / "trials" / "3"
    folder.mkdir(parents=True)
    return folder


def brought(trial: Path, *names: str) -> Path:
    """Bring files from there; return the folder of the trial here."""
    there, here = (trial.parents[2] / name for name in ("there", "here"))
    unpack(pack(str(there), names or ["trials/3"]), here)
    return here / "trials" / "3"


def test_what_is_packed_arrives_without_checkpoints_that_are_being_made(trial: Path, tmp_path: Path) -> None:
    for name in ("1-1", ".1-abc"):
        (trial / "checkpoints" / name).mkdir(parents=True)
        (trial / "checkpoints" / name / ".hidden").write_text(name)
    (trial / "stdout").write_text("new")
    (tmp_path / "here" / "trials" / "3").mkdir(parents=True)
    (tmp_path / "here" / "trials" / "3" / "stdout").write_text("old, and longer")
    here = brought(trial, "trials/3", "trials/4")
    assert files(here) == {"stdout", "checkpoints/1-1/.hidden"}
    assert (here / "stdout").read_text() == "new"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python unpacks links as they are")
def test_link_that_leads_elsewhere_and_pipe_are_left_out_and_the_rest_arrives(
    trial: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (trial / "stdout").write_text("12 steps")
    for name, target in (("latest", "stdout"), ("data", "/data/set"), ("up", "../../../../up")):
        (trial / name).symlink_to(target)
    os.mkfifo(trial / "pipe")
    found = {path.name: path.read_text() for path in brought(trial).iterdir()}
    assert found == {"latest": "12 steps", "stdout": "12 steps"}
    assert sorted(message.split()[0] for message in caplog.messages) == [
        f"trials/3/{name}" for name in ("data", "pipe", "up")
    ]


def checkpoint(trial: Path, name: str) -> Path:
    """Make a checkpoint with three files."""
    path = trial / "checkpoints" / name
    path.mkdir(parents=True)
    for file in ("a", "b", "c"):
        (path / file).write_text(file)
    return path


@pytest.mark.parametrize("after", range(5))
def test_checkpoint_that_is_removed_while_it_is_packed_is_not_packed_in_part(
    after: int, trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove it before, between and after its files are looked at."""
    pruned, kept = (checkpoint(trial, name) for name in ("1-1", "1-2"))
    looks = [lambda: None] * after + [lambda: remove(str(pruned))]
    look = tarfile.TarFile.gettarinfo

    def look_while_it_goes(archive: tarfile.TarFile, path: str, *names: Any) -> Any:
        found = look(archive, path, *names)
        if path.startswith(str(pruned)) and looks:
            looks.pop(0)()
        return found

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_while_it_goes)
    here = brought(trial, "trials/3/checkpoints/1-1", "trials/3")
    assert files(here / "checkpoints/1-1") in (set(), {"a", "b", "c"})
    assert files(here / "checkpoints/1-2") == {"a", "b", "c"}
    assert kept.is_dir()


def test_what_cannot_be_read_is_left_out_of_the_files_that_are_packed(
    trial: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad", "good"):
        (trial / name).write_text(name)
    look = tarfile.TarFile.gettarinfo

    def look_or_fail(archive: tarfile.TarFile, path: str, *names: Any) -> Any:
        if path.endswith("bad"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return look(archive, path, *names)

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_or_fail)
    assert files(brought(trial)) == {"good"}
    assert "trials/3/bad cannot be read" in caplog.text


def test_hard_link_arrives_as_a_file_of_its_own(trial: Path) -> None:
    original = checkpoint(trial, "1-1")
    os.link(original / "a", original / "link")
    assert (brought(trial) / "checkpoints/1-1/link").read_text() == "a"


def test_only_checkpoints_of_the_attempt_are_forgotten(tmp_path: Path) -> None:
    for name in ("1-1", "2-1", "2-2"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    forget_checkpoints(tmp_path, 2, ["2-2"])
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["1-1", "2-2"]


# --------------------------------------------------------------------------- with a real node


@pytest.fixture(scope="module")
def node(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a node that does not see the experiments' folders; yield its own."""
    folder = tmp_path_factory.mktemp("far")
    real_cluster.add("far", environment={NODE_FOLDER: str(folder)})
    yield folder
    real_cluster.clear()


@pytest.fixture
def far(cluster: Cluster, node: Path) -> Path:
    """Return the folder of the node, which must be empty."""
    assert files(node) == set()
    return node


def far_session(bench: Bench, cluster: Cluster, **run: Any) -> AbstractAsyncContextManager[Session]:
    return bench.session(Request(custom={"far": 1}), RayTrialExecutor(cluster.address), **run)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


COMMAND = """
echo so far; echo bad news >&2
mkdir $PITCHPIPE_CHECKPOINTS/1-1; echo state > $PITCHPIPE_CHECKPOINTS/1-1/data
echo '{{"intermediate": 1}}' >> $PITCHPIPE_REPORTS; echo '{{"checkpoint": "1-1"}}' >> $PITCHPIPE_REPORTS
while [ ! -e {go} ]; do sleep 0.02; done; echo done
echo '{{"final": 2}}' >> $PITCHPIPE_REPORTS
"""


@pytest.mark.ray
async def test_files_of_a_command_come_here_with_its_checkpoint_and_its_end(
    cluster: Cluster, own_bench: Bench, far: Path, tmp_path: Path
) -> None:
    command = COMMAND.format(go=tmp_path / "go")
    run = {"kind": "command", "command": command, "code_directory": str(tmp_path)}
    async with far_session(own_bench, cluster, **run) as session:
        order = session.start()
        await session.until(lambda: bool(session.of(order, CheckpointSaved)))
        here = own_bench.folder / "trials" / "1"
        assert (here / "checkpoints" / "1-1" / "data").read_text() == "state\n"
        assert not (here / "stdout").exists()
        assert await session.executor.read_file(order, "stdout", 3, 100) == b"far\n"
        (tmp_path / "go").touch()
        ended = await session.end_of(order)
        assert ended.exit_code == 0
        assert (here / "stdout").read_text() == "so far\ndone\n"
        assert (here / "stderr").read_text() == "bad news\n"
        assert '"ended"' in (here / "reports-1.jsonl").read_text()
    assert files(far) == set()


@pytest.mark.ray
async def test_function_is_brought_and_continues_from_a_checkpoint_that_is_brought(
    cluster: Cluster, own_bench: Bench, far: Path, tmp_path: Path
) -> None:
    async with far_session(own_bench, cluster) as session:
        order = session.start(count_to=6, until=str(tmp_path / "go"), final="done")
        await session.until(lambda: len(session.of(order, Reported)) >= 3)
        session.executor.pause_trial(order.trial_id, 1)
        assert (await session.end_of(order)).paused
        saved = session.of(order, CheckpointSaved)[-1]
        (tmp_path / "go").touch()
        session.events.clear()
        checkpoint = f"trials/1/checkpoints/{saved.name}"
        again = replace(order, attempt=2, first_sequence=saved.sequence, checkpoint=checkpoint)
        session.executor.start_trial(again)
        ended = await session.end_of(again)
        assert (ended.attempt, ended.error) == (2, None)
        assert session.outcome(again)[0][1] == saved.sequence
        assert session.outcome(again)[-2:] == [("final", 0, "done"), "ended"]


@pytest.mark.ray
async def test_reports_of_a_lost_agent_are_fetched_from_its_node(
    cluster: Cluster, own_bench: Bench, far: Path, tmp_path: Path
) -> None:
    async with far_session(own_bench, cluster) as session:
        session.acknowledging = False  # most of what it reports is never asked for
        order = session.start(reports=[0.1, 0.2], wait_for=str(tmp_path / "never"))
        pid = (await session.started(order)).pid
        await asyncio.to_thread(eventually, lambda: list(far.rglob("agents/0-0.jsonl")))
        (spool,) = far.rglob("agents/0-0.jsonl")
        if not session.of(order, Reported):
            session.acknowledge()  # the first batch had nothing but the start: ask for one more
        await session.until(lambda: bool(session.of(order, Reported)))
        heard = len(session.of(order, Reported))
        await asyncio.to_thread(eventually, lambda: len(spool.read_text().splitlines()) > heard + 5)
        os.kill(pid, signal.SIGKILL)
        assert (await session.end_of(order)).lost
        written = len((own_bench.folder / "agents" / "0-0.jsonl").read_text().splitlines())
        assert written > heard
        assert {report.sequence for report in session.of(order, Reported)} == set(range(written))
        assert len(session.of(order, AttemptEnded)) == 1
        assert files(far) == set()


@pytest.mark.ray
def test_log_of_a_trial_that_runs_on_a_far_node_is_shown(cluster: Cluster, far: Path, tmp_path: Path) -> None:
    command = f"echo so far; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done; {REPORT}"
    service = {"platform": "ray", "address": cluster.address}
    options = {"trial_resources": {"far": 1}, "max_trial_number": 1, "training_service": service}
    write_config(tmp_path, command, **options)
    log = [*RUN[:4], "trial", "log", "0", "--dir", "runs", "--follow"]
    with started([*RUN, "--json"], tmp_path) as running:
        eventually(lambda: any(far.rglob("stdout")))
        with started(log, tmp_path) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == "so far\n"
            (tmp_path / "go").touch()
            assert following.stdout.read() == "done\n"
        output, errors = running.communicate(timeout=30)
    assert (running.returncode, errors) == (0, ""), output
