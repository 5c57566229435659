"""Takes the pictures in docs/images: an experiment is run, and each page of it is photographed in Chromium.

python -P tests/server/ui/screenshots.py docs/images

They are made smaller where there is pngquant.
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
# Name of the picture, page, and what has to be there before it is taken.
PLOTS = ("history", "curves", "parallel", "importance", "slice", "contour", "timeline", "edf")
PICTURES = (
    ("experiments", "", "td a"),
    ("overview", "images", ".main-svg .scatterlayer"),
    ("overview-front", "tradeoff", ".main-svg .scatterlayer"),
    ("trials", "images/trials", ".ag-row a"),
    ("trial", "images/trials/{stopped}", ".main-svg .scatterlayer"),
    ("compare", "images/compare?trials=1,2,3", ".main-svg .scatterlayer"),
    *((f"plot-{name}", f"images/plots?figure={name}", ".main-svg .gtitle") for name in PLOTS),
    ("plot-pareto", "tradeoff/plots?figure=pareto", ".main-svg .gtitle"),
    ("settings", "images/settings", "textarea"),
    ("logs", "images/logs", ".nicegui-log"),
)
# The end of the name, with the size of the window and the colours.
VIEWS = (
    ("", (1440, 900), "light"),
    ("-dark", (1440, 900), "dark"),
    ("-phone", (390, 844), "light"),
    ("-phone-dark", (390, 844), "dark"),
)
PITCHPIPE = [sys.executable, "-P", "-m", "pitchpipe"]


def main() -> None:
    """Run the experiments, serve them, and take the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path, help="the folder of the pictures")
    target: Path = parser.parse_args().target.absolute()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pp-", dir="/tmp") as folder:
        place = Path(folder) / "experiments"
        _run(Path(folder), place, "images", {})
        two = [{"name": "default", "direction": "maximize"}, {"name": "seconds", "direction": "minimize"}]
        _run(
            Path(folder),
            place,
            "tradeoff",
            {"objectives": two, "tuner": {"name": "Random"}, "assessor": None},
        )
        command = [*PITCHPIPE, "ui", "--dir", str(place), "--port", "0", "--no-browser"]
        server = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            _take(server.stdout.readline().strip(), target)
        finally:
            server.terminate()
            server.wait()
    if pngquant := shutil.which("pngquant"):
        pictures = [target / f"{name}{end}.png" for name, *_ in PICTURES for end, *_ in VIEWS]
        subprocess.run([pngquant, "--force", "--ext", ".png", "64", *pictures], check=True)


def _run(folder: Path, place: Path, name: str, changes: dict[str, Any]) -> None:
    config = {**CONFIG, "experiment_name": name, **changes}
    (folder / "train.py").write_text(TRIAL)
    file = folder / f"{name}.yml"
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    words = ["run", str(file), "--dir", str(place), "--experiment-id", name, "--quiet"]
    subprocess.run([*PITCHPIPE, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _take(address: str, target: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        rows = browser.new_context().request.get(f"{address}images/rows?status=EARLY_STOPPED").json()["rows"]
        for end, (width, height), theme in VIEWS:
            context = browser.new_context(viewport={"width": width, "height": height})
            context.add_cookies([{"name": "pitchpipe-theme", "value": theme, "url": address}])
            page = context.new_page()
            for name, path, ready in PICTURES:
                page.goto(address + path.format(stopped=rows[0]["number"] if rows else 0))
                page.locator(ready).first.wait_for(state="attached")
                page.wait_for_timeout(1000)  # transitions
                page.screenshot(path=target / f"{name}{end}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
