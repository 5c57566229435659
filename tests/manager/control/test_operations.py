"""What a user changes while an experiment runs is committed with all that follows, refused in words, and survives."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun, VirtualClock
from pitchpipe.manager.control import steering
from pitchpipe.manager.control.connection import ControlError, ControlServer
from pitchpipe.manager.control.operations import LiveChanges
from pitchpipe.manager.control.steering import (
    add_trial,
    change_experiment,
    import_results,
    kill_trial,
    rerun_trial,
    stop_experiment,
)
from pitchpipe.manager.dispatcher_link.numbered_commands import user_imports
from pitchpipe.manager.manager import Manager
from pitchpipe.protocol import repeat_of
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.store import NotWritableError, Store, StoreError

from ...runner.invariants import broken_invariants
from ...stored import MadeExperiment, a_config, a_trial
from ..experiments import CopyingStore, config, created, let_go, plugin, resumed, run, story, viewed

# Proposes from the last search space, and how many results were imported.
TUNER = """
import os, threading
from quiet import Quiet

class Importing(Quiet):
    def __init__(self):
        self._accept_customized = True
        self.imported = 0

    def update_search_space(self, search_space):
        self.x = search_space["x"]["_value"][0]
        if self.x < 0:
            raise ValueError("not below zero")

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": self.x, "id": parameter_id, "imported": self.imported}

    def import_data(self, data):
        self.imported += len(data)

class Moody(Importing):  # never proposes the same again, and cannot be pickled
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": self.x, "id": parameter_id, "mood": os.urandom(8).hex()}
"""


def space(first: int) -> dict[str, Any]:
    return {"x": {"_type": "choice", "_value": [first]}}


def importing(directory: Path, **fields: Any) -> Manager:
    tuner = plugin(directory, "importing.Importing", TUNER)
    data = {"search_space": space(1), "tuner": tuner, "max_trial_number": 4, "trial_concurrency": 2}
    return created(directory, config(**{**data, **fields}), behave)


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(float(parameters["x"]), [1.0, 2.0], step=1.0 + parameters.get("id", 5) / 8)


Operations = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
Outcome = Callable[[Callable[[Any], Any]], Any]


class Intervention:
    """Does something to a running experiment once, in a turn of the loop of its own, when it is time."""

    def __init__(
        self, manager: Manager, when: Callable[[Any], bool], act: Callable[[Operations], Any]
    ) -> None:
        self._manager, self._when, self._act = manager, when, act
        self.operations = LiveChanges(manager).operations()
        self.answer: Any = None
        self.error: Exception | None = None
        self.commit: int | None = None
        self._is_due = True
        manager.watch(self._look)

    def _look(self) -> None:
        if self._is_due and self._when(self._manager.runner):
            self._is_due = False
            asyncio.get_running_loop().call_soon(self._do)

    def _do(self) -> None:
        try:
            self.answer = self._act(self.operations)
        except ControlError as error:
            self.error = error
        self.commit = getattr(self._manager.store, "commits", None)
        assert broken_invariants(self._manager.runner) == []


Changed = tuple[Path, CopyingStore, Intervention]


def two_ended(runner: Any) -> bool:
    return runner.counts["SUCCEEDED"] >= 2


def change_everything(operations: Operations) -> None:
    changes = {"max_trial_number": 9, "trial_concurrency": 3, "search_space": space(7)}
    operations["update"]({"changes": changes})
    results = [{"parameter": {"x": 3}, "value": 0.5}, {"parameter": {"x": 4}, "value": 1}]
    operations["import"]({"data": results})
    operations["add"]({"parameters": {"x": 100}})
    operations["rerun"]({"trial": 0})


def in_store(directory: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the parameter records of all trials, and the config."""
    with viewed(directory) as store:
        return [json.loads(trial.record) for trial in store.trials()], store.experiment().config


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    directory = tmp_path_factory.mktemp("live")
    manager = importing(directory)
    store = CopyingStore(manager, directory / "copies")
    intervention = Intervention(manager, two_ended, change_everything)
    assert run(manager) is ExperimentStatus.DONE
    return directory, store, intervention


def test_changes_take_effect_at_once(changed: Changed) -> None:
    directory, _, intervention = changed
    assert intervention.error is None
    records, stored = in_store(directory)
    assert len(records) == stored["maxTrialNumber"] == 9
    assert (stored["trialConcurrency"], stored["searchSpace"]) == (3, space(7))
    own = [record for record in records if record["parameter_id"] is None]
    assert [record["parameters"]["x"] for record in own] == [100, 1]
    assert own[1]["rerun_of"]
    late = [record["parameters"] for record in records if record["parameters"].get("imported")]
    assert late
    assert {(parameters["x"], parameters["imported"]) for parameters in late} == {(7, 2)}


