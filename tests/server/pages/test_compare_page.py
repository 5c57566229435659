"""The comparison of trials on a page, and the curves of one trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pitchpipe.server.pages.compare_page import _Compared, _result_rows
from pitchpipe.store.reading import ExperimentView

from ...stored import MadeExperiment, a_trial, results
from .conftest import Check, Open, Serve

pytestmark = pytest.mark.timeout(180)


def several(path: Path) -> MadeExperiment:
    """Make an experiment whose trials report two losses, one of them from the second result on."""
    made = MadeExperiment(path, status="DONE")
    for number in range(3):
        reports = [{"default": 1.0 - number / 4, "eval": {"f1": number / 8}} for _ in range(4)]
        reports[1:] = [{**report, "val_loss": 2.0 + number} for report in reports[1:]]
        final = json.dumps({**reports[-1], "size": 5 * number})
        trial = a_trial(number, final=final, values=(1.0 - number / 4,), finals=1)
        if number == 2:
            trial = a_trial(number, "EARLY_STOPPED", reason="0.5 is below the median")
        made.commit(trial, metrics=results(trial, reports), end_time=200.0)
    made.store.close()
    return made


def test_time_of_a_trial_that_runs_is_the_time_so_far(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "made")
    made.commit(a_trial(0, start_time=100.0, end_time=160.0), a_trial(1, "RUNNING", start_time=100.0))
    with ExperimentView(made.folder) as view:
        *_, took = _result_rows(_Compared.read(view, ["0", "1"]))
    assert took.values[0] == "1 min 00 s"
    assert took.values[1].endswith(" h")


def test_every_metric_has_a_row_and_a_stopped_trial_its_last_results(tmp_path: Path) -> None:
    with ExperimentView(several(tmp_path / "several").folder) as view:
        compared = _Compared.read(view, ["0", "1", "2"], "val_loss")
    rows = {row.name: row for row in _result_rows(compared)}
    assert list(rows) == ["Result", "Last result", "eval.f1", "size", "val_loss", "Why it ended", "Took"]
    assert (rows["Result"].values, rows["Result"].best) == (["1", "0.75", ""], [1])
    assert rows["Last result"].values == ["", "", "0.5"]
    assert rows["val_loss"].values == ["2", "3", "4"]
    assert (rows["size"].values, rows["size"].best) == (["0", "5", ""], [])
    assert compared.metrics == ["default", "eval.f1", "val_loss"]
    assert compared.curves[0].values == [None, 2.0, 2.0, 2.0]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> str:
    directory = tmp_path_factory.mktemp("compared")
    several(directory / "several")
    return serve(directory)


def drawn(names: str) -> str:
    """Return JavaScript that is true once the figure draws curves of these names."""
    named = f"one => one.data?.map(line => line.name) == {names!r}"
    return f"[...document.querySelectorAll('.js-plotly-plot')].some({named})"


def test_metric_is_chosen_for_trials_side_by_side(address: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{address}/several/compare?trials=0,1")
    page.wait_for_function(drawn("trial 0,trial 1"))
    page.get_by_label("Metric").click()
    page.get_by_role("option", name="val_loss").click()
    page.locator(".ytitle").get_by_text("val_loss").wait_for(state="attached")
    page.get_by_role("row", name="eval.f1").wait_for()
    check_page(page)


def test_trial_has_several_metrics_in_one_figure(address: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{address}/several/trials/1")
    page.wait_for_function(drawn("result"))
    page.get_by_label("Metrics").click()
    for name in ("val_loss", "eval.f1"):
        page.get_by_role("option", name=name).click()
    page.wait_for_function(drawn("result,val_loss,eval.f1"))
    page.get_by_role("option", name="result").click()
    page.wait_for_function(drawn("val_loss,eval.f1"))
    page.keyboard.press("Escape")
    check_page(page)
