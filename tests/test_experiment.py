"""`Experiment` from Python: functions, classes, commands; stopped, added to, restored; its results as tables."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import io
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import cloudpickle
import pytest

import pitchpipe
from pitchpipe import (
    Callback,
    Experiment,
    ExperimentResult,
    MaximumIterationStopper,
    Stopper,
    Trainable,
    register_env,
    register_trainable,
    report_intermediate_result,
)
from pitchpipe.config import ConfigError
from pitchpipe.config.root_fields import ConfigFields
from pitchpipe.executors.local.local_executor import LocalTrialExecutor
from pitchpipe.keywords import ExperimentOptions, SearchOptions
from pitchpipe.manager.control import ask_manager, read_running, stop_experiment
from pitchpipe.manager.experiment_factory import resume_experiment
from pitchpipe.manager.hooks.stoppers import StopperError
from pitchpipe.manager.turn import TurnLoop
from pitchpipe.registry import NotRegistered, make_env, registered
from pitchpipe.results import BestTrial
from pitchpipe.store import ExperimentFolder, FolderError
from pitchpipe.store.store import Store, StoreError
from pitchpipe.trial_agent.pickling import pickled

from .dispatcher_threads import dispatchers_on_threads
from .forked_verbs import ForkedProgram

SPACE = {"x": {"_type": "uniform", "_value": [-5, 5]}}
GRID = {"x": {"_type": "choice", "_value": [0, 1, 2]}}


@pytest.fixture(autouse=True, scope="module")
def _by_value() -> Iterator[None]:
    """Agents cannot import this file: what is in it travels whole."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def _no_new_interpreters(forked_agents: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start agents and dispatchers cheaply; those of the page's example are processes as users have them."""
    dispatchers_on_threads(monkeypatch)


def experiment(trial: Any, directory: Path, space: Any = SPACE, **more: Any) -> Experiment:
    more.setdefault("tuner", {"name": "Random"})
    more.setdefault("max_trial_number", 3)
    return Experiment(
        trial, space, platform="local", directory=directory, experiment_id="exp", seed=1, **more
    )


def on_grid(trial: Any, directory: Path, **more: Any) -> Experiment:
    return experiment(trial, directory, GRID, tuner={"name": "GridSearch"}, **more)


def square(parameters: dict[str, Any]) -> float:
    return float(parameters["x"] ** 2)


class Stepping(Trainable):
    """Comes closer to 0 with every step, and never says that it is done."""

    def setup(self, parameters: dict[str, Any]) -> None:
        self.height = float(parameters["x"] ** 2)

    def step(self) -> float:
        self.height /= 2
        return self.height


