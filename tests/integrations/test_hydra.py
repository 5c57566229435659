"""`hydra/sweeper=pitchpipe`, with the real Hydra: spaces in its syntax, and sweeps of real jobs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ..lazy import Lazy

pytestmark = pytest.mark.skipif(find_spec("hydra") is None, reason="hydra is not installed")
parsing = Lazy("hydra.core.override_parser.overrides_parser")


def space(*overrides: str) -> Any:
    parsed = parsing.OverridesParser.create().parse_overrides(list(overrides))
    return Lazy("pitchpipe.integrations.hydra").HydraSpace(parsed)


@pytest.mark.parametrize(
    ("override", "kind", "values"),
    [
        ("model.lr=interval(0.1,2)", "uniform", [0.1, 2.0]),
        ("model.lr=tag(log,interval(0.1,2))", "loguniform", [0.1, 2.0]),
        ("model.lr=int(interval(1,8))", "randint", [1, 9]),
        ("model.lr=tag(log,int(interval(1,8)))", "lograndint", [1, 9]),
        ("model.lr=range(1,8)", "randint", [1, 8]),
        ("model.lr=tag(log,range(1,8))", "lograndint", [1, 8]),
        ("model.lr=range(1,8,3)", "choice", [1, 4, 7]),
        ("model.lr=range(0,1,0.25)", "choice", [0.0, 0.25, 0.5, 0.75]),
        ("model.lr=choice(1,b,'c d',[1,2],true)", "choice", [1, "b", r"c\ d", "[1,2]", True]),
        ("model.lr=1,b", "choice", [1, "b"]),
    ],
)
def test_sweeps_become_parameters(override: str, kind: str, values: list[Any]) -> None:
    assert space(override).form == {"model.lr": {"_type": kind, "_value": values}}


@pytest.mark.parametrize(
    "value", ["1", "1e-05", "b", "'c d'", "null", "[1,2]", "{a:1}", "true", "'1'", "a\\,b"]
)
def test_value_reaches_the_job_as_it_was_written(value: str) -> None:
    found = space(f"+model.lr={value},other")
    option = found.form["model.lr"]["_value"][0]
    (override,) = found.overrides({"model.lr": option})
    parsed, written = (
        parsing.OverridesParser.create().parse_override(one) for one in (override, f"+model.lr={value}")
    )
    assert (parsed.get_key_element(), parsed.value()) == (written.get_key_element(), written.value())


def test_other_overrides_are_those_of_each_job_and_the_last_one_counts() -> None:
    found = space("db=mysql", "~cache", "x=choice(1,2)", "db=other", "x=range(3,5)")
    assert found.form == {"x": {"_type": "randint", "_value": [3, 5]}}
    assert found.overrides({"x": 4}) == ["db=other", "~cache", "x=4"]


def test_sweep_without_a_choice_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to search: no override is a sweep"):
        space("x=1")


SCRIPT = """
import os
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base=None, config_path=".", config_name="config")
def train(config):
    number = HydraConfig.get().job.num
    Path(config.folder, f"job-{number}").write_text(os.environ.get("LAUNCHER", ""))
    if config.waits and number in (0, 2):  # the first job waits for the third one
        with open(Path(config.folder, "met"), "r" if number == 0 else "w"):
            pass
    if number == config.broken:
        raise RuntimeError("planted")
    return {"default": config.x ** 2, "other": 1.0}

train()
"""
CONFIG = """
defaults: [_self_, {override hydra/sweeper: pitchpipe}]
folder: ???
x: 0
waits: false
broken: null
hydra: {sweep: {dir: sweep}, sweeper: {n_trials: 3, tuner: Random, seed: 1, params: {x: "interval(-5, 5)"}}}
"""
LAUNCHER = """
import os
from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.config_store import ConfigStore

class OtherLauncher(BasicLauncher):
    def launch(self, job_overrides, initial_job_idx):
        os.environ["LAUNCHER"] = "other"
        return super().launch(job_overrides, initial_job_idx)

node = {"_target_": "hydra_plugins.other.OtherLauncher"}
ConfigStore.instance().store(group="hydra/launcher", name="other", node=node, provider="test")
"""


def sweep(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG)
    command = [sys.executable, "train.py", "-m", f"folder={folder}", *overrides]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def trials(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns the trials of the sweep."""
    return lambda: json.loads(pitchpipe_run(tmp_path, "export", "./sweep/pitchpipe"))["trials"]


def test_next_job_starts_as_soon_as_one_has_failed_if_errors_are_caught(
    tmp_path: Path, trials: Callable[..., Any]
) -> None:
    os.mkfifo(tmp_path / "met")
    # Job 0 ends once job 2 has begun, in the place of job 1.
    done = sweep(tmp_path, "waits=true", "broken=1", "hydra.sweeper.catch=true", "hydra.sweeper.n_jobs=2")
    assert done.returncode == 0, done.stderr
    assert [trial["status"] for trial in trials()] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


def test_sweep_continues_in_its_folder_with_any_launcher(tmp_path: Path, trials: Callable[..., Any]) -> None:
    (tmp_path / "hydra_plugins").mkdir()
    (tmp_path / "hydra_plugins" / "other.py").write_text(LAUNCHER)
    for count, launcher in ((2, "basic"), (3, "other")):
        done = sweep(tmp_path, f"hydra.sweeper.n_trials={count}", f"hydra/launcher={launcher}")
        assert done.returncode == 0, done.stderr
    assert "no further job: all 3 trials are made" in done.stdout
    assert [(tmp_path / f"job-{number}").read_text() for number in range(3)] == ["", "", "other"]
    best = min(trials(), key=lambda trial: trial["final"]["default"])
    written = (tmp_path / "sweep" / "optimization_results.yaml").read_text()
    assert f"best_value: {best['final']['default']}" in written
    assert f"x: {best['parameters']['x']}" in written


def test_launcher_that_keeps_processes_for_later_jobs_does_not_hold_up_the_sweep(
    tmp_path: Path, trials: Callable[..., Any]
) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = sweep(tmp_path, "hydra/launcher=joblib", "hydra.sweeper.n_jobs=2", "hydra.sweeper.n_trials=2")
    assert done.returncode == 0, done.stderr
    assert [trial["status"] for trial in trials()] == ["SUCCEEDED"] * 2


def test_error_of_a_job_ends_the_sweep(tmp_path: Path, trials: Callable[..., Any]) -> None:
    done = sweep(tmp_path, "broken=1")
    assert done.returncode == 1
    assert "job 1 failed" in done.stderr
    assert "planted" in done.stderr
    assert [trial["status"] for trial in trials()] == ["SUCCEEDED", "FAILED"]
