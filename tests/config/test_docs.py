"""The reference page of the config."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pitchpipe.config import load_config
from pitchpipe.config.docs import render_reference
from pitchpipe.config.models import AlgorithmConfig, ConfigFields
from pitchpipe.config.objectives import ObjectiveConfig
from pitchpipe.config.platforms import LocalConfig, RayConfig

PAGE = Path(__file__).parents[2] / "docs" / "config.md"


def test_reference_page_is_up_to_date() -> None:
    hint = "run: python -P -m pitchpipe.config.docs > docs/config.md"
    assert PAGE.read_text() == render_reference(), hint


def test_reference_page_is_what_the_module_prints() -> None:
    line = [sys.executable, "-P", "-m", "pitchpipe.config.docs"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == render_reference()


@pytest.mark.parametrize("model", [ConfigFields, AlgorithmConfig, ObjectiveConfig, LocalConfig, RayConfig])
def test_every_field_is_in_the_reference_with_its_meaning(model: type[ConfigFields]) -> None:
    page = render_reference()
    for name, info in model.model_fields.items():
        assert info.description, name
        assert f"| `{name}` |" in page


def test_smallest_config_of_the_reference_is_valid(tmp_path: Path) -> None:
    (tmp_path / "e.yml").write_text(render_reference().split("```")[1].removeprefix("yaml"))
    assert load_config(tmp_path / "e.yml", check_plugins=False).max_trial_number == 20
