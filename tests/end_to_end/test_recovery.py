"""Processes are killed for good in the middle of an experiment, and no result is lost or counted twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from ..forked_verbs import ForkedVerb
from .running import Lab, Started

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


def start(lab: Lab, script: str, **fields: Any) -> ForkedVerb:
    """Start an experiment, and wait until its two trials have reported all that they do before "go" is there."""
    running = lab.start_run(lab.write(script, **fields))
    await_both_trials(lab, running)
    return running


def await_both_trials(lab: Lab, running: Started) -> None:
    lab.until(lambda: lab.query("SELECT count(*) FROM metrics") == [(12,)], running)


def check_nothing_is_lost(lab: Lab) -> None:
    exported = lab.trials()
    assert [trial["status"] for trial in exported] == ["SUCCEEDED"] * TRIALS
    for trial in exported:
        lines = (lab.folder / f"witness-{trial['sequence_id']}").read_text().splitlines()
        assert [repr(value) for value in trial["intermediate"]] == lines[:10]
        assert len(lines) == 11  # it ran once
        assert trial["final"] == trial["parameters"]["x"]


def kill(running: ForkedVerb) -> None:
    running.kill()
    running.communicate()


def test_manager_killed_in_the_middle_loses_nothing(lab: Lab) -> None:
    first = start(lab, SCRIPT)
    before = lab.query("SELECT trial_id, pid FROM trials WHERE status = 'RUNNING'")
    kill(first)
    assert before
    assert all(psutil.pid_exists(pid) for _, pid in before)  # trials continue without their manager
    lab.let_trials_go()
    assert lab.resume_json()["status"] == "DONE"
    after = dict(lab.query("SELECT trial_id, pid FROM trials"))
    assert {trial: after[trial] for trial, _ in before} == dict(before)
    check_nothing_is_lost(lab)


def test_agents_that_lost_their_manager_finish_their_trials_and_leave(lab: Lab) -> None:
    running = start(lab, SCRIPT)
    agents = lab.agents()
    kill(running)
    lab.let_trials_go()
    assert psutil.wait_procs(agents, timeout=30)[1] == []  # orphan_timeout is 600 s
    assert lab.resume_json()["status"] == "DONE"
    check_nothing_is_lost(lab)


@pytest.mark.slow
def test_dispatcher_killed_in_the_middle_is_brought_back(lab: Lab) -> None:
    running = lab.start_program(lab.write(SCRIPT))
    await_both_trials(lab, running)
    (dispatcher,) = [child for child in psutil.Process(running.pid).children() if is_dispatcher(child)]
    dispatcher.kill()
    lab.let_trials_go()
    output, errors = running.communicate(timeout=60)
    assert json.loads(output)["status"] == "DONE", errors
    check_nothing_is_lost(lab)


def is_dispatcher(process: psutil.Process) -> bool:
    return "pitchpipe.dispatcher" in process.cmdline()


def kill_with_its_trial(agent: psutil.Process) -> None:
    """Kill the agent alone, and wait until its trial has ended for that reason."""
    trials = agent.children(recursive=True)
    agent.kill()
    assert psutil.wait_procs(trials, timeout=30)[1] == []


def test_killed_agent_keeps_what_its_trial_reported(lab: Lab) -> None:
    running = start(lab, SCRIPT, max_failures=0)
    kill_with_its_trial(lab.agents()[0])
    lab.let_trials_go()
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


@pytest.mark.parametrize(
    "script", [SCRIPT, WITH_CHECKPOINTS], ids=["from the beginning", "from a checkpoint"]
)
def test_trial_of_a_killed_agent_is_run_again_and_counted_once(script: str, lab: Lab) -> None:
    running = start(lab, script)
    kill_with_its_trial(lab.agents()[0])
    lab.let_trials_go()
    output, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    again = check_one_ran_again(lab, json.loads(output), script)
    assert "1: retried (INFRA, agent" in lab.run("trial", "show", "exp", str(again)).out
    assert "run again: 1 INFRA attempt" in lab.run("status", "exp").out


def check_one_ran_again(lab: Lab, result: dict[str, Any], script: str) -> int:
    """Check that one trial has two attempts, and each of its results counts once; return its number."""
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": TRIALS})
    assert result["retries"] == {"INFRA": 1}
    check_results(lab)
    ((again, attempts),) = lab.query("SELECT sequence_id, attempt FROM trials WHERE attempt > 1")
    assert attempts == 2
    lines = (lab.folder / f"witness-{again}").read_text().splitlines()
    repeated = len(lines) - 11
    # The checkpoint of the last step may not have arrived.
    assert repeated in ([0, 1] if script == WITH_CHECKPOINTS else [6])
    sent = [json.loads(payload) for (payload,) in lab.query("SELECT payload FROM commands WHERE code = 'ME'")]
    heard = [(metric["trial_job_id"], metric["type"], metric["sequence"]) for metric in sent]
    assert len(heard) == len(set(heard))
    return again


def check_results(lab: Lab) -> None:
    for trial in lab.trials():
        x = trial["parameters"]["x"]
        assert trial["intermediate"] == [x + step for step in range(10)]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_agent_and_manager_killed_on_ray_lose_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab", "ray")
    running = start(lab, WITH_CHECKPOINTS)
    kill_with_its_trial(lab.agents()[0])
    # From its last checkpoint the trial does not wait for "go", and may end at once.
    again = "SELECT count(*) FROM trials WHERE attempt = 2 AND status IN ('RUNNING', 'SUCCEEDED')"
    lab.until(lambda: lab.query(again) == [(1,)], running)
    before = lab.query("SELECT trial_id, pid FROM trials WHERE status = 'RUNNING' AND attempt = 1")
    kill(running)
    assert all(psutil.pid_exists(pid) for _, pid in before)  # trials continue without their manager
    lab.let_trials_go()
    check_one_ran_again(lab, lab.resume_json(), WITH_CHECKPOINTS)
    after = dict(lab.query("SELECT trial_id, pid FROM trials"))
    assert {trial: after[trial] for trial, _ in before} == dict(before)


def test_machine_that_died_with_all_its_processes_loses_nothing(lab: Lab) -> None:
    first = start(lab, WITH_CHECKPOINTS)
    processes = lab.family()
    first.kill()
    for process in processes:
        process.kill()
    first.communicate()
    psutil.wait_procs(processes, timeout=10)
    lab.let_trials_go()
    result = lab.resume_json()
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": TRIALS})
    assert result["retries"] == {"INFRA": 2}
    check_results(lab)


def test_experiment_whose_manager_is_suspended_is_stopped(lab: Lab) -> None:
    running = lab.start_run(lab.write(SCRIPT.replace("0.05", "300")))
    lab.until(lambda: len(lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")) == 2, running)
    os.kill(running.pid, signal.SIGSTOP)
    lab.until(lambda: psutil.Process(running.pid).status() == psutil.STATUS_STOPPED)
    stopped = lab.run("stop", "exp")
    assert (stopped.code, f"process {running.pid} was suspended" in stopped.err) == (0, True)
    running.communicate(timeout=30)
    assert lab.query("SELECT status FROM experiment") == [("STOPPED",)]


def test_experiment_whose_folder_is_deleted_ends_and_says_so(lab: Lab) -> None:
    running = lab.start_run(lab.write(SCRIPT.replace("0.05", "300")))
    lab.until(lambda: len(lab.query("SELECT pid FROM trials WHERE status = 'RUNNING'")) == 2, running)
    processes = lab.family()
    shutil.rmtree(lab.directory / "exp")
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 1
    assert errors.splitlines()[-1].startswith(
        f"error: {lab.directory / 'exp' / 'experiment.db'} was moved or deleted"
    )
    assert psutil.wait_procs(processes, timeout=10)[1] == []
