"""How soon the web pages of a large experiment appear, and how soon its table is filtered, in a real Chromium.

    python benchmarks/pages.py --trials 10000 --results 100

Each page is opened in a fresh browser (nothing cached): the times to its first paint and to its main content. A filter
is timed from the key to the frame in which the number of trials has changed; the page waits 100 ms for more keys.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from synthetic_experiment import make

# Page, its path, and its main content.
PAGES = (
    ("experiments", "", "td a"),
    ("overview", "synthetic", ".main-svg .scatterlayer .trace"),
    ("trials", "synthetic/trials", ".ag-row a"),
    ("trial", "synthetic/trials/7", ".main-svg .scatterlayer .trace"),
    ("plots: history", "synthetic/plots?figure=history", ".main-svg .gtitle"),
    ("plots: intermediate results", "synthetic/plots?figure=curves", ".main-svg .scatterlayer .trace"),
    ("settings", "synthetic/settings", "textarea"),
    ("logs", "synthetic/logs", "h1"),
)
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
SERVE = (sys.executable, "-P", "-m", "pitchpipe", "ui", "--port", "0", "--no-browser", "--dir")
WORDS = ("apex", "sgd", "finite", "0.99", "median")
# Resolves to the milliseconds from the next key to the frame in which the count of trials has changed.
FILTERED = """new Promise(done => {
    const count = document.querySelector('.pp-dim[role=status]'), before = count.innerText;
    let began = 0;
    document.querySelector('input[type=search]')
        .addEventListener('input', () => { began ||= performance.now() }, {once: true});
    new MutationObserver((changes, watcher) => {
        if (count.innerText !== before) {
            watcher.disconnect();
            requestAnimationFrame(() => done(performance.now() - began));
        }
    }).observe(count, {subtree: true, childList: true, characterData: true});
})"""


def main() -> None:
    """Make the experiment, serve it, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--results", type=int, default=100, help="intermediate results of each trial")
    parser.add_argument("--repetitions", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), chosen.trials, chosen.results)
        command = [*SERVE, folder]
        server = subprocess.Popen(
            command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert server.stdout is not None
            print(
                f"{chosen.trials:,} trials with {chosen.results} results each; load {os.getloadavg()[0]:.1f}"
            )
            _measure(server.stdout.readline().strip(), chosen.repetitions)
        finally:
            server.terminate()
            server.wait()


def _measure(address: str, repetitions: int) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print("| page | first paint, ms | main content, ms |\n|---|---|---|")
        for name, path, sight in PAGES:
            times = [_opened(browser, address + path, sight) for _ in range(repetitions)]
            paints, sights = zip(*times, strict=True)
            print(
                f"| {name} | {statistics.median(paints):.0f} | {statistics.median(sights):.0f} |", flush=True
            )
        filters = _filtered(browser, f"{address}synthetic/trials")
        print(f"| a filter of the table | | {statistics.median(filters):.0f} (at most {max(filters):.0f}) |")
        browser.close()


def _opened(browser: Any, address: str, sight: str) -> tuple[float, float]:
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(sight, state="attached")
    seen = time.perf_counter() - began
    paint = page.wait_for_function(FIRST_PAINT).json_value()  # the main content may come before it
    context.close()
    return paint, seen * 1000


def _filtered(browser: Any, address: str) -> list[float]:
    page = browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
    page.goto(address)
    page.wait_for_selector(".ag-row a")
    page.wait_for_timeout(500)
    found = []
    for word in WORDS:
        page.evaluate(f"window.filtered = {FILTERED}; undefined")
        page.fill("input[type=search]", word)
        found.append(page.evaluate("window.filtered"))
    return found


if __name__ == "__main__":
    main()
