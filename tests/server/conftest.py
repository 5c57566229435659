"""Fixtures: an experiment, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..stored import MadeExperiment

CHROMIUMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeExperiment]:
    experiment = MadeExperiment(tmp_path / "exps" / "made1234")
    yield experiment
    experiment.store.close()


# playwright keeps an event loop running in this thread, which the tests of other modules must not meet.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Yield the browser of a module of tests about pages, which are skipped without one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip("there is no Chromium: pages are not tested (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path,
            # Composed without a GPU, which would be emulated; WebGL, which figures need, is emulated all the same.
            args=["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"],
        )
        yield browser
        browser.close()
