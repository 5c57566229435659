"""Scripts that report and never ask for their parameters tune nothing: the user learns of it, without false alarms."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from .running import Lab

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


def ended(lab: Lab, scripts: Sequence[str], **fields: Any) -> str:
    """Run each script as one trial of an experiment; return all that the command printed."""
    for number, script in enumerate(scripts):
        (lab.folder / f"{number}.py").write_text(script)
    command = f"exec {shlex.quote(sys.executable)} $PITCHPIPE_SEQUENCE_ID.py"
    fields = {"trial_command": command, "max_trial_number": len(scripts), **fields}
    done = lab.run("run", lab.write("", **fields), "--experiment-id", "exp")
    return done.out + done.err


def test_scripts_that_never_ask_are_named(lab: Lab) -> None:
    said = ended(lab, list(UNASKED.values()))
    assert said.count(f"note: {NOTHING}; use what pitchpipe.get_next_parameter() returns") == 1
    reasons = dict(zip(UNASKED, [trial["reason"] for trial in lab.trials()], strict=True))
    assert reasons == dict.fromkeys(UNASKED, "never asked for its parameters")


def test_scripts_that_know_their_parameters_are_not(lab: Lab) -> None:
    said = ended(lab, list(ASKED.values()))
    assert "tunes nothing" not in said
    ends = dict(zip(ASKED, [(trial["status"], trial["reason"]) for trial in lab.trials()], strict=True))
    assert ends == dict.fromkeys(ASKED, ("SUCCEEDED", ""))


def test_parameters_in_the_command_are_known(lab: Lab) -> None:
    said = ended(lab, [REPORT], trial_command="python 0.py {x}")
    assert "tunes nothing" not in said
