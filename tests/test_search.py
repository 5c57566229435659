"""`Search`, `minimize` and `maximize`: trials that their caller runs, in one process or in several."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pitchpipe
from pitchpipe import (
    Experiment,
    Interrupted,
    OtherSearchError,
    Search,
    TrialOverError,
    UnknownTrialError,
    loguniform,
    maximize,
    minimize,
    randint,
    report_intermediate_result,
    uniform,
)
from pitchpipe.cli.app import run
from pitchpipe.dispatcher import PluginFailed
from pitchpipe.progress import line_of
from pitchpipe.results import BestTrial
from pitchpipe.store import ExperimentFolder, FolderError
from pitchpipe.store.reading import ExperimentView
from pitchpipe.tuners import NoMoreTrialError

SPACE: dict[str, Any] = {"x": uniform(-5, 5), "n": randint(0, 4)}
MEDIAN = {"name": "Medianstop", "class_args": {"start_step": 0}}


def square(parameters: dict[str, Any]) -> float:
    return parameters["x"] ** 2 + parameters["n"]


def best_of(result: pitchpipe.ExperimentResult) -> BestTrial:
    assert isinstance(result.best, BestTrial)
    return result.best


# --------------------------------------------------------------------------- asking and telling

STEPS = st.sampled_from(["ask", "tell", "nan", "fail", "report", "give back", "reopen"])


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), seed=st.integers(0, 100))
def test_each_trial_is_asked_for_and_told_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("searches") / "one"
    space = {"n": randint(0, 8)}
    search = Search(space, folder=folder, tuner="Random", seed=seed)
    running: list[Any] = []
    told: dict[str, str] = {}
    asked: dict[str, Any] = {}
    for step in steps:
        if step == "reopen":
            search.close()
            search = Search(folder=folder)
        elif step == "ask":
            try:
                trial = search.ask()
            except NoMoreTrialError:
                assert len(asked) == 8
                continue
            assert asked.setdefault(trial.id, trial.parameters) == trial.parameters
            running.append(trial)
        elif running:
            trial = running[0]
            if step == "report":
                trial.report(0, 0.5)
                continue
            del running[0]
            if step == "give back":
                told.update({trial.id: "FAILED"} if search.give_back(trial) == "FAILED" else {})
            else:
                value = math.nan if step == "nan" else 1.0
                told[trial.id] = search.fail(trial) if step == "fail" else search.tell(trial, value)
                assert told[trial.id] == ("SUCCEEDED" if step == "tell" else "FAILED")
    result = search.results()
    assert len({point["n"] for point in asked.values()}) == len(asked)
    assert {row["trial_id"]: row["status"] for row in result.trials if row["end_time"]} == told
    left = {trial.id for trial in running}
    assert [trial.id for trial in search.running()] == [number for number in asked if number in left]
    search.close()


def test_results_are_those_that_were_told() -> None:
    objectives = [{"name": "loss", "direction": "minimize"}]
    with Search(SPACE, tuner="Random", seed=1, objectives=objectives) as search:
        for _ in range(5):
            trial = search.ask()
            assert search.tell(trial, {"loss": square(trial.parameters), "note": 1}) == "SUCCEEDED"
        result = search.results()
        assert best_of(search.results()).value == min(row["value"] for row in result.trials)
    assert [square(row["parameters"]) for row in result.trials] == [row["value"] for row in result.trials]
    assert result.trials[0]["final"]["note"] == 1
    assert result.plot_history().data


def test_without_a_folder_results_go_with_their_search() -> None:
    search = Search(SPACE, tuner="Random")
    search.tell(search.ask(), 1.0)
    result = search.results()
    place = search.folder
    del search
    assert len(result.trials) == 1
    del result
    assert not place.exists()


@pytest.mark.parametrize("tuner", ["Auto", "TPE"])
def test_search_that_is_reopened_goes_on_as_if_it_had_not_been(tmp_path: Path, tuner: str) -> None:
    def points(name: str, every: int) -> list[Any]:
        found = []
        search = Search(SPACE, folder=tmp_path / name, tuner=tuner, seed=3)
        for n in range(9):
            trial = search.ask()
            found.append(trial.parameters)
            search.tell(trial, square(trial.parameters))
            if n % every == every - 1:
                search.close()
                search = Search(SPACE, folder=tmp_path / name, tuner=tuner, seed=3)
        search.close()
        return found

    assert points("reopened", 4) == points("whole", 100)


def test_searches_in_one_folder_know_what_the_others_try(tmp_path: Path) -> None:
    """With a tuner that cannot be repeated, the results reach it as imported ones."""
    (tmp_path / "mine.py").write_text(
        "import os\nfrom pitchpipe import Tuner\n"
        "class Rolling(Tuner):\n"
        "    def __init__(self): self.known = []\n"
        "    def update_search_space(self, search_space): pass\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n"
        "        return {'x': os.urandom(4)[0] / 255, 'known': len(self.known)}\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): self.known.append(value)\n"
        "    def import_data(self, data): self.known += [item['value'] for item in data]\n"
    )
    tuner = {"class_name": "mine.Rolling", "code_directory": str(tmp_path)}
    one = Search({"x": uniform(0, 1)}, folder=tmp_path / "shared", tuner=tuner)
    other = Search({"x": uniform(0, 1)}, folder=tmp_path / "shared", tuner=tuner)
    first, second = one.ask(), other.ask()
    assert [trial.id for trial in one.running()] == [first.id, second.id]
    other.tell(first, 1.0)
    one.tell(second, 2.0)
    assert other.ask().parameters["known"] == one.ask().parameters["known"] == 2
    one.close()
    other.close()


def test_trials_of_threads_are_kept_apart() -> None:
    search = Search(SPACE, tuner="Random", n_trials=12)

    def work() -> None:
        while True:
            try:
                trial = search.ask()
            except NoMoreTrialError:
                return
            search.tell(trial, float(trial.number))

    with ThreadPoolExecutor(3) as threads:
        for working in [threads.submit(work) for _ in range(3)]:
            working.result()
    result = search.results()
    assert result.counts == {"SUCCEEDED": 12}
    assert [row["value"] for row in result.trials] == list(range(12))


# --------------------------------------------------------------------------- bad input

BAD_VALUES = ["high", {"other": 1}, [1], None, object()]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_result_that_is_not_one_is_refused_and_the_trial_waits_for_a_better_one(value: Any) -> None:
    with Search(SPACE, tuner="Random") as search:
        trial = search.ask()
        with pytest.raises((ValueError, TypeError)):
            search.tell(trial, value)
        with pytest.raises((ValueError, TypeError)):
            trial.report(0, value)
        assert search.tell(trial, 1.0) == "SUCCEEDED"


def test_trial_is_told_once_and_only_if_there_is_one() -> None:
    with Search(SPACE, tuner="Random") as search:
        trial = search.ask()
        search.tell(trial.id, 1.0)
        with pytest.raises(TrialOverError, match="trial 0 is SUCCEEDED: it has been told already"):
            search.tell(trial, 2.0)
        with pytest.raises(TrialOverError):
            trial.report(0, 1.0)
        with pytest.raises(UnknownTrialError, match="has no trial 'nobody'"):
            search.tell("nobody", 1.0)
        with pytest.raises(UnknownTrialError, match="has no trial 7"):
            search.tell(7, 1.0)
        with pytest.raises(TypeError, match="is not a trial: give what `ask` returned"):
            search.tell({"x": 1}, 1.0)  # type: ignore[arg-type]
        assert search.tell(search.ask().number, 2.0) == "SUCCEEDED"
        assert best_of(search.results()).value == 1.0


def test_result_of_an_attempt_that_was_given_back_comes_too_late() -> None:
    with Search(SPACE, tuner="Random") as search:
        first = search.ask()
        assert search.give_back(first) == "WAITING"
        again = search.ask()
        assert (again.id, again.attempt, again.parameters) == (first.id, 2, first.parameters)
        with pytest.raises(TrialOverError, match="was begun again"):
            search.tell(first, 1.0)
        assert search.tell(again, 2.0) == "SUCCEEDED"


@pytest.mark.parametrize("first", [0, 1, 7])
def test_steps_rise_by_one_from_any_first_step(tmp_path: Path, first: int) -> None:
    with Search(SPACE, tuner="Random", folder=tmp_path / "one") as search:
        trial = search.ask()
        trial.report(first, 0.5)
        trial.report(first + 1, 0.25)
        trial.report(first, 9.0)  # again: it changes nothing
        for step in (first + 3, first - 1, -1):
            with pytest.raises(ValueError, match=rf"step {step}, the next one is {first + 2}: steps rise"):
                trial.report(step, 0.1)
    with Search(folder=tmp_path / "one") as search:  # another process continues it
        (trial,) = search.running()
        trial.report(first + 2, 0.125)
        assert search.tell(trial) == "SUCCEEDED"
        assert best_of(search.results()).value == 0.125
        assert [row["intermediate_results"] for row in search.results().trials] == [3]


def test_constraints_that_contradict_each_other_are_no_problem_without_samples() -> None:
    Search(SPACE, tuner="GridSearch", constraints=["x > 0.5", "x < 0.2"]).close()


def test_closed_search_says_so() -> None:
    with Search(SPACE) as search:
        trial = search.ask()
    for late in (search.ask, lambda: search.tell(trial, 1.0), lambda: trial.report(0, 1.0)):
        with pytest.raises(ValueError, match=r"the search in .* is closed"):
            late()
    assert len(search.results().trials) == 1


def test_search_without_a_success_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def fail(parameters: dict[str, Any]) -> float:
        raise ValueError("no luck")

    minimize(fail, SPACE, 3, catch=ValueError)
    assert "no trial has succeeded: 3 trials failed: ValueError: no luck" in caplog.text


def test_folder_keeps_to_its_search(tmp_path: Path) -> None:
    Search(SPACE, folder=tmp_path / "one", seed=1).close()
    with pytest.raises(OtherSearchError, match=r"has another search_space \("):
        Search({"x": uniform(0, 1)}, folder=tmp_path / "one")
    with pytest.raises(OtherSearchError, match="has another objectives"):
        Search(SPACE, folder=tmp_path / "one", direction="maximize")
    with pytest.raises(TypeError, match="takes no n_trials: give the space, too"):
        Search(folder=tmp_path / "one", n_trials=3)
    Search(SPACE, folder=tmp_path / "one", n_trials=3).close()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("mine")
    with pytest.raises(FolderError, match=r"has other files in it \(todo.txt\)"):
        Search(SPACE, folder=tmp_path / "notes")


@pytest.mark.parametrize(("first", "then", "limit"), [(2, 3, 3), (3, 2, 3), (None, 2, None), (2, None, 2)])
def test_limit_is_the_highest_that_was_given(
    tmp_path: Path, first: int | None, then: int | None, limit: int | None
) -> None:
    Search(SPACE, folder=tmp_path / "one", n_trials=first).close()
    for _ in range(2):
        Search(SPACE, folder=tmp_path / "one", n_trials=then).close()
    with ExperimentView(ExperimentFolder(tmp_path / "one")) as view:
        assert view.summary().limits["max_trial_number"] == limit


def test_folder_of_an_experiment_is_left_to_it(tmp_path: Path) -> None:
    experiment = Experiment(
        "true", SPACE, platform="local", directory=tmp_path, experiment_id="exp", tuner={"name": "Random"}
    )
    experiment.create()
    with pytest.raises(FolderError, match="is run by process"):
        Search(folder=tmp_path / "exp")
    experiment.stop()
    experiment.run()
    with pytest.raises(OtherSearchError, match=r"runs its own trials: pitchpipe.Experiment.restore\(.*exp"):
        Search(folder=tmp_path / "exp")


def test_failure_of_a_tuner_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\nfrom pitchpipe import Tuner\n"
        "class Moody(Tuner):\n"
        "    def update_search_space(self, search_space): pass\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n"
        f"        if Path({str(tmp_path)!r}, 'bad').exists(): raise OSError('no mood')\n"
        "        return {'x': 0.5}\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass\n"
    )
    tuner = {"class_name": "mine.Moody", "code_directory": str(tmp_path)}
    with Search({"x": uniform(0, 1)}, folder=tmp_path / "one", tuner=tuner) as search:
        first = search.ask()
        (tmp_path / "bad").touch()
        with pytest.raises(PluginFailed, match="no mood"):
            search.ask()
        (tmp_path / "bad").unlink()
        assert search.ask().number == 1
        search.tell(first, 1.0)
        assert search.results().counts == {"RUNNING": 1, "SUCCEEDED": 1}


# --------------------------------------------------------------------------- stopping early, several objectives


def test_assessor_stops_a_bad_trial() -> None:
    with Search(SPACE, tuner="Random", assessor=MEDIAN, direction="minimize") as search:
        for _ in range(3):
            good = search.ask()
            for step in range(3):
                good.report(step, 0.5)
            assert not good.should_stop()
            search.tell(good)
        bad = search.ask()
        bad.report(0, 100.0)
        assert bad.should_stop()
        assert search.tell(bad, 100.0) == "EARLY_STOPPED"
        assert "median" in search.results().trials[3]["reason"]


def test_several_objectives_have_a_front() -> None:
    goals = [{"name": "loss", "direction": "minimize"}, {"name": "accuracy", "direction": "maximize"}]
    with Search(SPACE, tuner="NSGA", objectives=goals) as search:
        for values in ((1.0, 0.5), (2.0, 0.9), (3.0, 0.1)):
            search.tell(search.ask(), dict(zip(("loss", "accuracy"), values, strict=True)))
        with pytest.raises(ValueError, match="'accuracy'"):
            search.tell(search.ask(), {"loss": 1.0})
        front = search.results().best
    assert isinstance(front, list)
    assert sorted(one.sequence_id for one in front) == [0, 1]


def test_starting_points_come_first() -> None:
    with Search(SPACE, defaults={"x": 1.0, "n": 2}, initial_points=[{"x": 0.0, "n": 0}]) as search:
        assert [search.ask().parameters for _ in range(2)] == [{"x": 1.0, "n": 2}, {"x": 0.0, "n": 0}]


# --------------------------------------------------------------------------- minimize and maximize


def test_minimum_and_maximum_are_found() -> None:
    space = {"x": uniform(-5, 5)}
    found = minimize(lambda parameters: (parameters["x"] - 1) ** 2, space, 20, tuner="GP", seed=1)
    assert best_of(found).parameters["x"] == pytest.approx(1, abs=0.2)
    assert (found.status, len(found.trials)) == ("DONE", 20)
    result = maximize(lambda parameters: {"height": -abs(parameters["x"])}, space, 10, metric="height")
    assert result.directions == {"height": "maximize"}
    assert best_of(result).value == max(row["value"] for row in result.trials)


def test_function_may_report_and_returns_its_last_report() -> None:
    def train(parameters: dict[str, Any]) -> None:
        assert pitchpipe.get_next_parameter() == parameters
        assert pitchpipe.get_trial_id() != "STANDALONE"
        for step in range(3):
            report_intermediate_result(parameters["x"] + step)

    result = minimize(train, SPACE, 3, tuner="Random")
    assert [row["value"] for row in result.trials] == [row["parameters"]["x"] + 2 for row in result.trials]
    assert pitchpipe.get_trial_id() == "STANDALONE"


@pytest.mark.parametrize("value", ["warming up", {"phase": 1}, [1], None])
def test_function_may_report_what_is_not_a_number_on_the_way(value: Any) -> None:
    def evaluate(parameters: dict[str, Any]) -> float:
        report_intermediate_result(value)
        return parameters["x"]

    result = minimize(evaluate, SPACE, 3, tuner="Random", assessor="Medianstop")
    assert [trial["status"] for trial in result.trials] == ["SUCCEEDED"] * 3


def test_bad_trials_end_in_their_report() -> None:
    ended = []

    def train(parameters: dict[str, Any]) -> float:
        for _ in range(3):
            report_intermediate_result(parameters["n"] * 100.0)
        ended.append(parameters["n"])
        return parameters["n"] * 100.0

    points = [{"n": n} for n in (0, 1, 3, 2)]
    given: dict[str, Any] = {"initial_points": points, "assessor": MEDIAN, "tuner": "Random"}
    result = minimize(train, {"n": randint(0, 4)}, 4, **given)
    assert result.counts["EARLY_STOPPED"] == 4 - len(ended) > 0


def test_caught_errors_are_failed_trials_and_others_end_the_search() -> None:
    def odd(parameters: dict[str, Any]) -> float:
        if parameters["n"] == 3:
            raise ArithmeticError("three")
        return parameters["n"]

    result = minimize(odd, {"n": randint(0, 4)}, 10, catch=ArithmeticError)
    assert result.counts == {"FAILED": 1, "SUCCEEDED": 3}
    failed = next(row for row in result.trials if row["status"] == "FAILED")
    assert failed["error"].endswith("ArithmeticError: three")
    with pytest.raises(ArithmeticError):
        minimize(odd, {"n": randint(0, 4)}, 10)


def test_interrupted_search_has_its_results_and_tries_the_trial_again(tmp_path: Path) -> None:
    calls: list[Any] = []

    def impatient(parameters: dict[str, Any]) -> float:
        calls.append(parameters)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return square(parameters)

    with pytest.raises(Interrupted) as caught:
        minimize(impatient, SPACE, 5, folder=tmp_path / "one", tuner="Random")
    assert str(caught.value) == "the search was interrupted: the same call continues it"
    assert caught.value.result.counts == {"SUCCEEDED": 2, "WAITING": 1}
    assert caught.value.result.status == "STOPPED"
    result = minimize(impatient, SPACE, 5, folder=tmp_path / "one", tuner="Random")
    assert result.counts == {"SUCCEEDED": 5}
    assert calls[2] == calls[3]
    assert minimize(impatient, SPACE, 6, folder=tmp_path / "one").counts == {"SUCCEEDED": 6}


def test_interrupt_while_the_tuner_thinks_keeps_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pitchpipe.tuners.random import RandomTuner

    propose, asked = RandomTuner.generate_parameters, []

    def interrupted(tuner: RandomTuner, *args: Any, **kwargs: Any) -> Any:
        asked.append(1)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return propose(tuner, *args, **kwargs)

    monkeypatch.setattr(RandomTuner, "generate_parameters", interrupted)
    given: dict[str, Any] = {"tuner": "Random", "folder": tmp_path / "search", "progress": False}
    with pytest.raises(Interrupted) as caught:
        minimize(lambda parameters: parameters["x"], {"x": uniform(0, 1)}, 6, **given)
    assert len(caught.value.result.trials) == 3
    assert len(minimize(lambda parameters: parameters["x"], {"x": uniform(0, 1)}, 6, **given).trials) == 6


def test_progress_is_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    minimize(lambda parameters: parameters["x"], {"x": uniform(0, 1)}, 3, tuner="Random")
    assert "3 of 3 trials" in capsys.readouterr().err
    minimize(lambda parameters: parameters["x"], {"x": uniform(0, 1)}, 3, tuner="Random", progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("told", "repeats", "found"),
    [
        (
            [(0.0, 1.0), (0.1, 0.2), (1.0, 0.0), (2.0, 2.0)],
            1,
            "| 4 succeeded | front: 3 trials, knee trial 1",
        ),
        ([(0.1, 0.2)], 5, "best: loss 0.1, ms 0.2 (family 0)"),
        ([(0.0, 1.0), (0.1, 0.2), (1.0, 0.0)], 5, "front: 3 families, knee family 1"),
    ],
)
def test_progress_of_several_objectives_is_the_front(
    told: list[tuple[float, float]], repeats: int, found: str
) -> None:
    objectives = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "direction": "minimize"}]
    with Search(SPACE, objectives=objectives, tuner="Random") as search:
        for loss, ms in told:
            search.tell(search.ask(), {"loss": loss, "ms": ms})
        families = search._session.runner.families
        families.repeats = replace(families.repeats, count=repeats)
        line, *_ = line_of(search._session.runner)
    assert line.endswith(found)


def test_time_is_over_before_the_first_trial() -> None:
    result = minimize(square, SPACE, 5, timeout=0.0)
    assert (result.counts, result.status, result.reason) == ({}, "STOPPED", "timeout (0 s) is over")


# --------------------------------------------------------------------------- several processes, and the command line

# A turn of TPE lasts long enough for two to overlap, where nothing locks the folder.
WORKER = """
import sys
from pitchpipe import minimize, uniform, randint
def f(parameters):
    if len(sys.argv) > 2:
        print(parameters["x"], flush=True)
        sys.stdin.read()
    return parameters["x"] ** 2
