"""Experiments as jobs of Slurm: the script, what is refused, and a real Slurm that requeues a job twice."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pitchpipe.cli.app import run
from pitchpipe.executors.clusters.slurm_job import SlurmError, SlurmJob, batch_script, submit

from .slurm_server import SlurmServer, why_no_slurm

CONFIG = """\
search_space: {x: {_type: uniform, _value: [0, 1]}}
trial_command: python trial.py
max_trial_number: 2
tuner: Random
training_service: {platform: ray, address: auto}
"""
# The first trial waits twice, each time until it is in the next run of the job.
TRIAL = """
import os, time
import pitchpipe
pitchpipe.get_next_parameter()
checkpoint = pitchpipe.get_checkpoint()
number = checkpoint.to_dict()["number"] if checkpoint else 0
run = os.environ["SLURM_RESTART_COUNT"] if "SLURM_RESTART_COUNT" in os.environ else "0"
print(f"run {run} from {number}", flush=True)
while number < 6:
    number += 1
    pitchpipe.report_intermediate_result(number)
    pitchpipe.save_checkpoint({"number": number})
    while pitchpipe.get_sequence_id() == 0 and number == 2 * (int(run) + 1) and run != "2":
        time.sleep(0.05)
pitchpipe.report_final_result(number)
"""


def job(folder: Path, *options: str) -> SlurmJob:
    return SlurmJob(
        experiment_id="e", config=folder / "e.yml", directory=folder / "runs", nodes=3, options=options
    )


def test_script_can_be_requeued_and_users_options_replace_ours(tmp_path: Path) -> None:
    lines = batch_script(job(tmp_path, "gpus-per-node=4", "job-name=mine")).splitlines()
    options = [line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH ")]
    assert {"nodes=3", "requeue", "open-mode=append", "signal=B:TERM@120", "gpus-per-node=4"} <= set(options)
    assert [option for option in options if option.startswith("job-name=")] == ["job-name=mine"]
    assert lines[-1].startswith(
        f"exec {shlex.quote(sys.executable)} -P -m pitchpipe.executors.clusters.allocation "
    )


def test_job_that_would_not_be_requeued_is_refused_before_it_starts(
    programs: Callable[..., Path], tmp_path: Path
) -> None:
    calls = programs(
        sbatch="cat > /dev/null; echo '7;main'", scontrol="echo JobId=7 Requeue=0 Restarts=0", scancel=""
    )
    with pytest.raises(SlurmError, match="would not requeue the job"):
        submit(job(tmp_path))
    assert calls.read_text().splitlines() == [
        "sbatch --parsable --hold",
        "scontrol show job --oneliner 7",
        "scancel 7",
    ]


def test_partition_that_cancels_jobs_is_named(programs: Callable[..., Path], tmp_path: Path) -> None:
    facts = "echo JobId=7 Requeue=1 Partition=spot PreemptMode=CANCEL"
    calls = programs(sbatch="cat > /dev/null; echo 7", scontrol=facts)
    number, warning = submit(job(tmp_path))
    assert number == "7"
    assert warning == (
        "partition spot may cancel the job instead of requeueing it: then submit it again with --experiment-id e,"
        " which resumes the experiment"
    )
    assert calls.read_text().splitlines()[-1] == "scontrol release 7"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("sbatch: error: invalid partition", "^sbatch failed: sbatch: error: invalid partition$"),
        ("fatal: Could not establish a configuration source", "submit on a login node, or see the script by"),
        (None, "there is no sbatch here"),
    ],
)
def test_what_slurm_refuses_and_a_machine_without_it_are_said(
    error: str | None,
    words: str,
    programs: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if error is not None:
        programs(sbatch=f"/bin/cat > /dev/null; echo '{error}' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=words):
        submit(job(tmp_path))


Submitted = Callable[..., tuple[int, str, str]]


@pytest.fixture
def submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Submitted:
    """Return a function that submits a config in this process; return its exit code and what it printed."""
    (tmp_path / "e.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "runs"))
    return lambda *words: (run(["slurm", "submit", "e.yml", *words]), *capsys.readouterr())


def test_script_is_shown_without_slurm(submitted: Submitted, tmp_path: Path) -> None:
    words = ["--nodes", "3", "-o", "time=60", "--set", "seed=3", "--print", "--dir", "other"]
    code, shown, errors = submitted(*words)
    assert (code, errors) == (0, "")
    assert "#SBATCH --nodes=3\n" in shown
    assert "#SBATCH --time=60\n" in shown
    assert shown.endswith("/other seed=3\n")
    assert not (tmp_path / "other").exists()


def test_output_is_where_the_config_or_the_environment_says(submitted: Submitted, tmp_path: Path) -> None:
    words = ("--print", "--experiment-id", "e")
    _, shown, _ = submitted(*words)
    assert f"#SBATCH --output={tmp_path}/runs/slurm-e.log\n" in shown
    assert shown.endswith(f" {tmp_path}/e.yml e {tmp_path}/runs\n")
    _, shown, _ = submitted(*words, "--set", "experiment_working_directory=own")
    assert f"#SBATCH --output={tmp_path}/own/slurm-e.log\n" in shown


# --------------------------------------------------------------------------- with a real Slurm


def called(folder: Path, slurm: SlurmServer, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-P", "-m", "pitchpipe", *words]
    return subprocess.run(
        line, cwd=folder, capture_output=True, text=True, check=False, env=slurm.environment
    )


SUBMIT = ("slurm", "submit", "e.yml", "--dir", "runs", "--experiment-id", "e")


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[SlurmServer]:
    (tmp_path / "e.yml").write_text(CONFIG)
    (tmp_path / "trial.py").write_text(TRIAL)
    if why := why_no_slurm():
        pytest.skip(why)
    server = SlurmServer()
    yield server
    server.close()


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(280)
def test_job_that_is_out_of_time_and_then_preempted_loses_nothing(slurm: SlurmServer, tmp_path: Path) -> None:
    submitted = called(tmp_path, slurm, *SUBMIT)
    assert submitted.returncode == 0, submitted.stderr
    assert submitted.stdout == f"job 1 runs experiment e and writes to {tmp_path}/runs/slurm-e.log\n"
    assert "set max_failures: {INFRA: -1}" in submitted.stderr
    checkpoints = tmp_path / "runs" / "e" / "trials" / "0" / "checkpoints"

    slurm.until(lambda: saved(checkpoints, 2))
    slurm.ask("scancel", "--batch", "--signal=TERM", "1")  # as by --signal=B:TERM@120
    restart(slurm)
    slurm.until(lambda: saved(checkpoints, 4))
    slurm.ask("scontrol", "requeue", "1")  # as a preempting job
    restart(slurm)
    slurm.until(lambda: "JobState=COMPLETED" in slurm.job())

    trial = tmp_path / "runs" / "e" / "trials" / "0"
    outputs = [(trial / name).read_text() for name in ("stdout", "stdout-2", "stdout-3")]
    assert outputs == ["run 0 from 0\n", "run 1 from 2\n", "run 2 from 4\n"]
    shown = called(tmp_path, slurm, "export", "e", "--dir", "runs", "--format", "csv", "-o", "-")
    assert "SUCCEEDED" in shown.stdout
    assert not Path("/tmp/pitchpipe-slurm-1").exists()


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(280)
def test_cancelled_job_stays_cancelled_and_its_experiment_can_be_resumed(
    slurm: SlurmServer, tmp_path: Path
) -> None:
    assert called(tmp_path, slurm, *SUBMIT).returncode == 0
    slurm.until(lambda: saved(tmp_path / "runs" / "e" / "trials" / "0" / "checkpoints", 2))
    slurm.ask("scancel", "1")
    slurm.until(lambda: "JobState=COMPLETING" not in slurm.job())

    assert "JobState=CANCELLED" in slurm.job()
    assert "Slurm ends the job: its next run, or a new job" in (tmp_path / "runs" / "slurm-e.log").read_text()
    assert called(tmp_path, slurm, *SUBMIT).returncode == 0
    resumed = tmp_path / "runs" / "e" / "trials" / "0" / "stdout-2"
    slurm.until(lambda: resumed.is_file() and "from 2" in resumed.read_text())


def saved(folder: Path, number: int) -> bool:
    try:
        return any(f'"number": {number}' in path.read_text() for path in folder.glob("*/*.json"))
    except FileNotFoundError:  # the trial has just replaced this checkpoint by the next one
        return False


def restart(slurm: SlurmServer) -> None:
    """Let the requeued job start now: Slurm would wait for two minutes."""
    slurm.until(lambda: "JobState=PENDING" in slurm.job())
    slurm.ask("scontrol", "update", "JobId=1", "StartTime=now")
