"""What `init` writes for each kind of script, and that trials get their parameters so."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.script_facts import higher_is_better, read_script
from pitchpipe.cli.verbs.config_draft import fitting
from pitchpipe.config import load_config
from pitchpipe.trial_agent import usable_bytes, usable_cpus

from .conftest import Call
from .init_kinds import ASK, HYDRA_LAST, KINDS, Kind


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PITCHPIPE_GPUS", "")
    return tmp_path


def drafted(call: Call, script: str, *options: str) -> dict[str, Any]:
    """Write a script, and a config for it; return what `init` says."""
    Path("train.py").write_text(script)
    called = call("init", "train.py", "--yes", "--json", "--force", *options)
    assert called.code == 0, called.err
    return json.loads(called.out)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_kind_of_script(call: Call, kind: Kind) -> None:
    for name, text in kind.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    said = drafted(call, kind.script, *kind.options)
    found = load_config("experiment.yml", check_plugins=False)
    space = {name: (item["_type"], *item["_value"]) for name, item in (found.search_space or {}).items()}
    assert space == kind.space
    assert found.trial_command == kind.command
    if kind.defaults is not None:
        assert found.defaults == kind.defaults
    calls = said["missing_calls"]
    assert tuple(calls[: len(kind.adds)]) == kind.adds
    assert all(line.startswith("pitchpipe.report_") for line in calls[len(kind.adds) :])


REPORTS = "pitchpipe.report_final_result"
CLICK = f"""\
import click, pitchpipe
@click.group()
def cli(): ...
@cli.command()
@click.option("--rate", default=0.5)
@click.option("--bias/--no-bias", default=True)
def train(rate, bias):
    {REPORTS}({{"accuracy": rate + bias}})
cli()
"""
DATACLASS = f"""\
import pitchpipe
from dataclasses import dataclass
@dataclass
class Config:
    rate: float = 0.5
    bias: bool = True
config = Config()
{REPORTS}({{"accuracy": config.rate + config.bias}})
"""
DICT = f"""\
import pitchpipe
config = {{"rate": 0.5, "model": {{"bias": True}}}}
{REPORTS}({{"accuracy": config["rate"] + config["model"]["bias"]}})
"""
VARIABLES = f"""\
import pitchpipe
rate = 0.5
bias = True
{REPORTS}({{"accuracy": rate + bias}})
"""
HYDRA = f"""\
import hydra, pitchpipe
@hydra.main(version_base=None, config_path=".", config_name="config")
def train(config):
    {REPORTS}({{"accuracy": config.rate + config.model.bias}})
train()
"""
# Reads what Hydra would, and needs none.
LIKE_HYDRA = """\
import json, sys
def main(**places):
    values = dict(word.split("=", 1) for word in sys.argv[1:])
    class Node: ...
    config = Node()
    config.rate = float(values["rate"])
    config.model = Node()
    config.model.bias = json.loads(values["model.bias"])
    return lambda train: lambda: train(config)