class AtEachEnd(Callback):
    """Calls a function at the end of each trial."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def on_trial_complete(self, trial: Any) -> None:
        self.function()


# --------------------------------------------------------------------------- what a trial may be


def test_function_is_tried_and_the_best_is_known(tmp_path: Path) -> None:
    result = experiment(square, tmp_path).run()
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 3})
    assert isinstance(result.best, pitchpipe.experiment.BestTrial)
    assert result.best.value == min(row["value"] for row in result.trials)
    assert result.folder == tmp_path / "exp"


def itself(parameters: dict[str, Any]) -> float:
    return float(parameters["x"])


def test_best_is_what_the_tuner_searches_for_by_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unit = {"x": {"_type": "uniform", "_value": [0, 1]}}
    settings = {"cold_start_num": 5, "selection_num_warm_up": 50, "selection_num_starting_points": 20}
    tuner = {"name": "GP", "class_args": settings}
    result = experiment(itself, tmp_path, unit, tuner=tuner, max_trial_number=12).run()
    assert result.directions == {"default": "maximize"}
    assert result.best.value == max(row["value"] for row in result.trials) > 0.99
    assert "maximize is the default of the tuner GP" in caplog.text


def test_best_is_compared_with_the_defaults(tmp_path: Path) -> None:
    points: Any = {"defaults": {"x": 3}, "initial_points": [{"x": 1}], "keep_close": True}
    result = experiment(lambda parameters: parameters["x"] ** 2, tmp_path, max_trial_number=2, **points).run()
    assert result.defaults is not None
    assert (result.defaults.parameters, result.defaults.value, result.gain) == ({"x": 3}, 9.0, 8.0)
    assert [row["parameters"]["x"] for row in result.trials] == [3, 1]
    closest = result.closest_to_defaults
    assert closest is not None
    assert closest["trial"] == closest["best"] == result.trials[1]
    assert closest["changes"] == [{"parameter": "x", "default": 3, "value": 1}]


def test_command_is_tried(tmp_path: Path) -> None:
    command = 'echo "{\\"final\\": 0.5}" >> "$PITCHPIPE_REPORTS"'
    result = experiment(command, tmp_path, max_trial_number=1).run()
    assert [row["value"] for row in result.trials] == [0.5]


def test_class_is_tried_step_by_step_until_a_stopper_ends_it(tmp_path: Path) -> None:
    result = experiment(Stepping, tmp_path, stop=MaximumIterationStopper(4)).run()
    for row in result.trials:
        assert (row["status"], row["reason"]) == ("SUCCEEDED", "4 results are enough")
        assert row["value"] == pytest.approx(row["parameters"]["x"] ** 2 / 16)


def hasty(parameters: dict[str, Any]) -> float:
    """Take 200 steps in less time than any message needs."""
    for step in range(1, 201):
        pitchpipe.report_intermediate_result(step)
    return 999.0


def test_what_a_trial_does_after_the_stopper_decided_does_not_count(tmp_path: Path) -> None:
    result = experiment(hasty, tmp_path, stop={"training_iteration": 3}, max_trial_number=12).run()
    assert {(row["value"], row["reason"]) for row in result.trials} == {
        (3.0, "training_iteration has reached 3")
    }
    with closing(Store.view(tmp_path / "exp" / "experiment.db")) as store:
        kept = [(number, sequence) for number, kind, sequence, *_ in store.metrics() if kind == "PERIODICAL"]
    assert sorted(kept) == [(number, sequence) for number in range(12) for sequence in range(3)]


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (5, "5 is not a function"),
        (dict, "dict is not derived from pitchpipe.Trainable"),
        (None, "None is not"),
    ],
)
def test_what_cannot_be_a_trial_is_refused(trial: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=message):
        experiment(trial, tmp_path)
    assert not (tmp_path / "exp").exists()


def test_wrong_config_and_stopper_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_trial_number"):
        experiment(square, tmp_path, max_trial_number=-1)
    with pytest.raises(StopperError):
        experiment(square, tmp_path, stop=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("trial", "more", "message"),
    [
        (square, {"trial_cpu_number": 10_000}, "trial_cpu_number: a trial needs 10000 CPUs, and"),
        ("python absent.py", {}, r"trial_command: there is no file .*absent\.py \(correct trial_command"),
    ],
)
def test_trial_that_this_machine_cannot_start_is_refused_before_anything_is_made(
    trial: Any, more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    refused = experiment(trial, tmp_path, **more)
    with pytest.raises(ConfigError, match=message):
        refused.run()
    assert list(tmp_path.iterdir()) == []


async def test_experiment_runs_where_a_loop_runs_already(tmp_path: Path) -> None:
    assert experiment(square, tmp_path).run().status == "DONE"


def test_example_of_the_page_runs(tree: Path, tmp_path: Path) -> None:
    (script,) = re.findall(
        r"^```python\n(.*?)^```$",
        (tree / "docs" / "use" / "experiment.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    (tmp_path / "tune.py").write_text(script)
    environment = {**os.environ, "PITCHPIPE_DIR": str(tmp_path / "runs")}
    done = subprocess.run(
        [sys.executable, "tune.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3", "DONE"]
    assert lines[-1].endswith(" 4")


# --------------------------------------------------------------------------- names


def test_registered_function_is_tried_by_its_name_and_finds_an_environment_by_its_own(tmp_path: Path) -> None:
    register_env("corridor", lambda config: list(range(config["length"])))

    def walk(parameters: dict[str, Any]) -> int:
        return len(make_env("corridor", {"length": 7}))

    register_trainable("walk", walk)
    assert [row["value"] for row in experiment("walk", tmp_path, max_trial_number=1).run().trials] == [7.0]


@pytest.mark.parametrize(
    ("register", "what", "message"),
    [
        (register_trainable, 5, r"a subclass of pitchpipe\.Trainable"),
        (register_trainable, "train.py", r"a subclass of pitchpipe\.Trainable"),
        (register_trainable, dict, r"a subclass of pitchpipe\.Trainable"),
        (register_trainable, lambda: 5, "cannot be called with the parameters alone"),
        (register_env, "maze", "is not a function that makes an environment"),
    ],
)
def test_only_trainables_and_functions_that_make_environments_are_registered(
    register: Callable[[str, Any], None], what: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        register("something", what)


def test_unknown_names_give_the_nearest() -> None:
    register_trainable("corridor-walk", square)
    with pytest.raises(NotRegistered, match="no trainable 'coridor-walk': registered: corridor-walk"):
        registered.trainable("coridor-walk")
    with pytest.raises(NotRegistered, match="there is no environment 'maze'"):
        make_env("maze")


# --------------------------------------------------------------------------- from other threads


class Waiting(Callback):
    """Lets the test wait for the first result."""

    def __init__(self) -> None:
        self.reported = threading.Event()
        self.finals: list[Any] = []

    def on_trial_result(self, trial: Any, result: Any) -> None:
        self.reported.set()
        if result["done"]:
            self.finals.append((trial["parameters"], result["default"]))


def endless(parameters: dict[str, Any]) -> float:
    """Report until it is stopped."""
    while True:
        report_intermediate_result(parameters["x"])


def test_experiment_is_stopped_from_another_thread(tmp_path: Path) -> None:
    waiting = Waiting()
    search = experiment(endless, tmp_path, callbacks=[waiting])

    def stop() -> None:
        waiting.reported.wait(60)
        search.stop("enough of it")

    thread = threading.Thread(target=stop)
    thread.start()
    result = search.run()
    thread.join()
    assert (result.status, result.reason) == ("STOPPED", "enough of it")
    assert result.counts == {"SYS_CANCELED": 1}


class Interrupts(Callback):
    """Presses Ctrl-C when the first result comes."""

    def __init__(self) -> None:
        self.is_pressed = False

    def on_trial_result(self, trial: Any, result: Any) -> None:
        if not self.is_pressed:
            self.is_pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def test_interrupt_stops_the_experiment_and_is_raised(tmp_path: Path) -> None:
    search = experiment(endless, tmp_path, callbacks=[Interrupts()])
    continues = r'was stopped: Experiment.restore\(".*"\).run\(\) continues it'
    with pytest.raises(pitchpipe.Interrupted, match=continues) as caught:
        search.run()
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.__context__ is None  # its traceback tells of nothing else
    assert caught.value.result.status == "STOPPED"
    assert (search.results().status, search.results().reason) == ("STOPPED", "interrupted")


def test_interrupt_of_a_notebook_stops_the_experiment_and_is_raised(tmp_path: Path) -> None:
    search = experiment(endless, tmp_path, callbacks=[Interrupts()])

    async def notebook() -> None:
        # That of asyncio.run cancels the task instead.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(pitchpipe.Interrupted):
            search.run()

    before = signal.getsignal(signal.SIGINT)
    try:
        asyncio.run(notebook())
    finally:
        signal.signal(signal.SIGINT, before)
    assert search.results().status == "STOPPED"


PROGRAM = """
import asyncio, os, signal, sys, threading
import pitchpipe