@pytest.mark.slow
def test_killed_after_a_change_the_experiment_comes_to_the_same_story(changed: Changed) -> None:
    directory, store, intervention = changed
    expected = story(directory)
    after = [copy for copy in store.copies if int(copy[0].split()[-1]) > intervention.commit]
    assert len(after) > 10
    store.come_to(expected, behave, after)


def test_change_is_committed_before_it_is_answered(changed: Changed) -> None:
    _, store, intervention = changed
    copy = next(copy for copy in store.copies if copy[0] == f"after commit {intervention.commit}")
    records, stored = in_store(copy[1])
    assert stored["maxTrialNumber"] == 9
    assert sum(record["parameter_id"] is None for record in records) == 2


REFUSALS = [
    ("add", {"parameters": {"x": 1, "y": [math.nan]}}, "invalid", r"y\[0\]"),
    ("add", {"parameters": [{"x": 1}, {"x": math.inf}]}, "invalid", "x: "),
    ("update", {"changes": {"max_trial_number": 1}}, "conflict", "made or asked for already: .* at least"),
    ("update", {"changes": {"max_experiment_duration": 0.5}}, "conflict", "has run for"),
    ("update", {"changes": {"trial_concurrency": None}}, "invalid", "cannot be null"),
    ("update", {}, "invalid", "what to change"),
    ("add", {"parameters": [1]}, "invalid", "an object"),
    ("add", {"parameters": {"x": 1}}, "conflict", "max_trial_number .*raise it first"),
    ("rerun", {"trial": "nobody"}, "not found", "no trial nobody"),
    ("rerun", {"trial": 10**9}, "not found", "no trial 1000000000"),
    ("kill", {"trial": 0}, "conflict", "has ended already"),
    ("import", {"data": [{"parameter": {}, "value": "0.5"}]}, "invalid", "neither a finite number"),
]


def made_with_random(directory: Path, **fields: Any) -> Manager:
    wide = {"x": {"_type": "uniform", "_value": [0, 1]}}
    return importing(directory, **{"tuner": {"name": "Random"}, "search_space": wide, **fields})


def test_refusals_say_what_to_do_and_change_nothing(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path, max_trial_number=9)

    def refused(operations: Operations) -> list[ControlError]:
        made = manager.runner.created + manager.runner.requested
        operations["update"]({"changes": {"max_trial_number": made}})
        errors = []
        for name, request, *_ in REFUSALS:
            with pytest.raises(ControlError) as caught:
                operations[name](request)
            errors.append(caught.value)
        return errors

    intervention = Intervention(manager, lambda runner: runner.counts["SUCCEEDED"] >= 1, refused)
    assert run(manager) is ExperimentStatus.DONE
    for error, (_, _, kind, said) in zip(intervention.answer, REFUSALS, strict=True):
        assert re.search(said, str(error))
        assert error.kind == kind
    records, stored = in_store(tmp_path)
    assert len(records) == stored["maxTrialNumber"] < 9
    assert stored == manager.config.canonical()


def test_bounds_are_lifted_and_lowered(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path, max_trial_number=50, max_experiment_duration=1e6)
    changes = {"max_trial_number": None, "max_experiment_duration": "20s", "trial_concurrency": 1}
    request = {"changes": changes}
    intervention = Intervention(manager, two_ended, lambda operations: operations["update"](request))
    assert run(manager) is ExperimentStatus.DONE
    assert intervention.answer == {**changes, "max_experiment_duration": 20.0}
    with viewed(tmp_path) as store:
        row = store.experiment()
    assert "max_experiment_duration (20 s) is over" in row.reason
    assert "maxTrialNumber" not in row.config or row.config["maxTrialNumber"] is None


def test_dispatcher_that_starts_afresh_gets_the_imports_again() -> None:
    mine = {"parameter": {"x": 1}, "value": 0.5}
    commands = [
        (1, "IN", "{}"),
        (2, "FD", json.dumps([mine])),
        (3, "FD", json.dumps([{"parameter": {"x": 2}, "value": "0.1", "trialJobId": "AbCdE"}])),
    ]
    (imported,) = user_imports(commands, [])
    assert (imported.command.value, json.loads(imported.payload)) == (b"FD", [mine])
    assert user_imports(commands[2:], []) == []


# ---------------------------------------------------------------------- changes that cannot be written

ASKED = [
    ("update", {"changes": {"max_trial_number": 7}}),
    ("add", {"parameters": {"x": 0.125}}),
    ("import", {"data": [{"parameter": {"x": 0.125}, "value": 0.5}]}),
    ("rerun", {"trial": 0}),
]


