"""The manager with schedulers and with dispatchers that come back from checkpoints, on imagined trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.store.reading import ExperimentView

from .experiments import comes_back_alike, plugin, resumed, run, simulated, trials_of, viewed


def stages(parameters: Mapping[str, Any]) -> SimulatedRun:
    """Nine results towards what the parameters decide, a checkpoint after each."""
    goal = (parameters["x"] - 1.0) ** 2
    return SimulatedRun(goal, [goal + 1.0 / (step + 1) for step in range(9)], checkpoint_every=1)


def plain(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(parameters["x"])


MINIMIZE = {"optimize_mode": "minimize"}
SCHEDULED: dict[str, dict[str, Any]] = {
    "Hyperband": {
        "tuner": {"name": "Hyperband", "class_args": {"R": 9, "eta": 3, **MINIMIZE}},
        "max_trial_number": 14,
        "trial_concurrency": 4,
    },
    "PBT": {
        "tuner": {"name": "PBT", "class_args": {"population_size": 5, "interval": 3, **MINIMIZE}},
        "max_trial_number": 5,
        "trial_concurrency": 2,
    },
}


def test_hyperband_pauses_the_rungs_and_resumes_the_best(tmp_path: Path) -> None:
    assert run(simulated(tmp_path, stages, **SCHEDULED["Hyperband"])) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    lengths = sorted(trial.next_sequence for trial in trials[:9])
    assert lengths == [1] * 6 + [3] * 2 + [9]
    best = min(trials[:9], key=lambda trial: (json.loads(trial.record)["parameters"]["x"] - 1.0) ** 2)
    assert (best.status, best.attempt, best.budget) == (TrialStatus.SUCCEEDED, 3, 9.0)
    assert {trial.status for trial in trials} == {TrialStatus.SUCCEEDED, TrialStatus.EARLY_STOPPED}
    assert "is not among the best 3 of 9 with a budget of " in " ".join(trial.reason for trial in trials)


def test_hyperband_compares_final_results_of_trials_that_report_nothing_else(tmp_path: Path) -> None:
    fields = {**SCHEDULED["Hyperband"], "max_trial_number": 9}
    manager = simulated(tmp_path, lambda parameters: SimulatedRun((parameters["x"] - 1.0) ** 2), **fields)
    assert run(manager) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    (best,) = [trial for trial in trials if trial.status is TrialStatus.SUCCEEDED]
    assert (len(trials), best.attempt, best.budget) == (9, 3, 9.0)
    assert best.values == (min((json.loads(t.record)["parameters"]["x"] - 1.0) ** 2 for t in trials),)
    assert {trial.status for trial in trials if trial is not best} == {TrialStatus.EARLY_STOPPED}


def test_pbt_lets_the_worst_continue_from_the_best(tmp_path: Path) -> None:
    assert run(simulated(tmp_path, stages, **SCHEDULED["PBT"])) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert [(trial.status, trial.next_sequence) for trial in trials] == [(TrialStatus.SUCCEEDED, 9)] * 5
    with viewed(tmp_path) as store:
        resumes = [json.loads(payload) for _, code, payload in store.replies() if code == "RE"]
    heirs = [resume for resume in resumes if resume["checkpoint_of"] is not None]
    assert 0 < len(heirs) < len(resumes)
    last = {heir["trial_job_id"]: heir["parameters"] for heir in heirs}
    parameters = {trial.trial_id: json.loads(trial.record)["parameters"] for trial in trials}
    assert parameters.items() >= last.items()


def test_schedules_of_a_population_are_what_the_tuner_asked_for(tmp_path: Path) -> None:
    assert run(simulated(tmp_path, stages, **SCHEDULED["PBT"])) is ExperimentStatus.DONE
    numbers = {trial.trial_id: trial.sequence_id for trial in trials_of(tmp_path)}
    with viewed(tmp_path) as store:
        resumes = [json.loads(payload) for _, code, payload in store.replies() if code == "RE"]
    with ExperimentView(tmp_path / "exp") as view:
        schedules = view.schedules([*numbers.values()])
    asked = [
        (numbers[one["trial_job_id"]], numbers[one["checkpoint_of"]], one["parameters"])
        for one in resumes
        if one["checkpoint_of"] is not None
    ]
    copies = [
        (one.sequence_id, step) for one in schedules for step in one.own if step.copied_from is not None
    ]
    made = [(number, step.copied_from, step.parameters) for number, step in copies]
    assert sorted(made, key=repr) == sorted(asked, key=repr)
    assert copies
    assert {step.first for _, step in copies} <= {3, 6, 9}  # after a generation, perhaps the last
    assert {one.results for one in schedules} == {9}


STAGED: dict[str, dict[str, Any]] = {
    "ASHA": {"R": 9, "eta": 3},
    "BOHB": {"max_budget": 9, "min_points_in_model": 2},
    "DEHB": {"max_budget": 9},
    "PB2": {"population_size": 5, "interval": 3, "fraction": 0.4},
}


@pytest.mark.parametrize("name", list(STAGED))
def test_stages_of_every_scheduler_are_run_by_the_manager(name: str, tmp_path: Path) -> None:
    number = 5 if name == "PB2" else 16
    tuner = {"name": name, "class_args": {**MINIMIZE, **STAGED[name]}}
    manager = simulated(tmp_path, stages, tuner=tuner, max_trial_number=number, trial_concurrency=3)
    assert run(manager) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert len(trials) == number
    assert {trial.status for trial in trials} <= {TrialStatus.SUCCEEDED, TrialStatus.EARLY_STOPPED}
    full = [trial for trial in trials if trial.status is TrialStatus.SUCCEEDED]
    assert {trial.next_sequence for trial in full} == {9}
    assert any(trial.attempt > 1 for trial in full)  # paused at the end of a stage, and resumed
    if name != "PB2":
        lengths = {trial.next_sequence for trial in trials if trial.status is TrialStatus.EARLY_STOPPED}
        assert lengths == {1, 3}
        assert all(trial.reason for trial in trials if trial.status is TrialStatus.EARLY_STOPPED)


@pytest.mark.parametrize("name", ["Auto", "TPE"])
def test_any_tuner_goes_with_the_asha_assessor(name: str, tmp_path: Path) -> None:
    both = {
        "tuner": {"name": name, "class_args": MINIMIZE},
        "assessor": {"name": "ASHA", "class_args": {**MINIMIZE, "max_t": 9}},
    }
    fields: dict[str, Any] = {**both, "max_trial_number": 18, "trial_concurrency": 3}
    assert run(simulated(tmp_path, stages, **fields)) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    stopped = [trial for trial in trials if trial.status is TrialStatus.EARLY_STOPPED]
    assert 8 <= len(stopped) < 18
    assert all(trial.next_sequence in (1, 3) for trial in stopped)
    assert all("is not among the best" in trial.reason for trial in stopped)
    assert {trial.status for trial in trials} == {TrialStatus.EARLY_STOPPED, TrialStatus.SUCCEEDED}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCHEDULED))
def test_killed_scheduler_comes_back_as_if_nothing_had_happened(name: str, tmp_path: Path) -> None:
    kills = [(5, False), (20, True), (35, False)]
    comes_back_alike(tmp_path, kills, stages, **SCHEDULED[name])


# --------------------------------------------------------------------------- the dispatcher's checkpoints

EAGER = '''
import time
from pitchpipe.tuners import RandomTuner

class Slow(RandomTuner):
    """Notes the results that each process received; takes its time to learn, so that it is worth saving."""
    def __init__(self, log, pause, seed=None):
        super().__init__(seed)
        self.log, self.pause, self.results = log, pause, 0
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        time.sleep(self.pause)
        self.results += 1
        with open(self.log, "a") as file:
            print(parameter_id, self.results, file=file)
'''


@pytest.fixture(autouse=True)
def _any_state_is_worth_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.dispatcher.checkpointing.WORTH_AT_END_S", 0.0)  # but in processes


def slow_tuner(tmp_path: Path, number: int = 6, pause: float = 0.0) -> Manager:
    tuner = plugin(tmp_path, "slow.Slow", EAGER, log=str(tmp_path / "log"), pause=pause)
    return simulated(tmp_path, plain, tuner=tuner, max_trial_number=number, trial_concurrency=1)


def stop_after(manager: Manager, number: int) -> None:
    def look() -> None:
        if manager.runner is not None and manager.runner.counts[TrialStatus.SUCCEEDED] >= number:
            manager.stop()

    manager.watch(look)
    assert run(manager) is ExperimentStatus.STOPPED


def received(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_stopped_tuner_comes_back_from_its_checkpoint_and_continues_alike(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    run(slow_tuner(whole))
    stop_after(slow_tuner(tmp_path), 3)
    assert [path.suffix for path in (tmp_path / "exp" / "checkpoint").iterdir()] == [".pkl"]
    assert run(resumed(tmp_path, plain)) is ExperimentStatus.DONE
    assert received(tmp_path) == received(whole)  # no result was sent twice
    ran = [[t.record for t in trials_of(d) if t.status is TrialStatus.SUCCEEDED] for d in (whole, tmp_path)]
    assert ran[0] == ran[1]


def harm(path: Path, how: str) -> None:
    """Make a checkpoint unusable."""
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "damaged":
        path.write_bytes(b"nonsense")
    elif how == "of an earlier version":
        path.write_bytes(data.replace(b"checkpoint 3", b"checkpoint 2", 1))
    else:
        tuner = path.parents[2] / "code" / "slow.py"
        tuner.write_text(tuner.read_text() + "# mended\n")


@pytest.mark.parametrize(
    "how",
    [
        "damaged",
        "missing",
        "of an earlier version",
        pytest.param("of other code", marks=pytest.mark.dispatcher_process),
    ],
)
def test_unusable_checkpoint_costs_time_only(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stop_after(slow_tuner(tmp_path, 4, pause=0.12 if how == "of other code" else 0.0), 2)
    (path,) = (tmp_path / "exp" / "checkpoint").iterdir()
    harm(path, how)
    assert run(resumed(tmp_path, plain)) is ExperimentStatus.DONE
    assert path.name in caplog.text
    assert received(tmp_path) == ["0 1", "1 2", "0 1", "1 2", "2 3", "3 4"]


FORGETFUL = """
    def __setstate__(self, state):
        self.__dict__.update(state)
        {harm}
