"""Asking a dispatcher about the tuner and the assessor, with commands that stand for it; and the trackers."""

from __future__ import annotations

import os
import select
import shlex
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.config import (
    ConfigError,
    ExperimentConfig,
    check_plugins,
    load_config,
    tracker_classes,
    with_plugins_checked,
)
from pitchpipe.config.plugins import Checker, PluginCheck, check_parameters

from ..dispatcher_threads import CheckerHere
from .refusals import made

TEXT = """\
search_space:
  lr: {_type: uniform, _value: [0, 1]}
trial_command: python train.py
tuner:
  name: TPE
  classArgs:
    gamma: 2
"""
# Decodes its configuration like a dispatcher does, prints `answer(config)`.
STUB = """
import base64, json, os, sys
config = json.loads(base64.b64decode(sys.stdin.read()))
print("a plug-in talks")
print(json.dumps({{"problems": {answer}}}))
print("and talks")
"""


def stub(answer: str) -> list[str]:
    return [sys.executable, "-c", STUB.format(answer=answer)]


def asked(parameters: dict[str, Any], command: list[str], timeout: float = 60.0) -> PluginCheck:
    with Checker(command) as checker:
        return check_parameters(parameters, checker, timeout)


def config_at(path: Path, command: list[str]) -> ExperimentConfig:
    with Checker(command) as checker:
        return load_config(path, checker=checker)


def problems_of(folder: Path, command: list[str], text: str = TEXT) -> list[str]:
    (folder / "e.yml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        config_at(folder / "e.yml", command)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def told(*path: str) -> str:
    """Return an answer with one problem."""
    return f'[{{"path": {list(path)}, "message": "told", "hint": "why"}}]'


SPACE_FILE = "search_space_file: space.json\ntrial_command: x\n"
LIMITS = "objectives: [{name: a, constraint: <= 2}]\n"
MODE = "    optimize_mode: minimise\n"


@pytest.mark.parametrize(
    ("text", "answer", "starts"),
    [
        (TEXT, told("tuner", "classArgs", "gamma"), ["e.yml:7:12: tuner.classArgs.gamma: told (why)"]),
        # not written: the place is the top
        ("search_space: {}\ntrial_command: x\n", told("tuner", "name"), ["e.yml:1:1: tuner.name: told"]),
        (
            SPACE_FILE,
            told("searchSpace", "lr", "_type"),
            ["space.json:2:12: search_space.lr._type: told"],
        ),
        # asked even when other fields are wrong, and without those
        (
            TEXT.replace("[0, 1]", "[0]") + "seed: x\n",
            told("tuner", "name") + ' if "searchSpace" not in config else []',
            ["e.yml:2:32: ", "e.yml:5:9: tuner.name: told", "e.yml:8:7: seed"],
        ),
        (
            TEXT + LIMITS,
            told("tuner", "name") + ' if "objectives" not in config else 1 / 0',
            ["e.yml:5:9: tuner.name: told", "e.yml:8:13: objectives"],
        ),
        # not asked when their section is malformed
        (TEXT + "  nam: x\n", told("tuner"), ["e.yml:8:3: tuner.nam: unknown field"]),
        # a problem that is known already is not told again
        (
            TEXT + MODE,
            told("tuner", "classArgs", "optimize_mode") + "+" + told("tuner", "classArgs", "gamma"),
            ["e.yml:7:12: tuner.classArgs.gamma: told", "e.yml:8:20: tuner.classArgs.optimize_mode: must be"],
        ),
    ],
)
def test_problems_of_plug_ins_are_shown_where_they_were_written(
    tmp_path: Path, text: str, answer: str, starts: list[str]
) -> None:
    (tmp_path / "space.json").write_text('{"lr":\n {"_type": "uniform", "_value": [0, 1]}}')
    problems = problems_of(tmp_path, stub(answer), text)
    assert [problem[: len(start)] for problem, start in zip(problems, starts, strict=True)] == starts


SAID = "seed: 7\nconstraints: [lr < 0.5]\nobjectives: [{direction: minimize}]\n"


def test_plug_ins_get_the_canonical_config(tmp_path: Path) -> None:
    names = ["tuner", "searchSpace", "constraints", "objectives", "seed"]
    answer = f'[{{"path": ["tuner"], "message": repr([config[name] for name in {names}])}}]'
    (problem,) = problems_of(tmp_path, stub(answer), TEXT + SAID)
    assert problem.endswith(
        "[{'name': 'TPE', 'classArgs': {'gamma': 2}}, {'lr': {'_type': 'uniform', '_value': [0, 1]}}, "
        "['lr < 0.5'], [{'name': 'default', 'direction': 'minimize'}], 7]"
    )


def test_config_passes_when_nothing_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "e.yml").write_text(TEXT)
    assert config_at(tmp_path / "e.yml", stub("[]")).tuner.name == "TPE"