minimize(f, {"x": uniform(-5, 5), "n": randint(0, 4)}, 12, folder=sys.argv[1], tuner="TPE")
"""


def shown_as_running(folder: Path) -> tuple[bool, bool, list[str], str]:
    """Return `running` of list and of status, what `list --running` lists, and the status as list shows it."""
    place = ("--dir", str(folder.parent))

    def called(*words: str) -> str:
        with redirect_stdout(io.StringIO()) as shown:
            assert run([*words, *place]) == 0
        return shown.getvalue()

    (listed,) = json.loads(called("list", "--json"))
    status = json.loads(called("status", "--json"))
    running = [one["id"] for one in json.loads(called("list", "--running", "--json"))]
    assert listed["status"] == status["status"] == "RUNNING"
    (line,) = [line for line in called("list").splitlines() if line.startswith("shared ")]
    said = called("status").splitlines()[0].partition(": ")[2]
    assert f"  {said}  " in line
    return listed["running"], status["running"], running, said


def worker(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", WORKER, str(folder), *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_search_and_lose_no_trial_of_one_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    killed = worker(folder, "wait")
    assert killed.stdout is not None
    tried = float(killed.stdout.readline())
    with Search(folder=folder) as search:
        (trial,) = search.running()
        assert trial.parameters["x"] == tried
        assert search.reclaim() == 0  # its process lives
    assert shown_as_running(folder) == (True, True, ["shared"], "RUNNING (search)")
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert shown_as_running(folder) == (False, False, [], "RUNNING (search, no program runs it)")
    workers = [worker(folder), worker(folder)]
    assert [one.communicate() and one.returncode for one in workers] == [0, 0]
    with Search(folder=folder) as search:
        result = search.results()
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 12})
    assert len({row["parameters"]["x"] for row in result.trials}) == 12
    assert (result.trials[0]["parameters"]["x"], result.trials[0]["attempt"]) == (tried, 2)
    assert [row["value"] for row in result.trials] == [row["parameters"]["x"] ** 2 for row in result.trials]


def test_command_line_shows_a_search_and_does_not_run_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Search({"lr": loguniform(1e-5, 1)}, folder=tmp_path / "one", tuner="Random") as search:
        search.tell(search.ask(), 1.0)
        search.ask()

    def call(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--dir", str(tmp_path)])
        return code, *capsys.readouterr()

    _, shown, _ = call("status", "one")
    assert "experiment one: RUNNING (search)\n" in shown
    assert "resume" not in shown
    assert "RUNNING (search)" in call("list")[1]
    trials = json.loads(call("export", "one")[1])["trials"]
    assert [trial["status"] for trial in trials] == ["SUCCEEDED", "RUNNING"]
    code, _, refused = call("resume", "one")
    assert code != 0
    assert "continue it with pitchpipe.Search(folder=" in " ".join(refused.split())


def test_result_without_the_objective_is_answered_with_how_to_name_it() -> None:
    with pytest.raises(ValueError, match=r"it has 'accuracy'; .* metric='accuracy' in Python"):
        minimize(lambda parameters: {"accuracy": 1}, SPACE, 1)
