"""The table of an experiment from its store: of many trials the telling ones, in the memory of some thousand."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.server import read_table
from pitchpipe.server.figures import MOST_TRIALS, plot_history, plot_timeline
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView

from ..stored import MadeExperiment, a_config, a_trial


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
