"""Advice that reaches a Python caller names Python: no option and no verb where a call does the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitchpipe import Experiment
from pitchpipe.store import FolderError, FolderExistsError
from pitchpipe.store.paths import default_directory

# Rooms whose errors reach callers of `pitchpipe.Experiment`, `Search`, `minimize` and the adapters.
ROOMS = (
    *(
        "protocol",
        "search_space",
        "plugins",
        "sdk",
        "tuners",
        "assessors",
        "trial_agent",
        "runner",
        "dispatcher",
    ),
    *("store", "config", "executors", "telling", "manager", "pitchpipe", "integrations"),
)
COMMAND = re.compile(
    r"pitchpipe (?:cluster|create|delete|doctor|export|import|init|list|ray|report|resume|run|slurm|status|stop)\b"
    r"|pitchpipe (?:trial|trials|ui|update|validate)\b|(?<![\w-])--[a-z][a-z_-]+(?=[ ,.;:)`]|$)"
)
# Files whose sentences name commands, and why a Python caller does not read them, or can do nothing else.
ALLOWED = {
    "config/config_files.py": "about --set, which Python does not have",
    "config/cross_checks.py": "no call makes a cluster",
    "config/problems.py": "about --set, which Python does not have",
    "config/root_fields.py": "the reference of the config",
    "dispatcher/dispatcher_settings.py": "about the words that the manager starts it with",
    "executors/clusters/allocation.py": "in a job that `pitchpipe slurm submit` made",
    "executors/clusters/slurm_job.py": "from `pitchpipe slurm submit`",
    "executors/clusters/ssh_cluster.py": "from `pitchpipe cluster up`",
    "executors/private_ray/supervisor.py": "no call ends the private Ray",
    "executors/ray/join.py": "a command of Ray",
    "manager/control/extension.py": "options for verbs, which ask for them",
    "manager/control/steering.py": "from the control socket: verbs, pages, HTTP",
    "manager/earlier_results.py": "about the file of somebody's search, which a verb writes",
    "manager/startable.py": "no call shows the limits of a machine",
    "pitchpipe/replay.py": "a verb writes the file; from a folder no command is needed",
    "store/errors.py": "no call deletes an experiment",
    "store/folder.py": "no call deletes or lists experiments; `Experiment` says `experiment_id` itself",
    "store/paths.py": "a line of the log about how verbs find an experiment",
    "trial_agent/__main__.py": "the usage of a program that the executor starts",
    "trial_agent/shell_patterns.py": "patterns of shell commands",
}


def sentences(file: Path) -> Iterator[str]:
    """Yield the texts of a module that name a command or an option, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    told = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
        if is_text and COMMAND.search(node.value) and " " in node.value:
            yield node.value


def test_commands_are_named_only_where_no_call_does_it(tree: Path) -> None:
    files = (file for room in ROOMS for file in (tree / room).rglob("*.py"))
    found = {file.relative_to(tree).as_posix() for file in files if any(sentences(file))}
    assert found == ALLOWED.keys()


def test_folder_that_exists_is_named_by_its_argument(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    experiment = Experiment(
        "true",
        {"x": {"_type": "uniform", "_value": [0, 1]}},
        platform="local",
        directory=tmp_path,
        experiment_id="taken",
    )
    with pytest.raises(FolderExistsError) as raised:
        experiment.run()
    assert "experiment_id" in str(raised.value)
    assert COMMAND.search(str(raised.value)) is None


def test_directory_that_cannot_be_made_has_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    experiment = Experiment("true", space, platform="local", directory=tmp_path / "file" / "runs")
    with pytest.raises(FolderError, match="name another directory") as raised:
        experiment.run()
    assert "--" not in str(raised.value)
    monkeypatch.setenv("PITCHPIPE_DIR", "~nobody-of-this-name/runs")
    with pytest.raises(FolderError, match="there is no user") as raised:
        default_directory()
    assert "--" not in str(raised.value)
