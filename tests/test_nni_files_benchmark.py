"""The tables of NNI's own files: that each is made, for files made up here; the real ones need its sources."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run

from .benchmark_modules import benchmark_modules
from .dispatcher_threads import dispatchers_on_threads

CONFIG = """\
searchSpace: {x: {_type: choice, _value: [1, 2]}}
trialCommand: python train.py
trialConcurrency: 2
tuner: {name: GridSearch}
trainingService: {platform: %s}
"""
OLD = "trainingServicePlatform: local\nmultiPhase: true\nsearchSpacePath: a.json\ntrial: {command: python train.py}\n"
TRAIN = "import nni\nnni.report_final_result(nni.get_next_parameter()['x'])\n"
SPACE = {"x": {"_type": "choice", "_value": [1, 2]}}
LAUNCH = """\
from nni.experiment import Experiment
experiment = Experiment("local")
experiment.config.trial_command = 'python model.py'
experiment.config.search_space = {"x": {"_type": "choice", "_value": [1, 2]}}
experiment.config.tuner.name = "GridSearch"
experiment.config.trial_concurrency = 2
experiment.run(8080)
"""
UNIT_TEST = (
    "import nni\ndef test_batch(): assert nni.dump(1) == '1'\ndef test_other(): assert nni.dump(1) == '2'\n"
)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder laid out as NNI's sources."""
    files = {
        "examples/one/config.yml": CONFIG % "local",
        "examples/one/remote.yml": CONFIG % "remote",
        "examples/one/old.yml": OLD,
        "examples/one/a.json": json.dumps(SPACE),
        "examples/one/train.py": TRAIN,
        "examples/heavy/config.yml": CONFIG % "local",
        "examples/heavy/train.py": "import tensorflow_absent\n",
        "examples/two/launch.py": LAUNCH,
        "examples/two/model.py": "import torch_absent\n",
        "test/ut/sdk/test_utils.py": UNIT_TEST,
        "test/ut/sdk/test_version.py": "raise SystemExit\n",
    }
    for name, text in files.items():
        path = tmp_path / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "sources"


@pytest.fixture
def tables(tree: Path) -> Iterator[Any]:
    """Return a function that imports a module of the tables."""
    with benchmark_modules(tree / "benchmarks") as module:
        yield lambda name: module(f"nni_tables.{name}")


@pytest.fixture
def verbs_here(
    tables: Any, forked_agents: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the verbs of Pitchpipe and nnictl in this process; scripts have processes of their own."""
    dispatchers_on_threads(monkeypatch)
    place = tables("place")
    started = place.Place.run

    def run_here(
        self: Any, words: Sequence[str], folder: Path | None = None, patience_s: float = 60.0
    ) -> Any:
        if words[0] != "nnictl" and words[3:4] != ["pitchpipe"]:
            return started(self, words, folder, patience_s)
        with monkeypatch.context() as patch:
            patch.chdir(folder or self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            code = run(list(words[1:] if words[0] == "nnictl" else words[4:]))
        return place.Ran(code, "".join(capsys.readouterr()))

    monkeypatch.setattr(place.Place, "run", run_here)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("verbs_here")
def test_every_table_is_made_and_nothing_is_written_to_the_sources(sources: Path, tables: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in sources.rglob("*")}
    configs = list(tables("configs").configs(sources))
    assert "| NNI 2 and 3 | 2 | 3 |" in configs
    assert "| NNI 1 | 1 | `multiPhase: true` | refuses it, too |" in configs
    assert "| NNI 2 and 3 | 1 | another platform than `local` | supports most of them |" in configs

    tests = list(tables("unit_tests").unit_tests(sources))
    assert any(line.startswith("| sdk/test_utils | 1 | 2 | test_other: AssertionError") for line in tests)
    assert "| sdk/test_version | not run | | NNI's internals: versions in serialized models |" in tests

    examples = list(tables("projects").examples(sources, 60.0))
    assert "| examples/one/config.yml | python train.py | DONE: 2 SUCCEEDED |" in examples
    assert "| 1 more | need tensorflow_absent | not run |" in examples

    scripts = list(tables("projects").scripts(sources, 60.0))
    stand_in = "a stand-in: model.py needs torch_absent"
    assert f"| examples/two/launch.py | {stand_in} | 0 | DONE: 2 SUCCEEDED |" in scripts
    assert {path: path.stat().st_mtime_ns for path in sources.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_lines_of_nnictl_are_tried_on_a_running_experiment(sources: Path, tables: Any) -> None:
    lines = ("experiment status ID", "experiment save ID", "stop ID")
    rows = list(tables("command_lines").command_lines(sources, lines))
    assert [row.split(" | ")[1] for row in rows[1:]] == ["0", "2", "0"]


def test_folder_that_is_not_nnis_is_refused(tree: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(tree / "benchmarks" / "nni_files.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has neither examples nor test: give the folder of NNI's sources" in done.stderr
