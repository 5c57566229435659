"""Code that changes during a search: users learn from which trial on, and may have all trials run a snapshot."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from pitchpipe.store import ExperimentFolder

from .running import Lab

SCRIPT = """
import pitchpipe
from model import value
pitchpipe.report_final_result(value(pitchpipe.get_next_parameter()["x"]))
"""
# Trial 1 ends with another model than the one it has loaded: it ran the one before.
MODEL = """
import pathlib, pitchpipe
def value(x):
    if pitchpipe.get_sequence_id() == 1:
        me = pathlib.Path({path!r})
        me.write_text(me.read_text() + "# edited")
    return x
"""
NOTE = "note: the code changed: model.py from trial 2 on; results before and after may not be comparable"


def searched(lab: Lab, **fields: Any) -> str:
    """Run three trials one after the other, in the second of which the model is edited; return what was printed."""
    (lab.folder / "train.py").write_text(SCRIPT)
    (lab.folder / "model.py").write_text(MODEL.format(path=str(lab.folder / "model.py")))
    command = f"{shlex.quote(sys.executable)} train.py"
    config = lab.write("", trial_command=command, trial_concurrency=1, **fields)
    done = lab.run("run", config, "--experiment-id", "exp")
    return done.out + done.err


def test_edit_during_a_search_is_told(lab: Lab) -> None:
    assert searched(lab).count(NOTE) == 1
    codes = [trial["code"] for trial in lab.trials()]
    assert codes[0] == codes[1] != codes[2]


def test_edit_before_a_resume_is_told(lab: Lab) -> None:
    searched(lab)
    before = "since the last trial"
    assert before not in lab.run("resume", "exp", "--max-trial-number", "4").out
    (lab.folder / "train.py").write_text(SCRIPT + "# again")
    resumed = lab.run("resume", "exp", "--max-trial-number", "5").out
    assert f"train.py changed {before}: results before and after may not be comparable" in resumed


def test_edit_before_a_resume_in_the_background_is_told(lab: Lab) -> None:
    searched(lab)
    (lab.folder / "train.py").write_text(SCRIPT + "# again")
    program = Path(sys.executable).with_name("pitchpipe")
    words = [program, "resume", "exp", "--max-trial-number", "4", "--detach", "--dir", lab.directory]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert "train.py changed since the last trial" in done.stdout
    assert ExperimentFolder(lab.directory / "exp").wait_until_unmanaged(60.0)


def test_snapshot_runs_what_was_there_at_the_start(lab: Lab) -> None:
    assert "the code changed" not in searched(lab, trial_code="snapshot")
    assert len({trial["code"] for trial in lab.trials()}) == 1
    assert (lab.folder / "model.py").read_text().endswith("# edited")


def test_function_with_other_code_is_told(lab: Lab) -> None:
    program = lab.folder / "search.py"

    def health(text: str, trials: int) -> list[str]:
        program.write_text(text)
        command = [sys.executable, program, str(trials), lab.directory]
        done = subprocess.run(command, cwd=lab.folder, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    assert not any("the code changed" in note for note in health(PROGRAM, 2))
    assert not any(
        "the code changed" in note for note in health(PROGRAM.replace("json, sys", "json, os, sys"), 3)
    )
    notes = health(PROGRAM.replace("+ 0", "+ 1"), 4)
    assert any(note.startswith("the code changed: objective() from trial 3 on; ") for note in notes)


PROGRAM = """
import json, sys
from pitchpipe import Experiment, uniform

def objective(parameters):
    return parameters["x"] + 0

if __name__ == "__main__":
    result = Experiment(
        objective, {"x": uniform(0, 1)}, max_trial_number=int(sys.argv[1]), tuner="Random",
        platform="local", directory=sys.argv[2], experiment_id="exp", resume_if_exists=True,
    ).run()
    print(json.dumps(result.health))
"""
