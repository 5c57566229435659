"""What the manager makes of a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.settings import run_of
from pitchpipe.store.folder import ExperimentFolder

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


@pytest.mark.parametrize("names", [("default", "size"), ("size", "default")])
def test_checkpoints_are_ranked_by_the_direction_of_default(names: tuple[str, str], tmp_path: Path) -> None:
    directions = {"default": "maximize", "size": "minimize"}
    objectives = [{"name": name, "direction": directions[name]} for name in names]
    config = ExperimentConfig.from_dict(
        {"search_space": SPACE, "tuner": {"name": "Random"}, "max_trial_number": 1, "objectives": objectives},
        needs_command=False,
    )
    assert run_of(config, ExperimentFolder(tmp_path)).keeping.mode == "maximize"
