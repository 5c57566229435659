"""The reference page of the config: its tables are drawn from the models, the rest is written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.config import load_config

from ..page_tables import SECTIONS, redraw

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "config.md").read_text(encoding="utf-8")


def test_tables_of_the_page_are_up_to_date() -> None:
    assert redraw(PAGE) == PAGE, "run: .venv/bin/python -P tests/page_tables.py docs/reference/config.md"


@pytest.mark.parametrize("name", SECTIONS)
def test_every_field_is_on_the_page_with_its_meaning(name: str) -> None:
    assert f"<!-- table: {name} -->" in PAGE
    for field, info in SECTIONS[name].model_fields.items():
        assert info.description, field
        assert f"| `{field}` |" in PAGE


def test_smallest_config_of_the_page_is_valid(tmp_path: Path) -> None:
    (tmp_path / "e.yml").write_text(PAGE.split("```")[1].removeprefix("yaml"))
    assert load_config(tmp_path / "e.yml", check_plugins=False).max_trial_number == 20
