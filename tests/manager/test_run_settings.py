"""What the manager makes of a config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.local.local_executor import LocalTrialExecutor
from pitchpipe.executors.ray import RayTrialExecutor
from pitchpipe.manager.experiment_factory import executor_for
from pitchpipe.manager.run_settings import repeats_of, run_of
from pitchpipe.store.folder import ExperimentFolder

from .experiments import config


@pytest.mark.parametrize("names", [("default", "size"), ("size", "default")])
def test_checkpoints_are_ranked_by_the_direction_of_default(names: tuple[str, str], tmp_path: Path) -> None:
    directions = {"default": "maximize", "size": "minimize"}
    objectives = [{"name": name, "direction": directions[name]} for name in names]
    keeping = run_of(config(objectives=objectives), ExperimentFolder(tmp_path)).keeping
    assert (keeping.metric, keeping.mode) == ("default", "maximize")


def test_seeds_of_repeats_follow_from_the_seed_of_the_experiment() -> None:
    def repeats(**fields: Any) -> Any:
        return repeats_of(config(**{"repeats": {"count": 3, "race": False}, **fields}))

    first, same, other = repeats(seed=1), repeats(seed=1), repeats(seed=2)
    assert (first.count, first.race, len(set(first.seeds))) == (3, False, 3)
    assert first == same
    assert not set(first.seeds) & set(other.seeds)
    assert all(0 <= seed < 2**31 for seed in first.seeds)
    assert repeats(repeats={"count": 3, "seed": False}).seeds == []
    assert repeats(repeats=None).count == 1


@pytest.mark.parametrize(
    ("fields", "threads"),
    [
        ({}, 2),
        ({"trial_concurrency": 9}, 1),
        ({"trial_cpu_number": 0.5}, 1),
        ({"trial_cpu_number": 3.5, "training_service": {"platform": "ray", "address": "host:6379"}}, 3),
        ({"training_service": {"platform": "ray", "address": "host:6379"}}, None),
        ({"trial_command": "true", "resources": {"processes": 2}}, 1),
        ({"trial_command": "true", "resources": {"processes": 2, "cpus_per_process": 2}}, 2),
    ],
)
def test_threads_of_a_trial_follow_its_cpus(
    fields: dict[str, Any], threads: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3}, raising=False)
    given = config(**{"trial_concurrency": 2, **fields})
    assert run_of(given, ExperimentFolder(tmp_path)).threads == threads


@pytest.mark.parametrize(("platform", "kind"), [("local", LocalTrialExecutor), ("ray", RayTrialExecutor)])
def test_platform_chooses_the_executor(platform: str, kind: type[Any]) -> None:
    assert type(executor_for(config(training_service={"platform": platform}))) is kind


def test_platform_without_an_executor_raises() -> None:
    unknown = ExperimentConfig.model_construct(training_service="a new platform")  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="a new platform"):
        executor_for(unknown)
