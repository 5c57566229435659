"""Experiments beside each other, and the list that leads there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.server.pages.comparison_page import comparison_figure, comparison_rows
from pitchpipe.server.pages.experiments_page import ListView, _Row
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.telling import ComparedExperiment, milestones

from ...stored import MadeExperiment, a_config, a_trial, results
from .conftest import Check, Open, Serve

pytestmark = pytest.mark.timeout(180)
UP = [{"name": "default", "direction": "maximize"}]
NOTE = "Note: early stopping is off"


def experiment(directory: Path, name: str, values: list[float], **fields: Any) -> MadeExperiment:
    """Make an experiment that is done, with these results."""
    made = MadeExperiment(
        directory / name, a_config(**{"objectives": UP, **fields}), "DONE", name=f"name of {name}"
    )
    trials = [a_trial(number, value=value) for number, value in enumerate(values)]
    metrics = [row for trial in trials for row in results(trial, [0.1, 0.2, 0.3])]
    made.commit(*trials, metrics=metrics, end_time=400.0, run_time=60.0 * len(values))
    made.store.close()
    return made


def compared(*experiments: MadeExperiment) -> list[ComparedExperiment]:
    found = []
    for made in experiments:
        with ExperimentView(made.folder) as view:
            found.append(ComparedExperiment.of(view))
    return found


def test_rows_have_the_state_the_best_parameters_and_what_differs(tmp_path: Path) -> None:
    one = experiment(tmp_path, "one", [0.1, 0.9, 0.3], tuner={"name": "TPE"})
    two = experiment(tmp_path, "two", [0.5, 0.2], tuner={"name": "Random"})
    rows = {row.name: row for row in comparison_rows(compared(one, two))}
    assert rows["Trials"].values == ["3", "2"]
    assert rows["Ran for"].values == ["3 min 00 s", "2 min 00 s"]
    best = rows["Best (maximize)"]
    assert (best.values, list(best.best)) == (["0.9", "0.5"], [0])
    assert rows["Best trial"].values == ["trial 1", "trial 0"]
    assert rows["Best lr"].values == ["0.1", "0"]
    assert not rows["Best units"].differs
    assert rows["tuner.name"].values == ["TPE", "Random"]


def test_experiments_with_other_goals_are_beside_each_other_without_a_best(tmp_path: Path) -> None:
    one = experiment(tmp_path, "one", [0.1, 0.9])
    down = experiment(tmp_path, "down", [0.5], objectives=[{"name": "default", "direction": "minimize"}])
    found = compared(one, down)
    assert {row.name: row for row in comparison_rows(found)}["Best (maximize)"].best == []
    assert [trace.name for trace in comparison_figure(found, "trials").data] == ["name of one"]


def test_curves_are_by_trials_or_by_the_time_since_each_began(tmp_path: Path) -> None:
    values = [0.1, 0.1, 0.9, 0.3]
    found = compared(experiment(tmp_path, "one", values), experiment(tmp_path, "two", [0.5]))
    one, two = comparison_figure(found, "trials").data
    assert (list(one.x), list(one.y), list(two.x)) == ([1, 3, 4], [0.1, 0.9, 0.9], [1])
    by_time = comparison_figure(found, "time")
    assert list(by_time.data[0].x) == [10.0, 12.0, 13.0]
    assert by_time.layout.xaxis.title.text == "seconds since the experiment began"


def test_trials_without_a_result_count_in_curves_and_milestones(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "stops", a_config(objectives=UP), "DONE")
    ends = ["FAILED", "SUCCEEDED", "EARLY_STOPPED", "EARLY_STOPPED", "SUCCEEDED", "EARLY_STOPPED"]
    made.commit(*(a_trial(n, end, n / 8 if end == "SUCCEEDED" else None) for n, end in enumerate(ends)))
    made.store.close()
    found = compared(made, experiment(tmp_path, "all", [0.5, 0.75]))
    stops, _ = comparison_figure(found, "trials").data
    assert (list(stops.x), list(stops.y)) == ([2, 5, 6], [0.125, 0.5, 0.5])
    assert milestones(found) == {1: [None, 0.5], 2: [0.125, 0.75], 5: [0.5, None]}


def test_experiment_without_results_has_an_empty_figure(tmp_path: Path) -> None:
    found = compared(experiment(tmp_path, "none", []))
    assert len(comparison_figure(found, "time").data) == 0
    assert {row.name: row for row in comparison_rows(found)}["Best trial"].values == [""]


def test_list_is_filtered_and_ordered() -> None:
    rows = [
        _Row(id="b", status="DONE", trials="3", count=3, created=1.0, goal="maximize acc", run_time=9.0),
        _Row(id="a", status="ABANDONED", trials="9", count=9, created=2.0, goal="minimize", run_time=5.0),
        _Row(id="c", name="C", status="NO_MORE_TRIAL", trials="1", count=1, created=3.0, goal="minimize"),
    ]

    def ids(search: str = "", status: str = "", sort: str = "") -> str:
        return "".join(row.id for row in ListView.parse(search, status, sort).ordered(rows))

    assert (ids(), ids(sort="name"), ids(sort="trials"), ids(sort="time")) == ("cab", "abc", "abc", "bac")
    assert (ids(status="running"), ids(status="done,manager gone"), ids(status="lost")) == ("c", "ab", "cab")
    assert (ids(search="ACC"), ids(search="nowhere"), ids(sort="goal")) == ("b", "", "bca")


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> str:
    """Return the address of the pages of two experiments that are done, and one whose manager is gone."""
    directory = tmp_path_factory.mktemp("listed")
    experiment(directory, "one", [0.1, 0.9, 0.3, 0.8, 0.2], tuner={"name": "TPE"})
    experiment(directory, "two", [0.5, 0.2], tuner={"name": "Random"})
    lost = MadeExperiment(directory / "lost", a_config(objectives=UP), name="lost")
    lost.store.close()
    return serve(directory)


def test_experiments_are_found_by_status_and_compared(
    listed: str, open_page: Open, check_page: Check
) -> None:
    page = open_page(listed)
    names = page.get_by_role("link", name="name of")
    assert sorted(names.all_inner_texts()) == ["name of one", "name of two"]
    row = page.get_by_role("row").filter(has_text="name of one")
    assert "maximize" in row.inner_text()
    page.get_by_label("Status").click()
    page.get_by_role("option", name="manager gone").click()
    names.first.wait_for(state="detached")
    page.wait_for_function("location.search.includes('status=')")
    page.reload()
    page.get_by_role("link", name="lost", exact=True).wait_for()
    assert names.count() == 0
    page.goto(f"{listed}/?sort=time")
    page.wait_for_function("window.did_handshake")
    check_page(page)
    for name in ("two", "one"):
        page.get_by_role("checkbox", name=f"Select {name}").click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/two/against?others=one")
    table = page.get_by_role("table", name="Experiments")
    table.get_by_role("row", name="tuner.name").wait_for()
    assert table.get_by_role("row").filter(has_text="Ran for").count() == 1
    place = page.get_by_role("figure", name="Best results of the experiments")
    place.locator(".xtitle").get_by_text("finished trials").wait_for(state="attached")
    page.get_by_role("button", name="by time").click()
    place.locator(".xtitle").get_by_text("since the experiment began").wait_for(state="attached")
    check_page(page)


def test_comparison_on_a_phone_in_dark_colours(listed: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{listed}/one/against?others=two,absent", "dark")
    page.get_by_text("There is no experiment 'absent'").wait_for()
    page.get_by_role("row", name="tuner.name").wait_for()
    check_page(page)


def test_note_that_is_dismissed_stays_away(listed: str, open_page: Open) -> None:
    page = open_page(f"{listed}/one")
    note = page.get_by_text(NOTE)
    note.wait_for()
    page.get_by_role("button", name="Dismiss this note").click()
    note.wait_for(state="hidden")
    page.reload()
    page.get_by_role("region", name="Best trial").wait_for()
    note.wait_for(state="attached")
    assert not note.is_visible()
    other = open_page(f"{listed}/two")
    other.get_by_role("region", name="Best trial").wait_for()
    assert (
        other.evaluate("localStorage.getItem('pitchpipe-dismissed')")
        == '["name of one: early stopping is off"]'
    )
