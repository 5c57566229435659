"""Plug-ins by name and by class: found, injected, and refused with a path and a hint."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.dispatcher import PluginNotLoaded
from pitchpipe.dispatcher.check import check
from pitchpipe.dispatcher.dispatcher_settings import DispatcherSettings
from pitchpipe.dispatcher.plugin import PluginChoice, SharedArguments, load_plugin, own_direction

TUNER = """
from pitchpipe.tuners import Tuner
class Mine(Tuner):
    def __init__(self, size=1, seed=None, optimize_mode=None):
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        self.size, self.seed, self.optimize_mode = size, seed, optimize_mode
    def update_search_space(self, space):
        if not space:
            raise ValueError("an empty space")
    def generate_parameters(self, parameter_id, **kwargs):
        return {}
"""
NOTHING = SharedArguments()
SHARED = SharedArguments(optimize_mode="minimize", seed=7)


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    """Forgets what a test imported, and its sys.path."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith(("pitchpipe", "numpy", "scipy")):
            del sys.modules[name]


def loaded(role: str, section: dict[str, Any], shared: SharedArguments = NOTHING, *given: Any) -> Any:
    return load_plugin(PluginChoice.of(role, section), shared, *given)


def problems_of(config: dict[str, Any], role: str = "tuner") -> list[tuple[Any, ...]]:
    with pytest.raises(PluginNotLoaded) as caught:
        loaded(role, config, SHARED)
    return [(problem.path, problem.message, problem.hint) for problem in caught.value.problems]


# objectives