@contextmanager
def no_room(store: Store) -> Iterator[None]:
    """Let no tick and no change be written meanwhile."""

    def refuse(*args: Any) -> None:
        raise NotWritableError(f"{store.path} cannot be written (no room)")

    with pytest.MonkeyPatch.context() as patch:
        for write in ("commit", "accept"):
            patch.setattr(store, write, refuse)
        yield


def what_was_made(directory: Path) -> tuple[list[Any], dict[str, Any], int]:
    records, stored = in_store(directory)
    with viewed(directory) as store:
        imports = sum(code == "FD" for _, code, _ in store.commands())
    return [record["parameters"] for record in records], stored, imports


@pytest.mark.parametrize("waits", [False, True], ids=["finds no room", "while it waits"])
@pytest.mark.parametrize(("name", "request_"), ASKED, ids=[name for name, _ in ASKED])
def test_change_that_is_refused_for_want_of_room_is_not_made_later(
    name: str, request_: dict[str, Any], waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitchpipe.manager.disk_space._TRY_AGAIN", 0.01)
    undisturbed = made_with_random(tmp_path / "undisturbed", seed=1, max_trial_number=6, trial_concurrency=1)
    run(undisturbed)
    manager = made_with_random(tmp_path, seed=1, max_trial_number=6, trial_concurrency=1)
    before = manager.config
    refusals: list[str] = []

    async def ask() -> None:
        with no_room(manager.store):
            while waits and not manager.warnings():
                await asyncio.sleep(0)
            said = "the change was not made: .*make room and try again"
            with pytest.raises(ControlError, match=said) as refused:
                LiveChanges(manager).operations()[name](request_)
        refusals.append(refused.value.kind)

    async def main() -> None:
        asking: list[asyncio.Task[None]] = []

        def on_tick() -> None:
            if not asking and two_ended(manager.runner):
                asking.append(asyncio.ensure_future(ask()))

        manager.watch(on_tick)
        assert await manager.run() is ExperimentStatus.DONE
        await asking[0]

    try:
        asyncio.run(main())
    finally:
        let_go(manager)
    assert refusals == ["conflict"]
    assert manager.config is before
    assert what_was_made(tmp_path) == what_was_made(tmp_path / "undisturbed")


@pytest.mark.parametrize(("name", "request_"), ASKED, ids=[name for name, _ in ASKED])
def test_change_that_was_accepted_is_made_after_a_resume(
    name: str, request_: dict[str, Any], tmp_path: Path
) -> None:
    """The manager dies when the change is committed, and what follows from it is not."""
    manager = made_with_random(tmp_path, seed=1, max_trial_number=6, trial_concurrency=1)

    def ask_and_fail(operations: Operations) -> Any:
        def fail(tick: Any) -> None:
            raise StoreError("the disk is gone")

        manager.store.commit = fail  # type: ignore[method-assign]
        return operations[name](request_)

    intervention = Intervention(manager, two_ended, ask_and_fail)
    with pytest.raises(StoreError, match="the disk is gone"):
        run(manager)
    made_before, _, imports_before = what_was_made(tmp_path)
    again = resumed(tmp_path, behave, VirtualClock(manager.now()))
    assert run(again) is ExperimentStatus.DONE
    made, stored, imports = what_was_made(tmp_path)
    assert stored["maxTrialNumber"] == len(made) == (7 if name == "update" else 6)
    assert imports == imports_before + (name == "import")
    if name in ("add", "rerun"):
        number = intervention.answer["sequence_id"]
        assert number == len(made_before)
        assert made[number] == (made[0] if name == "rerun" else {"x": 0.125})
        assert again.runner.get_trials()[number].trial_id == intervention.answer["trial_id"]


def one_runs(runner: Any) -> bool:
    return runner.counts["RUNNING"] >= 1


def test_kill_and_stop_are_committed_before_they_are_answered(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path, max_trial_number=50)

    def seen() -> tuple[str, str, list[Any]]:
        with viewed(tmp_path) as store:
            row, stopping = store.experiment(), [trial.trial_id for trial in store.trials() if trial.verdict]
        return row.status, row.reason, stopping

    def kill_and_stop(operations: Operations) -> list[Any]:
        trial = next(trial for trial in manager.runner.live.values() if trial.status == "RUNNING")
        operations["kill"]({"trial": trial.trial_id})
        after_kill = seen()
        operations["stop"]({"reason": "enough"})
        return [trial.trial_id, after_kill, seen()]

    intervention = Intervention(manager, one_runs, kill_and_stop)
    assert run(manager) is ExperimentStatus.STOPPED
    killed, after_kill, after_stop = intervention.answer
    assert after_kill == ("RUNNING", "", [killed])
    assert after_stop[:2] == ("STOPPING", "enough")


def test_experiment_without_room_is_stopped_all_the_same(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path, max_trial_number=50)

    def fill_and_stop(operations: Operations) -> Any:
        until_the_end.enter_context(no_room(manager.store))
        with pytest.raises(ControlError, match="the change was not made"):
            operations["kill"]({"trial": next(iter(manager.runner.live))})
        return operations["stop"]({})

    intervention = Intervention(manager, one_runs, fill_and_stop)
    with ExitStack() as until_the_end, pytest.raises(StoreError, match=r"experiment\.db"):
        run(manager)
    assert intervention.answer == {}
    with viewed(tmp_path) as store:
        assert store.experiment().status == "RUNNING"  # what was written last stands


def test_experiment_that_is_stopped_while_it_starts_is_stopped_in_the_store_at_once(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path)

    async def main() -> str:
        running = asyncio.ensure_future(manager.run())
        await asyncio.sleep(0)
        LiveChanges(manager).operations()["stop"]({"reason": "never mind"})
        row = manager.store.experiment()
        assert await running is ExperimentStatus.STOPPED
        return f"{row.status}: {row.reason}"

    try:
        assert asyncio.run(main()) == "STOPPED: never mind"
    finally:
        let_go(manager)


# ---------------------------------------------------------------------- from another process


@pytest.fixture
def running(tmp_path: Path) -> Outcome:
    """Run something in a thread while an experiment with trials of any length runs; return its outcome."""

    def asked(ask: Callable[[Any], Any]) -> Any:
        tuner = plugin(tmp_path, "importing.Importing", TUNER)
        manager = made_with_random(tmp_path, max_trial_number=10**6, tuner=tuner)

        async def main() -> Any:
            begun = asyncio.Event()
            manager.watch(begun.set)  # its first turn, when it can be asked
            async with ControlServer(manager.folder.path, LiveChanges(manager).operations()):
                task = asyncio.ensure_future(manager.run())
                await begun.wait()
                try:
                    return await asyncio.to_thread(ask, manager.folder)
                finally:
                    manager.stop()
                    await task

        try:
            return asyncio.run(main())
        finally:
            let_go(manager)

    return asked


def test_steering_reaches_a_running_manager(running: Outcome) -> None:
    def ask(folder: Any) -> Any:
        added = add_trial(folder, {"x": 5})
        again = rerun_trial(folder, added["trial_id"])
        results = [{"parameter": {"x": 1}, "value": n} for n in range(3000)]
        assert import_results(folder, results) == (3000, [])
        limits = change_experiment(folder, {"trial_concurrency": 3})
        with pytest.raises(ControlError) as refused:
            kill_trial(folder, "nobody")
        with pytest.raises(ControlError, match="not below zero") as refused_by_the_tuner:
            change_experiment(folder, {"search_space": space(-1)})
        stop_experiment(folder, "enough")
        return added, again, limits, [error.value.kind for error in (refused, refused_by_the_tuner)]

    added, again, limits, kinds = running(ask)
    assert again["sequence_id"] > added["sequence_id"]
    assert (limits["trial_concurrency"], kinds) == (3, ["not found", "invalid"])


@pytest.mark.parametrize("tuner", ["TPE", "Batch", "own"])
def test_only_results_that_the_tuner_takes_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuner: str
) -> None:
    layer = [{"_name": "a", "bias": 0}, {"_name": "b"}]
    space: dict[str, Any] = {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "layer": {"_type": "choice", "_value": layer},
        "epochs": 5,
    }
    if tuner == "Batch":
        space = {"all": {"_type": "choice", "_value": [{"x": 0.5}, {"x": 7}]}}
    own = {"class_name": "tuner.Own", "code_directory": str(tmp_path)}
    made_by = own if tuner == "own" else {"name": tuner}
    folder = MadeExperiment(tmp_path / "made", a_config(search_space=space, tuner=made_by)).folder
    asked = list[dict[str, Any]]()
    monkeypatch.setattr(steering, "_ask", lambda folder, request, timeout: asked.append(request))
    points = [{"x": 0.5, "layer": {"_name": "a"}}, {"x": 7}, {"x": 0.5, "layer": "a"}, {"x": "0.5"}]
    count, left_out = import_results(folder, [{"parameter": one, "value": 1} for one in points])
    sent = [row["parameter"] for request in asked for row in request["data"]]
    assert len(sent) == count
    if tuner == "TPE":
        assert sent == [{"epochs": 5, "x": 0.5, "layer": {"_name": "a", "bias": 0}}]
        assert [one.partition(":")[0] for one in left_out] == ["results[1]", "results[2]", "results[3]"]
        with pytest.raises(ControlError) as refused:
            import_results(folder, [{"parameter": points[1], "value": 1}])
        assert (refused.value.kind, len(asked)) == ("invalid", 1)
    else:
        assert (sent, left_out) == (points, [])


