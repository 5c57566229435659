"""The benchmark of search quality: what it counts, and that it runs."""

import itertools
import json
import math
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.search_space import SearchSpace

from .benchmark_modules import benchmark_modules


@pytest.fixture
def module(tree: Path) -> Iterator[Any]:
    """Return a function that imports a module of the benchmark."""
    with benchmark_modules(tree / "benchmarks" / "search_quality") as module:
        yield module


def test_every_synthetic_task_takes_every_point_and_none_is_below_its_best(module: Any) -> None:
    tasks = module("tasks")
    for name in (name for name in tasks.names() if name[0] in "spd"):
        task = tasks.make(name)
        space, rng = SearchSpace.parse(task.space), np.random.default_rng(0)
        count = 10 if name.startswith("p") else 300  # those train models
        values = [task.truth(space.sample(rng)) for _ in range(count)]
        finite = [value for value in values if not math.isnan(value)]
        assert len(finite) > (1 if name.startswith("d") else 2) * count / 3, name
        assert task.best is None or min(finite) >= task.best, name


def test_every_open_ordinary_task_has_results_that_differ_and_says_what_fails(module: Any) -> None:
    tasks = module("tasks")
    names = tasks.of_kind("o")
    assert len(names) >= 40
    for name in names:
        task = tasks.make(name)
        space, rng = SearchSpace.parse(task.space), np.random.default_rng(0)
        points = [space.sample(rng) for _ in range(12)]
        truths = [task.truth(point) for point in points]
        found = [value for value in truths if not math.isnan(value)]
        assert (task.name, len(set(found)) > 1) == (name, True)
        assert [task.truth(point) for point in points] == pytest.approx(truths, nan_ok=True)
        reported = [task.objective(point, rng) for point in points]
        assert all(math.isnan(seen) for seen, real in zip(reported, truths, strict=True) if math.isnan(real))


def test_half_of_the_ordinary_tasks_are_closed(module: Any) -> None:
    tasks = module("tasks")
    opened, closed = ({name[2:] for name in tasks.of_kind(kind)} for kind in "ox")
    assert len(opened) == len(closed)
    assert not opened & closed


def test_ordinary_results_are_reported_as_people_report_them(module: Any) -> None:
    ordinary, rng = module("ordinary"), np.random.default_rng(0)
    assert {ordinary.samples(30)(0.1, rng) * 30 % 1 for _ in range(20)} == {0.0}
    assert np.std([ordinary.noisy(2.0)(5.0, rng) for _ in range(500)]) == pytest.approx(2.0, rel=0.2)
    assert np.std(np.log([ordinary.times(0.1)(5.0, rng) for _ in range(500)])) == pytest.approx(0.1, rel=0.2)
    assert 20 < sum(math.isnan(ordinary.flaky(0.1)(5.0, rng)) for _ in range(500)) < 90


def test_best_values_are_reached(module: Any) -> None:
    synthetic = module("synthetic")
    rosenbrock = synthetic.rosenbrock()
    assert rosenbrock.truth({f"x{i}": 1.0 for i in range(8)}) == rosenbrock.best
    hartmann = synthetic.hartmann()
    at = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    assert hartmann.truth({f"x{i}": x for i, x in enumerate(at)}) == pytest.approx(hartmann.best, abs=1e-4)
    mixed = synthetic.mixed()
    point = {f"x{i}": 0.0 for i in range(4)} | {"n0": 3, "n1": 7, "n2": 11}
    assert mixed.truth({**point, "kind": "a", "sign": True, "power": 2}) == mixed.best


def test_best_chain_of_choices_is_what_trying_all_finds(module: Any) -> None:
    synthetic = module("synthetic")
    rng = np.random.default_rng(1)
    single, pairs = rng.normal(size=(4, 3)), rng.normal(size=(4, 4, 3, 3))
    tried = [
        sum(single[i, o] for i, o in enumerate(chosen))
        + sum(pairs[i, i + 1, chosen[i], chosen[i + 1]] for i in range(3))
        for chosen in np.ndindex(3, 3, 3, 3)
    ]
    assert synthetic._best_chain(single, pairs) == pytest.approx(min(tried))


points = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=8)


@given(points)
def test_hypervolume_is_the_number_of_cells_that_points_dominate(
    tree: Path, found: list[tuple[int, int, int]]
) -> None:
    hypervolume = runpy.run_path(str(tree / "benchmarks" / "search_quality" / "hypervolume.py"))
    front = hypervolume["Front"]([{"name": name, "reference": 4} for name in "abc"])
    for point in found:
        front.add(dict(zip("abc", point, strict=True)))
    cells = [c for c in itertools.product(range(4), repeat=3) if any(np.all(np.array(p) <= c) for p in found)]
    assert front.volume == pytest.approx(len(cells))


