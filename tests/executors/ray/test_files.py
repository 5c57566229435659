"""Nodes that do not see the experiment's folder: their agents work elsewhere, and what trials leave is fetched."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.ray.executor import RayTrialExecutor
from pitchpipe.executors.ray.files import (
    NODE_FOLDER,
    SharedMark,
    forget_checkpoints,
    make_working_folder,
    pack,
    unpack,
    working_folder,
)
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, CheckpointSaved, Reported
from pitchpipe.runner.ledger import Request
from pitchpipe.trial_agent import remove

from ..bench import Bench, Session
from ..cluster_support import Cluster
from ..ray_support import eventually


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


def test_what_is_packed_arrives_without_checkpoints_that_are_being_made(tmp_path: Path) -> None:
    checkpoints = tmp_path / "there" / "trials" / "3" / "checkpoints"
    for name in ("1-1", ".1-abc"):
        (checkpoints / name).mkdir(parents=True)
        (checkpoints / name / ".hidden").write_text(name)
    (checkpoints.parent / "stdout").write_text("new")
    here = tmp_path / "here"
    (here / "trials" / "3").mkdir(parents=True)
    (here / "trials" / "3" / "stdout").write_text("old, and longer")
    unpack(pack(str(tmp_path / "there"), ["trials/3", "trials/4"]), here)
    found = {path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file()}
    assert found == {"trials/3/stdout", "trials/3/checkpoints/1-1/.hidden"}
    assert (here / "trials" / "3" / "stdout").read_text() == "new"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python unpacks links as they are")
def test_link_that_leads_elsewhere_and_pipe_are_left_out_and_the_rest_arrives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = tmp_path / "there" / "trials" / "3"
    trial.mkdir(parents=True)
    (trial / "stdout").write_text("12 steps")
    for name, target in (("latest", "stdout"), ("data", "/data/set"), ("up", "../../../../up")):
        (trial / name).symlink_to(target)
    os.mkfifo(trial / "pipe")
    here = tmp_path / "here"
    here.mkdir()
    unpack(pack(str(tmp_path / "there"), ["trials/3"]), here)
    found = {path.name: path.read_text() for path in (here / "trials" / "3").iterdir()}
    assert found == {"latest": "12 steps", "stdout": "12 steps"}
    assert sorted(message.split()[0] for message in caplog.messages) == [
        f"trials/3/{name}" for name in ("data", "pipe", "up")
    ]


def checkpoint(folder: Path, name: str) -> Path:
    """Make a checkpoint with three files."""
    path = folder / "trials" / "3" / "checkpoints" / name
    path.mkdir(parents=True)
    for file in ("a", "b", "c"):
        (path / file).write_text(file)
    return path


@pytest.mark.parametrize("after", range(5))
def test_checkpoint_that_is_removed_while_it_is_packed_is_not_packed_in_part(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove it before, between and after its files are looked at."""
    pruned, kept = (checkpoint(tmp_path / "there", name) for name in ("1-1", "1-2"))
    looks = [lambda: None] * after + [lambda: remove(str(pruned))]
    look = tarfile.TarFile.gettarinfo

    def look_while_it_goes(archive: tarfile.TarFile, path: str, *names: Any) -> Any:
        found = look(archive, path, *names)
        if path.startswith(str(pruned)) and looks:
            looks.pop(0)()
        return found

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_while_it_goes)
    names = ["trials/3/checkpoints/1-1", "trials/3"]
    (tmp_path / "here").mkdir()
    unpack(pack(str(tmp_path / "there"), names), tmp_path / "here")
    found = sorted(path.name for path in (tmp_path / "here").rglob("checkpoints/1-1/*"))
    assert found in ([], ["a", "b", "c"])
    assert sorted(path.name for path in (tmp_path / "here").rglob("checkpoints/1-2/*")) == ["a", "b", "c"]
    assert kept.is_dir()


def test_what_cannot_be_read_is_left_out_of_the_files_that_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "trials" / "3").mkdir(parents=True)
    here.mkdir()
    for name in ("bad", "good"):
        (there / "trials" / "3" / name).write_text(name)
    look = tarfile.TarFile.gettarinfo

    def look_or_fail(archive: tarfile.TarFile, path: str, *names: Any) -> Any:
        if path.endswith("bad"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return look(archive, path, *names)

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_or_fail)
    unpack(pack(str(there), ["trials/3"]), here)
    assert files(here) == {"trials/3/good"}
    assert "trials/3/bad cannot be read" in caplog.text


def test_hard_link_arrives_as_a_file_of_its_own(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    original = checkpoint(there, "1-1")
    os.link(original / "a", original / "link")
    here.mkdir()
    unpack(pack(str(there), ["trials/3"]), here)
    assert (here / "trials/3/checkpoints/1-1/link").read_text() == "a"


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
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        (spool,) = [path async for path in appearing(far, "agents/0-0.jsonl")]
        if not session.of(order, Reported):
            session.acknowledge()  # the first batch had nothing but the start: ask for one more
        await session.until(lambda: bool(session.of(order, Reported)))
        heard = len(session.of(order, Reported))
        await asyncio.to_thread(eventually, lambda: len(spool.read_text().splitlines()) > heard + 5)
        os.kill(session.of(order, AttemptStarted)[0].pid, signal.SIGKILL)
        assert (await session.end_of(order)).lost
        written = len((own_bench.folder / "agents" / "0-0.jsonl").read_text().splitlines())
        assert written > heard
        assert {report.sequence for report in session.of(order, Reported)} == set(range(written))
        assert len(session.of(order, AttemptEnded)) == 1
        assert files(far) == set()


async def appearing(folder: Path, name: str) -> AsyncIterator[Path]:
    """Wait for a file of this name below a folder, and yield it."""
    await asyncio.to_thread(eventually, lambda: any(True for _ in folder.rglob(name)))
    yield next(folder.rglob(name))


@pytest.mark.ray
def test_log_of_a_trial_that_runs_on_a_far_node_is_shown(cluster: Cluster, far: Path, tmp_path: Path) -> None:
    config = {
        "trial_command": f"echo so far; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done; "
        """echo '{"final": 1}' >> $PITCHPIPE_REPORTS""",
        "trial_resources": {"far": 1},
        "max_trial_number": 1,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "training_service": {"platform": "ray", "address": cluster.address},
    }
    (tmp_path / "experiment.json").write_text(json.dumps(config))
    pitchpipe = [sys.executable, "-P", "-m", "pitchpipe"]
    log = [*pitchpipe, "trial", "log", "0", "--dir", str(tmp_path / "runs"), "--follow"]
    run = [*pitchpipe, "run", str(tmp_path / "experiment.json"), "--dir", str(tmp_path / "runs"), "--json"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            eventually(lambda: any(far.rglob("stdout")))
            with subprocess.Popen(log, stdout=subprocess.PIPE, text=True) as following:
                assert following.stdout is not None
                assert following.stdout.readline() == "so far\n"
                (tmp_path / "go").touch()
                assert following.stdout.read() == "done\n"
            output, errors = running.communicate(timeout=30)
        finally:
            running.kill()
    assert (running.returncode, errors) == (0, ""), output
