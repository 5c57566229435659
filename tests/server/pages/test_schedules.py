"""Schedules of a population on the pages: of a trial, next to the best one, and as a figure; else there are none."""

from __future__ import annotations

import pytest

from ...stored import MadeExperiment, a_config, a_trial, results, scheduled
from .conftest import Open, Serve

pytestmark = pytest.mark.timeout(180)

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> str:
    """Return the address of the pages of a population, whose best trial copied another, and of a plain experiment."""
    directory = tmp_path_factory.mktemp("gallery")
    made = MadeExperiment(directory / "pop", a_config(), "DONE")
    trials = [a_trial(0, value=0.5), a_trial(1, value=0.1)]
    metrics = [row for trial in trials for row in results(trial, [1.0, 0.8, 0.6, 0.5, 0.4, 0.3])]
    first = {"first": 0, "parameters": {"lr": 0.9, "units": 32}}
    copied = {"first": 3, "parameters": {"lr": 0.1, "units": 16}}
    scheduled(trials[1], first, {**copied, "copied_from": 0, "copied_at": 3, "copied_steps": 1})
    made.commit(*trials, metrics=metrics, end_time=200.0, run_time=100.0)
    plain = MadeExperiment(directory / "plain", a_config(), "DONE")
    plain.commit(a_trial(0, value=0.5), end_time=200.0, run_time=100.0)
    for experiment in (made, plain):
        experiment.store.close()
    return serve(directory)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_of_a_trial_has_its_schedule(gallery: str, open_page: Open, scheme: str) -> None:
    page = open_page(f"{gallery}/pop/trials/1", scheme)
    panel = page.get_by_role("region", name="Schedule of parameters")
    panel.get_by_role("link", name="0").wait_for()
    rows = [row.split("\t") for row in panel.get_by_role("table").inner_text().splitlines() if row.strip()]
    assert rows[0] == ["After results", "Trial", "Parameters", "Continues from"]
    assert [row[:3] for row in rows[1:]] == [["0", "0", "lr=0 units=16"], ["3", "1", "lr=0.1 units=16"]]
    assert rows[2][3] == "the checkpoint of trial 0 after 3 results"
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.documentElement.scrollWidth <= 390")


def test_trials_that_never_changed_have_no_schedule_on_their_page(gallery: str, open_page: Open) -> None:
    for address in ("pop/trials/0", "plain/trials/0"):
        page = open_page(f"{gallery}/{address}")
        page.get_by_role("region", name="Facts").get_by_text("Created").wait_for()
        assert page.get_by_role("region", name="Schedule of parameters").count() == 0


def test_best_trial_says_that_its_parameters_changed(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/pop")
    best = page.get_by_role("region", name="Best trial")
    best.get_by_text("The parameters changed once while it trained, and these are the last ones").wait_for()
    best.get_by_role("link", name="schedule").click()
    page.wait_for_url("**/pop/trials/1")


def test_figure_of_schedules_is_there_for_a_population_only(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/pop/plots")
    page.get_by_role("tab", name="Schedules").click()
    figure = page.get_by_role("figure", name="Figure of the experiment")
    figure.get_by_text("continues from another's checkpoint").wait_for()
    figure.get_by_text("best: trial 1").wait_for()
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    page = open_page(f"{gallery}/plain/plots")
    page.get_by_role("tab", name="Timeline").wait_for()
    assert page.get_by_role("tab", name="Schedules").count() == 0
