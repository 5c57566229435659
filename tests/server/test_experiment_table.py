"""The table of an experiment from its store: of many trials the telling ones, in the memory of some thousand."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.server import read_table
from pitchpipe.server.experiment_table import read_importance, read_learnable
from pitchpipe.server.figures import MOST_TRIALS, plot_history, plot_timeline
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView

from ..stored import MadeExperiment, a_config, a_trial, results


def values_of(count: int) -> list[float]:
    return (np.random.default_rng(1).random(count) + 1e-3).tolist()


def made_of(path: Path, count: int) -> ExperimentFolder:
    made = MadeExperiment(path, a_config())
    trials = [
        a_trial(number, "SUCCEEDED" if number % 1000 else "FAILED", value=value, agent=f"a{number % 4}")
        for number, value in enumerate(values_of(count))
    ]
    made.commit(*trials)
    made.store.close()
    return made.folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[ExperimentFolder]:
    """Return experiments of 6,000 and of 12,000 trials."""
    path = tmp_path_factory.mktemp("many")
    return [made_of(path / f"of-{count}", count) for count in (6_000, 12_000)]


def test_memory_of_a_table_does_not_grow_with_the_trials(folders: list[ExperimentFolder]) -> None:
    peaks = []
    for folder in folders:
        with ExperimentView(folder) as view:
            read_table(view)  # imports, and what is kept for the next read
            tracemalloc.start()
            read_table(view, attempts=True)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_table_knows_which_trials_ran_other_code(made: MadeExperiment) -> None:
    loaded = [json.dumps({"files": {"train.py": digest}, "packages": {}}) for digest in ("01", "02")]
    made.commit(*(replace(a_trial(n, value=0.5), code=loaded[n // 2]) for n in range(4)))
    made.store.close()
    with sqlite3.connect(made.folder.database) as db:
        db.executemany("INSERT INTO code_versions VALUES (?, ?)", [(text, text) for text in loaded])
    db.close()
    with ExperimentView(made.folder) as view:
        table = read_table(view)
    assert table.code_changes == {2: "train.py from trial 2 on"}
    assert [one.code for one in table.trials] == [loaded[0]] * 2 + [loaded[1]] * 2


def test_table_of_many_trials_has_the_telling_ones(folders: list[ExperimentFolder]) -> None:
    with ExperimentView(folders[1]) as view:
        table = read_table(view, attempts=True)
        best = view.best(20)
    values = values_of(12_000)
    numbers = {one.number for one in table.trials}
    assert MOST_TRIALS - 10 <= len(numbers) <= MOST_TRIALS
    assert {row.sequence_id for row in best} <= numbers
    assert {one.number for one in table.trials if one.status == "FAILED"} == {*range(0, 12_000, 1_000)}
    line = plot_history(table).data[1]
    succeeded = [value for number, value in enumerate(values) if number % 1000]
    assert sorted(set(np.minimum.accumulate(succeeded))) == sorted(set(line.y))
    assert sum(one.count for one in table.spans) == 12_000
    assert {row for trace in plot_timeline(table).data for row in trace.y if row} == {
        f"a{n}" for n in range(4)
    }


def test_table_of_many_families_has_their_means(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "repeated", a_config(repeats={"count": 2}))
    trials = []
    for number, value in enumerate(values_of(10_400)):
        trial = a_trial(number, value=value)
        family, repeat = number - number % 2, number % 2
        record = repeated(trial.record, family, repeat, 40 + repeat)
        trial.record = record if repeat else with_family_end(record, "complete")
        trials.append(trial)
    made.commit(*trials)
    made.store.close()
    with ExperimentView(made.folder) as view:
        table = read_table(view)
        (best,) = view.best()
    means = np.reshape(values_of(10_400), (-1, 2)).mean(axis=1)
    assert len(table.configurations) <= MOST_TRIALS < len(table.outcomes) == 5_200
    assert table.outcomes.results("default") == pytest.approx(means)
    assert best.sequence_id == 2 * means.argmin()
    assert best.sequence_id in {one.number for one in table.configurations}


def test_numbers_beside_the_objectives_are_metrics_of_the_table(tmp_path: Path) -> None:
    odd = "a\"b' OR 1=1"
    made = MadeExperiment(
        tmp_path / "several", a_config(objectives=[{"name": "acc", "direction": "maximize"}])
    )
    ended = a_trial(0, value=0.9, final='{"acc": 0.9, "size": {"mb": 7}, "late": NaN}')
    stopped, early = a_trial(1, "EARLY_STOPPED"), a_trial(2, "EARLY_STOPPED")
    reports = [{"acc": n / 10, "loss": {"train": 1 - n / 10}, "late": 5.0, odd: n} for n in range(3)]
    metrics = [*results(ended, reports), *results(stopped, reports[:2])]
    made.commit(ended, stopped, early, metrics=metrics)
    made.store.close()
    with ExperimentView(made.folder) as view:
        table, at_first = read_table(view, metric="loss.train"), read_table(view, step=1)
        with pytest.raises(KeyError, match=r"no metric .*nope.*acc.*loss.train.*size.mb"):
            read_table(view, metric="nope")
        with pytest.raises(KeyError, match=r"no metric .*nope"):
            read_importance(view, "nope")
        with pytest.raises(ValueError, match="step has to be at least 1"):
            read_table(view, step=0)
    assert table.metrics == (odd, "late", "loss.train", "size.mb")
    assert [table.value(trial, "acc") for trial in table.trials] == [0.9, 0.1, None]
    assert [table.value(trial, "loss.train") for trial in table.trials] == [0.8, 0.9, None]
    assert [table.value(trial, "late") for trial in table.trials] == [None, 5.0, None]
    assert [table.value(trial, odd) for trial in table.trials] == [2.0, 1.0, None]
    assert [trial.reports for trial in table.trials] == [3, 2, 0]
    assert (table.curve_metric, [list(one.values) for one in table.curves]) == (
        "loss.train",
        [[1.0, 0.9, 0.8], [1.0, 0.9]],
    )
    assert [at_first.value(trial, "acc") for trial in at_first.trials] == [0.0, 0.0, None]


def test_names_of_metrics_are_limited(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "many", a_config())
    trials = [a_trial(number, value=0.5) for number in range(2)]
    reports = [results(trial, [{"default": 0.5, **{f"m{n}": 1.0 for n in range(500)}}]) for trial in trials]
    made.commit(*trials, metrics=[row for report in reports for row in report])
    made.store.close()
    with ExperimentView(made.folder) as view:
        table = read_table(view)
    assert len(table.metrics) == 99
    assert all(len(trial.reported) == 100 for trial in table.trials)


def test_curves_are_read_for_importance_where_trials_were_stopped(tmp_path: Path) -> None:
    counts = []
    for status in ("SUCCEEDED", "EARLY_STOPPED"):
        made = MadeExperiment(tmp_path / status, a_config())
        trials = [a_trial(0, value=0.5), a_trial(1, status, value=0.4 if status == "SUCCEEDED" else None)]
        made.commit(*trials, metrics=[row for trial in trials for row in results(trial, [0.9, 0.8])])
        made.store.close()
        with ExperimentView(made.folder) as view:
            counts.append(len(read_learnable(view).curves))
    assert counts == [0, 2]


def test_family_has_the_means_of_what_its_repeats_reported(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "repeated", a_config(repeats={"count": 2}))
    trials = [a_trial(number, value=float(number)) for number in range(2)]
    metrics = [
        row for trial in trials for row in results(trial, [{"default": 1.0, "loss": 2.0 + trial.sequence_id}])
    ]
    for number, trial in enumerate(trials):
        trial.record = repeated(trials[0].record, 0, number)
    trials[0].record = with_family_end(trials[0].record, "complete")
    made.commit(*trials, metrics=metrics)
    made.store.close()
    with ExperimentView(made.folder) as view:
        (family,) = read_table(view).configurations
    assert (family.repeats, family.values, family.reported["loss"]) == (2, {"default": 0.5}, 2.5)
