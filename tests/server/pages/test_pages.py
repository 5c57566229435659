"""Every page of finished experiments, in a real browser."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ...stored import MadeExperiment, a_config, a_trial, results
from .conftest import PHONE, Check, Open, Serve

pytestmark = pytest.mark.timeout(180)

# Tabs, and the titles of what they draw.
FIGURES = {
    "Intermediate results": "Intermediate results",
    "Importance": "Parameter importance",
    "Slice": "Slices",
    "Contour": "Contour: lr and units",
    "Timeline": "Timeline",
    "Pareto front": "Pareto front",
    "History": "History",
    "Compare experiments": "Distribution of the results",
}
# The colours of texts in figures.
DARK, LIGHT = "rgb(230, 232, 235)", "rgb(27, 31, 36)"
LONG = "_".join(["dropout_of_the_attention_heads"] * 4)
WIDE = {LONG: {"_type": "uniform", "_value": [0, 1]}, "of": {"_type": "choice", "_value": [LONG, "b"]}}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
UNWILLING = {
    "{ writeText: () => Promise.reject(new Error('not allowed')) }": "not allowed",
    "undefined": "this browser gives pages no clipboard: open them on localhost or by https",
}
# Whether the three panels are drawn, and no title of an axis lies on one.
APART = """() => {
    const figure = document.querySelector('[aria-label="Trials by two objectives"]');
    const boxes = name => [...figure.querySelectorAll(name)].map(one => one.getBoundingClientRect());
    const [panels, titles] = [boxes('.nsewdrag'), boxes('text[class^=y][class$=title]')];
    const isApart = (one, other) => one.right <= other.left || one.left >= other.right;
    const areApart = titles.every(one => panels.every(other => isApart(one, other)));
    return panels.length === 3 && titles.length === 3 && areApart;
}"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> Iterator[str]:
    """Yield the address of the pages of finished experiments, with 30 trials or none, of a lost and of a young one."""
    directory = tmp_path_factory.mktemp("gallery")
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "seconds", "direction": "minimize"}]
    made = MadeExperiment(directory / "finished", a_config(objectives=objectives), "DONE")
    trials = [_trial(number) for number in range(30)]
    metrics = [row for trial in trials for row in results(trial, [0.1 * step for step in range(5)])]
    made.commit(*trials, metrics=metrics, end_time=200.0, run_time=100.0)
    (made.folder.logs / "manager.log").write_text("2026-01-01 INFO the manager said so\n")
    single = MadeExperiment(directory / "single", a_config(objectives=objectives[:1]), "DONE")
    single.commit(*(_trial(number, one=True) for number in range(30)), end_time=200.0, run_time=100.0)
    empty = MadeExperiment(directory / "empty", status="DONE")
    empty.commit(end_time=101.0, run_time=1.0)
    three = a_config(objectives=[*objectives, {"name": "megabytes", "direction": "minimize"}])
    several = MadeExperiment(directory / "several", three, "DONE")
    several.commit(*(a_trial(n, final="{}", values=(n, n, 8 - n)) for n in range(8)), end_time=200.0)
    wide = MadeExperiment(directory / "wide", a_config(search_space=WIDE), "DONE")
    wide.commit(*(_wide_trial(number) for number in range(8)), end_time=200.0, run_time=100.0)
    old = MadeExperiment(directory / "old", status="STOPPED")
    files = made.folder.trial(5)
    files.mkdir(parents=True)
    (files / "curve.png").write_bytes(base64.b64decode(PIXEL))
    (files / "page.html").write_text("<script>alert(1)</script>")
    near = a_config(defaults={"lr": 0.0, "units": 16}, keep_close=True)
    lost = MadeExperiment(directory / "lost", near, status="RUNNING")
    lost.commit(a_trial(0, value=0.5))
    young = MadeExperiment(directory / "young", a_config(objectives=objectives[:1], max_trial_number=40))
    running = [a_trial(number, "RUNNING") for number in range(5)]
    metrics = [row for one in running for row in results(one, [one.sequence_id / 10] * 7)]
    young.commit(*running, metrics=metrics)
    for experiment in (made, single, several, wide, empty, old, lost, young):
        experiment.store.close()
    young.folder.own()  # so that it counts as running
    yield serve(directory)
    young.folder.disown()