def endless(parameters):
    while True:
        pitchpipe.report_intermediate_result(parameters["x"])

class First(pitchpipe.Callback):
    came = threading.Event()

    def on_trial_result(self, trial, result):
        if not self.came.is_set():
            self.came.set()
            {then}

experiment = pitchpipe.Experiment(
    endless, {{"x": pitchpipe.uniform(0, 1)}}, platform="local", directory=sys.argv[1], experiment_id="exp",
    tuner={{"name": "Random"}}, trial_concurrency=2, callbacks=[First()],
)

async def cell():
    experiment.run()

daemon = threading.Thread(target=experiment.run, daemon=True)
{run}
"""
KILL = "os.kill(os.getpid(), signal.{})"
OWN = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3));"
ALARM = "signal.signal(signal.SIGALRM, lambda *_: 1 / 0);"
IN_DAEMON = "daemon.start(); First.came.wait();"


@pytest.mark.parametrize(
    ("run", "then", "code", "reason"),
    [
        ("experiment.run()", KILL.format("SIGTERM"), -signal.SIGTERM, "interrupted"),
        ("experiment.run()", KILL.format("SIGHUP"), -signal.SIGHUP, "interrupted"),
        (f"{OWN} experiment.run()", KILL.format("SIGTERM"), 3, "interrupted"),
        (f"{ALARM} experiment.run()", KILL.format("SIGALRM"), 1, "interrupted"),
        ("asyncio.run(cell())", KILL.format("SIGINT"), 1, "interrupted"),
        ("asyncio.run(cell())", KILL.format("SIGTERM"), -signal.SIGTERM, "interrupted"),
        (f"{OWN} asyncio.run(cell())", KILL.format("SIGTERM"), 3, "interrupted"),
        (f"{IN_DAEMON} sys.exit(3)", "pass", 3, "the program ended"),
        (f"{IN_DAEMON} 1 / 0", "pass", 1, "the program ended"),
        (f"{OWN} {IN_DAEMON} daemon.join()", KILL.format("SIGTERM"), 3, "the program ended"),
    ],
)
def test_program_that_ends_early_ends_its_experiment_in_order(
    tmp_path: Path, run: str, then: str, code: int, reason: str
) -> None:
    script = tmp_path / "tune.py"
    script.write_text(PROGRAM.format(run=run, then=then))
    program = ForkedProgram(tmp_path, script, tmp_path)
    assert program.wait(60) == code, program.communicate()
    result = Experiment.restore(tmp_path / "exp").results()
    assert (result.status, result.reason) == ("STOPPED", reason)
    assert result.counts == {"SYS_CANCELED": 2}


@pytest.mark.parametrize("kept", [signal.SIG_IGN, lambda *_: None])
def test_signal_that_the_program_ignores_or_handles_itself_does_not_stop_the_experiment(
    tmp_path: Path, kept: Any
) -> None:
    before = signal.signal(signal.SIGTERM, kept)
    try:
        search = experiment(
            square, tmp_path, callbacks=[AtEachEnd(lambda: signal.raise_signal(signal.SIGTERM))]
        )
        assert search.run().counts == {"SUCCEEDED": 3}
        assert signal.getsignal(signal.SIGTERM) is kept
    finally:
        signal.signal(signal.SIGTERM, before)


def unlucky(parameters: dict[str, Any]) -> None:
    raise ValueError("no \x1b[2Jluck")


def test_experiment_without_a_success_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pitchpipe"):
        result = experiment(unlucky, tmp_path, max_trial_number=3).run()
    failure, shown = "ValueError: no \x1b[2Jluck", "ValueError: no \\u001b[2Jluck"
    assert result.failures == [f"3 trials failed: {failure}"]
    assert f"trial 0 is FAILED: {shown}" in caplog.messages
    assert f"no trial has succeeded: 3 trials failed: {shown}" in caplog.messages
    assert f"<p>no trial has succeeded</p><p>&quot;3 trials failed: {shown}&quot;</p>" in result._repr_html_()
    assert "\x1b" not in caplog.text  # as it was when each line was logged
    assert "\x1b" not in (result.folder / "logs" / "manager.log").read_text()
    line = inspect.getsourcelines(unlucky)[1] + 1
    assert f'File "{__file__}", line {line}, in unlucky' in result.trials[0]["error"]


def test_experiment_stopped_before_it_runs_ends_at_once(tmp_path: Path) -> None:
    search = experiment(endless, tmp_path)
    search.stop()
    assert search.run().status == "STOPPED"


def test_trials_of_ones_own_run_before_and_while_it_runs(tmp_path: Path) -> None:
    class Adding(Waiting):
        def on_trial_complete(self, trial: Any) -> None:
            if len(self.finals) == 1:
                search.add_trial({"x": 4})

    adding = Adding()
    search = experiment(square, tmp_path, callbacks=[adding], max_trial_number=4)
    search.add_trial({"x": 3})
    result = search.run()
    assert result.counts == {"SUCCEEDED": 4}
    own = [final for parameters, final in adding.finals if isinstance(parameters["x"], int)]
    assert own == [9.0, 16.0]


def test_trial_outside_the_search_space_is_refused(tmp_path: Path) -> None:
    search = experiment(square, tmp_path, max_trial_number=1)
    for parameters, why in (({"x": 70}, r"^not in the search space: x: "), ({"y": 1}, "; y: ")):
        with pytest.raises(ValueError, match=why):
            search.add_trial(parameters)
    search.run()
    with pytest.raises(ValueError, match="no longer runs"):
        search.add_trial({"x": 3})


def test_no_trial_is_added_when_all_are_asked_for(tmp_path: Path) -> None:
    refused: list[bool] = []

    def add() -> None:
        with pytest.raises(ValueError, match="no trial can be added: the experiment is DONE"):
            search.add_trial({"x": 4})
        refused.append(True)

    search = experiment(square, tmp_path, callbacks=[AtEachEnd(add)], max_trial_number=1)
    assert search.run().counts == {"SUCCEEDED": 1}
    assert refused == [True]


def test_results_can_be_looked_at_while_it_runs(tmp_path: Path) -> None:
    seen: list[ExperimentResult] = []
    looking = AtEachEnd(lambda: seen.append(search.results()))
    search = experiment(square, tmp_path, callbacks=[looking], max_trial_number=2)
    result = search.run()
    assert [one.counts["SUCCEEDED"] for one in seen] == [1, 2]
    assert search.results() == result


# --------------------------------------------------------------------------- restored


def flaky(parameters: dict[str, Any]) -> float:
    """Fails at 1 until a file says that it is repaired; counts on from its checkpoint."""
    folder = Path(parameters["folder"])
    checkpoint = pitchpipe.get_checkpoint()
    first = 0 if checkpoint is None else checkpoint.to_dict()["step"]
    for step in range(first, 3):
        report_intermediate_result(step)
        pitchpipe.save_checkpoint({"step": step + 1})
        with (folder / f"steps-{parameters['x']}").open("a") as file:
            file.write(str(step))
        if parameters["x"] == 1 and step == 1 and not (folder / "repaired").exists():
            raise RuntimeError("broken")
    return float(parameters["x"])


@pytest.mark.parametrize(
    ("how", "steps"),
    [({}, "01"), ({"resume_errored": True}, "012"), ({"restart_errored": True}, "01012")],
    ids=["left", "resumed", "restarted"],
)
def test_failed_trials_of_a_restored_experiment(how: dict[str, bool], steps: str, tmp_path: Path) -> None:
    space = {**GRID, "folder": {"_type": "choice", "_value": [str(tmp_path)]}}
    first = experiment(flaky, tmp_path, space, tuner={"name": "GridSearch"}).run()
    assert first.counts == {"SUCCEEDED": 2, "FAILED": 1}
    (failed,) = [row for row in first.trials if row["status"] == "FAILED"]
    (tmp_path / "repaired").touch()
    again = Experiment.restore(tmp_path / "exp", **how).run()
    assert again.status == "DONE"
    assert (tmp_path / "steps-1").read_text() == steps
    row = again.trial(failed["trial_id"])
    assert row["status"] == ("SUCCEEDED" if how else "FAILED")
    assert row["attempt"] == (2 if how else 1)
    assert len(again.trials) == 3


def test_restored_experiment_needs_its_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import pitchpipe; pitchpipe.report_final_result(1)")
    command = f"{shlex.quote(sys.executable)} {script}"
    experiment(command, tmp_path, max_trial_number=1).run()
    script.unlink()
    with pytest.raises(ConfigError, match=r"there is no file .*train\.py"):
        Experiment.restore(tmp_path / "exp", max_trial_number=2).run()
    assert len(Experiment.restore(tmp_path / "exp").results().trials) == 1


def test_unfinished_trials_continue_or_are_cancelled(tmp_path: Path) -> None:
    for go_on in (True, False):
        directory = tmp_path / str(go_on)
        search = experiment(square, directory, max_trial_number=1)
        search.add_trial({"x": 2})
        killed_at_first_start(search)
        result = Experiment.restore(directory / "exp", resume_unfinished=go_on).run()
        assert result.counts == ({"SUCCEEDED": 1} if go_on else {"USER_CANCELED": 1})


def killed_at_first_start(search: Experiment) -> None:
    """Run a search whose manager dies between the first commit and what it would do about it."""

    class Killed(Exception):
        pass

    def die(executor: LocalTrialExecutor, order: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalTrialExecutor, "start_trial", die)
        patch.setattr(TurnLoop, "may_write_end", False)
        with pytest.raises(Killed):
            search.run()


def test_stopper_is_kept_with_the_experiment_and_can_be_replaced(tmp_path: Path) -> None:
    search = experiment(Stepping, tmp_path, stop=MaximumIterationStopper(3), max_trial_number=1)
    search.stop()
    assert search.run().status == "STOPPED"
    result = Experiment.restore(tmp_path / "exp").run()
    assert [row["reason"] for row in result.trials] == ["3 results are enough"]
    (tmp_path / "exp" / "stopper.pkl").write_bytes(b"rubbish")
    with pytest.raises(FolderError, match=r"stopper\.pkl cannot be loaded .* Experiment\.restore"):
        Experiment.restore(tmp_path / "exp").run()
    resume_experiment(ExperimentFolder(tmp_path / "exp"), ending=True).folder.disown()
    again = Experiment.restore(tmp_path / "exp", stop={"training_iteration": 2}, max_trial_number=2).run()
    assert again.trials[1]["reason"] == "training_iteration has reached 2"


@pytest.mark.parametrize("name", ["trial.pkl", "stopper.pkl"])
def test_code_that_another_python_compiled_is_refused_before_it_crashes(tmp_path: Path, name: str) -> None:
    search = experiment(lambda parameters: 1.0, tmp_path, stop={"default": 1})
    search.stop()
    assert search.run().status == "STOPPED"
    here = "compiled by Python {}.{}".format(*sys.version_info)
    code = pickled(lambda: 1)
    assert here.encode() in code
    (tmp_path / "exp" / name).write_bytes(code.replace(here.encode(), b"compiled by Python 3.9"))
    with pytest.raises(FolderError, match=r"compiled by Python 3\.9, and this is Python 3\."):
        Experiment.restore(tmp_path / "exp").run()
    assert ExperimentFolder(tmp_path / "exp").manager() is None
    resume_experiment(ExperimentFolder(tmp_path / "exp"), ending=True).folder.disown()


OF_A_PROGRAM = """
from pitchpipe import MaximumIterationStopper

