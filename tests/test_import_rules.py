"""The rules on imports, module-level state and dataclasses hold in the tree, and the checker sees planted errors."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

RULES: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("import_rules.py")))

NO_RAY = "only executors/ray/ and executors/private_ray/ import ray"
TUNERS = "manager must not import tuners"
EMPTY, CHANGED = "starts empty at module level", "changes `TABLE`, which lives at module level"
# What is planted, where, and what has to be said about it.
PLANTED = [
    ("protocol/planted.py", "from ..search_space import Space", "protocol must not import search_space"),
    ("manager/planted.py", "from .. import tuners", TUNERS),
    ("manager/planted.py", "def f():\n    from ..tuners import create", TUNERS),
    ("manager/planted.py", "if TYPE_CHECKING:\n    from ..tuners import Tuner", TUNERS),
    ("manager/planted.py", "import importlib\nimportlib.import_module('..tuners.tpe', __package__)", TUNERS),
    *(
        ("runner/planted.py", f"import {name}", f"runner is pure and must not import {name}")
        for name in sorted(RULES["IMPURE"])
    ),
    ("cli/planted.py", "import ray", NO_RAY),
    ("executors/local/planted.py", "def f():\n    from ray.util import ActorPool", NO_RAY),
    ("trial_agent/planted.py", "import numpy", "trial_agent must not import the library numpy"),
    ("tuners/planted.py", "from pitchpipe.protocol import Frame", "imports pitchpipe.protocol absolutely"),
    ("tuners/planted.py", "import protocol", "imports protocol: inside the project it is pitchpipe.protocol"),
    ("tuners/planted.py", "from search_space import parse", "imports search_space: inside the project it is"),
    ("manager/planted.py", "CACHE = {}", EMPTY),
    ("manager/planted.py", "import collections\nseen = collections.defaultdict(list)", EMPTY),
    ("manager/planted.py", "TABLE = {1: 2}\ndef f():\n    TABLE[3] = 4", CHANGED),
    ("manager/planted.py", "TABLE = {1: 2}\ndef f():\n    del TABLE[1]", CHANGED),
    ("manager/planted.py", "TABLE = ['a']\ndef f():\n    TABLE.append('b')", CHANGED),
    ("manager/planted.py", "TABLE = A()\nclass A:\n    def f(self):\n        TABLE.value = 1", CHANGED),
    *(
        ("manager/planted.py", f"def begin():\n    {call}", "in begin: nothing learns of a failure")
        for call in (
            "asyncio.create_task(work())",
            "loop.create_task(work())",
            "asyncio.ensure_future(work())",
            "loop.call_soon(work)",
            "loop.call_later(1.0, work)",
            "task.add_done_callback(work)",
            "loop.run_in_executor(None, work)",
        )
    ),
]

PLANTED_TEXTS = [
    """box.props(f'title="{name}"')""",
    """box.props("title=" + name)""",
    "box.props(add=name)",
    "box.style(f'width: {width}px')",
    "box.classes(replace=name)",
    "ui.html(name)",
    "ui.run_javascript(f'open({json.dumps(name)})')",
    "box.on('click', js_handler=name)",
    "ui.run_javascript(scripted(f'{name}(1)'))",
]

FIELDS = "    a: int\n    b: int\n    c: int\n    d: int\n"
PLANTED_DATACLASSES = [
    "@dataclass\nclass Big:",
    "@dataclass(frozen=True, slots=True)\nclass Big:",
    "@dataclass(kw_only=False)\nclass Big:",
    "@dataclasses.dataclass\nclass Big:",
]

ALLOWED = [
    ("executors/ray/planted.py", "import ray"),
    ("manager/planted.py", "from ..protocol import Frame\nfrom . import loop\nimport psutil"),
    ("executors/ray/planted.py", "from ..base import TrialExecutor"),
    ("runner/planted.py", "import signal"),
    ("dispatcher/planted.py", "from ..tuners import create\nfrom ..assessors import create as judge"),
    ("cli/planted.py", "from .. import __version__\nimport click"),
    ("tuners/planted.py", "NAMES = {'a': 1}\ndef f():\n    NAMES = {}\n    NAMES['b'] = 2"),
    ("tuners/planted.py", "from collections.abc import Mapping\nTABLE: Mapping[str, str] = {}"),
    ("manager/planted.py", f"@dataclass\nclass Small:\n{FIELDS}    e: ClassVar[int] = 1"),
    ("manager/planted.py", f"@dataclass(kw_only=True)\nclass Big:\n{FIELDS}    e: int"),
    ("manager/planted.py", f"@dataclass\nclass Big:\n{FIELDS}    _: KW_ONLY\n    e: int"),
    ("manager/planted.py", f"class NoDataclass:\n{FIELDS}    e: int"),
    ("server/planted.py", "box.props('dense').classes('pp-bad' if bad else '').style(WIDE)"),
    ("server/planted.py", "ui.run_javascript(scripted('open(NAME)', NAME=name))"),
    ("server/planted.py", "html.span(name, title=name)\nbox.style['width'] = f'{width}px'"),
    ("tuners/planted.py", "def f(items):\n    items.append(1)\n    names = []\n    names.sort()"),
]

LAZY = """\
if TYPE_CHECKING:
    from .folder import File, Folder
