"""`nnictl algo`: classes of one's own under a name, which configs use like a built-in one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.compat.nni.nnictl_algo import ALGO
from pitchpipe.config import check_parameters
from pitchpipe.dispatcher.check import directions
from pitchpipe.dispatcher.plugin import PluginChoice, SharedArguments, load_plugin
from pitchpipe.plugins import Registered, register, registered, registry_file

from ..homeless import leave_home

CLASSES = """
from nni.tuner import Tuner
class Needy(Tuner):
    def __init__(self, need, optimize_mode="maximize"): self.mode = optimize_mode
    def generate_parameters(self, parameter_id, **kwargs): return {}
class Checked:
    def validate_class_args(self, **kwargs): assert kwargs["need"] > 0, "need is not above 0"
"""
META = """
algorithms:
  - {algoType: tuner, builtinName: needy, className: needy.Needy, classArgs: {optimize_mode: minimize},
     classArgsValidator: needy.Checked}
  - {algoType: tuner, builtinName: plain, className: needy.Needy, classArgs: {need: 1}, acceptClassArgs: false}
"""


def test_without_a_home_nothing_is_registered_and_nothing_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_home(monkeypatch)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert registered() == []
    with pytest.raises(OSError, match="XDG_CONFIG_HOME"):
        register(Registered(kind="tuner", name="Mine", class_name="mine.Mine"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "~/settings")
    register(Registered(kind="tuner", name="Mine", class_name="mine.Mine"))
    assert [one.name for one in registered()] == ["Mine"]
    assert (tmp_path / "settings").is_dir()


@pytest.fixture
def algo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[..., tuple[int, str]]:
    """Return a function that runs `nnictl algo` and returns its exit code and what it printed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "needy.py").write_text(CLASSES)
    (tmp_path / "meta.yml").write_text(META)

    def call(verb: str, *words: str) -> tuple[int, str]:
        code = run(list(words), ALGO[verb])
        return code, "".join(capsys.readouterr())

    return call


def problems(**class_args: Any) -> list[str]:
    found = check_parameters({"tuner": {"name": "Needy", "classArgs": class_args}}).findings
    return [one.message for one in found]


def test_registered_name_is_used_like_a_built_in_one(algo: Any, tmp_path: Path) -> None:
    assert algo("register", "-m", str(tmp_path / "meta.yml"))[0] == 0
    assert problems(need=1) == []
    assert problems(need=0) == ["needy refuses them: need is not above 0"]
    shown = json.loads(algo("show", "NEEDY")[1])
    assert (shown["class_name"], shown["code_directory"]) == ("needy.Needy", str(tmp_path))
    assert "needy.Needy" in algo("list")[1]
    taken = check_parameters({"tuner": {"name": "plain", "classArgs": {"need": 2}}}).findings
    assert [one.message for one in taken] == ["plain takes no arguments"]
    (tmp_path / "needy.py").unlink()
    assert "needy.Needy, the class of needy, cannot be loaded" in problems(need=1)[0]
    assert algo("unregister", "needy")[0] == 0
    assert problems(need=1)[0].startswith("no tuner is called 'Needy'")


def test_direction_of_a_registered_name_is_a_default(algo: Any, tmp_path: Path) -> None:
    algo("register", "-m", str(tmp_path / "meta.yml"))
    section = {"name": "needy", "classArgs": {"need": 1}}
    assert directions({"tuner": section}) == {"tuner": "minimize"}
    for given, direction in ((None, "minimize"), ("minimize", "minimize"), ("maximize", "maximize")):
        shared = SharedArguments(optimize_mode=given)
        assert load_plugin(PluginChoice.of("tuner", section), shared).mode == direction


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("{algoType: tuner, builtinName: tpe, className: needy.Needy}", "tpe is a built-in tuner"),
        ("{algoType: tuner, builtinName: mine, className: needy.Absent}", "has no class 'Absent'"),
        ("{algoType: agent, builtinName: mine, className: needy.Needy}", "algoType is tuner, assessor or"),
        ("[]", "must contain algoType"),
    ],
)
def test_what_cannot_be_used_is_not_registered(algo: Any, tmp_path: Path, meta: str, why: str) -> None:
    (tmp_path / "bad.yml").write_text(meta)
    code, text = algo("register", "-m", str(tmp_path / "bad.yml"))
    assert (code != 0, why in text) == (True, True), text
    assert not registry_file().exists() or json.loads(registry_file().read_text()) == []


def test_name_that_is_not_registered_is_an_error(algo: Any) -> None:
    assert algo("show", "absent") == (2, f"error: absent is not registered (in {registry_file()}: nothing)\n")


def test_file_that_is_not_ours_is_named(algo: Any) -> None:
    registry_file().parent.mkdir(parents=True)
    registry_file().write_text("{")
    assert problems()[0].startswith(f"{registry_file()} is not a list of registered algorithms")
    assert "mend or delete it" in algo("list")[1]
