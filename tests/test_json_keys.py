"""What scripts and clients get about trials: the keys of `--json`, of HTTP and of Python's dicts, in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.results import result_of
from pitchpipe.runner.effects import AttemptRow
from pitchpipe.server.experiments import Experiments

from .server.asking import Asking
from .stored import MadeExperiment, a_config, a_trial, results, scheduled

EXPECTED = json.loads(Path(__file__).with_suffix(".json").read_text())
GOALS = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "direction": "minimize"}]
LIMIT = {"name": "mb", "constraint": "<= 20"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an experiment of one objective, one with a front, one of families, and a population."""
    directory = tmp_path_factory.mktemp("experiments")
    _make_one(directory / "one")
    _make_front(directory / "front")
    _make_families(directory / "families")
    _make_population(directory / "population")
    return directory


def _make_one(path: Path) -> None:
    made = MadeExperiment(path, a_config(defaults={"lr": 0.0, "units": 16}, keep_close=True), "DONE")
    first, last = a_trial(0, value=0.5, source="defaults"), a_trial(1, value=0.1, attempt=2)
    failed = a_trial(2, "FAILED", reason="KeyError: 'x'", error="Traceback\nKeyError: 'x'", exit_code=1)
    attempt = AttemptRow(
        sequence_id=1,
        attempt=1,
        outcome="FAILED",
        agent="agent",
        start_time=1.0,
        end_time=2.0,
        reason="its agent is gone",
    )
    made.commit(first, last, failed, metrics=results(last, [0.3, {"default": 0.2}]), attempts=[attempt])
    made.store.close()


def _make_front(path: Path) -> None:
    made = MadeExperiment(path, a_config(objectives=[*GOALS, LIMIT]), "DONE")
    values = [(0.0, 2.0, 5.0), (0.2, 1.0, 5.0), (1.0, 0.0, 5.0), (0.0, 0.0, 30.0)]
    made.commit(*(a_trial(number, final="{}", values=each) for number, each in enumerate(values)))
    made.store.close()


def _make_families(path: Path) -> None:
    config = a_config(repeats={"count": 2}, defaults={"lr": 0.0, "units": 16}, keep_close=True)
    made = MadeExperiment(path, config, "DONE")
    trials = [a_trial(number, value=0.5 + number, source="defaults") for number in range(2)]
    for number, trial in enumerate(trials):
        trial.record = repeated(trial.record, 0, number, 40 + number)
    trials[0].record = with_family_end(trials[0].record, "complete")
    made.commit(*trials)
    made.store.close()


def _make_population(path: Path) -> None:
    made = MadeExperiment(path, a_config(), "DONE")
    trials = [a_trial(0, value=0.5), a_trial(1, value=0.1)]
    copied = {"first": 2, "parameters": {"lr": 0.1}, "copied_from": 0, "copied_at": 2, "copied_steps": 1}
    scheduled(trials[1], {"first": 0, "parameters": {"lr": 0.9}}, copied)
    made.commit(*trials)
    made.store.close()


def keys(value: Any) -> str:
    """Return the keys of a JSON value in their order, nested ones in brackets; those of a list by its first item."""
    if isinstance(value, dict):
        return f"{{{' '.join(name + keys(inner) for name, inner in value.items())}}}"
    return f"[{keys(value[0])}]" if isinstance(value, list) and value and keys(value[0]) else ""


def _answers(directory: Path) -> Iterator[tuple[str, Any]]:
    """Yield each question about an experiment with its answer."""
    experiments = Experiments(directory)
    asking = Asking(experiments)
    for name in ("one", "front", "families"):
        base = f"/api/v1/experiments/{name}"
        for path in ("", "/trials", "/trials/1", "/trials/1/metrics", "/trials/1/curve", "/curves"):
            yield f"GET {name}{path}", asking.get(base + path).json
        for path in ("/best", "/front", "/closest", "/history", "/failures"):
            yield f"GET {name}{path}", asking.get(base + path).json
        yield f"GET {name}/events", asking.get(f"{base}/events").json
        exported = asking.get(f"{base}/export").json
        del exported["experiment"]["config"]
        yield f"GET {name}/export", exported
        result = result_of(directory / name)
        yield f"python {name} trials", result.trials
        yield f"python {name} families", result.families
        yield f"python {name} closest", result.closest_to_defaults
    experiments.close()


def test_http_and_python_have_the_same_keys_as_before(directory: Path) -> None:
    assert {question: keys(answer) for question, answer in _answers(directory)} == EXPECTED["answers"]


@pytest.mark.parametrize("words", EXPECTED["verbs"])
def test_verbs_have_the_same_keys_as_before(
    words: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*words.split(), "--dir", str(directory), "--json"])
    assert keys(json.loads(capsys.readouterr().out)) == EXPECTED["verbs"][words]