@pytest.mark.dispatcher_process
def test_tuner_that_starts_afresh_gets_the_imports(tmp_path: Path) -> None:
    imported = {"parameter": {"x": 5}, "value": 0.25}
    moody = plugin(tmp_path, "importing.Moody", TUNER)
    manager = made_with_random(tmp_path, tuner=moody, max_trial_number=12)

    def import_and_kill(operations: Operations) -> None:
        operations["import"]({"data": [imported]})
        assert manager.dispatcher_pid is not None
        os.kill(manager.dispatcher_pid, signal.SIGKILL)

    intervention = Intervention(manager, two_ended, import_and_kill)
    assert run(manager) is ExperimentStatus.DONE
    assert intervention.error is None
    with viewed(tmp_path) as store:
        commands = store.commands()
    assert [code for _, code, _ in commands[:3]] == ["IN", "FD", "AD"]  # the record was begun again
    assert sum(imported in json.loads(payload) for _, code, payload in commands if code == "FD") == 1


def test_limit_below_the_trials_that_are_made_is_refused_without_a_manager(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "e", status="STOPPED")
    made.commit(a_trial(0, value=0.5), a_trial(1, value=0.5))
    made.store.close()
    with pytest.raises(ControlError, match="2 trials are made already: max_trial_number must be at least 2"):
        change_experiment(made.folder, {"max_trial_number": 1})
    assert change_experiment(made.folder, {"max_trial_number": 2})["max_trial_number"] == 2


