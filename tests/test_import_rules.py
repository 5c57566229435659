"""The rules on imports, module-level state and dataclasses hold in the tree, and the checker sees planted errors."""

import runpy
from pathlib import Path
from typing import Any

import pytest

RULES: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("import_rules.py")))

NO_RAY = "only executors/ray/ and executors/private_ray/ import ray"
# What is planted, where, and what has to be said about it.
PLANTED_IMPORTS = [
    (
        "protocol/planted.py",
        "from ..search_space import SearchSpace",
        "protocol must not import search_space",
    ),
    ("manager/planted.py", "from .. import tuners", "manager must not import tuners"),
    ("manager/planted.py", "def f():\n    from ..tuners import create", "manager must not import tuners"),
    (
        "manager/planted.py",
        "if TYPE_CHECKING:\n    from ..tuners import Tuner",
        "manager must not import tuners",
    ),
    (
        "manager/planted.py",
        "import importlib\ndef f():\n    importlib.import_module('..tuners.tpe', __package__)",
        "manager must not import tuners",
    ),
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
]

PLANTED_STATE = [
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


def skeleton(root: Path) -> Path:
    """Make a tree with all rooms and nothing in them."""
    for room in [*RULES["MAY_IMPORT"], "executors/ray", "executors/local"]:
        (root / room).mkdir()
        (root / room / "__init__.py").write_text("")
    for file in ("manager/loop.py", "executors/base.py", "store/folder.py"):
        plant(root, file, "")
    return root


def plant(root: Path, file: str, source: str) -> None:
    """Write a module, with an `__all__` that lists nothing."""
    (root / file).write_text(source + "\n__all__ = ()\n")


def violations(root: Path, file: str, source: str) -> list[str]:
    plant(root, file, source)
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
    found = [line for line in violations(skeleton(tmp_path), file, source) if line.startswith(f"{file}:")]
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(("source", "message"), PLANTED_STATE)
def test_planted_state_is_seen(tmp_path: Path, source: str, message: str) -> None:
    found = violations(skeleton(tmp_path), "manager/planted.py", source)
    assert any(message in line for line in found), found


@pytest.mark.parametrize("source", PLANTED_TEXTS)
def test_variable_that_a_page_parses_is_seen(tmp_path: Path, source: str) -> None:
    found = violations(skeleton(tmp_path), "server/planted.py", source)
    assert ["parses it: see `attributed`" in line for line in found] == [True]


@pytest.mark.parametrize(
    ("room", "call"),
    [
        ("executors", "asyncio.create_task(work())"),
        ("manager", "loop.create_task(work())"),
        ("trial_agent", "asyncio.ensure_future(work())"),
        ("server", "loop.call_soon(work)"),
        ("store", "loop.call_later(1.0, work)"),
        ("executors", "task.add_done_callback(work)"),
        ("manager", "loop.run_in_executor(None, work)"),
    ],
)
def test_task_without_an_owner_is_seen(tmp_path: Path, room: str, call: str) -> None:
    found = violations(skeleton(tmp_path), f"{room}/planted.py", f"def begin():\n    {call}")
    (message,) = [line for line in found if "begin" in line]
    assert message.startswith(f"{room}/planted.py:2: ")
    assert "nothing learns of a failure" in message


def test_every_exception_for_a_task_is_one_of_the_tree(tree: Path) -> None:
    for file, function in RULES["OWNED"]:
        assert f"def {function}(" in (tree / file).read_text(), (file, function)


@pytest.mark.parametrize(
    ("file", "source"),
    [("tuners/planted.py", "def f(): ..."), ("tuners/__init__.py", '"""Doc."""\nfrom .planted import f')],
)
def test_missing_list_of_names_is_seen(tmp_path: Path, file: str, source: str) -> None:
    root = skeleton(tmp_path)
    (root / file).write_text(source)
    assert [str(violation) for violation in RULES["check_tree"](root)] == [f"{file}:1: has no __all__"]


@pytest.mark.parametrize("file", ["tuners/__main__.py", "tuners/__init__.py"])
def test_module_without_names_to_import_needs_no_list(tmp_path: Path, file: str) -> None:
    root = skeleton(tmp_path)
    (root / file).write_text('"""A docstring."""\nfrom __future__ import annotations\n')
    assert RULES["check_tree"](root) == []


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


def test_name_that_no_other_folder_imports_is_not_offered(tmp_path: Path) -> None:
    root = skeleton(tmp_path)
    plant(root, "manager/planted.py", "from ..store import Folder")
    (root / "store/__init__.py").write_text(
        "from .folder import File, Folder\n\n__all__ = ['File', 'Folder']\n"
    )
    assert [str(violation) for violation in RULES["check_tree"](root)] == [
        "store/__init__.py:1: offers `File`, which no other folder imports"
    ]


def test_name_that_others_import_is_offered(tmp_path: Path) -> None:
    root = skeleton(tmp_path)
    plant(root, "store/__init__.py", "from .folder import Folder")
    assert violations(root, "manager/planted.py", "from ..store import Folder") == [
        "store/__init__.py:1: `Folder` is imported by others and missing in __all__"
    ]


def test_command_ends_with_1_and_prints_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = skeleton(tmp_path)
    assert RULES["main"]([str(root)]) == 0
    plant(root, "manager/planted.py", "\nimport ray")
    assert RULES["main"]([str(root)]) == 1
    assert (
        capsys.readouterr().out
        == "manager/planted.py:2: only executors/ray/ and executors/private_ray/ import ray\n"
    )
