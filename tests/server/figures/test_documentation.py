"""The page about figures: its examples run, its images are there and small, it names every figure."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pitchpipe.plots import Plots
from pitchpipe.server import figures

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "use" / "figures.md").read_text(encoding="utf-8")
IMAGES = re.findall(r"!\[([^]]+)]\(([^)]+)\)", PAGE)
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_figure_is_on_the_page_and_a_method() -> None:
    functions = {name for name in figures.__all__ if name.startswith("plot_")}
    assert functions == {name for name in vars(Plots) if name.startswith("plot_")}
    assert set(re.findall(r"^\| `(plot_\w+)\(", PAGE, re.MULTILINE)) == functions


@pytest.mark.parametrize(("words", "image"), IMAGES)
def test_image_is_there_and_small(words: str, image: str) -> None:
    file = ROOT / "docs" / "use" / image
    assert file.read_bytes()[:4] == b"\x89PNG"
    assert file.stat().st_size < 150_000
    assert len(words) > 20


def test_examples_run_in_their_order(tmp_path: Path, by_hand: Callable[..., str]) -> None:
    file = tmp_path / "examples.py"
    file.write_text("\nprint('next')\n".join(EXAMPLES), encoding="utf-8")
    _, importance, table = by_hand(file).split("next\n")
    assert importance.startswith("lr ")
    assert table == "log\n"