def test_infeasible_and_failed_trials_dominate_nothing(module: Any) -> None:
    goals = [{"reference": 1.0}, {"name": "b", "reference": 1.0}, {"name": "ms", "constraint": "<= 5"}]
    front = module("hypervolume").Front(goals)
    for values in (math.nan, {"default": 0.0, "b": 0.0, "ms": 6.0}, {"default": 2.0, "b": 0.0, "ms": 1.0}):
        front.add(values)
    assert front.volume == 0
    front.add({"default": 0.5, "b": 0.5, "ms": 5.0})
    assert front.volume == 0.25


@pytest.mark.parametrize("name", ["m1", "m2", "m3", "m4", "m5", "m6", "m7"])
def test_no_search_dominates_more_than_the_front_that_is_known(module: Any, name: str) -> None:
    optimisers, tasks = module("optimisers"), module("tasks")
    task = tasks.make(name)

    def lowest(optimiser: str, count: int) -> float:
        made = optimisers.make(optimiser, task.space, 0, task.objectives)
        return module("searching").search(task, made, count, seed=0).truths[-1]

    assert task.best < lowest("NSGA", 150) < lowest("Random", 50) <= 0


def test_regret_is_0_at_the_best_and_1_at_the_median_of_random(module: Any) -> None:
    scoring = module("scoring")
    random = [
        {"task": "s1", "truths": [value, value], "ms": [0.1], "seed": n}
        for n, value in enumerate((2.0, 4.0, 9.0))
    ]
    scale = scoring.scale_of(random, random, 2)
    values = [(0.0, 1), (4.0, 2), (2.0, 1), (100.0, 1), (math.nan, 1)]
    assert [scale.regret("s1", *value) for value in values] == [0.0, 1.0, 0.5, 2.0, 2.0]


def test_regret_of_an_ordinary_task_is_1_at_the_mean_of_random(module: Any) -> None:
    scoring, tasks = module("scoring"), module("tasks")
    [name, other, *_] = tasks.of_kind("o")
    random = [
        {"task": name, "truths": [value, 2.0], "ms": [0.1], "seed": n}
        for n, value in enumerate((3.0, 3.0, math.nan, 9.0))
    ]
    scale = scoring.scale_of(random, random, 2)
    # The best is 2; without a result a random search counts as the worst one: (3 + 3 + 9 + 9) / 4.
    assert [scale.regret(name, value, 1) for value in (2.0, 4.0, 6.0, 99.0)] == [0.0, 0.5, 1.0, 2.0]
    # Tasks are drawn, too: two of them with exact, different regrets have a wide interval.
    both = scoring.Scores("a", [1], {name: np.zeros((3, 1)), other: np.ones((3, 1))}, 1.0)
    assert both.interval(0) == (0.0, 1.0)
    assert scoring.Scores("a", [1], {"s1": np.zeros((3, 1)), "s2": np.ones((3, 1))}, 1.0).interval(0) == (
        0.5,
        0.5,
    )


def test_ranks_share_places_and_leave_out_who_could_not_run(module: Any) -> None:
    scoring = module("scoring")

    def scores(name: str, **regrets: float) -> Any:
        return scoring.Scores(name, [1], {task: np.array([[value]]) for task, value in regrets.items()}, 1.0)

    found = [scores("a", s1=0.1, s2=0.5), scores("b", s1=0.1, s2=0.2), scores("c", s2=0.3)]
    assert scoring.mean_ranks(found, 0) == [(1.5 + 3) / 2, (1.5 + 1) / 2, 2.0]
    assert found[0].mean(0) == pytest.approx(0.3)


def test_several_workers_have_that_many_trials_under_way(module: Any) -> None:
    searching, tasks = module("searching"), module("tasks")
    under_way, most = set[int](), [0]

    class Watcher:
        def ask(self, key: int) -> dict[str, Any]:
            under_way.add(key)
            most[0] = max(most[0], len(under_way))
            return {f"x{i}": key / 20 for i in range(5)}

        def tell(self, key: int, value: float) -> None:
            under_way.remove(key)

    found = searching.search(tasks.make("s1"), Watcher(), 20, seed=0, workers=4)
    assert most == [4]
    assert len(found.truths) == 20
    assert found.truths == sorted(found.truths, reverse=True)


