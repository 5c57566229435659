"""Earlier searches are mapped to the search space, and their best points run first.

What is said of them, and of what is left out, is in test_sentences.txt.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pitchpipe.compat.nni.importing import import_experiment as import_nni_experiment
from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.earlier_results import UnreadableSource, optuna_storage, read_earlier
from pitchpipe.manager.manager import Manager
from pitchpipe.manager.warm_start import WarmStart, warm_start_of
from pitchpipe.protocol import Objective, repeated, with_family_end
from pitchpipe.search_space import SearchSpace
from pitchpipe.store import FolderError, default_directory
from pitchpipe.store.reading import ExperimentView, csv_lines

from ..hostile_texts import TEXTS, hostile_experiment
from ..somebody import as_somebody
from ..stored import MadeExperiment, a_config, a_trial
from . import experiments
from .experiments import CopyingStore, created, let_go, run, story
from .test_nni_import import V3, nni_folder
from .test_sentences import SEARCH


def config(**fields: Any) -> ExperimentConfig:
    return experiments.config(**{"search_space": SEARCH, "max_trial_number": 40, "seed": 1, **fields})


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(float(parameters["lr"]))


def made(directory: Path, name: str, **fields: Any) -> Manager:
    return created(directory, config(**fields), behave, name=name)


def tried(directory: Path, name: str) -> list[tuple[float, str]]:
    return experiments.tried(directory, "lr", name)


def table(path: Path, *rows: Mapping[str, Any]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def row(lr: float, value: float | str = 0.0, **more: Any) -> dict[str, Any]:
    return {"lr": lr, "units": 8, "layer": "none", "value": value, **more}


def read(tmp_path: Path, *sources: str, **fields: Any) -> WarmStart:
    return warm_start_of(config(warm_start=list(sources), **fields), tmp_path)


def test_best_of_an_experiment_run_first(tmp_path: Path) -> None:
    run(made(tmp_path, "old", max_trial_number=12))
    best = sorted(lr for lr, _ in tried(tmp_path, "old"))[:3]
    points = [row_point(0.5)]
    manager = made(tmp_path, "new", warm_start=["old"], initial_points=points, max_trial_number=16)
    assert manager.notes[1:] == [
        "warm start from old: 12 of 12 results fit this search space",
        "warm start tries 3 of these points first",
    ]
    run(manager)
    first = tried(tmp_path, "new")
    assert first[:4] == [(0.5, "initial"), *((lr, "warm_start") for lr in best)]
    assert first[4][1] == "algorithm"


def row_point(lr: float) -> dict[str, Any]:
    return {"lr": lr, "units": 8, "layer": {"_name": "none"}}


def test_direction_of_each_experiment_counts(tmp_path: Path) -> None:
    run(made(tmp_path, "old", max_trial_number=6, objectives=[{"direction": "maximize"}]))
    best = max(lr for lr, _ in tried(tmp_path, "old"))
    found = read(tmp_path, str(tmp_path / "old"))
    assert found.points[0]["lr"] == best
    assert found.notes[0].endswith("; it maximizes default, so its highest results count as good here, too")


def test_experiment_of_another_directory_is_found_by_its_id(tmp_path: Path) -> None:
    old = MadeExperiment(default_directory() / "old")
    old.commit(a_trial(0, value=0.5, parameters={"lr": 0.25}))
    old.store.close()
    found, _ = read_earlier("old", Objective(), tmp_path / "mine")
    assert [(one.parameters, one.loss) for one in found] == [({"lr": 0.25}, 0.5)]
    with pytest.raises(UnreadableSource, match=str(tmp_path / "mine")):
        read_earlier("absent", Objective(), tmp_path / "mine")


@pytest.mark.parametrize(
    ("encoding", "text", "why"),
    [
        ("utf-8", "x;final\n0.25;0.5\n", "';'"),
        ("utf-8", "x\tfinal\n1\t2\n", r"'\\t'"),
        ("utf-16", "x,final\n1,2\n", "UTF-8"),
        ("utf-8", "x,final,x\n1,2,3\n", "'x'"),
    ],
)
def test_file_that_a_spreadsheet_saved_in_another_form_says_which(
    encoding: str, text: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(UnreadableSource, match=why):
        read_earlier(str(path), Objective("default", "minimize"), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "x, kind, value\n0.25, tanh, 0.5\n",
        "x ,kind ,value \n0.25 ,tanh ,0.5 \n",
        'x,kind,value\n0.25," tanh",0.5\n',
    ],
)
def test_spaces_around_the_commas_of_a_file_do_not_count(text: str, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(text)
    space = {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "kind": {"_type": "choice", "_value": ["relu", "tanh"]},
    }
    found = read(tmp_path, str(tmp_path / "old.csv"), search_space=space)
    assert list(found.points) == [{"x": 0.25, "kind": "tanh"}]
    assert "ignored" not in found.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "number,value,datetime_start,params_x,params_state,state\n0,0.5,2026-01-01,0.25,on,COMPLETE\n1,0.1,2026-01-01,0.9,on,PRUNED\n",
        "value,timestamp,trial_id,config/x,config/state\n0.5,1700000000,ab_0,0.25,on\n",
    ],
    ids=["optuna", "ray"],
)
def test_tables_of_optuna_and_ray_name_their_parameters(text: str, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(text)
    space = {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "state": {"_type": "choice", "_value": ["off", "on"]},
    }
    found = read(tmp_path, str(tmp_path / "old.csv"), search_space=space)
    assert list(found.points) == [{"x": 0.25, "state": "on"}]
    assert "ignored" not in found.notes[0]


def test_export_as_csv_is_read_again(tmp_path: Path) -> None:
    run(made(tmp_path, "old", max_trial_number=12))
    with ExperimentView(tmp_path / "old") as view:
        (tmp_path / "old.csv").write_bytes(b"".join(csv_lines(view)))
    direct, by_file = read(tmp_path, "old"), read(tmp_path, str(tmp_path / "old.csv"))
    assert list(by_file.points) == list(direct.points)
    assert "12 of 12 results fit" in by_file.notes[0]
    assert "ignored" not in by_file.notes[0]


def test_metrics_in_an_export_are_no_parameters(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "made1234", a_config())
    final = '{"default": 0.5, "train_loss": 0.25}'
    made.commit(*(a_trial(number, final=final, values=(0.5,), finals=1) for number in range(2)))
    made.store.close()
    with ExperimentView(tmp_path / "made1234") as view:
        (tmp_path / "old.csv").write_bytes(b"".join(csv_lines(view)))
    assert "metrics.train_loss" in (tmp_path / "old.csv").read_text()
    by_file, _ = read_earlier(str(tmp_path / "old.csv"), Objective("default", "minimize"), tmp_path)
    assert [one.parameters for one in by_file] == [{"lr": 0.0, "units": 16}, {"lr": 0.1, "units": 16}]


def test_every_text_in_an_export_as_csv_is_read_again_as_it_was(tmp_path: Path) -> None:
    made = hostile_experiment(tmp_path / "made1234")
    odd: dict[str, Any] = {"null": None, "list": ["1", 1, None], "empty": ""}
    odd |= {"id": 3, "final.x": 1, "parameters.y": 2}
    made.commit(a_trial(200, parameters=odd, final='{"default": 1.0}', values=(1.0, 2.0, 3.0), finals=1))
    made.store.close()
    with ExperimentView(tmp_path / "made1234") as view:
        (tmp_path / "old.csv").write_bytes(b"".join(csv_lines(view)))
    goal = Objective("default", "maximize")
    direct, _ = read_earlier("made1234", goal, tmp_path)
    by_file, _ = read_earlier(str(tmp_path / "old.csv"), goal, tmp_path)
    assert [one.parameters for one in by_file] == [one.parameters for one in direct]
    assert [one.loss for one in by_file] == [one.loss for one in direct]
    kinds = [{name: type(value) for name, value in one.parameters.items()} for one in by_file]
    assert kinds == [{name: type(value) for name, value in one.parameters.items()} for one in direct]
    assert len(direct) == len(TEXTS) + 1


LINE: dict[str, Any] = {"_type": "uniform", "_value": [0, 1]}


def choice(*options: Any) -> dict[str, Any]:
    return {"_type": "choice", "_value": list(options)}


ALIKE: list[dict[str, Any]] = [
    {"c": choice("1e-3", "1e-4")},
    {"c": choice("true", "false", "TRUE", "True", True, False)},
    {"c": choice("null", "none", "None", None, "", "a")},
    {"c": choice("1.50", "2.50", "1.5", 1.5)},
    {"c": choice('"q"', "r", "'r")},
    {"c": choice("1", 1, True, "+1", ".5", 0.5, "5.", "007", 7)},
    {"c": choice("inf", "-inf", "nan", "Infinity")},
    {"c": choice([1, "2"], ["1", 2], "[1, 2]", [])},
    {"c": choice({"a": 1}, {"a": 2}, {"a": 1, "b": None}, {})},
    {"c": choice({"a": {"b": "1"}}, {"a": {"b": 1}}, {"a.b": True}, "x"), "a": LINE},
    {"c": choice({"_name": "a", "k": 1}, "none")},
    {"c": choice(*({"_name": name, "k": choice(1, "1"), "fix": 3} for name in (1, "1", True, None)))},
    {"c": choice({"_name": "a", "k": choice({"o": 1}, {"o": 2})}, {"_name": "b"})},
    {"c.k": LINE, "c": choice({"_name": "a", "k": LINE, "c.k": LINE}, {"_name": "b"})},
    {"c": choice({"a": 1}, {"a": 2}), "c.a": LINE},
    {"c": choice({"_name": "p", "a.b": LINE}, {"_name": "q", "a": choice({"_name": "r", "b": LINE})})},
]


@pytest.mark.parametrize("space", ALIKE, ids=json.dumps)
@pytest.mark.parametrize("as_csv", [False, True])
def test_same_space_has_every_result_with_its_own_parameters(
    tmp_path: Path, space: dict[str, Any], as_csv: bool
) -> None:
    space = {**space, "x": LINE, "n": {"_type": "randint", "_value": [0, 9]}, "fixed": 5}
    earlier = MadeExperiment(tmp_path / "old", a_config(search_space=space))
    rng, parsed = np.random.default_rng(0), SearchSpace.parse(space)
    points = [parsed.sample(rng) for _ in range(40)]
    earlier.commit(*(a_trial(n, parameters=point, value=n) for n, point in enumerate(points)))
    if as_csv:
        with ExperimentView(earlier.folder) as view:
            (tmp_path / "old.csv").write_bytes(b"".join(csv_lines(view)))
    source = str(tmp_path / ("old.csv" if as_csv else "old"))
    found = read(tmp_path, source, search_space=space, tuner={"name": "Auto"})
    assert json.dumps([one["parameter"] for one in found.results]) == json.dumps(points)
    assert found.notes[0].endswith("40 of 40 results fit this search space")


@pytest.mark.parametrize(
    ("parameter", "cell", "values"),
    [
        (choice("1e-3", "1e-4"), "1e-4", ["1e-4"]),
        (choice(1e-3, 1e-4), ".0001", [1e-4]),
        (choice("0.5", "1"), "+.5", ["0.5"]),
        (choice(True, False), "TRUE", [True]),
        (choice("true", "false"), "FALSE", ["false"]),
        (choice(None, "a"), "null", [None]),
        (choice("1.5", "1.50"), "1.500", []),
        (choice("a", "b"), "null", []),
        (choice({"a": 1}, {"a": 2}), '{"a": 2}', [{"a": 2}]),
        (LINE, "+0.1", [0.1]),
        (LINE, "null", [0.75]),
        ({"_type": "randint", "_value": [0, 9]}, "+8", [8]),
    ],
    ids=str,
)
def test_cell_that_people_or_spreadsheets_wrote_is_the_only_option_that_reads_alike(
    tmp_path: Path, parameter: Any, cell: str, values: list[Any]
) -> None:
    space = {"c": parameter, "x": LINE}
    old = table(tmp_path / "old.csv", {"c": cell, "x": 0.5, "value": 1})
    default = 0.75 if parameter == LINE else parameter["_value"][0]
    found = read(
        tmp_path, old, search_space=space, defaults={"c": default, "x": 0.25}, tuner={"name": "Auto"}
    )
    points = [one["parameter"] for one in found.results]
    assert json.dumps(points) == json.dumps([{"c": value, "x": 0.5} for value in values])


def test_sources_take_turns_within_a_quarter_of_the_trials(tmp_path: Path) -> None:
    one = table(tmp_path / "one.csv", *(row(lr, lr) for lr in (0.1, 0.2, 0.3, 0.4)))
    two = table(tmp_path / "two.csv", *(row(lr, lr) for lr in (0.1, 0.15, 0.6)))
    points = read(tmp_path, one, two).points
    assert [point["lr"] for point in points] == [0.1, 0.2, 0.15, 0.3, 0.6]
    assert [point["lr"] for point in read(tmp_path, one, two, max_trial_number=12).points] == [0.1, 0.2, 0.15]
    known = read(tmp_path, one, defaults=row_point(0.1), initial_points=[row_point(0.2)])
    assert [point["lr"] for point in known.points] == [0.3]


def test_only_a_tuner_that_models_sources_gets_their_results(tmp_path: Path) -> None:
    one = table(tmp_path / "one.csv", *(row(i / 400, i / 400) for i in range(400)))
    two = table(tmp_path / "two.csv", row(0.5, -7.0))
    assert not read(tmp_path, one).results
    results = read(tmp_path, one, two, tuner={"name": "Auto"}, objectives=[{"direction": "maximize"}]).results
    assert results[-1] == {"parameter": row_point(0.5), "value": 7.0, "source": 1}
    losses = [result["value"] for result in results[:-1]]
    assert losses == sorted(losses)
    assert losses[:75] == [-(399 - i) / 400 for i in range(75)]
    assert 120 < len(losses) <= 150
    assert losses[-1] > -0.02


def test_earlier_results_reach_the_tuner_once_though_the_manager_is_killed(tmp_path: Path) -> None:
    source = table(tmp_path / "old.csv", *(row(i / 10, i / 10) for i in range(10)))
    manager = made(tmp_path, "exp", tuner={"name": "Auto"}, warm_start=[source], max_trial_number=12)
    store = CopyingStore(manager, tmp_path / "copies")
    run(manager)
    expected = story(tmp_path)
    imported = [json.loads(row[2]) for row in expected["commands"] if row[1] == "FD"]
    # The three points, their results, and the earlier results.
    assert sorted(map(len, imported)) == [1] * 6 + [10]
    assert [lr for lr, _ in tried(tmp_path, "exp")][:3] == [0.0, 0.1, 0.2]
    store.come_to(expected, behave, store.copies[:3])


def test_family_of_repeats_is_one_result_with_its_mean(tmp_path: Path) -> None:
    earlier = MadeExperiment(tmp_path / "earlier", a_config(repeats=2))
    trials = [a_trial(0, value=0.0), a_trial(1, value=1.0), a_trial(2, value=0.2), a_trial(3, value=0.2)]
    for number, trial in enumerate(trials):
        trial.record = repeated(trials[number // 2 * 2].record, number // 2 * 2, number % 2)
    for first in (trials[0], trials[2]):
        first.record = with_family_end(first.record, "complete")
    earlier.commit(*trials)
    with ExperimentView(earlier.folder) as view:
        (tmp_path / "earlier.csv").write_bytes(b"".join(csv_lines(view)))
    for source in (earlier.folder.path, tmp_path / "earlier.csv"):
        results, _ = read_earlier(str(source), Objective(), tmp_path)
        assert [(one.parameters["lr"], one.loss) for one in results] == [(0.0, 0.5), (0.2, 0.2)]
        assert set(results[0].parameters) == {"lr", "units"}


def fill(storage: Any) -> None:
    """Make a study with trials that were asked for."""
    import optuna

    study = optuna.create_study(storage=storage, study_name="first", direction="maximize")
    for lr in (0.2, 0.8, 0.5):
        study.enqueue_trial({"lr": lr, "units": 8, "layer": "none"}, user_attrs={"parameters": 12_000_000})
    study.optimize(
        lambda trial: (
            trial.suggest_float("lr", 0, 1)
            + 0 * trial.suggest_int("units", 1, 64)
            + 0 * len(trial.suggest_categorical("layer", ["conv", "none"]))
        ),
        n_trials=3,
    )


def test_study_of_optuna_is_read(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with optuna_storage(url) as storage:
        fill(storage)
    found = read(tmp_path, f"{url}:first")
    assert list(found.points) == [row_point(0.8), row_point(0.5), row_point(0.2)]
    with optuna_storage(url) as storage:
        optuna.create_study(storage=storage, study_name="empty")
    said = "second cannot be used: it has no study 'second'; it has first, empty"
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, f"{url}:second")


def test_reading_a_study_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    before = (tmp_path / "other.db").read_bytes()
    reasons = {"nope.db": "there is no file {}", "other.db": "{} is not a file of Optuna: no such table"}
    for name, why in reasons.items():
        with pytest.raises(ConfigError, match=f"S cannot be used: {why.format(tmp_path / name)}"):
            read(tmp_path, f"sqlite:///{tmp_path / name}:S")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"other.db": before}


def test_experiment_without_the_objective_names_those_it_has(tmp_path: Path) -> None:
    goals = [{"name": name, "direction": "minimize"} for name in ("acc", "lat")]
    manager = made(tmp_path, "old", objectives=goals)
    with pytest.raises(ConfigError, match="it has no objective 'default'; its objectives are acc, lat"):
        read(tmp_path, "old")
    let_go(manager)


def test_source_of_which_nothing_fits_is_warned_of_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = table(tmp_path / "old.csv", *({"C": 0.1 * n, "value": 0.5} for n in range(3)))
    good = table(tmp_path / "good.csv", row(0.3))
    manager = made(tmp_path / "runs", "new", warm_start=[old, good])
    assert not caplog.records
    assert manager.notes[1:-1] == [f"warm start from {good}: 1 of 1 results fit this search space"]
    run(manager)
    (warning,) = (one.message for one in caplog.records if one.levelname == "WARNING")
    assert warning.startswith(f"warm start from {old}: 0 of 3 results fit this search space; ")


def test_experiment_whose_source_cannot_be_read_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used: no such file"):
        made(tmp_path / "runs", "new", warm_start=["no.csv"])
    assert not (tmp_path / "runs").exists()


def test_experiment_of_nni_has_its_succeeded_trials_in_its_own_direction(tmp_path: Path) -> None:
    finals = (0.5, {"default": 0.9, "loss": 3}, 7.0, "a text", float("nan"))
    statuses = ("SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED")
    trials = [(f"t{n}", *one) for n, one in enumerate(zip(statuses, finals, strict=True))]
    old = str(nni_folder(tmp_path / "old", V3, trials))
    found, unmeasured = read_earlier(old, Objective(), tmp_path)
    assert unmeasured == 1
    assert [(result.parameters["lr"], result.loss) for result in found] == [(0.0, -0.5), (0.1, -0.9)]
    unnamed = nni_folder(tmp_path / "unnamed", {"tuner": {"name": "TPE"}}, trials)
    assert [result.loss for result in read_earlier(str(unnamed), Objective(), tmp_path)[0]] == [0.5, 0.9]
    started = read(tmp_path, old, defaults=row_point(0.5))
    assert [point["lr"] for point in started.points] == [0.1, 0.0]
    assert "2 of 2 results fit this search space; 1 without a result" in started.notes[0]


@pytest.mark.parametrize("source", ["closed", "closed/experiment", "closed/earlier.csv"])
def test_source_that_is_closed_to_this_user_is_a_fault_of_the_source(source: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        closed = Path(shared) / "closed"
        for folder in (closed, closed / "experiment"):
            (folder / "db").mkdir(parents=True)
            (folder / "db" / "nni.sqlite").touch()
        (closed / "earlier.csv").touch()
        Path(shared).chmod(0o755)
        closed.chmod(0o000)

        def look() -> None:
            with pytest.raises(UnreadableSource, match="Permission denied") as raised:
                read_earlier(f"{shared}/{source}", Objective("default"), Path(shared))
            assert "nni.sqlite" not in str(raised.value)
            with pytest.raises(FolderError, match=f"{source} cannot be entered"):
                import_nni_experiment(Path(shared) / source, Path(shared))

        as_somebody(look)
        closed.chmod(0o700)


@pytest.mark.parametrize("name", ["trials.json", "old.tsv", "old.csv.gz"])
def test_file_of_another_form_is_named_as_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x,value\n0.25,0.5\n")
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    with pytest.raises(ConfigError, match="it is a file, but not a CSV file"):
        read(tmp_path, str(tmp_path / name), search_space=space)
    (tmp_path / name).rename(tmp_path / "OLD.CSV")
    assert list(read(tmp_path, str(tmp_path / "OLD.CSV"), search_space=space).points) == [{"x": 0.25}]
