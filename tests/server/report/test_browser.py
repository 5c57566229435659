"""The report in a real Chromium, from the disk: it draws, sorts, filters, turns dark, and asks for nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.server.report import write_report

from ...stored import MadeExperiment, a_config, a_trial, results

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
PATIENCE = 100_000  # ms

Opened = tuple[Any, list[str]]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a small experiment whose texts are attacks."""
    folder = tmp_path_factory.mktemp("report")
    space = {
        "lr": {"_type": "loguniform", "_value": [1e-4, 1.0]},
        HOSTILE: {"_type": "choice", "_value": [HOSTILE, "plain"]},
    }
    experiment = MadeExperiment(
        folder / "exps" / "made", a_config(search_space=space, experiment_name=HOSTILE)
    )
    experiment.status = "DONE"
    trials, metrics = [], []
    for number in range(12):
        failed = number == 5
        more = {"reason": HOSTILE, "error": f"Traceback\n{HOSTILE}"} if failed else {}
        point = {"lr": 10.0 ** -(number % 4), HOSTILE: HOSTILE if number % 2 else "plain"}
        value = None if failed else float((number * 5) % 12)
        status = "FAILED" if failed else "SUCCEEDED"
        trials.append(a_trial(number, status, value, parameters=point, **more))
        metrics += results(trials[-1], [3.0, 2.0, 1.0])
    experiment.commit(*trials, metrics=metrics)
    experiment.store.close()
    with closing(sqlite3.connect(experiment.folder.database)) as db, db:
        db.execute("UPDATE experiment SET name = ?", (HOSTILE,))
    write_report(experiment.folder.path, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def opened(chromium: Any, report: Path) -> Iterator[Opened]:
    """Yield the report in a page, and a list of its errors and of its requests to other addresses."""
    context = chromium.new_context(color_scheme="light", viewport={"width": 1100, "height": 900})
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("request", lambda asked: None if asked.url == report.as_uri() else wrong.append(asked.url[:200]))
    page.goto(report.as_uri())
    ended = ["drawn", "failed"]
    page.wait_for_function(
        "words => words.some(word => word in document.documentElement.dataset)", arg=ended, timeout=PATIENCE
    )
    yield page, wrong
    context.close()


def test_every_figure_is_drawn_and_nothing_is_asked_for(opened: Opened) -> None:
    page, wrong = opened
    assert wrong == []
    assert page.evaluate("document.documentElement.dataset.drawn") == "7 of 7"
    assert page.title().startswith(HOSTILE)  # as a text
    assert page.locator(".main-svg").count() >= 7
    assert page.locator("img").count() == 0
    texts = page.locator("#figure-contour .ytick text, #figure-contour .xtick text").all_text_contents()
    assert any(text.startswith("</scrip") for text in texts)


def test_other_views_of_a_figure_are_drawn(opened: Opened) -> None:
    page, wrong = opened
    shown = "[...document.querySelectorAll('#figure-curves .scatterlayer .trace')].length"
    before = page.evaluate(shown)
    scale = "kind => document.getElementById('figure-curves')._fullLayout.yaxis.type === kind"
    choice = page.locator("[data-views=curves]")
    for view, kind in (("Logarithmic", "log"), ("Smoothing 0.6", "linear"), ("Default", "linear")):
        choice.select_option(view)
        page.wait_for_function(scale, arg=kind, timeout=PATIENCE)
        assert page.evaluate(shown) == before
    assert wrong == []


def test_table_is_sorted_and_filtered(opened: Opened) -> None:
    page, wrong = opened
    column = "[...document.querySelectorAll('#trials tbody tr:not([hidden]) td:nth-child(3)')].map(c => c.textContent)"
    results_of = [str((n * 5) % 12) for n in range(12) if n != 5]
    page.get_by_role("button", name="result", exact=True).click()
    assert page.evaluate(column) == [*sorted(results_of, key=int), "–"]
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.get_by_role("button", name="result", exact=True).click()
    assert page.evaluate(column) == [*sorted(results_of, key=int, reverse=True), "–"]
    page.get_by_label("Filter").fill("failed")
    assert page.evaluate(column) == ["–"]
    assert page.locator("#count").text_content() == "1 of 12"
    assert wrong == []


def test_page_follows_the_browser_into_the_dark_and_the_button_out_of_it(opened: Opened) -> None:
    page, wrong = opened
    page.emulate_media(color_scheme="dark")
    turned = "color => document.getElementById('figure-history')._fullLayout.paper_bgcolor === color"
    page.wait_for_function(turned, arg="#14171b", timeout=PATIENCE)
    colors = (
        "[getComputedStyle(document.body).backgroundColor,"
        " document.getElementById('figure-history')._fullLayout.paper_bgcolor]"
    )
    assert page.evaluate(colors) == ["rgb(20, 23, 27)", "#14171b"]
    page.get_by_role("button", name="Light", exact=True).click()
    page.wait_for_function(turned, arg="#ffffff", timeout=PATIENCE)
    assert page.evaluate(colors) == ["rgb(255, 255, 255)", "#ffffff"]
    assert wrong == []


def test_page_without_scripts_tells_all_but_the_figures_and_wide_things_scroll_in_their_boxes(
    chromium: Any, report: Path
) -> None:
    context = chromium.new_context(viewport={"width": 420, "height": 800}, java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.inner_text("main")
    for words in ("The figures need JavaScript", "Best trial", "1 trial · USER_ERROR", "How to reproduce"):
        assert words in text
    assert page.title().startswith(HOSTILE)
    assert page.locator("body").bounding_box()["width"] <= 420
    context.close()
