"""Every page as axe-core judges it: one half light in a window, the other dark on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .test_pages import PAGES, gallery

__all__ = ["gallery"]

pytestmark = pytest.mark.timeout(180)

VIEWS = {
    "light": {"width": 1440, "height": 900},
    "dark": {"width": 390, "height": 844},
}
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
    .filter(found => ["serious", "critical"].includes(found.impact))
    .flatMap(found => found.nodes.map(node => `${found.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`))"""


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the script of axe-core, which the package carries."""
    package = pytest.importorskip(
        "axe_playwright_python.base", reason="axe-playwright-python is not installed"
    )
    return (Path(package.__file__).parent / package.AXE_FILE_NAME).read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", VIEWS)
def test_no_page_has_a_serious_fault(
    gallery: str, scheme: str, axe: str, chromium: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{gallery}/")
    page.set_viewport_size(VIEWS[scheme])
    page.context.add_cookies([{"name": "pitchpipe-theme", "value": scheme, "url": gallery}])
    faults = {}
    pages = [("/", "Experiments"), ("/empty", "No trial has run."), *_pages().items()]
    for path, text in pages[list(VIEWS).index(scheme) :: 2]:
        page.goto(f"{gallery}{path}")
        page.get_by_text(text).or_(page.get_by_label(text)).first.wait_for()
        page.evaluate(axe)
        if found := page.evaluate(SERIOUS):
            faults[path] = found
    page.goto(f"{gallery}/finished/settings")
    page.get_by_label("Number of trials").fill("many")
    page.get_by_role("button", name="Save limits").click()
    close = page.get_by_role("button", name="Close")
    close.wait_for()
    assert close.evaluate("button => getComputedStyle(button).color") == "rgb(255, 255, 255)"
    page.evaluate(axe)
    if found := page.evaluate(SERIOUS):
        faults["a refusal"] = found
    page.context.clear_cookies(name="pitchpipe-theme")
    assert faults == {}


def _pages() -> dict[str, str]:
    return {f"/finished/{path}": text for path, text in PAGES.items()}