class Two(MaximumIterationStopper):
    def __init__(self):
        super().__init__(2)

def train(parameters):
    from pitchpipe import report_intermediate_result
    for height in range(9):
        report_intermediate_result(height)
"""


def test_restored_experiment_imports_the_modules_of_the_program_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_a_program.py").write_text(OF_A_PROGRAM)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module: Any = importlib.import_module("of_a_program")
    search = experiment(module.train, tmp_path, stop=module.Two(), max_trial_number=1)
    search.stop()
    search.run()
    sys.path.remove(str(tmp_path))
    del sys.modules["of_a_program"]
    result = Experiment.restore(tmp_path / "exp").run()
    assert [(row["status"], row["final"]) for row in result.trials] == [("SUCCEEDED", 1)]


def test_experiment_that_is_done_continues_under_new_limits(tmp_path: Path) -> None:
    trials = experiment(square, tmp_path, max_trial_number=2).run().trials
    result = Experiment.restore(tmp_path / "exp", max_trial_number=5, trial_concurrency=2).run()
    assert result.counts == {"SUCCEEDED": 5}
    assert result.trials[:2] == trials
    with pytest.raises(ValueError, match="max_trial_number"):
        Experiment.restore(tmp_path / "exp", max_trial_number=3).run()
    with pytest.raises(TypeError, match="'max_trials'"):
        Experiment.restore(tmp_path / "exp", max_trials=3)


def test_program_that_has_closed_stderr_runs_its_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = (tmp_path / "err").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert experiment(square, tmp_path, max_trial_number=1).run().status == "DONE"


def test_program_that_is_started_again_continues_its_experiment(tmp_path: Path) -> None:
    def cube(parameters: dict[str, Any]) -> float:
        return abs(float(parameters["x"] ** 3))

    first = experiment(square, tmp_path, max_trial_number=2, resume_if_exists=True).run()
    assert (
        experiment(square, tmp_path, max_trial_number=2, resume_if_exists=True).run().trials == first.trials
    )
    result = experiment(cube, tmp_path, max_trial_number=4, trial_concurrency=2, resume_if_exists=True).run()
    assert (result.status, result.trials[:2]) == ("DONE", first.trials)
    assert [trial["final"] for trial in result.trials[2:]] == [
        cube(trial["parameters"]) for trial in result.trials[2:]
    ]
    again = experiment(square, tmp_path, max_trial_number=3, resume_if_exists=True)  # extended meanwhile
    assert again.run().trials == result.trials


def test_stopped_experiment_is_continued_by_its_program(tmp_path: Path) -> None:
    stopped = experiment(square, tmp_path, resume_if_exists=True)
    stopped.stop()
    assert stopped.run().status == "STOPPED"
    result = experiment(square, tmp_path, resume_if_exists=True).run()
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 3})


class EndsAfterOneResult(Stopper):
    def __init__(self) -> None:
        self.has_result = False

    def __call__(self, trial_id: str, result: Any) -> bool:
        self.has_result = True
        return False

    def stop_all(self) -> bool:
        return self.has_result


def test_experiment_that_is_done_is_shown_again_without_its_cancelled_trials(tmp_path: Path) -> None:
    ended = EndsAfterOneResult()
    first = experiment(endless, tmp_path, stop=ended, trial_concurrency=1, resume_if_exists=True).run()
    assert (first.status, first.counts) == ("DONE", {"SYS_CANCELED": 1})
    again = experiment(square, tmp_path, stop={"x": 9}, trial_concurrency=1, resume_if_exists=True).run()
    assert (again.status, again.trials) == ("DONE", first.trials)


def test_program_continues_only_its_own_experiment(tmp_path: Path) -> None:
    before = experiment(square, tmp_path).run()
    with pytest.raises(FolderError, match="resume_if_exists=True continues"):
        experiment(square, tmp_path).run()
    changes = {"tuner": {"name": "TPE"}, "space": {"x": {"_type": "uniform", "_value": [0, 1]}}}
    with pytest.raises(
        FolderError, match=r"has another search_space \(x\) and another tuner: choose another id"
    ):
        experiment(square, tmp_path, max_trial_number=9, resume_if_exists=True, **changes).run()
    assert Experiment.restore(tmp_path / "exp").results().trials == before.trials
    hour = {"max_trial_number": None, "max_experiment_duration": "1h"}
    with pytest.raises(FolderError, match="has another max_trial_number and "):
        experiment(square, tmp_path, resume_if_exists=True, **hour).run()
    with pytest.raises(ValueError, match="needs an experiment_id"):
        Experiment(square, SPACE, directory=tmp_path, max_trial_number=1, resume_if_exists=True)


def test_restore_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Experiment.restore(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="exclude each other"):
        Experiment.restore(tmp_path, resume_errored=True, restart_errored=True)


def test_folder_is_made_before_it_runs_and_owned(tmp_path: Path) -> None:
    search = experiment(square, tmp_path, max_trial_number=1)
    assert search.create() == search.create() == tmp_path / "exp"
    with pytest.raises(FolderError, match="is run by process"):
        Experiment.restore(tmp_path / "exp").run()
    assert search.run().status == "DONE"


# --------------------------------------------------------------------------- tables


def two_goals(parameters: dict[str, Any]) -> dict[str, float]:
    if parameters["x"] == 2:
        raise ValueError("not this one")
    return {"default": parameters["x"], "speed": parameters["x"]}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    """Three trials, one of which failed, with two objectives."""
    goals = [{"name": "default", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}]
    folder = tmp_path_factory.mktemp("grid")
    return on_grid(two_goals, folder, objectives=goals).run()


def test_rows_are_plain(grid: ExperimentResult) -> None:
    by_x = {row["parameters"]["x"]: row for row in grid.trials}
    assert [row["sequence_id"] for row in grid.trials] == [0, 1, 2]
    assert by_x[1]["value"] == by_x[1]["final"] == {"default": 1, "speed": 1}
    assert (by_x[2]["value"], by_x[2]["failure_kind"]) == (None, "USER_ERROR")
    assert by_x[2]["reason"] == "ValueError: not this one"
    assert "two_goals" in by_x[2]["error"]
    assert by_x[1]["duration"] >= 0


def test_trial_by_id_and_best_by_objective(grid: ExperimentResult) -> None:
    fast, small = grid.best_by("speed"), grid.best_by()
    assert fast is not None
    assert small is not None
    assert (fast["parameters"]["x"], small["parameters"]["x"]) == (1, 0)
    assert grid.trial(fast["trial_id"]) == fast
    assert isinstance(grid.best, list)
    assert len(grid.best) == 2
    with pytest.raises(KeyError, match="has no trial nobody"):
        grid.trial("nobody")
    with pytest.raises(KeyError, match="'accuracy' is not an objective"):
        grid.best_by("accuracy")


def test_dataframe_has_a_row_a_trial_flat_columns_and_real_times(grid: ExperimentResult) -> None:
    table = grid.dataframe()
    assert list(table["parameters.x"]) == [row["parameters"]["x"] for row in grid.trials]
    assert set(table["value.speed"].dropna()) == {0, 1}
    assert str(table["start_time"].dtype).startswith("datetime64[ns")
    spans = (table["end_time"] - table["start_time"]).dt.total_seconds()
    assert list(spans) == pytest.approx(list(table["duration"]), abs=1e-3)


def test_dataframe_has_a_column_for_each_of_two_parameters_with_one_dotted_name(
    grid: ExperimentResult,
) -> None:
    other = replace(grid)
    point = {"m": {"_name": "a", "lr": 1}, "m.lr": 2}
    vars(other)["trials"] = [{**row, "parameters": point} for row in grid.trials]
    table = other.dataframe()
    assert [*table["parameters.m/lr"], *table["parameters.m.lr"]] == [1, 1, 1, 2, 2, 2]
    assert list(table["sequence_id"]) == [0, 1, 2]


# --------------------------------------------------------------------------- what is shown


def test_result_is_printed_on_one_line(grid: ExperimentResult) -> None:
    text = f"<ExperimentResult {grid.id}: DONE, {len(grid.trials)} trials, a front of 2>"
    assert (str(grid), repr(grid)) == (text, text)
    best, single = grid.best[0], {"speed": "minimize"}
    text = f", best {best.value['speed']:g} (trial {best.sequence_id})>"
    assert str(replace(grid, best=best, directions=single)).endswith(text)
    assert str(replace(grid, best=None)).endswith(", no best>")


def test_result_and_experiment_are_tables_in_a_notebook(grid: ExperimentResult, tmp_path: Path) -> None:
    shown = grid._repr_html_()
    assert shown.count("<tr>") == 3  # the header, and two on the front
    assert "<th>speed</th>" in shown
    search = experiment(square, tmp_path, {"x<y": SPACE["x"]})
    assert "has not begun: minimizing default" in search._repr_html_()
    search.create()
    assert "there are no trials" in search._repr_html_()
    search.stop()
    search.run()


class Terminal(io.StringIO):
    """A terminal, as far as it can be told."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    search = experiment(square, tmp_path)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    result = search.run(progress=progress)
    expected = (
        f"3 of 3 trials | 3 succeeded | best: {result.best.value:.6g} (trial {result.best.sequence_id})"
    )
    assert (expected in " ".join(screen.getvalue().split())) == progress


