"""Trials that go wrong in every way a script can: a definite status, a readable reason, and the others continue."""

from __future__ import annotations

import psutil
import pytest

from .running import Lab

SCRIPT = """
import os, signal, sys
import pitchpipe
x = pitchpipe.get_next_parameter()["x"]
exec({cases!r}.get(pitchpipe.get_sequence_id(), ""))
pitchpipe.report_final_result(x)
"""

# What some trials of one experiment do before they report: their statuses, and words of their reasons.
CASES = {
    "raise KeyError('lr')": ("FAILED", "KeyError: 'lr'"),
    "sys.exit(7)": ("FAILED", "exit code 7"),
    "sys.exit(0)": ("FAILED", "ended without reporting a final result"),
    "pitchpipe.report_final_result(float('nan')); sys.exit()": ("FAILED", "NaN"),
    "pitchpipe.report_final_result('good'); sys.exit()": ("FAILED", "'good'"),
    "pitchpipe.report_final_result({'accuracy': 0.9}); sys.exit()": ("FAILED", "'default'"),
    "pitchpipe.report_intermediate_result('good')": ("SUCCEEDED", ""),
    "pitchpipe.report_final_result(x)": ("SUCCEEDED", "reported a final result 2 times; the first counts"),
    "os.kill(os.getpid(), signal.SIGSEGV)": ("FAILED", "SIGSEGV"),
    "open(os.environ['PITCHPIPE_REPORTS'], 'a').write('hello\\n')": ("FAILED", "'hello'"),
}


def test_bad_trials_fail_with_a_reason_and_the_experiment_continues(lab: Lab) -> None:
    script = SCRIPT.format(cases=dict(enumerate(CASES)))
    result = lab.run_json(lab.write(script, max_trial_number=len(CASES) + 2))
    assert result["status"] == "DONE"
    trials = lab.trials()
    for (status, reason), trial in zip(CASES.values(), trials, strict=False):
        assert (trial["status"], reason in trial["reason"]) == (status, True), trial
    assert [(trial["status"], trial["reason"]) for trial in trials[-2:]] == [("SUCCEEDED", "")] * 2


def test_command_that_cannot_be_started_stops_the_experiment_and_runs_again_once_it_can(lab: Lab) -> None:
    config = lab.write(
        "#!/no-such-program\n", name="trial.sh", trial_command="./trial.sh", max_trial_number=8
    )
    (script := config.parent / "trial.sh").chmod(0o755)
    result = lab.run_json(config)
    assert result["status"] == "ERROR"
    assert "the first 5 trials failed alike" in result["reason"]
    assert "trial.sh" in result["reason"]
    assert result["counts"]["FAILED"] >= 5
    assert sum(result["counts"].values()) <= 8
    again = lab.run("resume", "exp")
    assert again.code == 1
    assert "the first 5 trials failed alike" in again.out
    script.write_text("""#!/bin/sh\necho '{"final": 1}' >> "$PITCHPIPE_REPORTS"\n""")
    assert lab.run("resume", "exp").code == 0
    assert [trial["status"] for trial in lab.trials()] == ["SUCCEEDED"] * 8


def test_same_traceback_five_times_stops_the_experiment_and_is_shown(lab: Lab) -> None:
    config = lab.write("import nowhere_to_be_found", max_trial_number=50)
    done = lab.run("run", config, "--experiment-id", "exp")
    assert done.code == 1
    shown = done.out + done.err
    assert shown.count("Traceback (most recent call last)") == 1
    assert "No module named 'nowhere_to_be_found'" in shown


def test_shell_script_reports_by_appending_lines(lab: Lab) -> None:
    script = """
for step in 1 2 3; do echo "{\\"intermediate\\": 0.$step}" >> "$PITCHPIPE_REPORTS"; done
( echo '{"final": {"default": 0.4, "note": "from a child"}}' >> "$PITCHPIPE_REPORTS" ) &
wait
"""
    lab.run_json(lab.write(script, name="trial.sh", max_trial_number=1))
    (trial,) = lab.trials()
    assert trial["intermediate"] == [0.1, 0.2, 0.3]
    assert trial["final"] == {"default": 0.4, "note": "from a child"}
    assert trial["status"] == "SUCCEEDED"


@pytest.mark.slow
def test_trial_over_its_time_is_killed_with_its_children_and_its_final_result_counts(lab: Lab) -> None:
    script = (
        '[ $PITCHPIPE_SEQUENCE_ID = 0 ] || echo \'{"final": 1}\' >> "$PITCHPIPE_REPORTS"\n'
        "trap '' TERM; sleep 300 & echo $! >> pids; echo $$ >> pids; wait; sleep 300"
    )
    result = lab.run_json(
        lab.write(script, name="trial.sh", max_trial_number=2, max_trial_duration=1, kill_grace=1)
    )
    assert result["counts"] == {"FAILED": 1, "SUCCEEDED": 1}
    unfinished, finished = (trial["reason"] for trial in lab.trials())
    assert unfinished == "ran longer than max_trial_duration (1 s)"
    assert finished == f"it had reported its final result ({unfinished})"
    pids = [int(line) for line in (lab.folder / "pids").read_text().split()]
    assert len(pids) == 4
    lab.until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
