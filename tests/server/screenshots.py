"""Makes the images of the documentation: figures of an invented experiment, and pages of one that is run.

    make images

It needs playwright and a Chromium. Images are made smaller where there is pngquant.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from plotly.offline import get_plotlyjs

from pitchpipe.server import figures

FIGURE_WIDTH = 760
DRAW = """([figure, height]) => {
    document.getElementById('figure').style.height = height + 'px';
    const made = JSON.parse(figure);
    return Plotly.newPlot('figure', made.data, made.layout, {staticPlot: true});
}"""
TRIAL = """
import math, random, time, pitchpipe

p = pitchpipe.get_next_parameter()
noise = random.Random(pitchpipe.get_sequence_id())
solver = p["solver"]
if solver.get("momentum", 0) > 0.95:
    raise ValueError(f"loss is not finite: momentum {solver['momentum']:.3f} diverges")
best = 0.98 - 0.12 * abs(math.log10(p["learning_rate"]) + 2.2) - 0.1 * abs(p["dropout"] - 0.3)
best -= 0.03 if p["activation"] == "tanh" else 0
best = 0.3 if p["dropout"] > 0.65 else best
slowness = 2 + 2 * noise.random()
for epoch in range(14):
    accuracy = max(0.1, best * (1 - math.exp(-(epoch + 1) / slowness)) + noise.gauss(0, 0.006))
    print(f"epoch {epoch}: accuracy {accuracy:.4f}", flush=True)
    pitchpipe.report_intermediate_result(accuracy)
    time.sleep(0.03)
pitchpipe.report_final_result({"default": accuracy, "seconds": 20 + p["batch_size"] / 8 + 5 * noise.random()})
"""
CONFIG = {
    "experiment_name": "images",
    "trial_command": f"{shlex.quote(sys.executable)} train.py",
    "trial_concurrency": 2,
    "max_trial_number": 60,
    "seed": 7,
    "objectives": [{"name": "default", "direction": "maximize"}],
    "search_space": {
        "learning_rate": {"_type": "loguniform", "_value": [0.0001, 1]},
        "dropout": {"_type": "uniform", "_value": [0, 0.8]},
        "batch_size": {"_type": "choice", "_value": [32, 64, 128]},
        "activation": {"_type": "choice", "_value": ["relu", "tanh"]},
        "solver": {
            "_type": "choice",
            "_value": [
                {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 0.99]}},
                {"_name": "adam", "beta_1": {"_type": "uniform", "_value": [0.5, 0.99]}},
            ],
        },
    },
    "tuner": {"name": "TPE"},
    "assessor": {"name": "Medianstop", "class_args": {"start_step": 3}},
    "training_service": {"platform": "local"},
}
TWO_OBJECTIVES = {
    "objectives": [
        {"name": "default", "direction": "maximize"},
        {"name": "seconds", "direction": "minimize"},
    ],
    "tuner": {"name": "Random"},
    "assessor": None,
}
WIDE, PHONE = (1440, 900), (390, 844)
# Name of the image, page, what has to be there before it is taken, window, colours.
PAGES = (
    ("overview", "images", ".main-svg .scatterlayer", WIDE, "light"),
    ("overview-phone", "images", ".main-svg .scatterlayer", PHONE, "light"),
    ("overview-front", "tradeoff", ".main-svg .scatterlayer", WIDE, "light"),
    ("trials-dark", "images/trials", ".ag-row a", WIDE, "dark"),
    ("trial", "images/trials/{stopped}", ".main-svg .scatterlayer", WIDE, "light"),
)
PITCHPIPE = [sys.executable, "-P", "-m", "pitchpipe"]


def main() -> None:
    """Draw the figures; run the experiments, serve them, and photograph their pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path, help="the folder of the images")
    target: Path = parser.parse_args().target.absolute()
    target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver, tempfile.TemporaryDirectory(prefix="pp-", dir="/tmp") as folder:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        images = [*_draw(browser, target, Path(folder)), *_photograph(browser, target, Path(folder))]
        browser.close()
    if pngquant := shutil.which("pngquant"):
        subprocess.run([pngquant, "--force", "--ext", ".png", "64", *images], check=True)


def _figures() -> dict[str, Any]:
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


def _draw(browser: Browser, target: Path, scratch: Path) -> list[Path]:
    (script := scratch / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
    page = browser.new_page(viewport={"width": FIGURE_WIDTH, "height": 700})
    page.set_content("<body style='margin:0'><div id='figure'></div></body>")
    page.add_script_tag(path=str(script))
    images = []
    for name, figure in _figures().items():
        height = figure.to_plotly_json()["layout"].get("height", 420)
        page.evaluate(DRAW, [figure.to_json(), height])
        images.append(target / f"figure-{name}.png")
        page.screenshot(path=images[-1], clip={"x": 0, "y": 0, "width": FIGURE_WIDTH, "height": height})
    return images


def _photograph(browser: Browser, target: Path, folder: Path) -> list[Path]:
    place = folder / "experiments"
    _run(folder, place, "images", {})
    _run(folder, place, "tradeoff", TWO_OBJECTIVES)
    command = [*PITCHPIPE, "ui", "--dir", str(place), "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        rows = browser.new_context().request.get(f"{address}images/rows?status=EARLY_STOPPED").json()["rows"]
        for name, path, ready, (width, height), theme in PAGES:
            context = browser.new_context(viewport={"width": width, "height": height})
            context.add_cookies([{"name": "pitchpipe-theme", "value": theme, "url": address}])
            page = context.new_page()
            page.goto(address + path.format(stopped=rows[0]["number"] if rows else 0))
            page.locator(ready).first.wait_for(state="attached")
            page.wait_for_timeout(1000)  # transitions
            page.screenshot(path=target / f"{name}.png")
            context.close()
    finally:
        server.terminate()
        server.wait()
    return [target / f"{name}.png" for name, *_ in PAGES]


def _run(folder: Path, place: Path, name: str, changes: dict[str, Any]) -> None:
    config = {**CONFIG, "experiment_name": name, **changes}
    (folder / "train.py").write_text(TRIAL)
    file = folder / f"{name}.yml"
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    words = ["run", str(file), "--dir", str(place), "--experiment-id", name, "--quiet"]
    subprocess.run([*PITCHPIPE, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
