"""Every command that the pages show works: it runs here, or is parsed here and run by the test that is named here."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement

from pitchpipe.cli.app import pitchpipe, run

from .dispatcher_threads import dispatchers_on_threads

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
IDS = ("k3x9a2bq", "nightly", "digits")  # the experiments of the pages
TRIAL = "Xy3fA"
CONFIG = """\
search_space:
  lr: {_type: uniform, _value: [0, 1]}
trial_command: sh trial.sh
max_trial_number: 18
tuner: {name: Random}
training_service: {platform: local}
"""
FILES = {
    "experiment.yml": CONFIG,
    "config.yml": "trainingServicePlatform: local\nsearchSpace: {}\ntrial: {command: sh trial.sh}\n",
    "wider.yml": "lr: {_type: uniform, _value: [0, 2]}\n",
    "results.json": "[]",
    "trials.json": "[]",
    "train.py": "import pitchpipe\nlr = pitchpipe.get_next_parameter().get('lr', 0.1)\n",
    "trial.sh": 'echo "{\\"final\\": 1}" >> "$PITCHPIPE_REPORTS"\n',
}
# What runs in the foreground, changes a running experiment, deletes one or asks questions has a test of its own.
ELSEWHERE = {
    "cluster": "executors/clusters/test_ssh_cluster.py",
    "create": "cli/test_background.py",
    "delete": "cli/test_compare_and_delete.py",
    "import": "cli/test_steering_verbs.py",
    "init": "cli/test_init.py",
    "ray": "cli/test_sentences.py",
    "mcp": "cli/test_mcp.py",
    "resume": "cli/test_background.py",
    "run": "cli/test_run.py",
    "status --best-by": "cli/test_fronts.py",
    "slurm": "executors/clusters/test_slurm_job.py",
    "stop": "cli/test_stop.py",
    "top": "cli/test_top.py",
    "trial add": "cli/test_steering_verbs.py",
    "trial kill": "cli/test_background.py",
    "trial show k3x9a2bq 2 --schedule": "cli/test_schedules.py",  # of a population
    "trial rerun": "cli/test_rerun.py",
    "ui": "server/pages/test_run.py",
    "trials --families": "cli/test_repeats.py",
    # of several objectives
    'trials --where "value.latency_ms': "cli/test_fronts.py",
    # of a space with a nested choice
    'trials --where "parameters.model._name': "store/reading/test_trial_query.py",
    "update": "cli/test_steering_verbs.py",
    "doctor --ray": "cli/test_doctor_and_try.py",
}


def shown(start: str) -> list[str]:
    """Return the commands on indented lines that begin with these words, without what a page says about them."""
    lines = {line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()}
    commands = {re.split(r"\s{2,}", line.strip())[0] for line in lines if line.startswith("    ")}
    parts = {part.strip() for command in commands for part in command.split(" && ")}
    return sorted(part for part in parts if part.startswith(start))


def test_commands_are_found() -> None:
    assert len(shown("pitchpipe ")) > 60
    assert len(shown("make ")) > 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the files that the commands name."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "experiments"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", shown("pitchpipe "))
def test_command_is_parsed(command: str, folder: Path) -> None:
    words = shlex.split(re.split(" >>? ", command)[0])[1:]
    found: click.Command = pitchpipe
    context = found.make_context("pitchpipe", words)
    while isinstance(found, click.Group):
        name, found, words = found.resolve_command(context, [*context._protected_args, *context.args])
        context = found.make_context(name, words, parent=context)


def has_test_elsewhere(command: str) -> bool:
    return any(command.startswith(f"pitchpipe {words}") for words in ELSEWHERE)


def test_tests_of_the_other_commands_exist() -> None:
    assert [file for file in ELSEWHERE.values() if not (ROOT / "tests" / file).exists()] == []


@pytest.mark.slow
def test_commands_run(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    forked_agents: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dispatchers_on_threads(monkeypatch)
    for experiment in IDS:
        assert run(["run", "experiment.yml", "--experiment-id", experiment, "--quiet"]) == 0
    capsys.readouterr()
    assert run(["export", IDS[0]]) == 0
    known = json.loads(capsys.readouterr().out)["trials"][0]["id"]
    for command in shown("pitchpipe "):
        words = shlex.split(re.split(" >>? ", command)[0].replace(TRIAL, known))[1:]
        if not has_test_elsewhere(command):
            assert run(words) == 0, (command, *capsys.readouterr())


@pytest.mark.parametrize("command", shown("make "))
def test_make_knows_its_targets(command: str) -> None:
    words = ["make", "--dry-run", "--always-make", "READY=", *shlex.split(command.split(" #")[0])[1:]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_peers_are_pinned() -> None:
    """`make peers` is not run here: it downloads a gigabyte. Its recipe is parsed above, and its pins here."""
    lines = (ROOT / "benchmarks" / "peers.txt").read_text().splitlines()
    pins = [Requirement(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]
    assert {pin.name for pin in pins if str(pin.specifier).startswith("==")} >= {"optuna", "nni", "ray"}


PYTHON = [command for start in (".venv/bin/python ", "python -P ") for command in shown(start)]


@cache
def help_of(*program: str) -> str:
    command = [sys.executable, *program, "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("command", PYTHON)
def test_program_has_the_options(command: str) -> None:
    words = shlex.split(command)[1:]
    end = next(index for index, word in enumerate(words) if word.endswith(".py") or words[index - 1] == "-m")
    known = help_of(*words[: end + 1])
    assert [word for word in words[end + 1 :] if word.startswith("--") and word not in known] == []