class OpeningLog(io.StringIO):
    """Lets trials go on that wait at a pipe, once a line says that one of them runs."""

    def __init__(self, gate: Path) -> None:
        super().__init__()
        self._gate = gate

    def write(self, text: str) -> int:
        if "1 running" in text and self._gate.is_fifo():
            with self._gate.open("w"):  # those that wait now
                self._gate.with_name("open").touch()
                self._gate.with_name("open").rename(self._gate)  # those that come later
        return super().write(text)


@pytest.mark.parametrize("progress", [True, False])
def test_progress_without_a_terminal_is_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    monkeypatch.setattr("pitchpipe.progress._INTERVAL", 0.0)
    monkeypatch.setattr("pitchpipe.progress._Lines.interval", 0.02)
    gate = tmp_path / "gate"
    if progress:  # trials wait until a line is printed while one of them runs
        os.mkfifo(gate)
    else:
        gate.touch()

    def gated_square(parameters: dict[str, Any]) -> float:
        gate.read_text()
        return float(parameters["x"] ** 2)

    log = OpeningLog(gate)
    monkeypatch.setattr(sys, "stderr", log)
    result = experiment(gated_square, tmp_path).run(progress=progress)
    lines = log.getvalue().splitlines()
    if not progress:
        assert lines == []
        return
    assert any(re.match(r"[\d.]+ s: RUNNING; [012]/3 trials; 1 running", line) for line in lines[:-1])
    best = f"best {result.best.value:.6g} (trial {result.best.sequence_id}: x="
    assert lines[-1].partition(": ")[2].startswith("DONE; 3/3 trials; 3 succeeded; ")
    assert best in lines[-1]