def test_check_of_a_config_from_python_has_paths_alone() -> None:
    tuner = {"name": "TPE", "class_args": {"myArg": 1}}
    (problem,) = check_plugins(made(tuner=tuner))
    assert str(problem).startswith("tuner.class_args.myArg: ")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; print('x'); sys.exit('no module x')", "ended with exit code 1: no module x"),
        ("import os; os.kill(os.getpid(), 9)", "ended with signal 9: it printed nothing"),
        ("import os; os.write(2, b'\\xff'); print({'problems': 3})", "ended with exit code 0: "),
    ],
)
def test_check_that_breaks_is_a_problem(code: str, expected: str) -> None:
    (finding,) = asked({"tuner": {}}, [sys.executable, "-c", code]).findings
    assert expected in finding.message


def test_command_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    (finding,) = asked({}, [str(tmp_path / "no-such-program")]).findings
    assert "could not start" in finding.message


def test_check_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # A shell starts in a millisecond: the child writes long before the check is ended.
    hanging = f"{{ printf x; exec sleep 600; }} > {shlex.quote(str(fifo))} & exec sleep 600"
    (finding,) = asked({}, ["sh", "-c", hanging], timeout=3.0).findings
    assert finding.message == "the tuner and the assessor were not ready after 3 s"
    assert os.read(reader, 1) == b"x"
    # The end of the file is readable once no process has it open for writing.
    assert select.select([reader], [], [], 60)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_real_dispatcher_is_asked_about_names_and_arguments(tmp_path: Path) -> None:
    text = TEXT.replace("name: TPE", "name: Randon").replace("    gamma: 2\n", "    seed: 1\n")
    text += "assessor:\n  name: Medianstop\n  class_args: {startstep: 2}\n"
    (tmp_path / "e.yml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "e.yml")
    found = [(p.line, p.column, p.path) for p in caught.value.problems]
    assert found == [(5, 9, ("tuner", "name")), (10, 27, ("assessor", "class_args", "startstep"))]


def test_real_dispatcher_accepts_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "e.yml").write_text(TEXT.replace("    gamma: 2\n", "    seed: 1\n"))
    assert load_config(tmp_path / "e.yml").tuner.class_args == {"seed": 1}


def test_class_of_the_user_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('loaded')\nclass Mine:\n    def __init__(self, a): pass\n")
    text = TEXT.split("tuner:")[0] + "tuner: {class_name: mine.Mine, code_directory: ., class_args: {b: 1}}\n"
    (tmp_path / "e.yml").write_text(text)
    with pytest.raises(ConfigError, match=r"e\.yml:4:\d+: tuner"):
        load_config(tmp_path / "e.yml")


