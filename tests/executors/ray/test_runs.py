"""Whole runs of the command line on Ray: what the user sees, and what is left when a run is broken off."""

import json
import signal
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest

from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, session_processes

from ..ray_support import REPORT, RUN, eventually, lives, started, write_config

pytestmark = pytest.mark.ray


def test_stopped_run_says_what_it_does_and_nothing_else(shared_ray: Path, tmp_path: Path):
    write_config(tmp_path, "touch started; sleep 600", kill_grace="1s")
    with started([*RUN, "--json"], tmp_path) as run:
        eventually((tmp_path / "started").exists)
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=30)
    assert run.returncode == 130
    lines = errors.splitlines()
    assert [line for line in lines if "trials" not in line] == []
    assert len([line for line in lines if line.startswith("stopping: ")]) == 1


def test_no_more_trials_run_at_once_than_fit_and_the_run_is_quiet_and_prints_one_object(
    shared_ray: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Trials see the devices that Ray gave them, and no modules of the user in place of installed ones."""
    # Ray would put the working directory first on the module search path of its workers.
    (tmp_path / "pitchpipe").mkdir()
    (tmp_path / "pitchpipe" / "__init__.py").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    # The first trial waits for a second; each stays for a while, so that a third would be seen beside two.
    command = "echo $CUDA_VISIBLE_DEVICES > seen.$PITCHPIPE_TRIAL_ID; echo 1 >> changes; "
    command += "until [ $(wc -l < changes) -ge 2 ]; do sleep 0.02; done; "
    command += f"sleep 0.3; echo -1 >> changes; {REPORT}"
    (tmp_path / "code").mkdir()
    options = {"trial_code_directory": "code", "trial_gpu_number": 0.5, "trial_resources": {"widget": 1}}
    write_config(tmp_path, command, trial_concurrency=4, max_trial_number=6, **options)
    done = subprocess.run(
        [*RUN, "--json", "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "DONE"
    seen = [path.read_text().strip() for path in (tmp_path / "code").glob("seen.*")]
    assert len(seen) == 6
    assert set(seen) <= {"0", "1"}
    changes = [int(change) for change in (tmp_path / "code" / "changes").read_text().split()]
    assert max(accumulate(changes)) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_run_that_ends_while_ray_starts_leaves_nothing(tmp_path: Path, number: signal.Signals):
    write_config(tmp_path, REPORT, training_service={"platform": "ray", "idle_timeout": 300})
    place = SupervisorFiles.current()
    with started(RUN, tmp_path) as run:
        eventually(lambda: place.read_state() is not None)
        state = place.read_state()
        assert state is not None
        # The first process of Ray is there, and the others are yet to come.
        eventually(lambda: [p for p in session_processes(state.temp_dir) if p.name() == "gcs_server"])
        now = place.read_state()
        assert now is not None
        assert now.address == ""
        run.send_signal(number)
        assert run.wait(10) == (130 if number is signal.SIGINT else -number)
    eventually(lambda: not place.state.exists() and not Path(state.temp_dir).exists(), 10)
    eventually(lambda: not [p for p in session_processes(state.temp_dir) if lives(p.pid)], 10)
    assert not lives(state.pid)
    assert not place.socket.exists()
    assert not place.log.exists()