def test_short_run_without_a_terminal_prints_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    experiment(square, tmp_path).run()
    assert log.getvalue() == ""


def test_pages_are_served_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = experiment(endless, tmp_path)
    screen = Heard(search.stop)
    monkeypatch.setattr(sys, "stderr", screen)
    assert search.run(ui=True).status == "STOPPED"
    assert re.search(r"web pages: http://127.0.0.1:\d+/ui/exp", screen.getvalue())


class Heard(io.StringIO):
    """Calls a function once the address of the pages is printed."""

    def __init__(self, then: Any) -> None:
        super().__init__()
        self._then = then

    def write(self, text: str) -> int:
        if "web pages" in text:
            self._then()
        return super().write(text)


# --------------------------------------------------------------------------- keywords


def test_keywords_are_the_fields_of_the_config() -> None:
    taken = {"search_space"}
    assert set(ExperimentOptions.__annotations__) == set(ConfigFields.model_fields) - taken
    parameters = inspect.signature(Experiment).parameters
    assert {"direction", "max_trial_number", "tuner"} < set(parameters)
    assert "options" not in inspect.signature(pitchpipe.minimize).parameters
    assert set(SearchOptions.__annotations__) < set(inspect.signature(pitchpipe.Search).parameters)
    fields, arguments = get_type_hints(ExperimentOptions), get_type_hints(SearchOptions)
    assert {arguments[name] == fields[name] | None for name in set(arguments) & set(fields)} == {True}