def test_benchmark_runs_and_does_not_repeat_itself(tree: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(tree / "benchmarks" / "search_quality" / "run.py"), "--quick"]
    command += ["--budget", "6", "--optimisers", "TPE", "--tasks", "s1", "s6", "--results", str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert "| TPE | 4 |" in first.stdout
    assert "| Random | 4 |" in first.stdout
    rows = [json.loads(line) for line in (tmp_path / "TPE.jsonl").read_text().splitlines()]
    searches = [(row["task"], row["seed"], len(row["truths"])) for row in rows]
    assert searches == [("s1", 0, 6), ("s1", 1, 6), ("s6", 0, 6), ("s6", 1, 6)]
    second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert second.stdout == first.stdout
    assert "seeds" not in second.stderr


def test_tasks_of_another_kind_are_refused(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run.py", "--objectives", "--optimisers", "TPE", "--quick", "--budget", "3"]
    words += ["--results", str(tmp_path / "found"), "--tasks"]
    monkeypatch.setattr(sys, "argv", [*words, "m1", "s1"])
    with pytest.raises(SystemExit) as refused:
        module("run").main()
    assert (refused.value.code, (tmp_path / "found").exists()) == (2, False)
    assert "--tasks s1: known here are m1, m2, m3, m4, m5, m6, m7" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*words, "m1"])
    module("run").main()
    assert capsys.readouterr().out.startswith("3 trials on 1 tasks;")


def test_epochs_are_counted_over_all_workers_and_stopped_trials_train_no_further(module: Any) -> None:
    fidelity, tasks = module("fidelity"), module("tasks")
    trained: list[int] = []

    def curve(parameters: dict[str, Any]) -> Any:
        for epoch in range(1, 100):
            trained.append(parameters["key"])
            yield 1.0 / (parameters["key"] + 1) / epoch

    class StopsOddTrials(fidelity.Method):
        ended: dict[int, float | None] = {}  # noqa: RUF012

        def start(self, key: int) -> dict[str, Any]:
            return {"key": key}

        def report(self, key: int, epoch: int, value: float) -> bool:
            return key % 2 == 0 or epoch < 2

        def end(self, key: int, value: float | None) -> None:
            self.ended[key] = value

    method = StopsOddTrials()
    found = fidelity.run_epochs(tasks.Curves("x", "", {}, 5, curve), method, 60, seed=0)
    assert len(found) == len(trained) == 60
    assert found == sorted(found, reverse=True)
    for key, value in method.ended.items():
        assert trained.count(key) == (2 if key % 2 else 5)
        assert value == (None if key % 2 else 1.0 / (key + 1) / 5)


def test_several_objectives_are_judged_by_the_hypervolume_of_full_trials(module: Any) -> None:
    fidelity, tasks = module("fidelity"), module("tasks")

    def curve(parameters: dict[str, Any]) -> Any:
        while True:
            yield {"default": parameters["x"], "cost": 1.0 - parameters["x"]}

    class Stops(fidelity.Method):
        def start(self, key: int) -> dict[str, Any]:
            return {"x": (key % 4) / 4}

        def report(self, key: int, epoch: int, value: Any) -> bool:
            return key % 4 in (1, 2)

        def end(self, key: int, value: Any) -> None:
            pass

    goals = tuple({"name": name, "reference": 1.0} for name in ("default", "cost"))
    found = fidelity.run_epochs(tasks.Curves("x", "", {}, 3, curve, goals), Stops(), 60, seed=0)
    assert found[0] == 0.0
    assert found[-1] == -(0.75 * 0.25 + 0.5 * 0.25)
    assert found == sorted(found, reverse=True)


def test_epochs_saved_are_those_after_the_final_value_of_the_tuner_without_the_rule(
    module: Any, tmp_path: Path
) -> None:
    report, results = module("report"), module("results")
    for name, truths in (("TPE", [0.0, -1.0, -2.0, -2.0]), ("TPE+ASHA", [-1.0, -2.5, -2.5, -3.0])):
        row = {"task": "f1", "seed": 0, "budget": 4, "workers": 4, "truths": truths}
        (tmp_path / f"{name.replace('+', '-')}.jsonl").write_text(json.dumps(row))
    lines = report.savings(results.Results(tmp_path), ["f1"], ["TPE", "TPE+ASHA"], 4, 1)
    assert list(lines)[2:] == ["| f1 | TPE | 1 | 2.000 |  |", "| f1 | TPE+ASHA | 1 | 3.000 | 75 % |"]
