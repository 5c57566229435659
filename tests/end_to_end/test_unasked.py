"""Scripts that report and never ask for their parameters tune nothing: the user learns of it, without false alarms."""

from __future__ import annotations

from typing import Any

import pytest

NOTHING = "the search tunes nothing, because no trial has asked for its parameters"
REPORT = "import pitchpipe; pitchpipe.report_final_result(0.5)"

UNASKED = {
    "reports": REPORT,
    "reports in a child": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {REPORT!r}])",
    "reports as under NNI": "import nni; nni.report_intermediate_result(1); nni.report_final_result(0.5)",
    "asks only in an experiment of another tuner": (
        f"import os\nif 'OTHER' in os.environ: import nni; nni.get_next_parameter()\n{REPORT}"
    ),
}
ASKED = {
    "asks": f"import pitchpipe; pitchpipe.get_next_parameter()\n{REPORT}",
    "asks after a report": (
        "import pitchpipe; pitchpipe.report_intermediate_result(0); pitchpipe.get_next_parameter()\n" + REPORT
    ),
    "asks as under NNI": f"import os\nif 'NNI_PLATFORM' in os.environ: import nni; nni.get_next_parameter()\n{REPORT}",
    "reads the file": f"import json, os\njson.load(open(os.environ['PITCHPIPE_PARAMETERS']))\n{REPORT}",
    "reports in a child of the process that asks": (
        "import subprocess, sys, pitchpipe; pitchpipe.get_next_parameter()\n"
        f"subprocess.run([sys.executable, '-c', {REPORT!r}])"
    ),
    "reports in a brother of the process that asks": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import pitchpipe; pitchpipe.get_next_parameter()'])\n"
        f"subprocess.run([sys.executable, '-c', {REPORT!r}])"
    ),
    "appends its reports": (
        "import os\nopen(os.environ['PITCHPIPE_REPORTS'], 'a').write('{\"final\": 0.5}\\n')"
    ),
}


def ended(lab: Any, script: str, **fields: Any) -> str:
    """Run two trials; return all that the command printed."""
    config = lab.write(script, max_trial_number=2, **fields)
    done = lab.run("run", config, "--experiment-id", "exp")
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", UNASKED)
def test_script_that_never_asks_is_named(case: str, lab: Any) -> None:
    said = ended(lab, UNASKED[case])
    assert said.count(f"note: {NOTHING}; use what pitchpipe.get_next_parameter() returns") == 1
    assert {trial["reason"] for trial in lab.trials()} == {"never asked for its parameters"}


@pytest.mark.parametrize("case", ASKED)
def test_script_that_knows_its_parameters_is_not(case: str, lab: Any) -> None:
    said = ended(lab, ASKED[case])
    assert "tunes nothing" not in said
    assert {(trial["status"], trial["reason"]) for trial in lab.trials()} == {("SUCCEEDED", "")}


@pytest.mark.parametrize("command", ["python trial.py {args}", "python trial.py {x}"])
def test_parameters_in_the_command_are_known(command: str, lab: Any) -> None:
    said = ended(lab, REPORT, trial_command=command)
    assert "tunes nothing" not in said
