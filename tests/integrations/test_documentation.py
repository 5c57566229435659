"""The examples of docs/use/integrations.md run: by hand, and as trials where they are training scripts."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from ..lazy import Lazy

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "use" / "integrations.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]


def blocks(language: str) -> dict[str, str]:
    """Return the last code block of one language in each section that has one, by its title."""
    shown = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return {part.partition("\n")[0]: block for part in SECTIONS for block in shown.findall(part)}


EXAMPLES, DIFFS = blocks("python"), blocks("diff")
TRAININGS = {
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
    "CatBoost": "catboost",
    "Keras": "keras",
    "Lightning": "lightning",
    "Hugging Face": "transformers",
}


def test_every_example_is_run() -> None:
    others = {"scikit-learn", "Hugging Face search", "Hydra", "torchrun", "Trackers"}
    assert set(EXAMPLES) == {*others, *TRAININGS}


def test_search_of_scikit_learn_finds_good_parameters(tmp_path: Path, by_hand: Callable[..., str]) -> None:
    (tmp_path / "search.py").write_text(EXAMPLES["scikit-learn"].replace("n_iter=15", "n_iter=4"))
    with Lazy("joblib").parallel_config("threading"):
        score = float(by_hand(tmp_path / "search.py").split()[0])
    assert 0.9 < score <= 1


def before(example: str, diff: list[str]) -> str:
    """Return a script of the page as it was before the lines of a diff were changed."""
    lines, at, removed = example.splitlines(), 0, list[str]()
    for line in diff:
        if line.startswith("-"):
            removed.append(line[1:])
        else:
            at = lines.index(line[1:], at)
            lines[at : at + 1] = removed
            at, removed = at + len(removed), []
    return "\n".join(lines)


@pytest.mark.parametrize("title", ["scikit-learn", "XGBoost", "Keras", "Lightning"])
def test_script_needs_five_changed_lines_at_most(
    tmp_path: Path, by_hand: Callable[..., str], title: str
) -> None:
    if title in TRAININGS and find_spec(TRAININGS[title]) is None:
        pytest.skip(f"{TRAININGS[title]} is not installed")
    diff = DIFFS[title].splitlines()
    assert max(sum(line.startswith(sign) for line in diff) for sign in "+-") <= 5
    script = before(EXAMPLES[title], diff)
    assert "itchpipe" not in script
    (tmp_path / "train.py").write_text(script.replace("n_iter=15", "n_iter=1"))
    with Lazy("joblib").parallel_config("threading"):
        by_hand(tmp_path / "train.py")


def test_search_of_hugging_face_finds_parameters_of_lora(tmp_path: Path, by_hand: Callable[..., str]) -> None:
    if find_spec("transformers") is None or find_spec("peft") is None:
        pytest.skip("transformers or peft is not installed")
    (tmp_path / "search.py").write_text(EXAMPLES["Hugging Face search"].replace("n_trials=4", "n_trials=2"))
    printed = by_hand(tmp_path / "search.py").splitlines()[-1]
    assert "'lora_alpha'" in printed
    assert 0 < float(printed.split()[0]) < 2


def test_sweeper_of_hydra_is_found(tmp_path: Path) -> None:
    if find_spec("hydra") is None:
        pytest.skip("hydra is not installed")
    config, command = blocks("yaml")["Hydra"], blocks("sh")["Hydra"]
    (tmp_path / "train.py").write_text(EXAMPLES["Hydra"])
    (tmp_path / "config.yaml").write_text(config.replace("n_trials: 20", "n_trials: 1"))
    words = [sys.executable, *command.split()[1:], "hydra.sweep.dir=sweep"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "sweep" / "optimization_results.yaml").read_text()
    assert "activation: " in written
    assert "model.x: " in written


@pytest.fixture(params=sorted(TRAININGS))
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a training script of the page."""
    if find_spec(TRAININGS[request.param]) is None:
        pytest.skip(f"{TRAININGS[request.param]} is not installed")
    (tmp_path / "train.py").write_text(EXAMPLES[request.param])
    return tmp_path / "train.py"


