"""The notes on a search are the same sentences wherever they are shown, and appear only where they make sense."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.cli.outcome import best_lines, summary_object
from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.results import result_of
from pitchpipe.server.experiments import Experiments
from pitchpipe.server.health import read_health
from pitchpipe.server.pages.overview_page import notices_of
from pitchpipe.server.report.rendering import render_report
from pitchpipe.store.reading import ExperimentView

from ..stored import MadeExperiment, a_config, a_trial, results
from .asking import Asking

NOTE = (
    "the range of lr may be cut off: the best trials crowd at its upper end, 1; widen it to 1.2 if such values make"
    " sense"
)
RANDOM = (
    "random search would have done as well; check that the metric depends on these parameters, and average out its"
    " noise with `repeats`"
)

LOSS = {"name": "default", "direction": "minimize"}


def made(path: Path, rates: list[float], losses: list[float] | None = None, **fields: Any) -> MadeExperiment:
    experiment = MadeExperiment(path, a_config(max_trial_number=100, **fields), "DONE")
    losses = losses or [1.0 - rate + 0.5 * (n % 2) for n, rate in enumerate(rates)]
    both = zip(rates, losses, strict=True)
    experiment.commit(
        *(
            a_trial(n, value=loss, parameters={"lr": rate, "units": 16 + 16 * (n % 2)})
            for n, (rate, loss) in enumerate(both)
        ),
        end_time=300.0,
        run_time=200.0,
    )
    experiment.store.close()
    return experiment


def notes_of(experiment: MadeExperiment) -> list[str]:
    experiment.store.close()
    with ExperimentView(experiment.folder) as view:
        return read_health(view)


@pytest.fixture
def cut(tmp_path: Path) -> MadeExperiment:
    """Make a search whose best trials crowd at the upper end of a range."""
    rng = random.Random(0)
    rates = [rng.random() for _ in range(20)] + [rng.uniform(0.95, 1.0) for _ in range(40)]
    return made(tmp_path / "experiments" / "narrow12", rates)


@pytest.mark.parametrize(
    ("fields", "results", "advised"),
    [
        ({}, 3, "{name: Auto, class_args: {hopeless_only: true}}"),
        ({"objectives": [LOSS, {"name": "ms", "direction": "minimize"}]}, 3, None),  # not in the reports
        ({"objectives": [LOSS, {"name": "ms", "constraint": "<= 2"}]}, 3, None),
        ({"objectives": [LOSS | {"constraint": "<= 2"}]}, 3, "Medianstop"),
        ({}, 1, None),
        ({"assessor": "none"}, 3, None),
        ({"assessor": {"name": "Medianstop"}}, 3, None),
        ({"tuner": {"name": "Hyperband"}}, 3, None),
    ],
)
def test_early_stopping_that_is_off_is_said_with_a_rule_for_it(
    fields: dict[str, Any], results: int, advised: str | None, tmp_path: Path
) -> None:
    experiment = MadeExperiment(tmp_path / "made0001", a_config(max_trial_number=9, **fields), "DONE")
    experiment.commit(
        *(a_trial(n, value=0.1 * n, next_sequence=results) for n in range(5)), end_time=300.0, run_time=200.0
    )
    note = (
        "early stopping is off: trials report intermediate results, and no assessor reads them"
        f" (such as assessor: {advised}; assessor: none ends this note)"
    )
    assert notes_of(experiment) == [note] * (advised is not None)


@pytest.mark.parametrize(
    ("reports", "lacking"),
    [
        ([{"loss": 1.0}], "ms, size"),
        ([1.0], "ms, size"),
        ([{"loss": 1.0, "ms": 3}], "size"),
        ([{"loss": 1.0, "ms": 3}, {"size": 2}], ""),
    ],
)
def test_objectives_that_early_stopping_did_not_know_are_named(
    reports: list[Any], lacking: str, tmp_path: Path
) -> None:
    goals = [LOSS | {"name": name} for name in ("loss", "ms")] + [{"name": "size", "constraint": "<= 2"}]
    config = a_config(objectives=goals, assessor={"name": "ASHA"})
    experiment = MadeExperiment(tmp_path / "made0001", config, "DONE")
    stopped = a_trial(0, "EARLY_STOPPED")
    experiment.commit(stopped, metrics=results(stopped, reports))
    note = (
        f"trials were stopped without considering {lacking}, which their intermediate results do not contain; report"
        " it in them, too, or write assessor: none"
    )
    assert notes_of(experiment) == [note] * bool(lacking)


@pytest.mark.parametrize(
    ("losses", "is_said"), [([0.1] * 6, True), ([0.1] * 4, False), ([0.1] * 5 + [0.2], False)]
)
def test_search_without_any_difference_is_noticed(losses: list[float], is_said: bool, tmp_path: Path) -> None:
    same = made(tmp_path / "same0001", [0.1 * (n + 1) for n in range(len(losses))], losses)
    note = "all 6 results are equal; check that the script reads the parameters of the search space, by name"
    assert notes_of(same) == [note] * is_said


@pytest.mark.parametrize(
    ("value", "status", "advice"),
    [
        (0.4, "DONE", "a resume with a higher limit runs them"),
        (0.4, "STOPPED", "a resume runs them"),
        (0.6, "DONE", ""),
        (0.4, "RUNNING", ""),
    ],
)
def test_family_that_was_cut_off_before_it_could_be_the_best_is_named(
    value: float, status: str, advice: str, tmp_path: Path
) -> None:
    experiment = MadeExperiment(tmp_path / "made0001", a_config(repeats={"count": 2}), status)
    for number, result in enumerate([0.5, 0.5, value]):
        trial = a_trial(number, value=result)
        trial.record = repeated(trial.record, number // 2 * 2, number % 2, 40)
        trial.record = with_family_end(trial.record, "complete") if number == 0 else trial.record
        experiment.commit(trial)
    note = (
        "family 2 has a better mean, 0.4 (1 of 2 repeats), but the experiment ended before its other repeats;"
        f" {advice}"
    )
    assert notes_of(experiment) == [note] * bool(advice)


@pytest.mark.parametrize(("reference", "is_said"), [(-5, True), (5, False)])
def test_reference_point_that_nothing_reaches_is_noticed(
    reference: float, is_said: bool, tmp_path: Path
) -> None:
    goals = [{"name": name, "direction": "minimize", "reference": reference} for name in ("loss", "ms")]
    experiment = MadeExperiment(tmp_path / "made0001", a_config(objectives=goals), "DONE")
    experiment.commit(*(a_trial(n, final="{}", values=(0.1 * n, 1.0 - n)) for n in range(2)))
    note = (
        "no trial is better than the reference point (loss -5, ms -5) in every objective, so the hypervolume is 0;"
        " choose the worst values that you would accept"
    )
    assert notes_of(experiment) == [note] * is_said


def test_note_has_the_same_words_everywhere(
    cut: MadeExperiment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitchpipe.server.report.rendering.drawings_of", lambda table: [])  # the dear part
    where = ["--dir", str(cut.folder.path.parent)]
    assert run(["status", *where]) == 0
    assert f"note: {NOTE}" in capsys.readouterr().out.splitlines()
    assert run(["status", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["health"] == [NOTE]
    assert result_of(cut.folder.path).health == [NOTE]
    with ExperimentView(cut.folder) as view:
        assert NOTE in render_report(view)
        assert [one.text for one in notices_of(view.summary(), view, read_health(view))] == [f"Note: {NOTE}."]
    experiments = Experiments(cut.folder.path.parent)
    assert Asking(experiments).get("/api/v1/experiments/narrow12/health").json == {"notes": [NOTE]}
    experiments.close()


def test_status_leaves_the_notes_out_while_the_search_runs(cut: MadeExperiment) -> None:
    with ExperimentView(cut.folder) as view:
        ended = view.summary()
        runs = replace(ended, status="RUNNING", is_running=True)
        assert "health" in summary_object(view, ended)
        assert "health" not in summary_object(view, runs)
        assert not [line for line in best_lines(view, runs) if line.startswith("note: ")]


@pytest.mark.parametrize(("count", "notes"), [(2_000, [NOTE]), (2_001, [])])
def test_many_trials_have_no_notes(tmp_path: Path, count: int, notes: list[str]) -> None:
    rng = random.Random(0)
    rates = [rng.random() for _ in range(count - 1_000)] + [rng.uniform(0.95, 1.0) for _ in range(1_000)]
    many = made(tmp_path / "many", rates)
    assert notes_of(many) == notes


def test_few_trials_have_no_notes(tmp_path: Path) -> None:
    few = made(tmp_path / "few", [0.99] * 39)
    assert notes_of(few) == []
    assert result_of(few.folder.path).health == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tuner": "TPE"}, [RANDOM]),
        ({"tuner": "Random"}, []),
        ({"tuner": "grid_search"}, []),
        ({"tuner": {"name": "TPE"}, "priors": {"lr": 0.5}}, []),
    ],
    ids=["learns", "random", "grid", "prior"],
)
def test_only_a_tuner_that_learns_from_the_start_is_compared_with_random_search(
    fields: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    rng = random.Random(9)
    rates = [rng.random() for _ in range(60)]
    drawn = made(tmp_path / "drawn", rates, [rng.random() for _ in range(60)], **fields)
    assert notes_of(drawn) == expected
