"""What users read about the plug-ins of a config before anything starts: each input is YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from syrupy.assertion import SnapshotAssertion

from pitchpipe.dispatcher.check import check, directions, warnings

from ..sentences import SentencesFile, answered

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
# Classes of users.
MINE = """
from pitchpipe.tuners.pbt import PBTTuner

class Population(PBTTuner):
    pass

class Plain:
    wants_periodical = True
    def generate_parameters(self, number):
        return {}
"""


def of_arguments(role: str) -> Callable[[str], list[str]]:
    def answers(line: str) -> list[str]:
        ((name, arguments),) = yaml.safe_load(line).items()
        plugin = {"name": name, "classArgs": arguments}
        problems = check({"tuner": {"name": "Random"}, role: plugin})
        assert all(problem.path[0] == role for problem in problems)
        return [f"{'.'.join(one.path[2:])}: {one.message}{one.hint and f' ({one.hint})'}" for one in problems]

    return answers


def of_choices(line: str) -> list[str]:
    """Return the warnings about a tuner, an assessor, objectives and a rule to stop."""
    given = yaml.safe_load(line)
    objectives = [
        {"name": name, "constraint": goal} if "=" in goal else {"name": name, "direction": goal}
        for name, goal in given.pop("objectives", {"loss": "minimize"}).items()
    ]
    config: dict[str, Any] = {"objectives": objectives, "searchSpace": SPACE}
    if given.pop("stop", False):
        config["stopWhen"] = {"expectedGainBelow": "noise", "minTrials": 5}
    for role, name in given.items():
        own = {"className": name, "codeDirectory": str(Path.cwd())}
        config[role] = own if "." in name else {"name": name, "classArgs": {"R": 9} if "band" in name else {}}
    assert check(config) == []
    return warnings(config)


SECTIONS = {
    "arguments of a tuner": of_arguments("tuner"),
    "arguments of an assessor": of_arguments("assessor"),
    "choices": of_choices,
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    Path("mine.py").write_text(MINE)
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)


def test_check_of_a_good_configuration_has_no_problems() -> None:
    config = {"tuner": {"name": "Random"}, "seed": 1, "searchSpace": SPACE}
    assert (check(config), directions(config), warnings(config)) == ([], {}, [])
