"""What ordinary people do: arguments of the program, commands that end too soon, nightly jobs that start again."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from pitchpipe.protocol import StartedWhileLoadingError
from pitchpipe.runner.verdicts import LEFT_RUNNING
from pitchpipe.store import ExperimentFolder

from .running import Lab

CONFIG = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--trials", type=int, default=1)
parser.add_argument("--data", default="d.csv")
args = parser.parse_args()
"""
MODEL = """
from config import args
def objective(parameters):
    import sys
    return {"default": len(args.data), "arguments": len(sys.argv)}
"""
SEARCH = """
import pitchpipe
from config import args
from model import objective
if __name__ == "__main__":
    result = pitchpipe.Experiment(
        objective, {"x": pitchpipe.uniform(0, 1)}, platform="local", tuner="Random", max_trial_number=args.trials
    ).run(progress=False)
    print([(trial["status"], trial["final"]) for trial in result.trials])
"""


def test_module_that_parses_the_arguments_of_the_program(lab: Lab) -> None:
    for name, text in (("config.py", CONFIG), ("model.py", MODEL), ("search.py", SEARCH)):
        (lab.folder / name).write_text(text)
    command = [sys.executable, "search.py", "--trials", "2", "--data", "longer.csv"]
    done = subprocess.run(command, cwd=lab.folder, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == str([("SUCCEEDED", {"default": 10, "arguments": 5})] * 2)


def test_command_that_leaves_its_training_in_the_background(lab: Lab) -> None:
    (lab.folder / "train.py").write_text(
        "import signal, pitchpipe; signal.pause(); pitchpipe.report_final_result(1)"
    )
    config = lab.write(
        f"{shlex.quote(sys.executable)} train.py > log.txt 2>&1 &\n", "run.sh", max_trial_number=1
    )
    lab.run("run", config, "--experiment-id", "exp")
    (trial,) = lab.trials()
    assert (trial["status"], trial["reason"]) == ("FAILED", LEFT_RUNNING)


def test_experiment_that_is_done_stays_as_it_is_when_it_is_started_again(lab: Lab) -> None:
    config = lab.write("import pitchpipe; pitchpipe.get_next_parameter(); pitchpipe.report_final_result(1)")
    words = ("run", config, "--experiment-id", "exp", "--resume-if-exists")
    lab.run(*words)
    (before,) = lab.query("SELECT run_time FROM experiment")
    for _ in range(3):
        again = lab.run(*words)
        assert "left aside" not in again.out + again.err
    assert lab.query("SELECT run_time FROM experiment") == [before]


def test_sum_of_tenths_keeps_a_limit(lab: Lab) -> None:
    script = (
        "import pitchpipe; pitchpipe.get_next_parameter()\n"
        "pitchpipe.report_final_result({'acc': 0.9, 's': 0.1 + 0.2})"
    )
    objectives = [{"name": "acc", "direction": "maximize"}, {"name": "s", "constraint": "<= 0.3"}]
    done = lab.run_json(lab.write(script, objectives=objectives, max_trial_number=1))
    assert done["best"]["sequence_id"] == 0
    assert "closest" not in done


UNGUARDED = """
import pitchpipe
from pitchpipe.tuners import Tuner as Base
def objective(parameters):
    return parameters["x"] ** 2
class Tuner(Base):
    def update_search_space(self, space): pass
    def generate_parameters(self, number): return {"x": 0.5}
result = pitchpipe.Experiment(
    objective, {"x": pitchpipe.uniform(0, 1)}, platform="local", max_trial_number=2, experiment_id="exp", **OPTIONS
).run(progress=False)
"""
NESTED = """
def objective(parameters):
    import pitchpipe
    inner = pitchpipe.Experiment(
        lambda inside: inside["y"], {"y": pitchpipe.choice([1, 2])}, platform="local", tuner="GridSearch",
        direction="maximize"
    ).run(progress=False)
    return inner.best.value
"""


def _python(lab: Lab, text: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PITCHPIPE_DIR": str(lab.directory)}
    command = [sys.executable, "-c", text]
    # Bounded: what this guards against would go on for ever.
    return subprocess.run(
        command, cwd=lab.folder, check=False, capture_output=True, text=True, env=environment, timeout=100
    )


def test_module_that_starts_an_experiment_when_a_trial_imports_it(lab: Lab) -> None:
    (lab.folder / "tune.py").write_text(UNGUARDED.replace("**OPTIONS", "tuner='Random'"))
    done = _python(lab, "import tune; print([trial['status'] for trial in tune.result.trials])")
    assert done.stdout.splitlines()[-1] == str(["FAILED"] * 2)
    assert len(list(ExperimentFolder.all(lab.directory))) == 1
    assert all(
        StartedWhileLoadingError.__name__ in error for (error,) in lab.query("SELECT error FROM trials")
    )


def test_module_that_starts_an_experiment_when_its_dispatcher_imports_it(lab: Lab) -> None:
    options = "tuner={'class_name': 'tune.Tuner', 'code_directory': '.'}"
    (lab.folder / "tune.py").write_text(UNGUARDED.replace("**OPTIONS", options))
    done = _python(lab, "import tune")
    assert StartedWhileLoadingError.__name__ in done.stderr
    assert not list(ExperimentFolder.all(lab.directory))


def test_trial_that_runs_an_experiment_in_its_function(lab: Lab) -> None:
    (lab.folder / "tune.py").write_text(NESTED)
    start = (
        "tune.objective, {'x': pitchpipe.uniform(0, 1)}, platform='local', tuner='Random', max_trial_number=1"
    )
    done = _python(
        lab, f"import pitchpipe, tune; print(pitchpipe.Experiment({start}).run(progress=False).best.value)"
    )
    assert done.stdout.splitlines()[-1] == "2.0", done.stderr