"""


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param("del self.results", id="fails at the first result"),
        pytest.param("raise KeyError('results')", id="refuses to load"),
        pytest.param("import os; os._exit(7)", id="ends at the load", marks=pytest.mark.dispatcher_process),
    ],
)
def test_checkpoint_that_fails_when_it_is_used_costs_time_only(
    harm: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = slow_tuner(tmp_path, 4, pause=0.12 if "_exit" in harm else 0.0)
    (tmp_path / "code" / "slow.py").write_text(EAGER + FORGETFUL.format(harm=harm))
    stop_after(manager, 2)
    (path,) = (tmp_path / "exp" / "checkpoint").iterdir()
    assert run(resumed(tmp_path, plain)) is ExperimentStatus.DONE
    assert "left aside" in caplog.text
    assert not path.exists()
    assert received(tmp_path)[-4:] == ["0 1", "1 2", "2 3", "3 4"]
    assert [trial.parameter_id for trial in trials_of(tmp_path)] == [0, 1, 2, 3]


def test_tuner_that_fails_with_its_checkpoint_and_without_is_at_fault(tmp_path: Path) -> None:
    manager = slow_tuner(tmp_path, 4)
    broken = EAGER.replace("self.results += 1", "self.results += 1 // (parameter_id != 2)")
    (tmp_path / "code" / "slow.py").write_text(broken)
    stop_after(manager, 2)
    assert run(resumed(tmp_path, plain)) is ExperimentStatus.ERROR
    assert received(tmp_path) == ["0 1", "1 2", "0 1", "1 2"]


def test_suggestions_that_come_while_all_ends_are_trials_of_the_resumed_experiment(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"trial_concurrency": 4, "max_trial_number": 12}
    stop_after(simulated(tmp_path, plain, **fields), 4)
    run(resumed(tmp_path, plain))
    trials = trials_of(tmp_path)
    assert [trial.parameter_id for trial in trials] == list(range(12))
    assert sum(trial.status is TrialStatus.SUCCEEDED for trial in trials) >= 8


FROZEN = """
import os, signal
from pathlib import Path
from pitchpipe.tuners import RandomTuner

class Frozen(RandomTuner):
    def __init__(self, marker, seed=None):
        super().__init__(seed)
        self.marker = Path(marker)
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        if parameter_id == 2 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.dispatcher_process
@pytest.mark.slow
def test_hanging_dispatcher_is_replaced_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tuner = plugin(tmp_path, "frozen.Frozen", FROZEN, marker=str(tmp_path / "marker"))
    # Long enough for a start, too: a dispatcher gives no sign of life before its plug-ins are loaded.
    manager = simulated(tmp_path, plain, tuner=tuner, max_trial_number=5, dispatcher_timeout="5s")
    assert run(manager) is ExperimentStatus.DONE
    assert "no sign of life for 5 s" in caplog.text
    assert [trial.parameter_id for trial in trials_of(tmp_path)] == [0, 1, 2, 3, 4]
