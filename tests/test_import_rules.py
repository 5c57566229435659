"""The rules on imports and module-level state hold in the tree, and the checker sees planted errors."""

import runpy
from pathlib import Path
from typing import Any

import pytest

RULES: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("import_rules.py")))

# What is planted, where, and what has to be said about it.
PLANTED_IMPORTS = [
    (
        "protocol/planted.py",
        "from ..search_space import SearchSpace",
        "protocol must not import search_space",
    ),
    ("tuners/planted.py", "from ..assessors import Assessor", "tuners must not import assessors"),
    ("assessors/planted.py", "from ..tuners.base import Tuner", "assessors must not import tuners"),
    ("trial_agent/planted.py", "from ..tuners import Tuner", "trial_agent must not import tuners"),
    ("dispatcher/planted.py", "from ..trial_agent import spool", "dispatcher must not import trial_agent"),
    ("dispatcher/planted.py", "from ..manager import config", "dispatcher must not import manager"),
    ("manager/planted.py", "from ..tuners import Tuner", "manager must not import tuners"),
    ("manager/planted.py", "from .. import tuners", "manager must not import tuners"),
    (
        "manager/planted.py",
        "def f():\n    from ..assessors import create",
        "manager must not import assessors",
    ),
    (
        "manager/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tuners import Tuner",
        "manager must not import tuners",
    ),
    (
        "manager/planted.py",
        "import importlib\ndef f():\n    importlib.import_module('..tuners.tpe', __package__)",
        "manager must not import tuners",
    ),
    ("manager/planted.py", "from ..cli import main", "manager must not import cli"),
    ("manager/planted.py", "import ray", "only manager/ray_*.py imports ray"),
    (
        "manager/planted.py",
        "def f():\n    from ray.util import ActorPool",
        "only manager/ray_*.py imports ray",
    ),
    ("cli/ray_planted.py", "import ray", "only manager/ray_*.py imports ray"),
    ("trial_agent/planted.py", "import numpy", "trial_agent must not import the library numpy"),
    ("tuners/planted.py", "from pitchpipe.protocol import Frame", "imports pitchpipe.protocol absolutely"),
    ("tuners/planted.py", "import protocol", "imports protocol: inside the project it is pitchpipe.protocol"),
    (
        "tuners/planted.py",
        "from search_space import parse",
        "imports search_space: inside the project it is pitchpipe",
    ),
]

PLANTED_STATE = [
    ("def f():\n    global TOTAL\n    TOTAL = 1", "global TOTAL"),
    ("TOTAL = 0\ndef f():\n    global TOTAL\n    TOTAL += 1", "global TOTAL"),
    ("CACHE = {}", "`CACHE` starts empty at module level"),
    ("import collections\nseen = collections.defaultdict(list)", "`seen` starts empty at module level"),
    ("TABLE = {1: 2}\ndef f():\n    TABLE[3] = 4", "changes `TABLE`, which lives at module level"),
    ("TABLE = {1: 2}\ndef f():\n    del TABLE[1]", "changes `TABLE`, which lives at module level"),
    ("NAMES = ['a']\ndef f():\n    NAMES.append('b')", "changes `NAMES`, which lives at module level"),
    (
        "HOLDER = object()\nclass A:\n    def f(self):\n        HOLDER.value = 1",
        "changes `HOLDER`, which lives at module level",
    ),
]

ALLOWED = [
    ("manager/ray_planted.py", "import ray"),
    ("manager/planted.py", "from ..protocol import Frame\nfrom . import ledger\nimport psutil"),
    ("dispatcher/planted.py", "from ..tuners import create\nfrom ..assessors import create as judge"),
    ("cli/planted.py", "from .. import __version__\nimport click"),
    ("tuners/planted.py", "NAMES = {'a': 1}\ndef f():\n    NAMES = {}\n    NAMES['b'] = 2"),
    ("tuners/planted.py", "from collections.abc import Mapping\nTABLE: Mapping[str, str] = {}"),
    ("tuners/planted.py", "def f(items):\n    items.append(1)\n    names = []\n    names.sort()"),
]


def skeleton(root: Path) -> Path:
    """Make a tree with all packages and nothing in them."""
    for package in RULES["MAY_IMPORT"]:
        (root / package).mkdir()
        (root / package / "__init__.py").write_text("")
    (root / "manager" / "ledger.py").write_text("")
    return root


def violations(root: Path, file: str, source: str) -> list[str]:
    (root / file).write_text(source + "\n")
    return [str(violation) for violation in RULES["check_tree"](root)]


def test_tree_keeps_the_rules(tree: Path) -> None:
    found = [str(violation) for violation in RULES["check_tree"](tree)]
    assert found == []


def test_checker_looks_at_every_folder_that_setup_cfg_packages(tree: Path) -> None:
    lines = (tree / "setup.cfg").read_text().splitlines()
    mapped = {
        line.split("=")[1].strip() for line in lines if line.strip().startswith("pitchpipe") and "=" in line
    }
    mapped = {folder for folder in mapped if (tree / folder / "__init__.py").exists()}
    assert mapped == set(RULES["MAY_IMPORT"]) == set(RULES["LIBRARIES"])


@pytest.mark.parametrize(("file", "source", "message"), PLANTED_IMPORTS)
def test_planted_import_is_seen(tmp_path: Path, file: str, source: str, message: str) -> None:
    found = violations(skeleton(tmp_path), file, source)
    assert len(found) == 1
    assert found[0].startswith(f"{file}:")
    assert message in found[0]


@pytest.mark.parametrize(("source", "message"), PLANTED_STATE)
def test_planted_state_is_seen(tmp_path: Path, source: str, message: str) -> None:
    found = violations(skeleton(tmp_path), "manager/planted.py", source)
    assert any(message in line for line in found), found


@pytest.mark.parametrize(("file", "source"), ALLOWED)
def test_allowed_code_is_not_reported(tmp_path: Path, file: str, source: str) -> None:
    assert violations(skeleton(tmp_path), file, source) == []


def test_planted_cycle_is_seen_and_named(tmp_path: Path) -> None:
    root = skeleton(tmp_path)
    (root / "tuners" / "one.py").write_text("from .two import x\n")
    found = violations(root, "tuners/two.py", "from . import one")
    assert found == [
        "tuners/one.py:1: import cycle: pitchpipe.tuners.one -> pitchpipe.tuners.two -> pitchpipe.tuners.one"
    ]


def test_import_inside_a_function_makes_no_cycle(tmp_path: Path) -> None:
    root = skeleton(tmp_path)
    (root / "tuners" / "one.py").write_text("from .two import x\n")
    assert violations(root, "tuners/two.py", "def f():\n    from . import one") == []


def test_command_ends_with_1_and_prints_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = skeleton(tmp_path)
    assert RULES["main"]([str(root)]) == 0
    (root / "manager" / "planted.py").write_text("\nimport ray\n")
    assert RULES["main"]([str(root)]) == 1
    assert capsys.readouterr().out == "manager/planted.py:2: only manager/ray_*.py imports ray\n"
