"""Every example runs as its README says, cut down to a few trials, and does what it is there to show."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EPOCHS = 15  # of the digits' 60
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def examples(tree: Path, tmp_path: Path) -> Path:
    """Copy the examples, to change them."""
    target = tmp_path / "examples"
    shutil.copytree(tree / "examples", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def shorten(folder: Path) -> None:
    """Let the trials of the digits train for fewer epochs."""
    script = folder / "train.py"
    text = script.read_text()
    assert text.count("EPOCHS = 60\n") == 1
    script.write_text(text.replace("EPOCHS = 60\n", f"EPOCHS = {EPOCHS}\n"))


@pytest.fixture
def tune(
    examples: Path, pitchpipe_run: Callable[..., str]
) -> Callable[..., tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return a function that runs an example's experiment; it returns the summary and the exported trials."""

    def tune(example: str, *fields: str, config: str = "experiment.yml") -> Any:
        words = [word for field in fields for word in ("--set", field)]
        summary = json.loads(pitchpipe_run(examples / example, "run", config, "--json", *words))
        trials = json.loads(pitchpipe_run(examples / example, "export", summary["id"]))["trials"]
        assert summary["status"] == "DONE"
        return summary, trials

    return tune


def test_digits_improves_and_stops_hopeless_trials_early(examples: Path, tune: Callable[..., Any]) -> None:
    shorten(examples / "digits")
    # Warm: scikit-learn is imported once.
    fields = ["max_trial_number=8", "training_service={platform: local}", "trial_start=warm"]
    summary, trials = tune("digits", *fields)
    assert len(trials) == 8
    assert summary["best"]["value"] > 0.93
    stopped = [trial for trial in trials if trial["status"] == "EARLY_STOPPED"]
    assert stopped
    assert all(len(trial["intermediate"]) < EPOCHS and "median" in trial["reason"] for trial in stopped)
    finals = [trial["final"] for trial in trials if trial["status"] == "SUCCEEDED"]
    assert summary["best"]["value"] == max(finals)


def test_custom_tuner_and_assessor_are_loaded_and_used(tune: Callable[..., Any]) -> None:
    summary, trials = tune("custom_tuner", "max_trial_number=18", "trial_concurrency=4")
    assert len(trials) == 18
    assert summary["best"]["value"] < 3.0  # the start is at 24.2, a poor random point stays above 4
    stopped = [trial for trial in trials if trial["status"] == "EARLY_STOPPED"]
    assert stopped
    assert all("no better than" in trial["reason"] for trial in stopped)


def test_custom_tuner_with_wrong_class_args_is_refused_before_anything_starts(
    examples: Path, pitchpipe_run: Callable[..., str]
) -> None:
    folder = examples / "custom_tuner"
    wrong = "tuner.class_args={strats: 10}"
    said = pitchpipe_run(folder, "run", "experiment.yml", "--set", wrong, "--dir", "runs", code=2)
    assert "strats" in said
    assert not (folder / "runs").exists()


def test_shell_script_reports_without_python(tune: Callable[..., Any]) -> None:
    summary, trials = tune("shell_trial", "max_trial_number=3")
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 3
    assert all(trial["final"] == trial["intermediate"][-1] for trial in trials)
    assert summary["best"]["value"] == min(trial["final"] for trial in trials)
    assert summary["defaults"]["gain"] == trials[0]["final"] - summary["best"]["value"]


def test_trade_off_ends_with_a_front(tune: Callable[..., Any]) -> None:
    summary, trials = tune("trade_off", "max_trial_number=5")
    finals = {trial["sequence_id"]: trial["final"] for trial in trials}
    front = [finals[number] for number in summary["front"]["trials"]]
    assert len(trials) == 5
    assert len(front) > 1
    assert all(set(final) == {"error", "terms"} for final in finals.values())
    for one in front:
        assert not any(other["error"] < one["error"] and other["terms"] < one["terms"] for other in front)
    assert summary["front"]["reference"] == {"error": 0.5, "terms": 12.0}
    assert summary["front"]["hypervolume"] > 0


def test_limited_has_a_best_trial_that_keeps_the_limit(tune: Callable[..., Any]) -> None:
    summary, trials = tune("limited", "max_trial_number=7")
    kept = [trial["final"]["size_kb"] for trial in trials if trial["final"]["memory_mb"] <= 4]
    assert summary["best"]["value"] == min(kept)
    assert len(kept) + len(summary["front"]["infeasible"]) == len(trials) == 7


def test_repeats_have_seeds_and_the_best_mean_wins(tune: Callable[..., Any]) -> None:
    summary, trials = tune("repeats", "max_trial_number=10")
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
    by_hand = request.getfixturevalue("by_hand")
    folder = examples / "function_trial"
    output = by_hand(folder / "tune.py", "--trials", "8", "--platform", platform, "--directory", "out")
    assert "DONE: " in output
    assert "learning_rate" in output
    assert next((folder / "out").iterdir()).is_dir()


def test_nni_project_runs_unchanged(examples: Path, tune: Callable[..., Any]) -> None:
    summary, trials = tune("nni", "maxTrialNum=4", config="config.yml")
    assert len(trials) == 4
    assert {(trial["status"], len(trial["intermediate"])) for trial in trials} == {("SUCCEEDED", 5)}
    assert summary["best"]["value"] == min(trial["final"] for trial in trials)
    points = (examples / "nni" / "runs" / summary["id"] / "trials").glob("*/point.txt")
    assert len(list(points)) == 4


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
    examples: Path, by_hand: Callable[..., str], example: str, script: str
) -> None:
    if example == "digits":
        shorten(examples / example)
    assert "Final result: " in by_hand(examples / example / script)


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
