"""A cluster over ssh: a real sshd, a real Ray, and a trial on two of its nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from pitchpipe.cli.app import run
from pitchpipe.executors.clusters.ssh_cluster import Cluster, cluster_down, token_path_of

from .slurm_server import free_ports
from .ssh_server import SshServer, why_no_sshd


class Called(NamedTuple):
    """The outcome of a command line."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


@pytest.fixture
def server() -> Iterator[SshServer]:
    if why := why_no_sshd():
        pytest.skip(why)
    server = SshServer(["ada", "bob"])
    yield server
    server.close()


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Call]:
    """Call the command line in this process; a cluster that a failed test leaves is ended."""
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "experiments"))
    monkeypatch.chdir(tmp_path)
    yield lambda *words: Called(run(list(words)), *capsys.readouterr())
    if (left := Cluster.current()) is not None:
        cluster_down(left)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_cluster_is_started_used_and_ended(server: SshServer, call: Call, tmp_path: Path) -> None:
    up = call("cluster", "up", "--hosts", "ada,bob", "--port", str(free_ports(1)[0]), "--ssh", server.command)
    assert up.code == 0, up.err
    found = Cluster.current()
    assert found is not None
    section = up.out.partition("\n\n")[2]
    assert section == f"training_service:\n  platform: ray\n  address: {found.address}\n"
    assert Path(token_path_of(found.address) or "").stat().st_mode & 0o777 == 0o600

    status = call("cluster", "status", "--json")
    assert json.loads(status.out)["states"] == {"ada": "running", "bob": "running"}
    again = call("cluster", "up", "--hosts", "ada", "--ssh", server.command)
    assert (again.code, again.out) == (1, "")
    assert "there is a cluster already" in again.err

    (tmp_path / "trial.sh").write_text(
        'echo "$RANK of $WORLD_SIZE"\n[ "$RANK" != 0 ] || echo \'{"final": 1}\' >> $PITCHPIPE_REPORTS\n'
    )
    (tmp_path / "experiment.yml").write_text(
        "search_space: {x: {_type: uniform, _value: [0, 1]}}\ntrial_command: sh trial.sh\nmax_trial_number: 2\n"
        "resources: {processes: 2, nodes: 2, cpus_per_process: 0.5}\ntuner: Random\n" + section
    )
    done = call("run", "experiment.yml", "--quiet", "--json", "--experiment-id", "e")
    assert done.code == 0, done.err
    outputs = sorted((tmp_path / "experiments" / "e" / "trials").glob("*/stdout*"))
    assert [path.read_text().strip() for path in outputs if path.stat().st_size] == ["0 of 2", "1 of 2"] * 2

    down = call("cluster", "down")
    assert down.code == 0, down.err
    assert not Path(found.folder).exists()
    lines = [" ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if found.folder in line]
    assert call("cluster", "status").out == "no cluster was started here\n"


@pytest.mark.cluster
@pytest.mark.slow
def test_nothing_stays_on_the_others_when_one_machine_cannot_be_used(server: SshServer, call: Call) -> None:
    up = call("cluster", "up", "--hosts", "ada,nowhere.invalid", "--ssh", server.command)
    assert (up.code, up.out) == (1, "")
    assert up.err.startswith("error: nowhere.invalid: ")
    assert Cluster.current() is None


@pytest.mark.parametrize(
    ("ssh", "words"),
    [
        (
            'for word in "$@"; do last=$word; done; exec sh -c "$last"',
            "Pitchpipe is not installed for no-python",
        ),
        ('echo \'{"versions": {"Pitchpipe": "0.0.1"}}\'', "ada has Pitchpipe 0.0.1, and this machine has "),
    ],
)
def test_python_without_pitchpipe_and_other_versions_are_named(
    ssh: str, words: str, call: Call, programs: Callable[..., Path]
) -> None:
    programs(ssh=ssh)
    up = call("cluster", "up", "--hosts", "ada", "--python", "no-python")
    assert up.code == 1
    assert words in up.err


def test_clusters_that_were_not_started_here_have_no_token_here(call: Call) -> None:
    assert token_path_of("10.0.0.1:6379") is None