else:
    __getattr__ = lazy_names(__name__, __file__)
"""


def skeleton(root: Path) -> Path:
    """Make a tree with all rooms and nothing in them."""
    for room in [*RULES["MAY_IMPORT"], "executors/ray", "executors/local"]:
        (root / room).mkdir()
        (root / room / "__init__.py").write_text("")
    for file in ("manager/loop.py", "executors/trial_executor.py", "store/folder.py"):
        plant(root, file, "")
    return root


def plant(root: Path, file: str, source: str) -> None:
    """Write a module; the `__all__`, which lists nothing, is for the `__init__` of a folder."""
    (root / file).write_text(source + "\n__all__ = ()\n")


def violations(root: Path, file: str, source: str) -> list[str]:
    plant(root, file, source)
    return [str(violation) for violation in RULES["check_tree"](root)]


def test_tree_keeps_the_rules(tree: Path) -> None:
    found = [str(violation) for violation in RULES["check_tree"](tree)]
    assert found == []


def test_checker_looks_at_every_folder_that_setup_cfg_packages(tree: Path) -> None:
    text = (tree / "setup.cfg").read_text()
    mapped = set(re.findall(r"^\s*pitchpipe.*?=\s*(\S+)", text, re.MULTILINE))
    mapped = {folder for folder in mapped if (tree / folder / "__init__.py").exists()}
    assert mapped == set(RULES["MAY_IMPORT"]) == set(RULES["LIBRARIES"])


@pytest.mark.parametrize(("file", "source", "message"), PLANTED)
def test_planted_error_is_seen(tmp_path: Path, file: str, source: str, message: str) -> None:
    (found,) = [line for line in violations(skeleton(tmp_path), file, source) if line.startswith(f"{file}:")]
    assert message in found


@pytest.mark.parametrize("source", PLANTED_TEXTS)
def test_variable_that_a_page_parses_is_seen(tmp_path: Path, source: str) -> None:
    found = violations(skeleton(tmp_path), "server/planted.py", source)
    assert ["parses it: see `attributed`" in line for line in found] == [True]


def test_every_exception_for_a_task_is_one_of_the_tree(tree: Path) -> None:
    for file, function in RULES["OWNED"]:
        assert f"def {function}(" in (tree / file).read_text(), (file, function)


@pytest.mark.parametrize("head", PLANTED_DATACLASSES)
def test_dataclass_with_many_positional_fields_is_seen(tmp_path: Path, head: str) -> None:
    found = violations(skeleton(tmp_path), "manager/planted.py", f"{head}\n{FIELDS}    e: int = 1")
    assert found == ["manager/planted.py:2: Big has more than 4 fields and is not kw_only"]


@pytest.mark.parametrize(("file", "source"), ALLOWED)
def test_allowed_code_is_not_reported(tmp_path: Path, file: str, source: str) -> None:
    found = violations(skeleton(tmp_path), file, source)
    assert [line for line in found if line.startswith(f"{file}:")] == []


@pytest.mark.parametrize(
    ("file", "source", "module"),
    [
        ("manager/planted.py", "\nfrom ..store.folder import Folder", "store.folder"),
        ("manager/planted.py", "def f():\n    from ..store import folder", "store.folder"),
        ("store/planted.py", "\nfrom . import Folder", "store"),
        ("executors/local/planted.py", "def f():\n    from .. import Folder", "executors"),
        ("pitchpipe/planted.py", "\nfrom . import Folder", ""),
    ],
)
def test_way_round_the_face_of_a_folder_is_seen(tmp_path: Path, file: str, source: str, module: str) -> None:
    root = skeleton(tmp_path)
    (root / file.split("/")[0] / "__init__.py").write_text("__all__ = ['Folder']\n")
    name = f"pitchpipe.{module}".strip(".")
    folder = name.removesuffix(".folder")
    line = f"{file}:2: imports {name}: enter {folder} through its __init__, from outside"
    assert line in violations(root, file, source)


@pytest.mark.parametrize(
    ("face", "message"),
    [
        ("from .folder import File, Folder", "offers `File`, which no other folder imports"),
        (LAZY, "offers `File`, which no other folder imports"),
        (
            "from .folder import Folder\n__all__ = ['Folder', 'File']",
            "offers `File`, which no other folder imports",
        ),
        ("from .folder import Folder\n__all__ = ()", "`Folder` is imported by others and missing in __all__"),
    ],
)
def test_face_of_a_folder_offers_what_others_import(tmp_path: Path, face: str, message: str) -> None:
    root = skeleton(tmp_path)
    (root / "store/__init__.py").write_text(f"{face}\n")
    found = violations(root, "manager/planted.py", "from ..store import Folder")
    assert found == [f"store/__init__.py:1: {message}"]


def test_command_ends_with_1_and_prints_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = skeleton(tmp_path)
    assert RULES["main"]([str(root)]) == 0
    plant(root, "manager/planted.py", "\nimport ray")
    assert RULES["main"]([str(root)]) == 1
    assert capsys.readouterr().out == f"manager/planted.py:2: {NO_RAY}\n"
