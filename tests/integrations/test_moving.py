"""The examples of the pages for those who come from Hydra's sweepers and from W&B sweeps run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "moving"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(folder: Path, command: str) -> str:
    """Run a command of a page, with the programs of this environment; nothing goes to W&B."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "WANDB_MODE": "offline", "PITCHPIPE_DIR": str(folder / "runs")}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(folder: Path, search: str) -> int:
    return len(json.loads(run(folder, f"pitchpipe export {search}"))["trials"])


def test_hydra_proposes_every_combination_as_before(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    basic, ours, _, _ = blocks("hydra.md", "sh")
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[0])
    (tmp_path / "config.yaml").write_text("lr: 0.05\nlayers: 1\n")
    run(tmp_path, f"{basic.strip()} hydra.sweep.dir=basic")
    run(tmp_path, f"{ours.strip()} hydra.sweep.dir=ours")
    tried = [
        {(folder / ".hydra" / "overrides.yaml").read_text() for folder in (tmp_path / sweep).glob("[0-9]*")}
        for sweep in ("basic", "ours")
    ]
    assert tried[0] == tried[1]
    assert len(tried[0]) == 4


def test_hydra_searches_and_continues(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    _, config, _ = blocks("hydra.md", "yaml")
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[0])
    command = blocks("hydra.md", "sh")[2].strip()
    for most in (2, 3):
        (tmp_path / "config.yaml").write_text(config.replace("n_trials: 8", f"n_trials: {most}"))
        run(tmp_path, command)
        assert counts(tmp_path, "./digits") == most


def test_script_with_hydra_is_a_trial(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[1])
    (tmp_path / "config.yaml").write_text("lr: 0.05\nlayers: 1\n")
    config = blocks("hydra.md", "yaml")[2].replace("max_trial_number: 8", "max_trial_number: 2")
    (tmp_path / "experiment.yml").write_text(config)
    summary = json.loads(run(tmp_path, f"{blocks('hydra.md', 'sh')[3].strip()} --json"))
    assert sum(summary["counts"].get(status, 0) for status in ("SUCCEEDED", "EARLY_STOPPED")) == 2
    outputs = Path(summary["folder"]) / "trials"
    assert len(list(outputs.glob("*/.hydra/overrides.yaml"))) == 2


def test_script_of_wandb_and_its_counterpart_run_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    for script in blocks("wandb-sweeps.md", "python")[:2]:
        (tmp_path / "train.py").write_text(script)
        run(tmp_path, "python train.py")


def test_sweep_is_an_experiment(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(blocks("wandb-sweeps.md", "python")[1])
    config = blocks("wandb-sweeps.md", "yaml")[1]
    (tmp_path / "experiment.yml").write_text(config.replace("max_trial_number: 20", "max_trial_number: 3"))
    summary = json.loads(run(tmp_path, "pitchpipe run experiment.yml --json"))
    assert summary["status"] == "DONE"
    assert "FAILED" not in summary["counts"]


def test_dashboard_stays(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    (tmp_path / "tune.py").write_text(blocks("wandb-sweeps.md", "python")[2])
    assert run(tmp_path, "python tune.py").splitlines()[-1] == "{'SUCCEEDED': 3}"
