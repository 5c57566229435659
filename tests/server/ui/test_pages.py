"""Every page of finished experiments, in a real browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..made_stores import MadeExperiment, a_config, a_trial, results

pytestmark = pytest.mark.timeout(180)

PAGES = {
    "": "Best so far, over time",
    "trials": "Search",
    "trials/3": "Why it failed",
    "trials/T0004": "It was stopped early",
    "compare?trials=1,2,4": "Side by side",
    "plots": "History",
    "settings": "Not running. Changes take effect",
    "logs": "the manager said so",
}
# Tabs, and the titles of what they draw.
FIGURES = {
    "Intermediate results": "Intermediate results",
    "Parallel coordinates": "Parallel coordinates",
    "Importance": "Parameter importance",
    "Slice": "Slices",
    "Contour": "Contour: lr and units",
    "Timeline": "Timeline",
    "Pareto front": "Pareto front",
    "Compare experiments": "Distribution of the results",
    "History": "History",
}
UNNAMED = """() => [...document.querySelectorAll('button, a, input, textarea, [role=button]')].filter(element =>
    element.offsetParent !== null && !element.closest('.ag-root-wrapper, .modebar')
    && !(element.innerText || element.ariaLabel || element.labels?.length || element.title
         || element.closest('label')?.innerText || element.getAttribute('aria-labelledby'))
).map(element => element.outerHTML)"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    """Return the address of the pages of a finished experiment with 30 trials, and one that lost its manager."""
    directory = tmp_path_factory.mktemp("gallery")
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "seconds", "direction": "minimize"}]
    made = MadeExperiment(directory / "finished", a_config(objectives=objectives), "DONE")
    trials = [_trial(number) for number in range(30)]
    metrics = [row for trial in trials for row in results(trial, [0.1 * step for step in range(5)])]
    made.commit(*trials, metrics=metrics, end_time=200.0, run_time=100.0)
    (made.folder.logs / "manager.log").write_text("2026-01-01 INFO the manager said so\n")
    near = a_config(defaults={"lr": 0.0, "units": 16}, keep_close=True)
    lost = MadeExperiment(directory / "lost", near, status="RUNNING")
    lost.commit(a_trial(0, value=0.5))
    for experiment in (made, lost):
        experiment.store.close()
    return serve(directory)


def test_overview_has_the_front_with_its_volume(gallery: str, open_page: Callable[..., Any]) -> None:
    page = open_page(f"{gallery}/finished")
    best = page.get_by_role("region", name="Best trials: the Pareto front")
    best.get_by_text("Front: ").wait_for()
    assert "hypervolume" in best.inner_text()
    trials = best.get_by_text(re.compile(r"^Trial \d+$")).all_inner_texts()
    assert trials == ["Trial 27", "Trial 20", "Trial 29"]
    assert best.get_by_text("the knee", exact=True).count() == 1


def _trial(number: int) -> Any:
    parameters = {"lr": number / 30, "units": 16 if number % 2 else 32}
    if number == 3:
        return a_trial(
            number, "FAILED", parameters=parameters, reason="KeyError: 'lr'", error="KeyError: 'lr'"
        )
    if number == 4:
        reason = "0.4 below the median 0.6 of 12 trials at step 4"
        return a_trial(number, "EARLY_STOPPED", parameters=parameters, reason=reason)
    # The front: trials 20, 27 and 29. The second is the knee.
    value = {"default": number / 30, "seconds": 10.0 if number == 20 else float(30 - number % 7)}
    trial = a_trial(number, parameters=parameters, final=json.dumps(value), finals=1)
    trial.values = (value["default"], value["seconds"])
    return trial


def count_of(page: Any) -> Any:
    """Return the element with the number of trials in the table."""
    return page.get_by_role("status").filter(has_text="trial")


def test_every_page_opens_with_names_for_all_and_fits_into_a_narrow_window(
    gallery: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{gallery}/")
    page.get_by_role("link", name="a name").first.wait_for()
    for path, text in PAGES.items():
        page.set_viewport_size({"width": 1300, "height": 900})
        page.goto(f"{gallery}/finished/{path}")
        page.get_by_text(text).or_(page.get_by_label(text)).first.wait_for()
        assert page.evaluate(UNNAMED) == [], path
        assert page.locator("h1").count() == 1, path
        page.set_viewport_size({"width": 400, "height": 800})
        page.wait_for_function("document.documentElement.scrollWidth <= 400")


def test_every_figure_is_drawn(gallery: str, open_page: Callable[..., Any]) -> None:
    page = open_page(f"{gallery}/finished/plots")
    for name, title in FIGURES.items():
        page.get_by_role("tab", name=name).click()
        page.locator(".gtitle").get_by_text(title).wait_for(state="attached")
        assert page.locator(".annotation-text").filter(has_text="No trial").count() == 0, name
    page.get_by_role("tab", name="Compare experiments").click()
    page.get_by_label("Compare with").click()
    page.get_by_role("option", name="lost").click()
    page.locator(".legendtext").get_by_text("a name (1)").wait_for(state="attached")


def test_table_is_searched_filtered_and_sorted_by_the_store(
    gallery: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{gallery}/finished/trials")
    count_of(page).get_by_text("30 trials").wait_for()
    page.get_by_label("Search").fill("KeyError")
    count_of(page).get_by_text("1 trial", exact=True).wait_for()
    page.get_by_label("Search").fill("")
    page.get_by_label("Status").click()
    page.get_by_role("option", name="stopped early").click()
    page.keyboard.press("Escape")
    count_of(page).get_by_text("1 trial", exact=True).wait_for()
    page.goto(f"{gallery}/finished/trials")
    page.get_by_role("columnheader", name="Result", exact=True).get_by_text("Result").click()
    page.locator(".ag-pinned-left-cols-container [row-index='0']").get_by_text("0", exact=True).wait_for()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Last result").click()
    page.get_by_role("columnheader", name="Last result").wait_for(state="detached")


def test_rows_are_filtered_by_their_columns(gallery: str, context: Any) -> None:
    filters = {"parameters.lr": {"type": "inRange", "filter": 0.5, "filterTo": 0.6}}
    rows = context.request.get(f"{gallery}/finished/rows", params={"filter": json.dumps(filters)}).json()
    assert [row["number"] for row in rows["rows"]] == [18, 17, 16, 15]
    refused = context.request.get(
        f"{gallery}/finished/rows", params={"sort": '[{"colId": "nothing"}]'}
    ).json()
    assert "'nothing' is not a field of a trial" in refused["error"]


def test_selected_trials_are_compared_and_copied(
    gallery: str, open_page: Callable[..., Any], context: Any
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_page(f"{gallery}/finished/trials")
    for number in (29, 28):
        page.locator(f".ag-pinned-left-cols-container [row-id='{number}']").get_by_role("checkbox").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("The parameters of trials 28 and 29 are on the clipboard").wait_for()
    assert [row["units"] for row in json.loads(page.evaluate("navigator.clipboard.readText()"))] == [32, 16]
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Kill").click()
    page.get_by_text("Experiment finished does not run").first.wait_for()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("columnheader", name="Trial 29").wait_for()
    assert page.locator("mark").filter(has_text="32").count() == 1


def test_page_of_a_busy_browser_is_kept(gallery: str, context: Any) -> None:
    """A browser that answers too late is disconnected, and its page is then reloaded: what was typed is gone."""
    response = context.request.get(f"{gallery}/_nicegui_ws/socket.io/?EIO=4&transport=polling")
    assert json.loads(response.text()[1:])["pingTimeout"] >= 10_000  # milliseconds


def test_page_of_a_missing_thing_says_so(gallery: str, context: Any) -> None:
    for path, sentence in {
        "unknown": "there is no experiment &#39;unknown&#39;",
        "finished/trials/99": "there is no trial &#39;99&#39;",
        "finished/compare": "Select trials in the table to compare them.",
    }.items():
        response = context.request.get(f"{gallery}/{path}")
        assert response.status == 404, path
        assert sentence.replace("&#39;", "'") in response.text().replace("&#39;", "'").replace("\\'", "'"), (
            path
        )


def test_experiment_without_its_manager_says_how_to_continue(
    gallery: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{gallery}/lost")
    page.get_by_text("pitchpipe resume lost resumes the experiment.").wait_for()
    best = page.get_by_role("region", name="Best trial")
    best.get_by_text("Closest to your defaults: trial 0, 0.5 (the best trial); no changes").wait_for()
    assert page.get_by_role("status").get_by_text("ABANDONED").is_visible()


def test_keyboard_reaches_the_content_first_and_colours_can_be_turned(
    gallery: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{gallery}/finished")
    page.get_by_role("heading", name="Best trial").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MAIN"
    page.get_by_role("button", name="Show in dark colours").click()
    page.locator("body.body--dark").wait_for()
    page.get_by_role("button", name="Show in light colours").click()
    page.locator("body.body--light").wait_for()
