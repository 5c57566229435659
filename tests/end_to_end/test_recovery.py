"""Processes are killed for good in the middle of an experiment, and no result is lost or counted twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from subprocess import Popen

import psutil
import pytest

from .running import Lab

TRIALS = 3
# Reports ten results and says in a file of its own what it has reported, before and after. In the middle it
# waits for the file "go", so that what the test kills cannot have ended meanwhile.
SCRIPT = """
import json, os, time, pitchpipe
x = pitchpipe.get_next_parameter()["x"]
with open("witness-%s" % pitchpipe.get_sequence_id(), "a") as witness:
    for step in range(10):
        pitchpipe.report_intermediate_result(x + step)
        witness.write("%r\\n" % (x + step))
        witness.flush()
        time.sleep(0.05)
        while step == 5 and not os.path.exists("go"):
            time.sleep(0.01)
    pitchpipe.report_final_result(x)
    witness.write("final %d\\n" % os.getpid())
"""


def await_both_trials(lab: Lab, running: Popen[str]) -> None:
    """Wait until the two running trials have reported all that they report before the file "go" is there."""
    lab.until(lambda: lab.query("SELECT count(*) FROM metrics") == [(12,)], running)


def let_trials_go(lab: Lab) -> None:
    (lab.folder / "go").touch()


def check_nothing_is_lost(lab: Lab) -> None:
    exported = lab.trials()
    assert [trial["status"] for trial in exported] == ["SUCCEEDED"] * TRIALS
    for trial in exported:
        lines = (lab.folder / f"witness-{trial['sequence_id']}").read_text().splitlines()
        assert [repr(value) for value in trial["intermediate"]] == lines[:10]
        assert len(lines) == 11  # it ran once
        assert trial["final"] == trial["parameters"]["x"]


def lab_on(platform: str, request: pytest.FixtureRequest, folder: Path) -> Lab:
    """Make a place for experiments on this machine, or on the shared Ray."""
    if platform == "ray":
        request.getfixturevalue("shared_ray")
    return Lab(folder / "lab", platform)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_manager_killed_in_the_middle_loses_nothing(
    platform: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lab = lab_on(platform, request, tmp_path)
    first = lab.start_run(lab.write(SCRIPT))
    await_both_trials(lab, first)
    before = lab.query("SELECT trial_id, pid FROM trials WHERE status = 'RUNNING'")
    first.kill()
    first.communicate()
    assert before
    assert all(psutil.pid_exists(pid) for _, pid in before)  # trials continue without their manager
    let_trials_go(lab)
    assert lab.resume_json()["status"] == "DONE"
    after = dict(lab.query("SELECT trial_id, pid FROM trials"))
    assert {trial: after[trial] for trial, _ in before} == dict(before)
    check_nothing_is_lost(lab)


@pytest.mark.slow
def test_agents_that_lost_their_manager_finish_their_trials_and_leave(lab: Lab) -> None:
    running = lab.start_run(lab.write(SCRIPT))
    await_both_trials(lab, running)
    agents = agents_of(running)
    running.kill()
    running.communicate()
    let_trials_go(lab)
    assert psutil.wait_procs(agents, timeout=30)[1] == []  # orphan_timeout is 600 s
    assert lab.resume_json()["status"] == "DONE"
    check_nothing_is_lost(lab)


@pytest.mark.slow
def test_dispatcher_killed_in_the_middle_is_brought_back(lab: Lab) -> None:
    running = lab.start_run(lab.write(SCRIPT))
    await_both_trials(lab, running)
    (dispatcher,) = [child for child in psutil.Process(running.pid).children() if is_dispatcher(child)]
    dispatcher.kill()
    let_trials_go(lab)
    output, errors = running.communicate(timeout=60)
    assert json.loads(output)["status"] == "DONE", errors
    check_nothing_is_lost(lab)


def is_dispatcher(process: psutil.Process) -> bool:
    return "pitchpipe.dispatcher" in process.cmdline()


def agents_of(running: Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(running.pid).children()
    return [child for child in children if "pitchpipe.trial_agent" in child.cmdline()]


def kill_an_agent(running: Popen[str]) -> None:
    kill_with_its_trial(agents_of(running)[0])


def kill_with_its_trial(agent: psutil.Process) -> None:
    """Kill the agent alone, and wait until its trial has ended for that reason."""
    trials = agent.children(recursive=True)
    agent.kill()
    assert psutil.wait_procs(trials, timeout=30)[1] == []


@pytest.mark.slow
def test_killed_agent_keeps_what_its_trial_reported(lab: Lab) -> None:
    config = lab.write(SCRIPT, max_failures=0)
    running = lab.start_run(config)
    await_both_trials(lab, running)
    kill_an_agent(running)
    let_trials_go(lab)
    output, errors = running.communicate(timeout=60)
    result = json.loads(output)
    assert result["status"] == "DONE", errors
    assert result["counts"] == {"FAILED": 1, "SUCCEEDED": TRIALS - 1}
    (lost,) = [trial for trial in lab.trials() if trial["status"] == "FAILED"]
    assert lost["kind"] == "INFRA"
    assert "killed by signal 9" in lost["reason"]
    lines = (lab.folder / f"witness-{lost['sequence_id']}").read_text().splitlines()
    assert [repr(value) for value in lost["intermediate"]] == lines
    assert len(lines) == 6


# As above; what an earlier attempt has done is not done again.
WITH_CHECKPOINTS = SCRIPT.replace(
    "    for step in range(10):",
    """    checkpoint = pitchpipe.get_checkpoint()
    for step in range(checkpoint.to_dict()["next"] if checkpoint else 0, 10):""",
).replace(
    "        time.sleep",
    """        pitchpipe.save_checkpoint({"next": step + 1})
        time.sleep""",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "script"),
    [
        pytest.param("local", SCRIPT, id="from the beginning"),
        pytest.param("local", WITH_CHECKPOINTS, id="from a checkpoint"),
        pytest.param("ray", WITH_CHECKPOINTS, marks=pytest.mark.ray, id="from a checkpoint on Ray"),
    ],
)
def test_trial_of_a_killed_agent_is_run_again_and_counted_once(
    platform: str, script: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lab = lab_on(platform, request, tmp_path)
    running = lab.start_run(lab.write(script))
    await_both_trials(lab, running)
    if platform == "local":
        kill_an_agent(running)
    else:
        (pid,) = lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")[0]
        kill_with_its_trial(psutil.Process(pid).parent())
    let_trials_go(lab)
    output, errors = running.communicate(timeout=60)
    result = json.loads(output)
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": TRIALS}), errors
    assert result["retries"] == {"INFRA": 1}
    for trial in lab.trials():
        x = trial["parameters"]["x"]
        assert trial["intermediate"] == [x + step for step in range(10)]
    ((again, attempts),) = lab.query("SELECT sequence_id, attempt FROM trials WHERE attempt > 1")
    assert attempts == 2
    lines = (lab.folder / f"witness-{again}").read_text().splitlines()
    repeated = len(lines) - 11
    # The checkpoint of the last step may not have arrived.
    assert repeated in ([0, 1] if script == WITH_CHECKPOINTS else [6])
    sent = [json.loads(payload) for (payload,) in lab.query("SELECT payload FROM commands WHERE code = 'ME'")]
    heard = [(metric["trial_job_id"], metric["type"], metric["sequence"]) for metric in sent]
    assert len(heard) == len(set(heard))
    assert "1: retried (INFRA, agent" in lab.run("trial", "show", "exp", str(again)).out
    assert "run again: 1 INFRA attempt" in lab.run("status", "exp").out


@pytest.mark.slow
def test_machine_that_died_with_all_its_processes_loses_nothing(lab: Lab) -> None:
    config = lab.write(WITH_CHECKPOINTS)
    first = lab.start_run(config)
    await_both_trials(lab, first)
    processes = [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]
    for process in processes:
        process.kill()
    first.communicate()
    psutil.wait_procs(processes, timeout=10)
    let_trials_go(lab)
    result = lab.resume_json()
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": TRIALS})
    assert result["retries"] == {"INFRA": 2}
    for trial in lab.trials():
        x = trial["parameters"]["x"]
        assert trial["intermediate"] == [x + step for step in range(10)]


@pytest.mark.slow
def test_script_killed_right_after_its_final_result_has_it_kept(lab: Lab) -> None:
    script = """
