"""The new user's story, from the browser alone, while the experiment runs."""

import re
from typing import Any

import pytest

from .conftest import Open

pytestmark = pytest.mark.timeout(180)


def row_of(page: Any, number: int) -> Any:
    """Return the scrolling part of a trial's row in the table."""
    return page.locator(f".ag-center-cols-container [row-id='{number}']")


def test_overview_tells_the_best_trial_and_why_three_failed(story: Any, open_page: Open) -> None:
    page = open_page(story.address())
    page.get_by_text("6 of 40").wait_for()
    best = page.get_by_role("region", name="Best trial")
    assert best.get_by_role("link", name="Trial 4").is_visible()
    assert "0.9" in best.inner_text()
    failures = page.get_by_role("region", name="Why trials failed").inner_text()
    assert "3 trials" in failures
    assert "ValueError: loss is not finite: 0.125 <img src=nowhere onerror=alert(1)>" in failures
    assert "in <module>" in failures
    assert page.get_by_role("link", name="1 stopped early").is_visible()


def test_trial_pages_tell_why_one_was_stopped_and_one_failed(story: Any, open_page: Open) -> None:
    page = open_page(story.address("trials?status=EARLY_STOPPED"))
    page.get_by_role("link", name="5", exact=True).click()
    page.get_by_role("heading", name="It was stopped early").wait_for()
    reason = page.get_by_role("region", name="How it ended").inner_text()
    assert "median" in reason
    assert "0.1" in reason
    page.goto(story.address("trials/2"))
    page.get_by_role("heading", name="Why it failed").wait_for()
    assert "loss is not finite: 0.25" in page.get_by_role("region", name="How it ended").inner_text()
    page.get_by_role("log", name="Errors of the trial").get_by_text("Traceback").wait_for()
    page.get_by_role("tab", name="Output").click()
    page.get_by_text("training with x = 0.25").wait_for()
    assert page.get_by_text(f"pitchpipe trial rerun story 2 --dir {story.directory}").is_visible()


def test_limits_are_changed_and_a_refusal_is_a_sentence(story: Any, open_page: Open) -> None:
    page = open_page(story.address("settings"))
    number = page.get_by_label("Number of trials")
    assert number.input_value() == "40"
    number.fill("3")
    page.get_by_role("button", name="Save limits").click()
    page.get_by_text("trials are made or asked for already").wait_for()
    number.fill("50")
    page.get_by_label("Duration of the experiment").fill("12h")
    page.get_by_role("button", name="Save limits").click()
    page.get_by_text("The limits have been changed").wait_for()
    overview = open_page(story.address())
    overview.get_by_text("6 of 50").wait_for()
    page.reload()
    assert page.get_by_label("Duration of the experiment").input_value() == "12h"


def test_pages_follow_a_running_experiment(story: Any, open_page: Open) -> None:
    overview, trial = open_page(story.address()), open_page(story.address("trials/6"))
    trial.get_by_text("training with x = 0.7").wait_for()
    for page in (overview, trial):
        page.evaluate("window.untouched = true")
    overview.get_by_text("6 of 50").wait_for()
    story.open_gate(6)
    trial.get_by_text("the gate is open").wait_for()
    trial.get_by_role("heading", name="It succeeded").wait_for()
    overview.get_by_text("7 of 50").wait_for()
    assert all(page.evaluate("window.untouched") for page in (overview, trial))


def test_trials_are_killed_added_and_run_again_by_clicking(story: Any, open_page: Open) -> None:
    page = open_page(story.address("trials"))
    row_of(page, 7).get_by_text("running").wait_for()
    page.locator(".ag-pinned-left-cols-container [row-id='7']").get_by_role("checkbox").click()
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Kill").click()
    row_of(page, 7).get_by_text("killed by you").wait_for()
    page.wait_for_function("document.querySelector('[aria-label=Kill]').disabled")  # it has ended

    page.get_by_role("button", name="Rerun").click()
    page.get_by_text("The parameters of trial 7 will run again").wait_for()

    page.get_by_role("button", name="Add trial").click()
    form = page.get_by_role("dialog")
    form.get_by_label("x", exact=True).fill("2")
    page.keyboard.press("Escape")
    form.wait_for(state="detached")
    page.get_by_role("button", name="Add trial").click()
    assert form.get_by_label("x", exact=True).input_value() == "2"
    form.get_by_role("button", name="Run it").click()
    form.get_by_text("2 is outside").or_(form.get_by_text("x: ")).first.wait_for()
    form.get_by_label("x", exact=True).fill("0.4375")
    form.get_by_role("button", name="Run it").click()
    page.get_by_text("The trial has been added").wait_for()
    page.get_by_text("0.4375", exact=True).first.wait_for()
    page.get_by_role("link", name=re.compile(r"Open trial \d+")).last.click()
    page.wait_for_url(re.compile(r"/trials/\d+$"))
    page.get_by_role("region", name="Parameters").get_by_text("0.4375").wait_for()


# What the browser sends waits for the test, as on a busy machine; the tab is used by other tests, too.
LATE = """if (location.hash === "#late") {
  const held = [], send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) { held.push(() => send.call(this, text)) };
  window.letGo = () => { WebSocket.prototype.send = send; held.forEach(one => one()) };
}"""


def test_click_before_the_connection_comes_after_what_was_typed(story: Any, open_page: Open) -> None:
    page = open_page("about:blank")
    page.add_init_script(LATE)
    for _ in range(2):  # which of two events came first was a matter of chance
        page.goto("about:blank")
        page.goto(f"{story.address('settings')}#late", wait_until="domcontentloaded")
        page.get_by_label("Number of trials").fill("some")
        page.get_by_role("button", name="Save limits").click()
        assert page.evaluate("window.did_handshake") is False
        page.evaluate("letGo()")
        refusal = page.locator(".q-notification")
        refusal.wait_for()
        assert "Number of trials must be a whole number from 1 on, not 'some'" in refusal.inner_text()


def test_experiment_is_stopped_extended_and_resumed(story: Any, open_page: Open) -> None:
    page = open_page(story.address("settings"))
    page.get_by_role("button", name="Stop the experiment").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Stop it").click()
    page.get_by_text("Not running. Changes take effect when you resume").wait_for()
    assert page.get_by_role("status").get_by_text("STOPPED").is_visible()
    assert page.get_by_role("button", name="Stop the experiment").is_disabled()
    page.get_by_label("Number of trials").fill("more")
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Number of trials must be a whole number from 1 on, not 'more'").wait_for()
    page.get_by_label("Number of trials").fill("60")
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("The experiment runs again").wait_for()
    page.get_by_text("must be a whole number").wait_for(state="detached")
    page.get_by_role("status").get_by_text("RUNNING").wait_for()
    assert page.get_by_label("Number of trials").input_value() == "60"
