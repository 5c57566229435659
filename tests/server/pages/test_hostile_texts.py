"""Texts of users on the pages: in a real browser none of them runs, and each is shown as it is."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from pitchpipe.telling import escaped, visible

from ...hostile_texts import HOSTILE, TEXTS, hostile_experiment
from .conftest import Open, Serve

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FOLDER = "\"><img src=x onerror=alert(11)>' \\"
NUMBER = TEXTS.index(HOSTILE["HTML"])
FAILED = NUMBER + len(TEXTS)
FILTERS = quote('{":x": "alert(12)", "duration": {":y": "alert(13)"}}')
# Each axis of parallel coordinates is drawn without a GPU: one for each text would take 20 seconds.
AXES = "parameters=" + ",".join(quote(HOSTILE[name]) for name in ("single quote", "HTML"))
# Addresses, and a text that the page has to show.
PAGES = {
    "": visible(FOLDER),
    "made1234": HOSTILE["HTML"],
    "made1234/trials": visible(HOSTILE["attribute"]),
    f"made1234/trials?status=FAILED&filter={FILTERS}": "35 trials",
    f"made1234/trials/{NUMBER}": HOSTILE["HTML"],
    f"made1234/trials/{FAILED}": HOSTILE["HTML"],
    f"made1234/compare?trials={NUMBER},{NUMBER + 1}": HOSTILE["link"],
    f"made1234/plots?figure=parallel&{AXES}": HOSTILE["single quote"],
    "made1234/settings": escaped(HOSTILE["clear screen"]),
    "made1234/logs": "\\u001b]0;title",
    quote(FOLDER): HOSTILE["HTML"],
}
SHOWS = "text => [...document.querySelectorAll('body, body *')].some(one => one.textContent.includes(text))"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> Iterator[str]:
    """Yield the address of the pages of experiments that failed, and of one that this process runs."""
    directory = tmp_path_factory.mktemp("hostile")
    for name in ("made1234", FOLDER):
        hostile_experiment(directory / name).store.close()
    running = hostile_experiment(directory / "runs1234")
    running.commit(status="RUNNING")
    running.folder.own()
    yield serve(directory)
    running.folder.disown()
    running.store.close()


@pytest.mark.parametrize("place", PAGES)
def test_page_shows_the_texts_and_runs_none(address: str, open_page: Open, place: str) -> None:
    page = open_page(f"{address}/{place}")
    page.wait_for_function(SHOWS, arg=PAGES[place])
    shown = page.inner_text("body")
    assert escaped(shown, keep="\n\t\u200b") == shown  # plotly and NiceGUI have empty labels of their own


def test_form_of_a_trial_shows_the_texts_and_runs_none(address: str, open_page: Open) -> None:
    page = open_page(f"{address}/runs1234/trials")
    page.get_by_role("button", name="Add trial").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name=visible(HOSTILE["attribute"])).first.wait_for()
    form.get_by_label(visible(HOSTILE["clear screen"])).first.wait_for()
    form.get_by_role("button", name="Run it").click()
    page.get_by_role(
        "button", name="Close"
    ).wait_for()  # nothing replies for the manager: the refusal is shown