def test_training_runs_by_hand(script: Path, by_hand: Callable[..., str]) -> None:
    output = by_hand(script)
    own = "report_final_result" in script.read_text()
    assert ("Final result" in output, "Intermediate" in output) == (own, False)


@pytest.fixture
def trials_of(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> Callable[[str], list[dict[str, Any]]]:
    """Return a function that runs two trials of a command, which succeed, and returns them."""

    def trials_of(command: str) -> list[dict[str, Any]]:
        config: dict[str, Any] = {
            "trial_command": command,
            "trial_start": "warm",  # the libraries are imported once
            "max_trial_number": 2,
            "search_space": {"learning_rate": {"_type": "loguniform", "_value": [0.001, 0.1]}},
            "training_service": {"platform": "local"},
        }
        (tmp_path / "experiment.yml").write_text(json.dumps(config))
        summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json"))
        trials = json.loads(pitchpipe_run(tmp_path, "export", summary["id"]))["trials"]
        assert summary["counts"] == {"SUCCEEDED": 2}, failures(Path(summary["folder"]), trials)
        return trials

    return trials_of


def failures(folder: Path, trials: list[dict[str, Any]]) -> str:
    """Return why trials failed, and what they wrote."""
    return "\n".join(
        f"trial {trial['sequence_id']}: {trial['reason']}\n"
        + (folder / "trials" / str(trial["sequence_id"]) / "stderr").read_text()
        for trial in trials
        if trial["status"] == "FAILED"
    )


def default(result: Any) -> float:
    return result["default"] if isinstance(result, dict) else result


def test_training_runs_as_a_trial(script: Path, trials_of: Callable[..., Any]) -> None:
    trials = trials_of("python train.py")
    finals = [default(trial["final"]) for trial in trials]
    assert finals == pytest.approx([default(trial["intermediate"][-1]) for trial in trials])
    assert all(len(trial["intermediate"]) in (3, 20) for trial in trials)
    assert len(set(finals)) == 2


SAME_PARAMETERS = """
rates = [None] * dist.get_world_size()
dist.all_gather_object(rates, parameters["learning_rate"])
assert len(rates) == 2 and len(set(rates)) == 1, rates
"""
# A thread of Gloo that outlives the group aborts the process in some exits. The kernel lists a thread for some
# milliseconds after it was joined.
NO_THREADS = """
import pathlib
import time

def threads():
    for path in pathlib.Path("/proc/self/task").glob("*/comm"):
        try:
            yield path.read_text()
        except OSError:  # it ended since it was listed
            continue

end = time.monotonic() + 10
while any("gloo" in name for name in threads()):
    assert time.monotonic() < end, list(threads())
"""


def test_all_ranks_get_the_parameters_and_one_reports(tmp_path: Path, trials_of: Callable[..., Any]) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    before, report, after = EXAMPLES["torchrun"].rpartition("pitchpipe.report_final_result")
    (tmp_path / "train.py").write_text(f"{before}{SAME_PARAMETERS}{report}{after}{NO_THREADS}")
    (command,) = re.findall(r"`trial_command: (torchrun .*)`", PAGE)
    for trial in trials_of(command):
        assert len(trial["intermediate"]) == 3
        assert trial["final"] == trial["intermediate"][-1]


HANGING = """
import os, pathlib, signal
import pitchpipe
rank = os.environ["RANK"]
pathlib.Path(os.environ["PITCHPIPE_OUTPUT_DIR"], "pid-" + rank).write_text(str(os.getpid()))
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
pitchpipe.report_intermediate_result(1.0)
signal.pause()
"""


def test_all_ranks_end_with_a_stopped_trial(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    (tmp_path / "train.py").write_text(HANGING)
    config = {
        "trial_command": "torchrun --standalone --nproc-per-node 2 train.py",
        "max_trial_number": 1,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "assessor": {"name": "Threshold", "class_args": {"lower": 2.0}},
        "training_service": {"platform": "local"},
    }
    (tmp_path / "experiment.yml").write_text(json.dumps(config))
    # No trial succeeds.
    summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json", code=1))
    assert summary["counts"] == {"EARLY_STOPPED": 1}
    pids = [int(path.read_text()) for path in tmp_path.rglob("pid-*")]
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)