def test_search_space_too_large_for_a_variable_is_checked_too() -> None:
    space = {f"p{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(5000)}
    command = stub('[{"path": ["tuner"], "message": str("searchSpace" in config)}]')
    (finding,) = asked({"tuner": {"name": "TPE"}, "searchSpace": space}, command).findings
    assert finding.message == "True"


CLASSES = """\
from enum import Enum

class Mode(Enum):
    UP = "maximize"

class Typed:
    def __init__(self, optimize_mode=Mode.UP):
        assert isinstance(optimize_mode, Mode)
    def generate_parameters(self, parameter_id): return {}

class Open:
    def generate_parameters(self, parameter_id): return {}

class Strict(Open):
    def __init__(self, optimize_mode): pass
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ExperimentConfig]:
    """Return a function that loads a config; what checks it is in this process, and imports the classes there."""
    (tmp_path / "directed.py").write_text(CLASSES)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "directed", raising=False)

    def loaded(more: str) -> ExperimentConfig:
        (tmp_path / "e.yml").write_text("search_space: {}\ntrial_command: x\n" + more)
        return load_config(tmp_path / "e.yml", checker=CheckerHere())

    return loaded


@pytest.mark.parametrize(
    ("algorithms", "direction", "decides"),
    [
        ("", "minimize", "tuner Auto"),
        ("tuner: GP", "maximize", "tuner GP"),
        ("tuner: {class_name: directed.Typed, code_directory: .}", "maximize", "tuner directed.Typed"),
        ("tuner: {class_name: directed.Open, code_directory: .}", "minimize", "no algorithm"),
        ("tuner: Random", "minimize", "no algorithm"),
        ("tuner: Random\nassessor: Medianstop", "maximize", "assessor Medianstop"),
        ("assessor: Medianstop", "minimize", "assessor Medianstop"),
    ],
)
def test_config_without_a_direction_has_the_default_of_its_algorithms(
    loaded: Callable[[str], ExperimentConfig], algorithms: str, direction: str, decides: str
) -> None:
    config = loaded(algorithms)
    assert [(one.name, one.direction) for one in config.objectives] == [("default", direction)]
    assert decides in config.direction_note


@pytest.mark.parametrize(
    "named", ["{name: GP, class_args: {optimize_mode: minimize}}", "GP\nobjectives: [{direction: minimize}]"]
)
def test_direction_that_a_config_names_is_not_a_default(
    loaded: Callable[[str], ExperimentConfig], named: str
) -> None:
    config = loaded(f"tuner: {named}")
    assert (config.objectives[0].direction, config.direction_note) == ("minimize", "")


def test_class_that_needs_a_direction_is_refused_where_none_is_named(
    loaded: Callable[[str], ExperimentConfig],
) -> None:
    strict = "tuner: {class_name: directed.Strict, code_directory: .}\n"
    with pytest.raises(ConfigError, match="argument 'optimize_mode' is missing"):
        loaded(strict)
    assert loaded(strict + "objectives: [{direction: maximize}]\n")


ADAPTER = "pitchpipe.integrations.mlflow"


def config_with(trackers: Any) -> ExperimentConfig:
    data = {"search_space": {}, "trial_command": "true", "tuner": "Random", "trackers": trackers}
    return ExperimentConfig.from_dict(data)


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> type:
    class MLflowCallback:
        def __init__(self, tracking_uri: str | None = None) -> None:
            self.tracking_uri = tracking_uri

    module = ModuleType(ADAPTER)
    monkeypatch.setattr(module, "MLflowCallback", MLflowCallback, raising=False)
    monkeypatch.setitem(sys.modules, ADAPTER, module)
    return MLflowCallback


def test_tracker_is_found_by_its_name(adapter: type) -> None:
    config = ExperimentConfig.from_canonical(config_with({"mlflow": {"tracking_uri": "x"}}).canonical())
    assert tracker_classes(config) == {"mlflow": adapter}
    assert config.trackers == {"mlflow": {"tracking_uri": "x"}}


def test_every_tracker_of_a_config_is_registered() -> None:
    names = {entry.name for entry in entry_points(group="pitchpipe.trackers")}
    assert names == {"mlflow", "tensorboard", "wandb"}
    config_with({name: {} for name in names})


def test_library_that_is_missing_is_a_problem_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    config = config_with({"mlflow": {}})
    for check in (with_plugins_checked, tracker_classes):
        with pytest.raises(ConfigError) as raised:
            check(config)
        (problem,) = raised.value.problems
        assert problem.path == ("trackers", "mlflow")
        assert "mlflow, which is not installed: pip install 'mlflow>=" in problem.message


def test_unknown_option_is_a_problem(adapter: type) -> None:
    with pytest.raises(ConfigError, match=r"trackers\.mlflow: .*unexpected keyword argument 'uri'"):
        with_plugins_checked(config_with({"mlflow": {"uri": "x"}}))


def test_unknown_tracker_is_a_problem() -> None:
    with pytest.raises(ConfigError, match="trackers"):
        config_with({"comet": {}})