def test_direction_of_one_metric_is_an_objective(tmp_path: Path) -> None:
    goal = {"direction": "maximize", "metric": "height"}
    result = experiment(lambda parameters: {"height": parameters["x"]}, tmp_path, **goal).run()
    assert result.directions == {"height": "maximize"}
    assert result.best.value == max(row["value"] for row in result.trials)
    with pytest.raises(TypeError, match="not both"):
        experiment(square, tmp_path, direction="maximize", objectives=[{"direction": "minimize"}])
    with pytest.raises(TypeError, match="metric='height' needs a direction: 'minimize' or 'maximize'"):
        experiment(square, tmp_path, metric="height")


def test_dataframe_without_pandas_says_what_to_install(
    grid: ExperimentResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"the extra pandas: pip install 'pandas>=[\d.]+'$"):
        grid.dataframe()


# --------------------------------------------------------------------------- asked from outside while it runs


class Asking(Callback):
    """Asks the running experiment about itself, from a thread, once two trials have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ended = 0
        self.status: dict[str, Any] = {}
        self.printed = b""

    def on_trial_complete(self, trial: Any) -> None:
        self.ended += 1

    def on_trial_result(self, trial: Any, result: Any) -> None:
        if self.ended == 2 and not self.status:
            self.status = {"asked": True}
            threading.Thread(target=self._ask, args=(trial["trial_id"],)).start()

    def _ask(self, trial_id: str) -> None:
        try:
            self.status = ask_manager(self.folder, {"op": "status"})
            self.printed = read_running(self.folder, trial_id, "stdout", 0)
        finally:
            stop_experiment(ExperimentFolder(self.folder))


# The first two trials end at once; the last one reports and then waits until it is stopped.
PRINTING = """
echo so far so good
if [ "$PITCHPIPE_SEQUENCE_ID" -lt 2 ]; then echo '{"final": 1}' >> "$PITCHPIPE_REPORTS"; exit; fi
echo '{"intermediate": 1}' >> "$PITCHPIPE_REPORTS"
sleep 600
"""


def test_running_experiment_can_be_asked_as_one_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalTrialExecutor, "warnings", lambda executor: ["a node is lost"])
    asking = Asking(tmp_path / "exp")
    result = on_grid(PRINTING, tmp_path, trial_concurrency=1, callbacks=[asking]).run()
    assert result.reason == "stopped by the user"
    assert asking.status["status"] == "NO_MORE_TRIAL"  # all were made
    assert asking.status["warnings"] == ["a node is lost"]
    assert asking.status["rate"] > 0
    assert asking.status["remaining"] > 0
    assert b"so far so good" in asking.printed
    log = (tmp_path / "exp" / "logs" / "manager.log").read_text()
    assert "experiment exp is STOPPED" in log


def test_log_messages_still_reach_the_program_while_its_experiment_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("pitchpipe")

    class Logging(Callback):
        def setup(self, experiment: Any) -> None:
            logger.getChild("test").warning("this matters")
            logger.getChild("test").info("this does not")

    before = logger.level, logger.propagate, list(logger.handlers)
    experiment(square, tmp_path, callbacks=[Logging()], max_trial_number=1).run()
    assert (logger.level, logger.propagate, logger.handlers) == before
    logged = [record.getMessage() for record in caplog.records if record.name == "pitchpipe.test"]
    assert logged == ["this matters"]
    log = (tmp_path / "exp" / "logs" / "manager.log").read_text()
    assert "WARNING pitchpipe.test: this matters" in log
    assert "INFO pitchpipe.test: this does not" in log


LIMITED = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 25"}]


def measured(parameters: dict[str, Any]) -> dict[str, float]:
    return {"loss": parameters["x"], "ms": 30.0 - 10.0 * parameters["x"]}


def test_limit_decides_what_is_best(tmp_path: Path) -> None:
    result = on_grid(measured, tmp_path, objectives=LIMITED).run()
    assert isinstance(result.best, BestTrial)
    assert (result.best.value, result.best.parameters) == (1, {"x": 1})
    assert [result.trials[number]["parameters"]["x"] for number in result.front["infeasible"]] == [0]
    best = result.best_by("loss")
    assert best is not None
    assert best["value"] == 1
    with pytest.raises(KeyError, match="'knee' is not an objective"):
        result.best_by("knee")


def test_tuner_that_knows_one_objective_only_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = experiment(measured, tmp_path, GRID, tuner={"name": "BOHB"}, objectives=LIMITED)
    warning = "the tuner optimises loss alone, without the other objectives and limits"
    assert any(warning in record.getMessage() for record in caplog.records)
    assert warning in made.config.warnings[-1]


def test_front_of_several_objectives_has_its_volume(grid: ExperimentResult) -> None:
    assert set(grid.front["trials"]) == {row["sequence_id"] for row in grid.trials if row["value"]}
    assert grid.front["hypervolume"] > 0
    assert (grid.front["knee"], grid.best_by("knee")) == (None, None)


def forked(codes: list[int], leave: Callable[[], object]) -> None:
    """Fork a child, which leaves in some way, and keep its exit code."""
    if child := os.fork():
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    else:
        leave()


def test_forked_child_that_leaves_a_callback_or_a_stopper_ends_there(tmp_path: Path) -> None:
    test, codes, stopper_codes = os.getpid(), list[int](), list[int]()
    ways: Iterator[Callable[[], object]] = iter([lambda: None, lambda: 1 // 0, lambda: sys.exit(3)])
    forks = AtEachEnd(lambda: forked(codes, next(ways)))

    def stop(trial_id: str, result: dict[str, Any]) -> bool:
        forked(stopper_codes, lambda: None)
        return False

    try:
        result = experiment(square, tmp_path, callbacks=[forks], stop=stop).run(progress=False)
    finally:
        if os.getpid() != test:
            os._exit(77)  # it continued: without this, the rest of the suite would run twice
    assert (codes, stopper_codes) == ([0, 1, 3], [0] * 3)
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 3})


class Signals(Callback):
    """Sends SIGINT to a child that it forks, which waits for its end."""

    status: int | None = None

    def on_trial_complete(self, trial: Any) -> None:
        if self.status is not None:
            return
        waiting, writing = os.pipe()
        ready, readying = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writing)
            try:
                os.write(readying, b"1")
                os.read(waiting, 1)  # until the parent closes it
            except KeyboardInterrupt:
                os._exit(42)
            os._exit(7)
        os.read(ready, 1)
        os.kill(child, signal.SIGINT)
        os.close(writing)
        _, self.status = os.waitpid(child, 0)
        for descriptor in (waiting, ready, readying):
            os.close(descriptor)


def test_interrupt_of_a_child_that_a_callback_forked_does_not_stop_the_experiment(tmp_path: Path) -> None:
    signals = Signals()
    result = experiment(square, tmp_path, callbacks=[signals]).run(progress=False)
    assert os.waitstatus_to_exitcode(signals.status or 0) == 42
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 3})


POOLS = """
import faulthandler, multiprocessing, sys
import pitchpipe

def square(parameters):
    return parameters["x"] ** 2

class Pools(pitchpipe.Callback):
    found = []

    def on_trial_complete(self, trial):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.found += pool.map(abs, [-1, -2])

faulthandler.dump_traceback_later(60, exit=True)
result = pitchpipe.Experiment(
    square, {"x": pitchpipe.uniform(0, 1)}, platform="local", directory=sys.argv[1], tuner={"name": "Random"},
    max_trial_number=3, callbacks=[Pools()],
).run(progress=False)
print(Pools.found, result.status, multiprocessing.active_children())
"""


def test_callback_uses_a_pool_of_processes(tmp_path: Path) -> None:
    """In a program of its own: the threads and children of other tests are none of its business."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", POOLS, tmp_path], capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "[1, 2, 1, 2, 1, 2] DONE []\n", done.stderr