def test_experiment_without_a_manager_gets_new_limits_for_its_next_run(tmp_path: Path) -> None:
    manager = made_with_random(tmp_path)
    manager.folder.function_file.touch()  # as of an experiment that runs its own trials
    run(manager)
    assert change_experiment(manager.folder, {"max_trial_number": 6})["max_trial_number"] == 6
    assert in_store(tmp_path)[1]["maxTrialNumber"] == 6
    for act in (
        lambda: change_experiment(manager.folder, {"max_trial_number": 2, "search_space": space(2)}),
        lambda: change_experiment(manager.folder, {"max_trial_number": None}),
        lambda: add_trial(manager.folder, {"x": 1}),
        lambda: stop_experiment(manager.folder),
    ):
        with pytest.raises(ControlError, match=r"pitchpipe resume|while the experiment runs") as refused:
            act()
        assert refused.value.kind == "conflict"


@pytest.mark.parametrize("count", [7, 8, 9])
def test_trials_are_added_all_or_none_also_when_the_tuner_has_no_more(count: int, tmp_path: Path) -> None:
    choices = {"x": {"_type": "choice", "_value": [1, 2]}}
    grid: Any = {"search_space": choices, "tuner": {"name": "GridSearch"}}
    manager = importing(tmp_path, **grid, max_trial_number=10, trial_concurrency=8)
    intervention = Intervention(
        manager,
        lambda runner: runner.status is ExperimentStatus.TUNER_NO_MORE_TRIAL and len(runner.live) > 0,
        lambda operations: operations["add"]({"parameters": [{"x": 1}] * count}),
    )
    run(manager)
    made = intervention.answer["trials"] if count <= 8 else []
    assert len(made) == (count if count <= 8 else 0)
    assert len(in_store(tmp_path)[0]) == 2 + len(made)
    assert count <= 8 or "leaves room for 8" in str(intervention.error)


def test_configurations_that_are_repeated_are_added_as_families(tmp_path: Path) -> None:
    manager = importing(tmp_path, repeats={"count": 3}, max_trial_number=20, trial_concurrency=4)

    def add_and_rerun(operations: Operations) -> list[dict[str, Any]]:
        several = operations["add"]({"parameters": [{"x": 100}, {"x": 200}]})["trials"]
        return [*several, operations["rerun"]({"trial": 0})]

    intervention = Intervention(manager, two_ended, add_and_rerun)
    run(manager)
    numbers = [made["sequence_id"] for made in intervention.answer]
    records = in_store(tmp_path)[0]
    assert [records[number]["parameters"]["x"] for number in numbers] == [100, 200, 1]
    assert [repeat_of(json.dumps(records[number])) for number in numbers] == [(n, 0) for n in numbers]
