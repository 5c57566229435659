"""Schedules at the command line: what a member of a population trained with when, and the same training once more."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.store.reading import ExperimentView

from ..stored import scheduled
from .conftest import Call, Storing, make_trial

POPULATION = {
    "population_size": 4,
    "interval": 3,
    "generations": 3,
    "optimize_mode": "minimize",
    "fraction": 0.5,
}
COPY = {"first": 4, "parameters": {"x": 0.2}, "copied_from": 0, "copied_at": 4, "copied_steps": 1}

# Its result has the parameter of each epoch. It trains for its budget, or for nine epochs, whatever happens.
SCRIPT = """\
import os, signal, sys, pitchpipe

def save(*_):
    pitchpipe.save_checkpoint({"trace": trace})

def save_and_end(*_):
    save()
    os._exit(0)

x = pitchpipe.get_next_parameter()["x"]
saved, mode = pitchpipe.get_checkpoint(), os.environ.get("MODE")
trace = saved.to_dict()["trace"] if saved else []
if mode == "saves at the end":
    signal.signal(signal.SIGTERM, save_and_end)
while len(trace) < (9 if mode in ("free", "saves at the end") else int(pitchpipe.get_budget())):
    if mode == "fails" and len(trace) == 4:
        sys.exit(3)
    trace.append(x)
    pitchpipe.report_intermediate_result(abs(x - 0.3) + 1 / len(trace))
    if mode not in ("never saves", "saves at the end"):
        save()
    if mode == "saves at the end" and len(trace) > pitchpipe.get_budget():
        signal.pause()
pitchpipe.report_final_result({"default": abs(x - 0.3) + 1 / len(trace), "trace": trace})
"""
FUNCTION = f"""\
import pitchpipe

def train(parameters):
    saved = pitchpipe.get_checkpoint()
    trace = saved.to_dict()["trace"] if saved else []
    while len(trace) < int(pitchpipe.get_budget()):
        trace.append(parameters["x"])
        pitchpipe.report_intermediate_result(abs(parameters["x"] - 0.3) + 1 / len(trace))
        pitchpipe.save_checkpoint({{"trace": trace}})
    return {{"default": abs(parameters["x"] - 0.3) + 1 / len(trace), "trace": trace}}