def test_overview_has_the_front_can_be_used_by_keys_and_changes_its_colours(
    gallery: str, open_page: Open, check_page: Check
) -> None:
    page = open_page(f"{gallery}/finished")
    front = page.get_by_role("region", name="Best trials: the Pareto front")
    assert front.get_by_role("link", name=re.compile(r"^Trial \d+$")).all_inner_texts() == ["29", "27", "20"]
    assert front.get_by_role("row").filter(has_text="knee").inner_text().split()[:2] == ["2", "27"]
    choice = page.get_by_role("region", name="A balanced choice")
    assert choice.get_by_role("link", name="Trial 27").is_visible()
    assert "hypervolume" in choice.inner_text()
    points = page.get_by_role("figure", name="Trials by two objectives")
    points.get_by_text("on the front").wait_for()
    page.get_by_role("region", name="Which parameters matter").get_by_text("Confidence").wait_for()
    check_page(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MAIN"
    button = page.get_by_role("button", name="Switch between light and dark colours")
    for colours, axis in (("dark", "by trials"), ("light", "by time")):
        button.click()
        page.locator(f"body.body--{colours}").wait_for()
        page.wait_for_function(f"document.cookie.includes('pitchpipe-theme={colours}')")
        page.get_by_role("button", name=axis).click()  # an update of the page
        page.get_by_role("button", name=axis, pressed=True).wait_for()
        assert page.locator(f"body.body--{colours}").count() == 1


def test_titles_of_three_objectives_lie_on_no_points(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/several")
    page.get_by_role("figure", name="Trials by two objectives").get_by_text("on the front").wait_for()
    page.wait_for_function(APART)


def test_overview_tells_the_best_and_the_failures_without_scrolling(
    gallery: str, open_page: Open, context: Any
) -> None:
    awaited = re.compile(r'pp-awaited[^{}]*"style":\s*{"height":\s*"250px')
    assert awaited.search(context.request.get(f"{gallery}/single").text().replace("&quot;", '"'))
    context.clear_cookies()
    page = open_page(f"{gallery}/single", "dark")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_text("0.966667 (trial 29)").wait_for()
    top = page.get_by_role("region", name="Top 10 trials")
    assert top.get_by_role("link", name=re.compile(r"^Trial \d+$")).count() == 10
    why = page.get_by_role("link", name="Why: KeyError: 'lr'")
    for part in (top.get_by_role("link", name="Trial 20"), why, page.locator(".pp-bars span").first):
        part.wait_for()
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 900
    place = page.get_by_role("figure", name="Results, and the best so far")
    place.locator(".scatterlayer").first.wait_for(state="attached")
    assert "pp-awaited" not in place.get_attribute("class")
    assert place.bounding_box()["height"] == 250  # as before the figure was there
    page.get_by_role("button", name="by trials").click()
    page.locator(".xtitle").get_by_text("finished trials").wait_for(state="attached")
    _follows_the_system(page)


def _follows_the_system(page: Any) -> None:
    """Expect dark figures on a page opened in the dark, and light ones when the system turns light."""
    colors = "[...new Set([...document.querySelectorAll('.xtick text')].map(text => text.style.fill))]"
    for scheme, drawn in (("dark", DARK), ("light", LIGHT)):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"{colors}.includes('{drawn}')")
        assert page.evaluate(colors) == [drawn]


def test_figure_follows_the_system_and_its_points_lead_to_trials(
    gallery: str, context: Any, open_page: Open
) -> None:
    context.clear_cookies()
    page = open_page(f"{gallery}/single/plots", "dark")
    _follows_the_system(page)
    box = page.locator(".scatterlayer .point").last.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(re.compile(r"/trials/\d+$"))


def test_no_page_is_wider_than_a_phone(gallery: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{gallery}/wide")
    page.set_viewport_size(PHONE)
    page.get_by_role("link", name=f"2 of 3 failed: {LONG} is missing").wait_for()
    # The figures follow a frame after the window.
    page.wait_for_function("document.scrollingElement.scrollWidth === 390")
    ready = {
        "wide/trials": ".ag-row a",
        "wide/trials/2": ".pp-facts",
        "wide/compare?trials=2,3,4": "tbody td",
        "wide/plots": ".gtitle",
        "": "td a",
    }
    widths = {}
    for path, shown in ready.items():
        page.goto(f"{gallery}/{path}")
        page.locator(shown).first.wait_for(state="attached")
        if path == "wide/trials/2":
            ways = [page.get_by_role("link", name=name).bounding_box()["y"] for name in ("Previous", "Next")]
            assert ways[0] == ways[1]
            assert not page.get_by_role("region", name="Intermediate results").is_visible()  # it has none
        widths[path] = page.evaluate("document.scrollingElement.scrollWidth")
    assert widths == dict.fromkeys(ready, 390)
    before = "cell => getComputedStyle(cell, '::before').content"
    row = page.get_by_role("row")
    assert page.get_by_role("columnheader", name="Tags").count() == 0  # no experiment has one
    best = "td:nth-child(5) > div:first-child"
    assert row.filter(has_text="wide").locator(best).evaluate(before) == '"Best: "'
    assert row.filter(has_text="empty").locator(best).evaluate(before) == "none"
    page.set_viewport_size({"width": 1440, "height": 900})
    check_page(page)


def test_experiment_without_trials_says_so(gallery: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{gallery}/empty", "dark")
    page.get_by_text("No trial has run.").wait_for()
    check_page(page)
    assert page.get_by_role("link", name="Set the number of trials, and resume").is_visible()
    assert not page.get_by_role("region", name="Best trial").is_visible()
    page.goto(f"{gallery}/empty/trials")
    page.get_by_text("No trial has started yet.").wait_for()
    page.get_by_role("button", name="Columns").click()
    for name in ("Last result", "Why it ended"):  # no trial has one
        assert not page.get_by_role("checkbox", name=name).is_checked()


def _trial(number: int, *, one: bool = False) -> Any:
    parameters = {"lr": number / 30, "units": 16 if number % 2 else 32}
    if number == 3:
        return a_trial(
            number, "FAILED", parameters=parameters, reason="KeyError: 'lr'", error="KeyError: 'lr'"
        )
    if number == 4:
        reason = "0.4 is below the median 0.6 of 12 trials after 4 results"
        return a_trial(number, "EARLY_STOPPED", parameters=parameters, reason=reason)
    # The front: trials 20, 27 and 29. The second is the knee.
    value = {"default": number / 30, "seconds": 10.0 if number == 20 else float(30 - number % 7)}
    trial = a_trial(number, parameters=parameters, final=json.dumps(value), finals=1)
    trial.values = (value["default"],) if one else (value["default"], value["seconds"])
    return trial


def _wide_trial(number: int) -> Any:
    """Return a trial with names and reasons that are wider than a phone; the first three failed."""
    parameters = {LONG: number / 8, "of": LONG}
    if number < 3:
        reason = f"{LONG} is {'missing' if number < 2 else 'wrong'}"
        return a_trial(number, "FAILED", parameters=parameters, reason=reason)
    return a_trial(number, value=-123456.789 * number, parameters=parameters)


def count_of(page: Any) -> Any:
    """Return the element with the number of trials in the table."""
    return page.get_by_role("status").filter(has_text="trial")


def test_logs_and_a_refusal_can_be_read_by_all(gallery: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{gallery}/finished/logs", "dark")
    page.get_by_text("the manager said so").first.wait_for()
    check_page(page)
    page.emulate_media(color_scheme="light")
    page.goto(f"{gallery}/finished/settings")
    page.get_by_text("Not running. Changes take effect").wait_for()
    page.get_by_label("Number of trials").fill("many")
    page.get_by_role("button", name="Save limits").click()
    close = page.get_by_role("button", name="Close")
    close.wait_for()
    assert close.evaluate("button => getComputedStyle(button).color") == "rgb(255, 255, 255)"
    check_page(page)


def test_every_figure_is_drawn_and_a_brushed_axis_filters_the_table(
    gallery: str, open_page: Open, check_page: Check
) -> None:
    page = open_page(f"{gallery}/finished/plots", "dark")
    page.get_by_text("History").first.wait_for()
    check_page(page)
    for name, title in FIGURES.items():
        page.get_by_role("tab", name=name).click()
        page.locator(".gtitle").get_by_text(title).wait_for(state="attached")
        assert page.locator(".annotation-text").filter(has_text="No trial").count() == 0, name
    page.get_by_label("Compare with").click()
    page.get_by_role("option", name="single").click()
    page.locator(".legendtext").get_by_text("a name single (28)").wait_for(state="attached")
    page.get_by_role("option", name="lost").click()
    left_out = page.locator(".annotation-text").filter(has_text="left out, since not to maximize default: a")
    left_out.wait_for(state="attached")
    page.get_by_role("tab", name="Parallel coordinates").click()
    _brush_the_first_axis(page)
    page.get_by_role("link", name="Show them in the table").click()
    page.wait_for_url("**/trials?where=parameters.lr*")
    count_of(page).get_by_text(re.compile(r"^\d trials$")).wait_for()


def _brush_the_first_axis(page: Any) -> None:
    """Take a third of the values, from the top."""
    brush = page.locator(".parcoords .axis-brush .background").first
    brush.wait_for(state="attached")
    page.get_by_text("Drawing …").wait_for(state="hidden")  # then the figure has its place
    brush.element_handle().wait_for_element_state("stable")
    box = brush.bounding_box()
    across = box["x"] + box["width"] / 2
    page.mouse.move(across, box["y"] + box["height"] * 0.02)
    page.mouse.down()
    page.mouse.move(across, box["y"] + box["height"] * 0.3, steps=4)
    page.mouse.up()


def test_table_is_searched_filtered_and_sorted_by_the_store(
    gallery: str, open_page: Open, check_page: Check
) -> None:
    page = open_page(f"{gallery}/finished/trials", "dark")
    count_of(page).get_by_text("30 trials").wait_for()
    page.get_by_role("columnheader", name="Why it ended").wait_for()  # of those in the window alone
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.closest('.pp-search') !== null")
    page.get_by_label("Search").fill("KeyError")
    count_of(page).get_by_text("1 trial", exact=True).wait_for()
    check_page(page)
    page.get_by_label("Search").fill("")
    count_of(page).get_by_text("30 trials").wait_for()
    first = ".ag-pinned-left-cols-container [row-index='0']"
    page.locator(first).get_by_text("★29", exact=True).wait_for()
    for place, mark in ((1, "✦"), (2, "★")):  # the rest of the front: its knee and another
        page.locator(first.replace("0", str(place))).get_by_text(mark).wait_for()
    head = page.get_by_role("columnheader", name="Result", exact=True)
    for order in ("descending", "ascending"):
        head.get_by_text("Result").click()
        page.locator(f"[aria-sort={order}]").wait_for()
    page.locator(first).get_by_text("0", exact=True).wait_for()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Last result").click()
    page.get_by_role("columnheader", name="Last result").wait_for(state="detached")
    page.keyboard.press("Escape")
    page.get_by_label("Status").click()
    page.get_by_role("option", name="stopped early").click()
    page.keyboard.press("Escape")
    count_of(page).get_by_text("1 trial", exact=True).wait_for()


def test_view_of_the_table_survives_a_reload(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/finished/trials")
    count_of(page).get_by_text("30 trials").wait_for()
    condition = page.get_by_label("Filter", exact=True)
    condition.fill("rate < 0.5")
    page.get_by_text("there is no column 'rate'").wait_for()
    condition.fill("parameters.lr < 0.5 and status == 'SUCCEEDED'")
    count_of(page).get_by_text("13 trials").wait_for()
    page.get_by_role("columnheader", name="lr").get_by_text("lr").click()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Began").click()
    page.wait_for_function(
        "location.search.includes('columns') && location.search.includes('sort=parameters.lr')"
    )
    page.reload()
    count_of(page).get_by_text("13 trials").wait_for()
    page.locator(".ag-pinned-left-cols-container [row-index='0']").get_by_text("0", exact=True).wait_for()
    assert page.get_by_role("columnheader", name="Began").count() == 0
    assert condition.input_value() == "parameters.lr < 0.5 and status == 'SUCCEEDED'"
    condition.fill("parameters.rate > 7")
    page.get_by_text("no trial has a parameter 'rate'").wait_for()
    assert not page.locator(".pp-grid").is_visible()
    condition.fill("parameters.lr > 7")
    page.get_by_text("No trial matches.").wait_for()
    page.get_by_role("button", name="Clear the filters").click()
    count_of(page).get_by_text("30 trials").wait_for()


def test_keys_list_themselves_and_go_from_trial_to_trial(
    gallery: str, open_page: Open, check_page: Check
) -> None:
    page = open_page(f"{gallery}/finished/trials/T0003")
    page.get_by_text("Why it failed").first.wait_for()
    check_page(page)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").get_by_text("Search the trials").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/trials/4")
    page.keyboard.press("k")
    page.wait_for_url("**/trials/3")


def test_options_of_a_figure_are_in_the_address(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/finished/plots?figure=curves")
    page.get_by_label("Smoothing").click()
    page.get_by_role("option", name="0.6").click()
    page.get_by_label("Scale of the results").click()
    page.get_by_role("option", name="logarithmic").click()
    page.get_by_role("checkbox", name="Show all, however bad").click()
    page.wait_for_function("location.search.includes('show_all=true')")
    page.reload()
    page.get_by_label("Smoothing").wait_for()
    assert "smoothing=0.6" in page.url
    assert page.get_by_label("Smoothing").input_value() == "0.6"
    assert page.get_by_label("Scale of the results").input_value() == "logarithmic"


def test_notes_and_tags_are_kept(gallery: str, open_page: Open) -> None:
    for path in ("finished/trials/3", "lost/settings"):
        page = open_page(f"{gallery}/{path}")
        page.get_by_label("Tags, separated by commas").fill("odd, baseline")
        page.get_by_label("Note", exact=True).fill("look at this again")
        page.get_by_role("button", name="Save the note").click()
        page.get_by_text("The note is saved").wait_for()
        page.reload()
        assert page.get_by_label("Note", exact=True).input_value() == "look at this again"
        assert page.get_by_label("Tags, separated by commas").input_value() == "odd, baseline"
    page.goto(gallery)
    page.get_by_role("row").filter(has_text="lost").get_by_text("baseline").wait_for()
    assert page.get_by_role("columnheader", name="Tags").is_visible()
    line = page.get_by_role("row").filter(has_text="single").get_by_role("img")
    assert line.get_attribute("aria-label") == "Best result over 28 trials: 0 to 0.966667"


def test_files_of_a_trial_are_shown_or_saved(gallery: str, open_page: Open, context: Any) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_page(f"{gallery}/finished/trials/5")
    files = page.get_by_role("region", name="Files")
    files.get_by_role("img", name="curve.png").wait_for()
    page.wait_for_function("document.querySelector('.pp-images img').naturalWidth === 1")
    root = f"{gallery}/finished/trials/5/files"
    saved = page.request.get(f"{root}/page.html")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert saved.headers["content-type"] == "application/octet-stream"
    assert page.request.get(f"{root}/..%2F..%2Fexperiment.db").status == 404
    copy = page.get_by_role("button", name="Copy the path of the trial's folder")
    for clipboard, why in UNWILLING.items():
        page.evaluate(
            f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard}, configurable: true }})"
        )
        copy.click()
        page.get_by_text(f"Nothing was copied: {why}").wait_for()
        assert not page.get_by_text("is on the clipboard").is_visible()
    page.evaluate("delete navigator.clipboard")
    copy.click()
    page.get_by_text("The path of the trial's folder is on the clipboard").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith("/finished/trials/5")


def test_experiment_is_renamed_compared_and_deleted(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/old/settings")
    page.get_by_label("Name of the experiment").fill("an older one")
    page.get_by_role("button", name="Rename").click()
    page.wait_for_function("document.title.includes('an older one')")
    page.goto(gallery)
    front = page.get_by_role("row").filter(has_text="finished")
    assert "default 0.9, seconds 24 (one of 3 on the front)" in front.inner_text()
    page.get_by_label("Search").fill("older")
    page.get_by_role("link", name="a name").first.wait_for(state="detached")
    page.get_by_label("Search").fill("")
    for name in ("finished", "single"):
        page.get_by_role("checkbox", name=f"Select {name}").click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/finished/against?others=single")
    page.get_by_text("Compared by the first objective, default, alone.").wait_for()
    page.goto(f"{gallery}/old/settings")
    page.wait_for_function("window.did_handshake")
    page.get_by_role("button", name="Delete the experiment").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete it").click()
    page.get_by_role("heading", name="Experiments").wait_for()
    page.get_by_role("link", name="a name").first.wait_for()
    assert page.get_by_role("link", name="an older one").count() == 0


def test_rows_are_filtered_by_their_columns(gallery: str, context: Any) -> None:
    filters = {"parameters.lr": {"type": "inRange", "filter": 0.5, "filterTo": 0.6}}
    rows = context.request.get(f"{gallery}/finished/rows", params={"filter": json.dumps(filters)}).json()
    assert [row["number"] for row in rows["rows"]] == [18, 17, 16, 15]
    refused = context.request.get(
        f"{gallery}/finished/rows", params={"sort": '[{"colId": "nothing"}]'}
    ).json()
    assert "there is no column 'nothing'" in refused["error"]


def test_selected_trials_are_compared_and_copied(
    gallery: str, open_page: Open, check_page: Check, context: Any
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_page(f"{gallery}/finished/trials")
    for number in (29, 28):
        page.locator(f".ag-pinned-left-cols-container [row-id='{number}']").get_by_role("checkbox").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("The parameters of trials 29 and 28 are on the clipboard").wait_for()
    assert [row["units"] for row in json.loads(page.evaluate("navigator.clipboard.readText()"))] == [16, 32]
    assert not page.get_by_role("button", name="Kill").is_visible()
    assert page.get_by_role("link", name="Run more trials").is_visible()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("columnheader", name="Trial 29").wait_for()
    check_page(page)
    rows = page.get_by_role("table", name="Trials")
    heads = rows.get_by_role("rowheader").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["Status", "Result", "seconds", "lr", "units"]
    assert rows.get_by_role("row").filter(has_text="Result").locator("strong").inner_text() == "0.966667"
    assert rows.get_by_text("-3.45 %").is_visible()
    page.get_by_role("checkbox", name="Only differences").click()
    rows.get_by_role("rowheader", name="Why it ended").wait_for()


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


def test_log_of_a_trial_that_printed_nothing_is_a_sentence(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/finished/trials/3")
    page.get_by_text("Nothing was written.").first.wait_for()
    assert page.get_by_role("log").count() == 0


def test_overview_lives_before_a_trial_has_ended(gallery: str, open_page: Open, check_page: Check) -> None:
    page = open_page(f"{gallery}/young", "dark")
    curves = page.get_by_role("figure", name="Intermediate results of the running trials")
    curves.get_by_text("trial 3", exact=True).wait_for()
    assert page.get_by_role("region", name="Best so far").count() == 0
    rows = page.get_by_role("table", name="Running now").get_by_role("row").all_inner_texts()
    assert [[cell.strip() for cell in row.split("\t")[:4]] for row in rows[2:4]] == [
        ["1", "lr=0.1 units=16", "7", "0.1"],
        ["2", "lr=0.2 units=16", "7", "0.2"],
    ]
    assert (
        "Best intermediate result\n0.4 (trial 4, after 1 result)" in page.locator(".pp-figures").inner_text()
    )
    assert "7.65 results/s" in page.locator(".pp-figures").inner_text()
    check_page(page)


def test_experiment_without_its_manager_says_how_to_continue(gallery: str, open_page: Open) -> None:
    page = open_page(f"{gallery}/lost")
    page.get_by_text("The manager of this experiment is gone").wait_for()
    assert page.get_by_role("button", name="Resume").is_visible()
    best = page.get_by_role("region", name="Best trial")
    best.get_by_text("Closest to your defaults: trial 0, 0.5 (the best trial); no changes").wait_for()
    assert page.get_by_role("status").get_by_text("RUNNING (manager gone)").is_visible()
