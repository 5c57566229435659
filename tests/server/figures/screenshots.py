"""Draws the images of docs/use/figures.md from the invented experiment: `python tests/server/figures/screenshots.py`.

It needs playwright and a Chromium; `test_documentation.py` looks at what is there.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from plotly.offline import get_plotlyjs

from pitchpipe.server import figures

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "images"
WIDTH = 760


def drawn() -> dict[str, Any]:
    """Every figure of the page, by the name of its image."""
    table, other = figures.example_table(120), figures.example_table(120, seed=4)
    return {
        "history": figures.plot_history(table, "loss"),
        "curves": figures.plot_curves(table),
        "parallel": figures.plot_parallel(
            figures.example_table(30),
            "loss",
            parameters=["lr", "batch_size", "dropout", "optimizer", "optimizer.momentum"],
        ),
        "importance": figures.plot_importance(table, "loss"),
        "slice": figures.plot_slice(table, "loss"),
        "contour": figures.plot_contour(table, "lr", "dropout", "loss"),
        "timeline": figures.plot_timeline(table),
        "pareto": figures.plot_pareto(table),
        "edf": figures.plot_edf([table, other], "loss"),
        "dark": figures.plot_history(table, "loss", theme="dark"),
    }


def main() -> None:
    """Write an image for each figure."""
    FOLDER.mkdir(exist_ok=True)
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as scratch:
        (script := Path(scratch) / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
        options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = driver.chromium.launch(executable_path=browser_path, args=options)
        page = browser.new_page(viewport={"width": WIDTH, "height": 700})
        page.set_content("<body style='margin:0'><div id='figure'></div></body>")
        page.add_script_tag(path=str(script))
        for name, figure in drawn().items():
            height = figure.to_plotly_json()["layout"].get("height", 420)
            page.evaluate(
                "([figure, height]) => { document.getElementById('figure').style.height = height + 'px';"
                " const made = JSON.parse(figure);"
                " return Plotly.newPlot('figure', made.data, made.layout, {staticPlot: true}); }",
                [figure.to_json(), height],
            )
            place = FOLDER / f"figure-{name}.png"
            page.screenshot(path=str(place), clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
            print(f"{place.name}: {place.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
