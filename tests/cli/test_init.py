"""`pitchpipe init`: an experiment.yml from a script."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pitchpipe.cli.script_facts import read_script
from pitchpipe.config import ExperimentConfig, load_config

from .conftest import Call
from .init_scripts import SCRIPT


def written(path: str | Path = "experiment.yml") -> ExperimentConfig:
    """Return what was written; constructing its tuner each time would take most of the time."""
    return load_config(path, check_plugins=False)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a training script in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    return Path("train.py")


def test_fraction_of_one_can_be_tried_right_after_init(call: Call, script: Path) -> None:
    script.write_text(
        "import argparse, pitchpipe\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--subsample', type=float, default=1.0)\n"
        "share = p.parse_args().subsample\n"
        "assert 0 < share <= 1, share\n"
        "pitchpipe.report_final_result(share)\n"
    )
    assert call("init", script, "--yes").code == 0
    tried = call("validate", "experiment.yml", "--try")
    assert tried.code == 0, tried.out + tried.err


@pytest.mark.parametrize(
    ("library", "arguments", "missing"),
    [("keras", "", False), ("keras", "final=False", True), ("lightgbm", "", True), ("catboost", "", True)],
)
def test_callback_reports_by_itself(library: str, arguments: str, missing: bool) -> None:
    module = f"pitchpipe.integrations.{library}"
    facts = read_script(f"from {module} import PitchpipeCallback\nfit([PitchpipeCallback({arguments})])")
    assert (facts.reports.has_intermediate, facts.reports.has_final) == (True, not missing)


def test_init_by_options_alone(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "shell.yml"
    words = ["--command", "sh run.sh", "--param", "x=quniform:0:1:0.25", "--param", "k=choice:a,2,true"]
    called = call("init", *words, "--tuner", "random", "--assessor", "Medianstop", "-o", path)
    assert called.code == 0, called.err
    config = written(path)
    assert config.search_space == {
        "x": {"_type": "quniform", "_value": [0, 1, 0.25]},
        "k": {"_type": "choice", "_value": ["a", 2, True]},
    }
    assert config.trial_command == "sh run.sh"
    assert (config.tuner.name or "").lower() == "random"
    assert config.assessor is not None
    assert "assuming that lower results are better" in called.out


def test_init_writes_the_command_relative_to_the_file(call: Call, script: Path) -> None:
    Path("configs").mkdir()
    assert call("init", script, "--yes", "-o", "configs/e.yml").code == 0
    assert written("configs/e.yml").trial_command == "python ../train.py"


def test_init_asks_on_a_terminal(script: Path) -> None:
    ours, its = pty.openpty()
    answers = ["uniform:0:2", "", "-", "what", "choice:0.1,0.2", "n", "higher", "12", "", ""]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", "init", str(script)],
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(its)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    said, _ = process.communicate(timeout=60)
    os.close(ours)

    assert process.returncode == 0, said
    assert "unknown type 'what'" in said
    config = written()
    assert config.search_space == {
        "lr": {"_type": "uniform", "_value": [0, 2]},
        "units": {"_type": "lograndint", "_value": [16, 257]},
        "drop": {"_type": "choice", "_value": [0.1, 0.2]},
    }
    assert config.max_trial_number == 12
    assert config.objectives[0].direction == "maximize"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_false_that_the_command_cannot_pass_is_not_tuned_and_warned_of(
    call: Call, script: Path, encoding: str
) -> None:
    options = [
        "'--bn', action=argparse.BooleanOptionalAction, default=True",
        "'--depth', type=int, default=5",
    ]
    added = "".join(f"p.add_argument({one})\n" for one in ("'--fast', action='store_true'", *options))
    text = f"import argparse\np = argparse.ArgumentParser()\n{added}print(p.parse_args())\n"
    script.write_text(text, encoding=encoding)
    assert call("init", script, "--yes").code == 0
    found = written()
    assert list(found.search_space or {}) == ["depth"]
    assert "# bn is not tuned: it stays true" in Path("experiment.yml").read_text()

    specs = ["bn=choice:true,false", "fast=choice:true,false", "depth=choice:null,3"]
    call("init", script, "--yes", "--force", *(word for spec in specs for word in ("--param", spec)))
    depth, bn = (line for line in call("validate", "experiment.yml").err.splitlines() if "warning" in line)
    assert "{args} passes nothing for bn: false, so train.py would use its default True: " in bn
    assert "{args} passes nothing for depth: null, so train.py would use its default 5: " in depth