def test_assessor_gets_the_objectives_as_configured():
    objectives = [{"name": "f1", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
    rule = loaded("assessor", {"name": "ASHA"}, SHARED, objectives)
    assert rule.assess_trial("feasible", [{"f1": 0.1, "ms": 20}]).value is True
    assert rule.assess_trial("infeasible", [{"f1": 0.9, "ms": 21}]).value is False


# by name


def test_builtin_is_loaded_by_name_in_any_case():
    assert type(loaded("tuner", {"name": "random"})).__name__ == "RandomTuner"
    assert type(loaded("assessor", {"name": "MEDIANSTOP"})).__name__ == "MedianstopAssessor"


@pytest.mark.parametrize(
    ("config", "path", "words"),
    [
        ({"name": "Randon"}, ("tuner", "name"), "Random"),
        ({}, ("tuner",), ""),
        ({"className": "a.A", "codeDirectory": "/absent"}, ("tuner", "codeDirectory"), ""),
    ],
)
def test_plug_in_that_is_not_there_is_a_problem(config, path, words):
    found, message, _ = problems_of(config)[0]
    assert found == path
    assert words in message


# by class


def test_class_comes_from_the_code_directory(plugin_file):
    config = plugin_file("mine.Mine", TUNER)
    tuner = loaded("tuner", {**config, "classArgs": {"size": 3}})
    assert (tuner.size, tuner.seed, tuner.optimize_mode) == (3, None, None)
    assert Path(sys.modules[type(tuner).__module__].__file__ or "").parent == Path(config["codeDirectory"])


def test_what_the_signature_has_is_injected_unless_given(plugin_file):
    config = plugin_file("mine.Mine", TUNER)
    tuner = loaded("tuner", config, SHARED)
    assert (tuner.seed, tuner.optimize_mode) == (7, "minimize")
    given = loaded("tuner", {**config, "classArgs": {"seed": 1, "optimize_mode": "maximize"}}, SHARED)
    assert (given.seed, given.optimize_mode) == (1, "maximize")
    plain = plugin_file("plain.Plain", "class Plain:\n    def generate_parameters(self, i): pass\n")
    loaded("tuner", plain, SHARED)


def test_priors_are_handed_to_a_plug_in_that_takes_them(plugin_file):
    priors = {"x": {"centre": 1, "confidence": 0.5}}
    taking = TUNER + "    def update_priors(self, priors): self.priors = priors\n"
    assert loaded("tuner", plugin_file("mine.Mine", taking), NOTHING, (), priors).priors == priors
    assert DispatcherSettings.read({"tuner": {"name": "Auto"}, "priors": priors}, {}).priors == priors
    loaded("tuner", plugin_file("plain.Mine", TUNER), NOTHING, (), priors)


@pytest.mark.parametrize("name", ["random", "json", "types", "pytest"])
def test_file_with_the_name_of_another_module_is_still_the_one(plugin_file, name):
    before = sys.modules.get(name)
    tuner = loaded("tuner", plugin_file(f"{name}.Mine", TUNER))
    assert tuner.size == 1
    assert sys.modules.get(name) is before


def test_tuner_and_assessor_with_the_same_file_name_do_not_clash(plugin_file):
    judge = "class Mine:\n    def assess_trial(self, trial, history): return True\n"
    tuner = loaded("tuner", plugin_file("mine.Mine", TUNER, "one"))
    assessor = loaded("assessor", plugin_file("mine.Mine", judge, "two"))
    assert hasattr(tuner, "generate_parameters")
    assert hasattr(assessor, "assess_trial")


@pytest.mark.parametrize("is_taken", [False, True])
def test_tuner_and_assessor_in_one_file_share_its_module(plugin_file, is_taken, monkeypatch):
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    if is_taken:  # by the plug-ins of another search in this process
        monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    both = TUNER + "class Judge:\n    def assess_trial(self, trial, history): return True\n"
    config = plugin_file("mine.Mine", both)
    tuner = loaded("tuner", config)
    assessor = loaded("assessor", {**config, "className": "mine.Judge"})
    assert type(tuner).__module__ == type(assessor).__module__


def test_helpers_beside_the_file_are_importable_and_hide_no_standard_module(plugin_file):
    plugin_file("helper.X", "VALUE = 5\n")
    plugin_file("colorsys.X", "raise RuntimeError('not the standard one')\n")
    sys.modules.pop("colorsys", None)
    config = plugin_file("mine.Mine", TUNER + "import helper, colorsys\nMine.value = helper.VALUE\n")
    assert loaded("tuner", config).value == 5


def test_class_in_a_package_may_import_relatively(plugin_file):
    plugin_file("pack.helper.X", "VALUE = 6\n")
    config = plugin_file("pack.mine.Mine", TUNER + "from .helper import VALUE\nMine.value = VALUE\n")
    assert loaded("tuner", config).value == 6


def test_plug_in_can_be_pickled_with_its_module(plugin_file):
    import pickle

    tuner = loaded("tuner", plugin_file("json.Mine", TUNER))
    assert pickle.loads(pickle.dumps(tuner)).size == 1


@pytest.mark.parametrize(
    ("class_name", "text", "key", "words"),
    [
        ("Mine", TUNER, "className", "no module"),
        ("absent.Mine", None, "className", "no module 'absent'"),
        ("mine.Mone", TUNER, "className", "no class 'Mone'"),
        ("mine.TUNER", "TUNER = 1\n", "className", "no class 'TUNER'"),
        (
            "mine.Mine",
            "from nni.retiarii import Tuner\n",
            "className",
            "docs/reference/nni.md lists the names of NNI",
        ),
        ("mine.Mine", "import absent_library\n", "className", "needs the module 'absent_library'"),
        ("mine.Mine", "1 / 0\n", "className", "ZeroDivisionError"),
        ("mine.Mine", "def broken(\n", "className", "SyntaxError"),
        ("mine.Mine", "class Mine:\n    def __init__(self): 1 / 0\n", "classArgs", "ZeroDivisionError"),
    ],
)
def test_class_that_cannot_be_had_is_a_problem(plugin_file, tmp_path, class_name, text, key, words):
    config = plugin_file(class_name, text) if text and "." in class_name else {"className": class_name}
    ((path, message, hint),) = problems_of({"codeDirectory": str(tmp_path), **config})
    assert path == ("tuner", key)
    assert words in f"{message} ({hint})"
    if "Mone" in class_name:
        assert hint == "did you mean 'Mine'?"


# arguments


def test_wrong_arguments_are_named_all_at_once(plugin_file):
    config = {**plugin_file("mine.Mine", TUNER), "classArgs": {"sise": 1, "sead": 2}}
    (size, _, hint), (seed, *_) = problems_of(config)
    assert (size, seed) == (("tuner", "classArgs", "sise"), ("tuner", "classArgs", "sead"))
    assert "'size'" in hint


def test_refused_value_is_named(plugin_file):
    config = {**plugin_file("mine.Mine", TUNER), "classArgs": {"size": -1, "seed": 2}}
    ((path, message, _),) = problems_of(config)
    assert path == ("tuner", "classArgs", "size")
    assert "must not be negative, got -1" in message


# the check of a whole configuration


def check_paths(config: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [problem.path for problem in check(config)]


def test_good_configuration_has_no_problems(plugin_file):
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert check({"tuner": plugin_file("mine.Mine", TUNER), "searchSpace": space}) == []
    assert check({"tuner": {"name": "TPE"}, "assessor": {"name": "Medianstop"}, "searchSpace": space}) == []


def test_problems_of_both_plug_ins_are_listed(plugin_file):
    config = {
        "tuner": {**plugin_file("mine.Mine", TUNER), "classArgs": {"size": "x"}},
        "assessor": {"name": "Medianstop", "classArgs": {"start_stop": 1}},
    }
    assert check_paths(config) == [("tuner", "classArgs"), ("assessor", "classArgs", "start_stop")]


def test_space_that_a_tuner_refuses_is_a_problem(plugin_file):
    (problem,) = check({"tuner": plugin_file("mine.Mine", TUNER), "searchSpace": {}})
    assert problem.path == ("searchSpace",)
    assert "Mine refuses it: ValueError('an empty space')" in problem.message


def test_space_with_a_wrong_value_is_placed():
    space = {"x": {"_type": "uniform", "_value": [1, 0]}}
    (path,) = check_paths({"tuner": {"name": "Random"}, "searchSpace": space})
    assert path[:2] == ("searchSpace", "x")


def test_class_that_is_not_a_plug_in_is_a_problem_as_is_no_tuner(plugin_file):
    config = plugin_file("mine.Mine", "class Mine: pass\n")
    assert check_paths({"tuner": config}) == [("tuner", "className")]
    assert check_paths({"tuner": {"name": "Random"}, "assessor": config}) == [("assessor", "className")]
    assert check_paths({}) == [("tuner",)]


# settings


def test_direction_of_the_default_objective_and_the_seed_are_what_is_injected():
    cost, default = {"name": "cost", "direction": "minimize"}, {"name": "default", "direction": "maximize"}
    config = {"tuner": {"name": "x"}, "objectives": [cost, default], "seed": 3}
    shared = SharedArguments(optimize_mode="maximize", seed=3)
    assert DispatcherSettings.read(config, {}).shared == shared
    assert DispatcherSettings.read({**config, "objectives": [{**default, "name": "a"}]}, {}).shared == shared


@pytest.mark.parametrize(
    ("tuner", "folder"),
    [
        ({"name": "PBTTuner"}, "/all"),
        ({"name": "PBT"}, None),
        ({"name": "PBTTuner", "classArgs": {"interval": 5}}, None),
    ],
)
def test_pbt_under_nnis_name_keeps_checkpoints_in_a_folder(tuner: dict[str, Any], folder: str | None) -> None:
    shared = DispatcherSettings.read({"tuner": tuner}, {"NNI_CHECKPOINT_DIRECTORY": "/all"}).shared
    assert shared.all_checkpoint_dir == folder


def test_manager_is_a_peer_when_it_announced_itself_and_an_advisor_stands_for_the_tuner():
    config = {"advisor": {"name": "x"}}
    assert DispatcherSettings.read(config, {}).tuner.name == "x"
    assert DispatcherSettings.read(config, {}).protocol is None
    assert DispatcherSettings.read(config, {"PITCHPIPE_PROTOCOL": "1"}).protocol == 1


SMALL = {name: {"_type": "randint", "_value": [1, 9]} for name in ("layers", "units")}


def test_constraint_that_no_sample_satisfies_is_a_problem() -> None:
    config = {"tuner": {"name": "TPE"}, "searchSpace": SMALL}
    (problem,) = check({**config, "constraints": ["units <= layers", "layers > 20"]})
    assert tuple(problem.path) == ("constraints", 1)
    assert problem.message.startswith("10000 samples in a row violate this")
    assert check({**config, "constraints": ["units <= layers", "layers == 8"]}) == []


@pytest.mark.parametrize("name", ["GridSearch", "mine"])
def test_tuner_that_draws_no_samples_may_find_rare_parameters(name: str, plugin_file: Any) -> None:
    space = {**SMALL, "number": {"_type": "randint", "_value": [0, 2000]}}
    config = {"searchSpace": space, "constraints": ["number == 7 and units == 3 and layers == 2"]}
    tuner = plugin_file("mine.Mine", TUNER) if name == "mine" else {"name": name}
    assert check({**config, "tuner": tuner}) == []
    assert len(check({**config, "tuner": {"name": "TPE"}})) == 1


@pytest.mark.parametrize(("default", "direction"), [("minimize", "minimize"), ("sideways", None), (1, None)])
def test_direction_of_a_class_is_the_default_of_its_optimize_mode(
    default: Any, direction: str | None
) -> None:
    class Mine:
        def __init__(self, optimize_mode: Any = default) -> None:
            self.optimize_mode = optimize_mode

    assert own_direction(Mine) == direction