import os, signal, pitchpipe
pitchpipe.get_next_parameter()
pitchpipe.report_final_result(0.5)
os.kill(os.getpid(), signal.SIGKILL)
"""
    lab.run_json(lab.write(script, max_trial_number=4, max_identical_failures=0))
    trials = lab.trials()
    assert [trial["final"] for trial in trials] == [0.5] * 4
    assert {trial["status"] for trial in trials} == {"FAILED"}
    assert {trial["reason"] for trial in trials} == {"killed by SIGKILL"}
    assert {trial["kind"] for trial in trials} == {"KILLED"}


@pytest.mark.slow
def test_stop_of_a_dead_managers_experiment_ends_its_trials(lab: Lab) -> None:
    config = lab.write(SCRIPT.replace("0.05", "30"))
    running = lab.start_run(config)
    lab.until(lambda: len(lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")) == 2, running)
    pids = [pid for (pid,) in lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")]
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    assert all(psutil.pid_exists(pid) for pid in pids)
    done = lab.run("stop", "exp")
    assert done.code == 0, done.err
    lab.until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    assert "STOPPED" in lab.run("status", "exp").out


def test_experiment_whose_folder_is_deleted_ends_and_says_so(lab: Lab) -> None:
    config = lab.write(SCRIPT.replace("0.05", "300"))
    running = lab.start_run(config)
    lab.until(lambda: len(lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")) == 2, running)
    processes = psutil.Process(running.pid).children(recursive=True)
    shutil.rmtree(lab.directory / "exp")
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 1
    assert errors.splitlines()[-1].startswith(
        f"error: {lab.directory / 'exp' / 'experiment.db'} was moved or deleted"
    )
    assert psutil.wait_procs(processes, timeout=10)[1] == []
