"""The page with the table of trials, for what trials report: metrics, limits and families."""

from collections.abc import Iterator
from typing import Any

import pytest

from pitchpipe.protocol import dumps, repeated, with_family_end

from ...stored import MadeExperiment, a_config, a_trial, results
from .conftest import Open, Serve

FIRST = ".ag-pinned-left-cols-container [row-index='0']"
LIMITED = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeExperiment]:
    """Yield an experiment whose first trial has reported nothing yet."""
    made = MadeExperiment(tmp_path_factory.mktemp("gallery") / "begun")
    made.commit(a_trial(0, "RUNNING"))
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def gallery(begun: MadeExperiment, serve: Serve) -> str:
    """Return the address of the pages of that one, of trials with many metrics and a limit, and of families."""
    directory = begun.folder.path.parent
    many = MadeExperiment(directory / "many", a_config(objectives=LIMITED), "DONE")
    for number in range(12):
        reports = [{"default": number / 8, "loss": 1 / (number + 1)} for _ in range(3)]
        wide = {f"metric {place:03}": place + number for place in range(60)}
        final = dumps({**reports[-1], "ms": 16.0 + number, **wide})
        trial = a_trial(number, final=final, values=(number / 8, 16.0 + number), finals=1)
        if number % 3 == 2:
            trial = a_trial(number, "EARLY_STOPPED", reason="0.1 is below the median")
        many.commit(trial, metrics=results(trial, reports), end_time=200.0, run_time=100.0)
    families = MadeExperiment(directory / "families", a_config(repeats=2), "DONE")
    repeats = [a_trial(number, value=number / 8) for number in range(6)]
    for number, trial in enumerate(repeats):
        trial.record = repeated(trial.record, number // 2 * 2, number % 2)
        if not number % 2:
            trial.record = with_family_end(trial.record, "complete")
    families.commit(*repeats, end_time=200.0)
    for experiment in (many, families):
        experiment.store.close()
    return serve(directory)


def head_of(page: Any, name: str) -> Any:
    return page.get_by_role("columnheader", name=name, exact=True)


def test_metrics_are_columns_orders_and_filters(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/many/trials")
    page.get_by_text("12 trials").wait_for()
    head_of(page, "loss").wait_for()
    assert head_of(page, "metric 004").count() == 0
    heads = [head.split("\n")[0] for head in page.get_by_role("columnheader").all_inner_texts()]
    assert heads.index("Result") < heads.index("lr") < heads.index("loss")
    head_of(page, "loss").get_by_text("loss").click()
    page.locator(FIRST).get_by_text("11", exact=True).wait_for()
    page.get_by_label("Filter", exact=True).fill("loss < 0.2 and metric 003 > 8")
    page.get_by_text("4 trials").wait_for()
    page.get_by_label("Filter", exact=True).fill("los < 0.2")
    page.get_by_text("did you mean loss").first.wait_for()
    page.get_by_label("Filter", exact=True).fill("")
    page.get_by_text("12 trials").wait_for()
    page.get_by_role("button", name="Columns").click()
    name = page.get_by_label("A metric, by name")
    name.fill("metric 059")
    name.press("Enter")
    head_of(page, "metric 059").wait_for(state="attached")
    page.get_by_role("checkbox", name="metric 059").wait_for()
    page.get_by_role("checkbox", name="Result", exact=True).click()  # room for the new one
    page.keyboard.press("Escape")
    page.locator("[row-id='10'] [col-id='metrics.metric 059']").get_by_text("69").wait_for()
    page.wait_for_function("location.search.includes('metrics.metric%2520059')")
    page.reload()
    page.locator("[row-id='10'] [col-id='metrics.metric 059']").get_by_text("69").wait_for()


def test_trials_that_violate_a_limit_are_marked(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/many/trials", "dark")
    first = page.locator(FIRST)
    first.get_by_text("★").wait_for()
    beyond = page.locator(".ag-pinned-left-cols-container [row-id='10']")
    beyond.get_by_title("violates a limit").wait_for()
    assert "bad" in (page.locator("[row-id='10'] [col-id='value.ms']").get_attribute("class") or "").split()
    assert page.get_by_title("violates a limit").count() == 4
    assert (
        "bad" not in (page.locator("[row-id='4'] [col-id='value.ms']").get_attribute("class") or "").split()
    )


def test_selection_survives_a_comparison(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/many/trials")
    for number in (3, 7):
        page.locator(f".ag-pinned-left-cols-container [row-id='{number}']").get_by_role("checkbox").click()
    page.wait_for_function("location.search.includes('selected=3%2C7')")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("columnheader", name="Trial 7").wait_for()
    page.go_back()
    for number in (3, 7):
        page.locator(f".ag-pinned-left-cols-container [row-id='{number}'].ag-row-selected").wait_for()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("columnheader", name="Trial 3").wait_for()


def test_families_have_a_switch(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/families/trials")
    page.get_by_text("3 families").wait_for()
    page.get_by_text("mean of 2 repeats").first.wait_for()
    page.locator(FIRST).get_by_text("0", exact=True).wait_for()
    assert page.get_by_label("Filter", exact=True).count() == 0
    head_of(page, "Result").get_by_text("Result").click()
    head_of(page, "Result").get_by_text("Result").click()
    page.locator(FIRST).get_by_text("4", exact=True).wait_for()
    page.get_by_role("switch", name="Families").click()
    page.get_by_text("6 trials").wait_for()
    page.reload()
    page.get_by_text("6 trials").wait_for()
    page.goto(f"{gallery}/families/trials?where=lr%20%3C%200.35")  # which families do not take
    page.get_by_text("4 trials").wait_for()
    page.goto(f"{gallery}/many/trials")
    page.get_by_text("12 trials").wait_for()
    assert page.get_by_role("switch", name="Families").count() == 0


def test_metric_that_trials_begin_to_report_gets_a_column(
    gallery: str, begun: MadeExperiment, open_page: Open
) -> None:
    page = open_page(f"{gallery}/begun/trials")
    page.get_by_text("1 trial", exact=True).wait_for()
    assert head_of(page, "loss").count() == 0
    trial = a_trial(0, "RUNNING")
    begun.commit(trial, metrics=results(trial, [{"default": 0.5, "loss": 0.25}]))
    head_of(page, "loss").wait_for()
    page.locator("[row-id='0'] [col-id='metrics.loss']").get_by_text("0.25").wait_for()
    assert "columns=" not in page.url