"""


def tried(call: Call, script: str, *options: str) -> list[tuple[dict[str, Any], float]]:
    """Run two trials of a script as `init` says; return parameters and results."""
    drafted(call, script, "--trials", "2", "--tuner", "Random", *options)
    called = call("run", "experiment.yml", "--experiment-id", "mine", "--set", "seed=3", "--json")
    assert called.code == 0, called.err
    trials = json.loads(call("trials", "mine", "--json").out)
    return [(trial["parameters"], trial["final"]["accuracy"]) for trial in trials]


def edited(call: Call, script: str) -> str:
    """Return a script with the lines of `init` where it says."""
    lines = script.splitlines()
    first, *more = drafted(call, script)["missing_calls"][:-1]
    text, _, place = first.partition("   # ")
    if place.startswith("in place of "):
        return script.replace(f"= {place.removeprefix('in place of ')}", f"= {text}")
    at = int(place.removeprefix("below line "))
    return "\n".join([*lines[:at], text, *more, *lines[at:], ""])


def check(trials: list[tuple[dict[str, Any], float]], rate: str = "rate", bias: str = "bias") -> None:
    assert trials[0][0] == {rate: 0.5, bias: True}  # the defaults
    assert len({parameters[rate] for parameters, _ in trials}) == 2
    assert [result for _, result in trials] == [
        parameters[rate] + parameters[bias] for parameters, _ in trials
    ]


def test_trials_of_click(call: Call, directory: Path) -> None:
    check(tried(call, CLICK, "--param", "bias=choice:true,false"))


@pytest.mark.parametrize("script", [DATACLASS, DICT, VARIABLES], ids=["dataclass", "dict", "variables"])
def test_trials_of_constants_after_the_edit(call: Call, directory: Path, script: str) -> None:
    after = edited(call, script)
    assert after != script
    check(tried(call, after))


@pytest.mark.parametrize("is_real", [True, False], ids=["Hydra", "a stand-in"])
def test_trials_of_hydra(call: Call, directory: Path, folder: Path, is_real: bool) -> None:
    if is_real:
        pytest.importorskip("hydra")
    else:
        (folder / "hydra.py").write_text(LIKE_HYDRA)
    (folder / "config.yaml").write_text("rate: 0.5\nmodel: {bias: true}\n")
    trials = tried(call, HYDRA, "--param", "model.bias=choice:true,false")
    check(trials, bias="model.bias")
    assert load_config("experiment.yml", check_plugins=False).trial_command == (
        f"python train.py rate={{rate}} model.bias={{model.bias}} {HYDRA_LAST}"
    )


@pytest.mark.parametrize(
    ("source", "exit_code"),
    [
        (b"# -*- coding: latin-1 -*-\nNAME = 'Andr\xe9'\nLR = 0.01\n", 0),
        (b"NAME = 'Andr\xe9'\nLR = 0.01\n", 2),  # Python does not read it, either
        (b"LR = 0.01\ndef (\n", 2),
        (b"LR = 0.01\0\n", 2),
        (b"LR = " + b"(" * 500 + b")" * 500, 2),
    ],
    ids=["Latin-1", "Latin-1 without a line that says so", "a mistake", "NUL", "too deep"],
)
def test_source_in_other_encodings_and_with_mistakes(call: Call, source: bytes, exit_code: int) -> None:
    Path("train.py").write_bytes(source)
    assert call("init", "train.py", "--yes").code == exit_code
    assert Path("experiment.yml").exists() == (exit_code == 0)


@pytest.mark.parametrize(
    "expression",
    ["None", "f()", "9**9**9", "1 / 0", "'a' * 10**10", "[0.1]", "float('nan')", "10**30", "-0.1", "X", "lr"],
)
def test_default_without_a_range_is_left_alone(call: Call, expression: str) -> None:
    script = "import argparse\np = argparse.ArgumentParser()\nY = 1\n"
    script += f"p.add_argument('--lr', default={expression})\np.add_argument('--k', type=int, default=3)\n"
    drafted(call, script)
    assert list(load_config("experiment.yml", check_plugins=False).search_space or {}) == ["k"]


def test_required_options_and_commands_that_do_not_run_are_mentioned(call: Call) -> None:
    notes = drafted(call, KINDS["a group of click"].script)["notes"]
    assert [note for note in notes if "evaluate" in note]
    assert [note for note in notes if "requires data" in note]


def test_unknown_option_is_refused_if_all_are_known(call: Call) -> None:
    for name in ("click", "tyro", "typer"):
        Path("train.py").write_text(KINDS[name].script)
        assert call("init", "train.py", "--yes", "--fix", "nothing=1").code == 2
    for name in ("absl", "transformers"):
        assert "nothing" in drafted(call, KINDS[name].script, "--fix", "nothing=1")["parameters"]


def test_option_that_another_module_adds_is_not_refused(call: Call) -> None:
    script = "import argparse, far\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.01)\n"
    notes = drafted(call, f"{script}far.add_more(p)\np.parse_args()\n", "--fix", "nothing=1")["notes"]
    assert [note for note in notes if "add_more" in note]


def test_script_without_parameters_is_told_both_ways(call: Call) -> None:
    Path("train.py").write_text("print(sys.argv)\n")
    refused = call("init", "train.py", "--yes")
    assert refused.code == 2
    assert "{args}" in refused.err
    assert ASK in refused.err


def test_further_metrics_are_mentioned_and_the_first_is_optimised(call: Call) -> None:
    script = f"import pitchpipe\nLR = 0.01\nmetrics = {{'f1': a, 'loss': b, 'ms': c}}\n{REPORTS}(metrics)\n"
    notes = drafted(call, script)["notes"]
    (objective,) = load_config("experiment.yml", check_plugins=False).objectives
    assert (objective.name, objective.direction) == ("f1", "maximize")
    assert [note for note in notes if "loss, ms" in note]


@pytest.mark.parametrize(
    ("reported", "is_higher"),
    [
        ("metrics['val_loss']", False),
        ("float(result.accuracy)", True),
        ("loss.item()", False),
        ("{'default': auc, 'n': 1}", True),
        ("-loss", None),
        ("value", None),
    ],
)
def test_direction_follows_from_what_is_reported(reported: str, is_higher: bool | None) -> None:
    facts = read_script(f"import pitchpipe\npitchpipe.report_final_result({reported})")
    assert higher_is_better(facts.reports.metric) is is_higher


def test_concurrency_fits_the_machine(call: Call) -> None:
    drafted(call, "LR = 0.01\n")
    found = load_config("experiment.yml", check_plugins=False)
    assert found.trial_concurrency == fitting(usable_cpus(), usable_bytes())
    assert found.trial_gpu_number is None


def test_each_trial_of_a_script_for_gpus_gets_one(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITCHPIPE_GPUS", "0,1,2")
    drafted(call, "import torch\nLR = 0.01\n")
    found = load_config("experiment.yml", check_plugins=False)
    assert (found.trial_concurrency, found.trial_gpu_number) == (3, 1)
    drafted(call, "LR = 0.01\n")
    assert load_config("experiment.yml", check_plugins=False).trial_gpu_number is None


def test_guess_of_the_direction_is_the_default_of_its_question() -> None:
    Path("train.py").write_text("LR = 0.01\nimport pitchpipe\npitchpipe.report_final_result(accuracy)\n")
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", "init", "train.py"],
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(its)
    os.write(ours, b"\n" * 6)
    said, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, said
    assert load_config("experiment.yml", check_plugins=False).objectives[0].direction == "maximize"