pitchpipe.Experiment(
    train, {{"x": pitchpipe.uniform(0, 1)}}, platform="local", directory=".", experiment_id="calls", seed=3,
    tuner={{"name": "PBT", "class_args": {POPULATION}}}, max_trial_number=4, trial_concurrency=2,
).run()
"""


def settings(**fields: Any) -> dict[str, Any]:
    return {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trial_command": f"{shlex.quote(sys.executable)} trial.py",
        "training_service": {"platform": "local"},
        "kill_grace": "5s",
        **fields,
    }


@pytest.fixture
def population(stored: Storing) -> None:
    """Store two trials, of which one copied the other, and one that runs."""
    trials = [
        make_trial(0, "SUCCEEDED", {"x": 0.1}, 0.5, next_sequence=9),
        make_trial(1, "SUCCEEDED", {"x": 0.2}, 0.75, next_sequence=9),
        make_trial(2, "RUNNING", {"x": 0.3}, next_sequence=2, end_time=None),
    ]
    scheduled(trials[1], {"first": 0, "parameters": {"x": 0.9}}, COPY)
    stored().write("pop", trials)


@pytest.mark.usefixtures("population")
def test_schedule_is_a_table_or_an_object(call: Call) -> None:
    shown = call("trial", "show", "pop", "1", "--schedule")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "trial 1 (T0001) of experiment pop: 1 change of parameters in 9 results",
        "after results  trial  parameters  continues from",
        "0              0      x=0.1",
        "4              1      x=0.2       the checkpoint of trial 0 after 4 results",
    ]
    first, second = (
        {"begin": 0, "parameters": {"x": 0.1}, "trial": 0, "first": 0},
        {"begin": 4, "trial": 1, **COPY},
    )
    del second["copied_steps"]
    assert json.loads(call("trial", "show", "pop", "1", "--schedule", "--json").out) == {
        "id": "pop",
        "sequence_id": 1,
        "trial_id": "T0001",
        "results": 9,
        "changes": 1,
        "steps": [{**first, "copied_from": None, "copied_at": None}, second],
    }
    assert "0 changes of parameters in 2 results" in call("trial", "show", "pop", "2", "--schedule").out


@pytest.mark.usefixtures("population")
def test_best_trial_and_its_facts_say_that_its_parameters_are_its_last_ones(call: Call) -> None:
    status = call("status", "pop")
    told = "the parameters changed once while it trained, and these are the last ones"
    assert f"  {told} (pitchpipe trial show pop 1 --schedule)\n" in status.out
    assert json.loads(call("status", "pop", "--json").out)["best"]["parameter_changes"] == 1
    assert f"  {told}: --schedule shows all\n" in call("trial", "show", "pop", "1").out
    assert told not in call("trial", "show", "pop", "0").out


def test_experiment_without_a_population_and_an_unknown_trial_are_refused(
    call: Call, three: list[Any], population: None
) -> None:
    refused = call("trial", "show", "first", "0", "--schedule")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(
        "error: no trial of experiment first has a schedule: none continued with other"
    )
    unknown = call("trial", "show", "pop", "7", "--schedule")
    assert (unknown.code, unknown.err) == (
        2,
        "error: there is no trial '7' in experiment pop: it has trials 0 to 2\n",
    )


def rerun(folder: Path, number: int, *words: str) -> tuple[int, dict[str, Any], str]:
    """Run a trial again in a process of its own; return the exit code, the object and what it told."""
    words = ("trial", "rerun", str(folder), str(number), "--json", *words)
    command = [sys.executable, "-P", "-m", "pitchpipe", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


def is_retrained(folder: Path) -> None:
    """Check that the schedules of a search are what its trials trained with, and that this is what they get again."""
    with ExperimentView(folder) as view:
        trials = [*view.details()]
        schedules = view.schedules([trial.sequence_id for trial in trials])
    for trial, schedule in zip(trials, schedules, strict=True):
        assert [schedule.parameters_at(epoch)["x"] for epoch in range(9)] == trial.final["trace"]
    changes = [schedule.changes for schedule in schedules]
    number = changes.index(max(changes))
    code, again, _ = rerun(folder, number)
    assert changes[number] > 0
    assert (code, again["final"], len(again["intermediate"])) == (0, trials[number].final, 9)


def test_rerun_of_a_script_changes_its_parameters_as_the_search_did(
    tmp_path: Path, directory: Path, call: Call
) -> None:
    (tmp_path / "trial.py").write_text(SCRIPT)
    config = tmp_path / "experiment.yml"
    more = {"tuner": {"name": "PBT", "class_args": POPULATION}, "max_trial_number": 4, "trial_concurrency": 2}
    config.write_text(json.dumps(settings(seed=3, **more)))
    assert call("run", config, "--experiment-id", "scripts", "--json").code == 0
    is_retrained(directory / "scripts")


def test_rerun_of_a_function_changes_its_parameters_as_the_search_did(
    tmp_path: Path, by_hand: Callable[..., str]
) -> None:
    (tmp_path / "search.py").write_text(FUNCTION)
    by_hand(tmp_path / "search.py")
    is_retrained(tmp_path / "calls")


@pytest.fixture
def scripted(tmp_path: Path, stored: Storing) -> Callable[[str], Path]:
    """Return a function that stores a trial with three steps of three epochs, for a script in a mode."""

    def store(mode: str) -> Path:
        (tmp_path / "trial.py").write_text(SCRIPT)
        config = ExperimentConfig.from_dict(
            settings(trial_code_directory=str(tmp_path), trial_environment={"MODE": mode})
        )
        steps = [{"first": 3 * place, "parameters": {"x": x}} for place, x in enumerate((0.5, 0.25, 0.125))]
        trial = make_trial(0, "SUCCEEDED", {"x": 0.125}, 0.5, next_sequence=9, budget=9.0)
        return stored(more=config.canonical()).write("steps", [scheduled(trial, *steps)]).path

    return store


def test_script_that_obeys_no_budget_is_paused_where_its_parameters_change(
    scripted: Callable[[str], Path],
) -> None:
    code, again, told = rerun(scripted("free"), 0)
    assert (code, again["final"]["trace"]) == (0, [0.5] * 3 + [0.25] * 3 + [0.125] * 3)
    assert len(again["intermediate"]) == 9
    assert "a schedule of 3 steps\n" in told
    assert 'after 3 results: {"x": 0.25}\n' in told


def test_script_that_saves_when_it_is_to_end_continues_from_there(scripted: Callable[[str], Path]) -> None:
    code, again, told = rerun(scripted("saves at the end"), 0)
    assert (code, again["final"]["trace"]) == (0, [0.5] * 4 + [0.25] * 3 + [0.125] * 2)
    assert "its checkpoint is that after 4 results, not 3\n" in told


def test_set_changes_a_parameter_in_all_steps(scripted: Callable[[str], Path]) -> None:
    code, again, _ = rerun(scripted("obeys"), 0, "--set", "x=0.75")
    assert (code, again["final"]["trace"]) == (0, [0.75] * 9)


@pytest.mark.parametrize(
    ("mode", "said", "count"),
    [
        ("never saves", "it saved no checkpoint after 3 results, where its parameters change", 3),
        ("fails", "it ended with exit code 3", 4),
    ],
)
def test_rerun_that_cannot_follow_its_schedule_answers_1(
    scripted: Callable[[str], Path], mode: str, said: str, count: int
) -> None:
    code, again, told = rerun(scripted(mode), 0)
    assert (code, len(again["intermediate"])) == (1, count)
    assert said in told
