"""The examples of the pages for those who come from Hydra's sweepers and from W&B sweeps run."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "use" / "moving"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(folder: Path, command: str) -> None:
    """Run a script that uses Hydra, in a process of its own: Hydra changes the logging there."""
    words = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hydra_proposes_every_combination_as_before(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    basic, ours, _, _ = blocks("hydra.md", "sh")
    assert ours.startswith(basic.strip())
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[0])
    (tmp_path / "config.yaml").write_text("lr: 0.05\nlayers: 1\n")
    run(tmp_path, f"{ours.strip()} hydra.sweep.dir=ours")
    tried = [path.read_text() for path in tmp_path.glob("ours/*/.hydra/overrides.yaml")]
    assert sorted(tried) == [
        f"- lr={lr}\n- layers={layers}\n" for lr, layers in product(("0.05", "0.1"), "12")
    ]


def test_hydra_searches(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> None:
    pytest.importorskip("hydra")
    _, config, _ = blocks("hydra.md", "yaml")
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[0])
    (tmp_path / "config.yaml").write_text(config.replace("n_trials: 8", "n_trials: 2"))
    run(tmp_path, blocks("hydra.md", "sh")[2].strip())
    assert len(json.loads(pitchpipe_run(tmp_path, "export", "./digits"))["trials"]) == 2


def test_script_with_hydra_is_a_trial(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> None:
    pytest.importorskip("hydra")
    (tmp_path / "train.py").write_text(blocks("hydra.md", "python")[1])
    (tmp_path / "config.yaml").write_text("lr: 0.05\nlayers: 1\n")
    (tmp_path / "experiment.yml").write_text(blocks("hydra.md", "yaml")[2])
    words = shlex.split(blocks("hydra.md", "sh")[3])[1:]
    fields = ["--set", "max_trial_number=2", "--set", "trial_start=warm"]
    summary = json.loads(pitchpipe_run(tmp_path, *words, "--json", *fields))
    assert sum(summary["counts"].get(status, 0) for status in ("SUCCEEDED", "EARLY_STOPPED")) == 2
    assert len(list((tmp_path / "runs").glob("*/trials/*/.hydra/overrides.yaml"))) == 2


def test_script_of_wandb_and_its_counterpart_run_by_hand(
    tmp_path: Path, by_hand: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for script in blocks("wandb-sweeps.md", "python")[:2]:
        (tmp_path / "train.py").write_text(script)
        by_hand(tmp_path / "train.py")


def test_sweep_is_an_experiment(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> None:
    (tmp_path / "train.py").write_text(blocks("wandb-sweeps.md", "python")[1])
    (tmp_path / "experiment.yml").write_text(blocks("wandb-sweeps.md", "yaml")[1])
    words = ["run", "experiment.yml", "--json", "--set", "max_trial_number=3"]
    summary = json.loads(pitchpipe_run(tmp_path, *words))
    assert summary["status"] == "DONE"
    assert "FAILED" not in summary["counts"]


def test_dashboard_stays(
    tmp_path: Path, by_hand: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "tune.py").write_text(blocks("wandb-sweeps.md", "python")[2])
    assert by_hand(tmp_path / "tune.py").splitlines()[-1] == "{'SUCCEEDED': 3}"
