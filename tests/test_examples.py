"""Every example runs as its README says, cut down to a few trials, and does what it is there to show."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BIN = Path(sys.executable).parent
EPOCHS = 15  # of the digits' 60
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the environment of a shell that activated this virtual environment."""
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def examples(tree: Path, tmp_path: Path) -> Path:
    """Copy the examples, to change them."""
    target = tmp_path / "examples"
    shutil.copytree(tree / "examples", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def change(folder: Path, **replacements: str | None) -> None:
    """Replace the values of some lines `key: value` of an example's config; None takes the line out."""
    path = folder / "experiment.yml"
    lines = path.read_text().splitlines()
    for key, value in replacements.items():
        matching = [index for index, line in enumerate(lines) if line.strip().startswith(f"{key}:")]
        assert len(matching) == 1, (key, matching)
        indent = lines[matching[0]][: -len(lines[matching[0]].lstrip())]
        lines[matching[0]] = "" if value is None else f"{indent}{key}: {value}"
    path.write_text("\n".join(lines) + "\n")


def shorten(folder: Path) -> None:
    """Let the trials of the digits train for fewer epochs."""
    script = folder / "train.py"
    text = script.read_text()
    assert text.count("EPOCHS = 60\n") == 1
    script.write_text(text.replace("EPOCHS = 60\n", f"EPOCHS = {EPOCHS}\n"))


def tune(folder: Path, environment: dict[str, str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run an example's experiment; return the summary and the exported trials."""
    place = ["--dir", str(folder / "experiments")]
    summary = json.loads(run(["pitchpipe", "run", "experiment.yml", "--json", *place], folder, environment))
    exported = run(["pitchpipe", "export", summary["id"], "--format", "json", *place], folder, environment)
    return summary, json.loads(exported)["trials"]


def test_digits_improves_and_stops_hopeless_trials_early(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "digits"
    change(folder, max_trial_number="8", platform="local", idle_timeout=None)
    shorten(folder)
    summary, trials = tune(folder, environment)
    assert summary["status"] == "DONE"
    assert len(trials) == 8
    assert summary["best"]["value"] > 0.93
    stopped = [trial for trial in trials if trial["status"] == "EARLY_STOPPED"]
    assert stopped
    assert all(len(trial["intermediate"]) < EPOCHS and "median" in trial["reason"] for trial in stopped)
    finals = [trial["final"] for trial in trials if trial["status"] == "SUCCEEDED"]
    assert summary["best"]["value"] == max(finals)


def test_custom_tuner_and_assessor_are_loaded_and_used(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "custom_tuner"
    change(folder, max_trial_number="18", trial_concurrency="4")
    summary, trials = tune(folder, environment)
    assert summary["status"] == "DONE"
    assert len(trials) == 18
    assert summary["best"]["value"] < 3.0  # the start is at 24.2, a poor random point stays above 4
    stopped = [trial for trial in trials if trial["status"] == "EARLY_STOPPED"]
    assert stopped
    assert all("no better than" in trial["reason"] for trial in stopped)


def test_custom_tuner_with_wrong_class_args_is_refused_before_anything_starts(
    examples: Path, environment: dict[str, str]
) -> None:
    folder = examples / "custom_tuner"
    path = folder / "experiment.yml"
    path.write_text(path.read_text().replace("starts: 10", "strats: 10"))
    command = ["pitchpipe", "run", "experiment.yml", "--dir", str(folder / "experiments")]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "strats" in result.stderr
    assert not (folder / "experiments").exists()


def test_shell_script_reports_without_python(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "shell_trial"
    change(folder, max_trial_number="3")
    summary, trials = tune(folder, environment)
    assert summary["status"] == "DONE"
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 3
    assert all(trial["final"] == trial["intermediate"][-1] for trial in trials)
    assert summary["best"]["value"] == min(trial["final"] for trial in trials)
    assert summary["defaults"]["gain"] == trials[0]["final"] - summary["best"]["value"]


def test_trade_off_ends_with_a_front(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "trade_off"
    change(folder, max_trial_number="5")
    summary, trials = tune(folder, environment)
    finals = {trial["sequence_id"]: trial["final"] for trial in trials}
    front = [finals[number] for number in summary["front"]["trials"]]
    assert len(trials) == 5
    assert len(front) > 1
    assert all(set(final) == {"error", "terms"} for final in finals.values())
    for one in front:
        assert not any(other["error"] < one["error"] and other["terms"] < one["terms"] for other in front)
    assert summary["front"]["reference"] == {"error": 0.5, "terms": 12.0}
    assert summary["front"]["hypervolume"] > 0


def test_limited_has_a_best_trial_that_keeps_the_limit(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "limited"
    change(folder, max_trial_number="7")
    summary, trials = tune(folder, environment)
    kept = [trial["final"]["size_kb"] for trial in trials if trial["final"]["memory_mb"] <= 4]
    assert summary["best"]["value"] == min(kept)
    assert len(kept) + len(summary["front"]["infeasible"]) == len(trials) == 7


def test_repeats_have_seeds_and_the_best_mean_wins(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "repeats"
    change(folder, max_trial_number="10")
    summary, trials = tune(folder, environment)
    best = summary["best"]
    finals = {trial["sequence_id"]: trial["final"] for trial in trials}
    of_best = [finals[number] for number in best["repeats"]["trials"]]
    assert len(trials) == 10
    assert best["value"] == pytest.approx(sum(of_best) / len(of_best))
    assert best["repeats"]["interval"]["default"] > 0
    seeds = {(trial["repeat"], trial["seed"]) for trial in trials}
    assert len(seeds) == len(dict(seeds)) <= 5  # the same for each repeat of all configurations


@pytest.mark.parametrize("platform", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_function_trial_prints_its_best_parameters(
    examples: Path, request: pytest.FixtureRequest, platform: str
) -> None:
    if platform == "ray":
        request.getfixturevalue("shared_ray")
    environment = request.getfixturevalue("environment")  # it names the runtime directory
    folder = examples / "function_trial"
    command = ["python", "tune.py", "--trials", "8", "--platform", platform, "--directory", "out"]
    output = run(command, folder, environment)
    assert "DONE: " in output
    assert "learning_rate" in output
    assert next((folder / "out").iterdir()).is_dir()


def test_nni_project_runs_unchanged(examples: Path, environment: dict[str, str]) -> None:
    folder = examples / "nni"
    (folder / "config.yml").rename(folder / "experiment.yml")
    change(folder, maxTrialNum="4")
    summary, trials = tune(folder, environment)
    assert (summary["status"], len(trials)) == ("DONE", 4)
    assert {(trial["status"], len(trial["intermediate"])) for trial in trials} == {("SUCCEEDED", 5)}
    assert summary["best"]["value"] == min(trial["final"] for trial in trials)
    trials_folder = folder / "experiments" / summary["id"] / "trials"
    assert sorted(path.name for path in trials_folder.glob("*/point.txt")) == ["point.txt"] * 4


@pytest.mark.parametrize(
    ("example", "script"),
    [
        ("digits", "train.py"),
        ("custom_tuner", "trial.py"),
        ("trade_off", "fit.py"),
        ("limited", "pack.py"),
        ("repeats", "queue_cost.py"),
    ],
)
def test_script_runs_alone_and_prints_what_it_would_report(
    examples: Path, environment: dict[str, str], example: str, script: str
) -> None:
    output = run(["python", script], examples / example, environment)
    assert "Final result: " in output


def test_notebook_shows_tables_a_figure_and_its_progress(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    notebook = nbformat.read(examples / "notebook" / "search.ipynb", as_version=4)
    NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    outputs = [[output.get("data", {}) for output in cell.get("outputs", ())] for cell in notebook.cells]
    searched, table, figure, _, experiment, last = outputs[1:]
    assert "DONE" in searched[-1]["text/html"]
    assert "parameters.units" in table[-1]["text/html"]
    assert "application/vnd.plotly.v1+json" in figure[-1]
    assert any("8 of 8 trials" in data.get("text/html", "") for data in experiment)
    assert last[-1]["text/plain"].startswith("('DONE', ")
