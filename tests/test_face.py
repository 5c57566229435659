"""The face of the package: its names, and what importing it costs a trial script."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pitchpipe

from .conftest import FOLDERS
from .import_rules import lazy_imports, module_name

HEAVY = ["numpy", "scipy", "ray", "yaml", "ruamel", "asyncio", "json_tricks", "orjson", "pydantic", "typing"]
HEAVY += ["dataclasses", "subprocess", "psutil", "cloudpickle"]
ROOT = Path(__file__).parent.parent
LAZY = [
    file.parent.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for file in sorted((ROOT / folder).rglob("__init__.py"))
    if "lazy_names(" in file.read_text(encoding="utf-8")
]


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after some code."""
    code += "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def test_import_and_reports_load_nothing_heavy() -> None:
    reports = "p.report_intermediate_result(1)\np.report_final_result(1)"
    modules = modules_after(f"import pitchpipe as p\np.get_next_parameter()\n{reports}")
    assert [name for name in HEAVY if name in modules] == []
    light = {"pitchpipe", "pitchpipe.protocol", "pitchpipe.protocol.lazy", "pitchpipe.sdk"}
    light |= {
        f"pitchpipe.sdk.{name}"
        for name in ("checkpoint", "current_trial", "errors", "line_file", "variables")
    }
    assert {name for name in modules if name.startswith("pitchpipe")} == light


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("trial_agent.__main__", ["numpy", "yaml", "pydantic", "pitchpipe.store.store"]),
        ("executors.ray.ray_agent", ["asyncio", "sqlite3", "pitchpipe.store.store"]),
        ("executors.private_ray.supervisor", ["sqlite3", "pydantic"]),
        ("dispatcher", ["sqlite3", "pitchpipe.store.store"]),
    ],
)
def test_process_loads_only_what_it_needs_before_it_starts(module: str, heavy: list[str]) -> None:
    assert modules_after(f"import pitchpipe.{module}").isdisjoint({"ray", "pitchpipe.runner", *heavy})


def test_validate_starts_without_the_manager_and_the_state_machine(tmp_path: Path) -> None:
    config = {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trial_command": "true",
        "tuner": "Random",
        "training_service": {"platform": "local"},
    }
    file = tmp_path / "experiment.yml"
    file.write_text(json.dumps(config))
    code = f"from pitchpipe.cli.app import run\nassert run(['validate', {str(file)!r}]) == 0"
    modules = modules_after(code)
    heavy = ["asyncio", "sqlite3", "cloudpickle", "filelock", "numpy"]
    heavy += [f"pitchpipe.{name}" for name in ("manager.experiment_factory", "runner.events", "store.store")]
    assert [name for name in heavy if name in modules] == []


def test_folders_of_the_tree_are_not_top_level_modules() -> None:
    folders = {*FOLDERS} - {"pitchpipe"}
    names = "\n".join(f"import pitchpipe.{name}" for name in folders)
    assert modules_after(names).isdisjoint(folders)


def test_every_public_name_is_there() -> None:
    assert [name for name in pitchpipe.__all__ if getattr(pitchpipe, name) is None] == []
    assert set(pitchpipe.__all__) <= set(dir(pitchpipe))


def test_the_type_of_every_public_name_is_checked() -> None:
    checked = ast.parse(Path(__file__).with_name("typed_names.py").read_text(encoding="utf-8"))
    imports = [
        node for node in checked.body if isinstance(node, ast.ImportFrom) and node.module == "pitchpipe"
    ]
    assert {alias.name for node in imports for alias in node.names} == {*pitchpipe.__all__}


@pytest.mark.parametrize("room", LAZY)
def test_names_of_a_lazy_room_are_there_and_no_others(room: str) -> None:
    module = import_module(module_name(f"{room}/__init__.py"))
    names = lazy_imports(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
    assert [name for name in names if getattr(module, name) is None] == []
    with pytest.raises(AttributeError, match="'nothing'"):
        getattr(module, "nothing")  # noqa: B009 - a type checker would see it


def test_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pitchpipe' has no attribute 'repotr'"):
        getattr(pitchpipe, "repotr")  # noqa: B009 - a type checker would see it


def test_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert pitchpipe.__version__ == version("pitchpipe")
