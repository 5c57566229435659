"""`pitchpipe init`: an experiment.yml from a script."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.script_facts import guessed_spec, read_script
from pitchpipe.config import ExperimentConfig, load_config

SCRIPT = """\
import pitchpipe
DEFAULTS = {"lr": 0.01, "units": 64, "solver": {"_name": "sgd"}}
parameters = {**DEFAULTS, "act": "relu", **pitchpipe.get_next_parameter()}
print(parameters["lr"], parameters.get("drop", 0.0), parameters["units"])
pitchpipe.report_final_result(parameters["lr"])
"""


def written(path: str | Path = "experiment.yml") -> ExperimentConfig:
    """Return what was written; constructing its tuner each time would take most of the time."""
    return load_config(path, check_plugins=False)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a training script in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    return Path("train.py")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p = get_next_parameter()\nprint(p['a'], p.get('b', 3))", {"a": None, "b": 3}),
        ("p = {'a': 1}\np.update(nni.get_next_parameter())\np['b']", {"a": 1, "b": None}),
        ("run({'a': .5, **pitchpipe.get_next_parameter()})", {"a": 0.5}),
        ("get_next_parameter()['a']", {"a": None}),
        ("D = {'a': 1}\np = {**D}\nother['b']", {}),
        (
            "a, D = 1, 2\nb = 2\nc = .5\nd = 'x'\nglobals().update(get_next_parameter())\ne = 3",
            {"b": 2, "c": 0.5},
        ),
        ("b = 2\nother().update(get_next_parameter())", {}),
        ("p: dict = {'a': f(1)}\nq = {**p, **get_next_parameter()}", {"a": None}),
    ],
)
def test_parameters_of_a_script(text: str, found: dict[str, Any]) -> None:
    assert read_script(text).parameters == found


@pytest.mark.parametrize(
    ("name", "default", "spec"),
    [
        ("subsample", 1.0, "uniform:0.1:1"),
        ("max-features", 0.3, "uniform:0.1:1"),
        ("colsample_bytree", 0.08, "uniform:0.04:1"),
        ("bagging_fraction", 0.8, "uniform:0.1:1"),
        ("l1-ratio", 0.5, "uniform:0.1:1"),
        ("fraction", 2.0, "loguniform:0.02:200"),
        ("iteration_scale", 0.5, "loguniform:0.005:50"),
        ("max_features", 4, "randint:1:17"),
        ("Learning-Rate", 0.1, "loguniform:0.001:1"),
        ("lr", 1.0, "loguniform:0.01:1"),
        ("eta", 3.0, "loguniform:0.03:300"),
        ("theta", 0.1, "loguniform:0.001:10"),
        ("C", 1.0, "loguniform:0.01:100"),
        ("momentum", 0.9, "uniform:0:0.99"),
        ("momentum", 0.0, "uniform:0:0.99"),
    ],
)
def test_a_name_that_says_so_limits_the_range_to_one(name: str, default: Any, spec: str) -> None:
    assert guessed_spec(default, name=name) == spec


def test_fraction_of_one_can_be_tried_right_after_init(call: Callable[..., Any], script: Path) -> None:
    script.write_text(
        "import argparse, pitchpipe\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--subsample', type=float, default=1.0)\n"
        "share = p.parse_args().subsample\n"
        "assert 0 < share <= 1, share\n"
        "pitchpipe.report_final_result(share)\n"
    )
    assert call("init", script, "--yes").code == 0
    tried = call("validate", "experiment.yml", "--try")
    assert tried.code == 0, tried.out + tried.err


def test_init_proposes_ranges_around_the_defaults(call: Callable[..., Any], script: Path) -> None:
    called = call("init", script, "--yes", "--maximize", "--trials", 7)
    assert called.code == 0, called.err
    config = written()
    assert config.search_space == {
        "lr": {"_type": "loguniform", "_value": [0.0001, 1]},
        "units": {"_type": "randint", "_value": [16, 257]},
        "act": {"_type": "choice", "_value": ["relu"]},
        "drop": {"_type": "uniform", "_value": [0, 1]},
    }
    assert config.trial_command == "python train.py"
    assert config.experiment_name == Path.cwd().name  # most scripts are called train.py
    assert config.defaults == {"lr": 0.01, "units": 64, "act": "relu", "drop": 0.0}
    assert (config.max_trial_number, config.objectives[0].direction) == (7, "maximize")
    assert "left out, because it is nested: solver" in called.out
    assert "act has only one option" in called.out
    assert "report_intermediate_result" in called.out
    assert "report_final_result" not in called.out


@pytest.mark.parametrize(
    ("library", "arguments", "missing"),
    [("keras", "", False), ("keras", "final=False", True), ("lightgbm", "", True), ("catboost", "", True)],
)
def test_callback_reports_by_itself(library: str, arguments: str, missing: bool) -> None:
    module = f"pitchpipe.integrations.{library}"
    facts = read_script(f"from {module} import PitchpipeCallback\nfit([PitchpipeCallback({arguments})])")
    assert (facts.reports_intermediate, facts.reports_final) == (True, not missing)


def test_init_says_when_a_parameter_is_not_looked_up(call: Callable[..., Any], script: Path) -> None:
    called = call("init", script, "--yes", "--param", "momentum=uniform:0:1")
    assert called.code == 0
    assert "the script does not look up momentum" in called.out
    assert "look up lr" not in called.out
    assert "the script's defaults are not trial 0: the script has no default for momentum" in called.out
    assert list(written().search_space or {}) == [
        "lr",
        "units",
        "act",
        "drop",
        "momentum",
    ]


OPTIONS = """\
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--units", type=int, default=16)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--n-estimators", type=int, default=100)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--data", default="data/train.csv")
"""


def test_init_leaves_budgets_and_seeds_at_their_defaults(call: Callable[..., Any], script: Path) -> None:
    script.write_text(OPTIONS)
    called = call("init", script, "--yes")
    assert "not tuned: n-estimators, seed; to tune one: --param NAME=..." in called.out
    assert "left alone, since their defaults suggest no range: data" in called.out
    assert "one option" not in called.out
    config = written()
    assert config.defaults == {"lr": 0.05, "batch-size": 64, "units": 16, "momentum": 0.9}
    assert list(config.search_space or {}) == list(config.defaults)
    comment = "  # n-estimators is not tuned (a larger budget always wins): it stays 100\n"
    assert comment in Path("experiment.yml").read_text()


def test_init_changes_what_it_proposes_by_name(call: Callable[..., Any], script: Path) -> None:
    script.write_text(OPTIONS)
    words = [
        "--param",
        "n_estimators=choice:50,100",
        "--fix",
        "batch_size=32",
        "--fix",
        "units",
        "--without",
        "lr",
    ]
    called = call("init", script, "--yes", *words)
    assert called.code == 0, called.err
    config = written()
    assert config.defaults == {"batch-size": 32, "momentum": 0.9, "n-estimators": 100}
    assert (config.search_space or {})["batch-size"]["_value"] == [32]
    assert "  # units is not tuned: it stays 16\n" in Path("experiment.yml").read_text()


def test_init_says_why_the_defaults_do_not_run(call: Callable[..., Any], script: Path) -> None:
    called = call("init", script, "--yes", "--param", "lr=uniform:1:2")
    assert "the script's defaults are not trial 0: lr: 0.01 is outside [1, 2]" in called.out
    assert written().defaults is None


PARSER = """\
import argparse, pitchpipe
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--early-stopping", action="store_true")
arguments = parser.parse_args()
pitchpipe.report_final_result(arguments.lr)
"""


def test_switch_of_a_parser_is_off_by_default_and_left_alone(call: Callable[..., Any], script: Path) -> None:
    script.write_text(PARSER)
    called = call("init", script, "--yes")
    assert "left alone: early-stopping; to tune one: --param NAME=choice:true,false" in called.out
    assert written().defaults == {"lr": 0.05}
    called = call("init", script, "--yes", "--force", "--param", "early_stopping=choice:true,false")
    assert written().defaults == {"lr": 0.05, "early-stopping": False}
    assert "not trial 0" not in called.out


@pytest.mark.parametrize("words", [("--fix", "nothing=1"), ("--param", "nothing=uniform:0:1")])
def test_parameter_that_the_parser_would_refuse_is_refused(
    call: Callable[..., Any], script: Path, words: tuple[str, str]
) -> None:
    script.write_text(PARSER)
    called = call("init", script, "--yes", *words)
    assert called.code == 2
    assert "the script has no option for nothing; it has: lr, early-stopping" in called.err
    assert not Path("experiment.yml").exists()
    assert call("init", script, "--yes", *words, "--command", "sh run.sh {args}").code == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parse_args()", "parse_known_args()[0]"),
        ("ArgumentParser()", "ArgumentParser(parents=[base])"),
        ('"--early-stopping"', "*names"),
        ("argparse.ArgumentParser()", "made()"),
    ],
)
def test_parser_with_options_that_cannot_be_read_refuses_nothing(
    call: Callable[..., Any], script: Path, old: str, new: str
) -> None:
    script.write_text(PARSER.replace(old, new))
    called = call("init", script, "--yes", "--fix", "nothing=1")
    assert (called.code, "the script does not look up nothing" in called.out) == (0, True)


def test_init_names_what_the_command_line_must_have(call: Callable[..., Any], script: Path) -> None:
    more = "parser.add_argument('folder')\nparser.add_argument('extra', nargs='?')\n"
    more += "parser.add_argument('--data', required=True)\n"
    script.write_text(PARSER.replace("arguments =", f"{more}arguments ="))
    said = "the script requires folder, data: add to trial_command in the file"
    assert said in call("init", script, "--yes").out
    assert said not in call("init", script, "--yes", "--force", "--command", "python train.py . {args}").out


@pytest.mark.parametrize(
    ("line", "direction", "words"),
    [
        (
            "fit(PitchpipeCallback('val_accuracy'))",
            "maximize",
            "higher results are better, since the script reports ",
        ),
        (
            "fit(PitchpipeCallback(monitor='eval_loss'))",
            "minimize",
            "lower results are better, since the script",
        ),
        ("pitchpipe.report_final_result(auc)", "maximize", "reports auc; use --minimize if lower is better"),
        (
            "pitchpipe.report_final_result({'val_acc': 1, 's': 2})",
            "maximize",
            "since the script reports val_acc;",
        ),
        ("pitchpipe.report_final_result(value)", "minimize", "lower results are better; use --maximize if"),
    ],
)
def test_direction_is_that_of_the_metric(
    call: Callable[..., Any], script: Path, line: str, direction: str, words: str
) -> None:
    script.write_text(f"lr = {{'lr': 0.1, **pitchpipe.get_next_parameter()}}['lr']\n{line}\n")
    called = call("init", script, "--yes")
    assert words in called.out
    (objective,) = written().objectives
    assert objective.direction == direction
    assert objective.name == ("val_acc" if "{'val_acc'" in line else "default")
    given = call("init", script, "--yes", "--force", "--minimize")
    assert "assuming" not in given.out
    assert written().objectives[0].direction == "minimize"


def test_what_belongs_to_the_task_or_the_machine_is_not_tuned(call: Callable[..., Any], script: Path) -> None:
    found = {"eta": 0.3, "num_classes": 10, "nthread": 4, "objective": "multi:softmax"}
    script.write_text(f"p = {found}\np.update(pitchpipe.get_next_parameter())\n")
    called = call("init", script, "--yes")
    assert list(written().search_space or {}) == ["eta"]
    assert "not tuned: num_classes, nthread, objective" in called.out


def test_script_that_reads_nothing_is_told_which_calls_it_needs(
    call: Callable[..., Any], script: Path
) -> None:
    script.write_text("import pitchpipe\n")
    called = call("init", script, "--yes")
    assert called.code == 2
    assert (
        "add some, such as --param lr=loguniform:1e-5:1e-1\nadd to train.py:\n    parameters = " in called.err
    )
    script.write_text("import numpy\n")
    assert "add to train.py (import pitchpipe):\n" in call("init", script, "--yes").err


def test_init_by_options_alone(call: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "shell.yml"
    words = ["--command", "sh run.sh", "--param", "x=quniform:0:1:0.25", "--param", "k=choice:a,2,true"]
    called = call("init", *words, "--tuner", "random", "--assessor", "Medianstop", "-o", path)
    assert called.code == 0, called.err
    config = written(path)
    assert config.search_space == {
        "x": {"_type": "quniform", "_value": [0, 1, 0.25]},
        "k": {"_type": "choice", "_value": ["a", 2, True]},
    }
    assert config.trial_command == "sh run.sh"
    assert (config.tuner.name or "").lower() == "random"
    assert config.assessor is not None
    assert "assuming that lower results are better" in called.out


def test_init_takes_the_options_of_a_command_line_where_nothing_is_looked_up(
    call: Callable[..., Any], script: Path
) -> None:
    script.write_text(
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('-l', '--learning-rate', type=float, default=0.1)\n"
        "p.add_argument('--act', choices=['relu', 'tanh'])\n"
        "p.add_argument('--data')\n"
    )
    called = call("init", script)
    assert called.code == 0
    space = written().search_space or {}
    assert list(space) == ["learning-rate", "act"]
    assert space["act"]["_value"] == ["relu", "tanh"]
    assert written().trial_command == "python train.py {args}"
    assert "parse_args" not in called.out
    assert "get_next_parameter" not in called.out
    by_hand = call("init", script, "--command", "python train.py --fast", "--force")
    assert "pitchpipe.parse_args(parser)       # in place of parser.parse_args()" in by_hand.out


@pytest.mark.parametrize("line", ["a = pitchpipe.parse_args(p)\n", "a = parse_args(p)\n"])
def test_init_sees_that_a_script_parses_its_parameters(
    call: Callable[..., Any], script: Path, line: str
) -> None:
    script.write_text("p = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)\n" + line)
    called = call("init", script)
    assert (called.code, "parse_args(parser)" in called.out) == (0, False)


def test_init_writes_the_command_relative_to_the_file(call: Callable[..., Any], script: Path) -> None:
    Path("configs").mkdir()
    assert call("init", script, "--yes", "-o", "configs/e.yml").code == 0
    assert written("configs/e.yml").trial_command == "python ../train.py"


def test_init_asks_on_a_terminal(script: Path) -> None:
    ours, its = pty.openpty()
    answers = ["uniform:0:2", "", "-", "what", "choice:0.1,0.2", "n", "higher", "12", "", ""]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pitchpipe", "init", str(script)],
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(its)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    said, _ = process.communicate(timeout=60)
    os.close(ours)

    assert process.returncode == 0, said
    assert "unknown type 'what'" in said
    config = written()
    assert config.search_space == {
        "lr": {"_type": "uniform", "_value": [0, 2]},
        "units": {"_type": "randint", "_value": [16, 257]},
        "drop": {"_type": "choice", "_value": [0.1, 0.2]},
    }
    assert (config.max_trial_number, config.trial_concurrency) == (12, 2)
    assert config.objectives[0].direction == "maximize"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_false_that_the_command_cannot_pass_is_not_tuned_and_warned_of(
    call: Callable[..., Any], script: Path, encoding: str
) -> None:
    options = [
        "'--bn', action=argparse.BooleanOptionalAction, default=True",
        "'--depth', type=int, default=5",
    ]
    added = "".join(f"p.add_argument({one})\n" for one in ("'--fast', action='store_true'", *options))
    text = f"import argparse\np = argparse.ArgumentParser()\n{added}print(p.parse_args())\n"
    script.write_text(text, encoding=encoding)
    assert call("init", script, "--yes").code == 0
    found = written()
    assert list(found.search_space or {}) == ["depth"]
    assert "# bn is not tuned: it stays true" in Path("experiment.yml").read_text()

    specs = ["bn=choice:true,false", "fast=choice:true,false", "depth=choice:null,3"]
    call("init", script, "--yes", "--force", *(word for spec in specs for word in ("--param", spec)))
    depth, bn = (line for line in call("validate", "experiment.yml").err.splitlines() if "warning" in line)
    assert "{args} passes nothing for bn: false, so train.py would use its default True: " in bn
    assert "{args} passes nothing for depth: null, so train.py would use its default 5: " in depth
