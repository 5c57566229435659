"""`make lint` and `make types` see errors that are planted in any of the packages.

A checker that looks at the wrong folders passes and says nothing; so each package gets an error of its own,
and each has to be named. The commands are those of the Makefile, run on a tree whose packages are empty but for
protocol/: what the checkers say about the real ones, `make check` shows.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import FOLDERS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # only bounds a hang: the type checker has all the packages to look at
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


@pytest.fixture
def skeleton(tree: Path, tmp_path: Path) -> Path:
    """Make a tree of empty packages, with the settings of this one and its protocol/."""
    target = tmp_path / "tree"
    for folder in FOLDERS:
        (target / folder).mkdir(parents=True)
        (target / folder / "__init__.py").write_text('"""Empty."""\n')
    shutil.rmtree(target / "protocol")
    shutil.copytree(tree / "protocol", target / "protocol", ignore=shutil.ignore_patterns("__pycache__"))
    (target / "tests").mkdir()
    for name in ("Makefile", "pyproject.toml", "setup.cfg", "README.md", "tests/import_rules.py"):
        shutil.copy(tree / name, target / name)
    return target


def make(tree: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Run a target on a copy with the tools of this environment, without building anything."""
    environment = tree.parent / "environment"  # a path without a space, which make takes for two
    environment.symlink_to(sys.prefix)
    options = ["--no-print-directory", "--keep-going", "READY=", f"BIN={environment}/bin"]
    command = ["make", *options, target]
    # Not the flags of the make that may have started this session.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


def plant(tree: Path, source: str) -> list[str]:
    """Write a file into each package; return their names."""
    for folder in FOLDERS:
        (tree / folder / "planted.py").write_text(source)
    return [f"{folder}/planted.py" for folder in FOLDERS]


def test_lint_sees_an_unused_import_in_every_package(skeleton: Path) -> None:
    planted = plant(skeleton, '"""Planted."""\n\nimport os\n')
    result = make(skeleton, "lint")
    assert result.returncode != 0
    assert [file for file in planted if f"{file}:3" not in result.stdout] == []
    assert "F401" in result.stdout


def test_format_check_sees_a_badly_formatted_file_in_every_package(skeleton: Path) -> None:
    planted = plant(skeleton, '"""Planted."""\n\nx = (1,2)\n')
    (skeleton / "cli" / "planted_well.py").write_text('"""Planted."""\n\nx = (1, 2)\n')
    result = make(skeleton, "lint-format")
    assert result.returncode != 0
    assert [file for file in planted if file not in result.stdout] == []
    assert "planted_well.py" not in result.stdout


def test_import_rule_is_part_of_lint(skeleton: Path) -> None:
    (skeleton / "manager" / "planted.py").write_text(
        '"""Planted."""\n\nfrom ..tuners import Tuner\n\n__all__ = ["Tuner"]\n'
    )
    result = make(skeleton, "lint")
    assert result.returncode != 0
    assert "manager/planted.py:3: manager must not import tuners" in result.stdout


def test_types_sees_planted_errors_in_every_package(skeleton: Path) -> None:
    # The wrong type comes out of another package: seen only if the relative import is resolved from the tree.
    source = '"""Planted."""\n\nfrom {} import encode_frame\n\nbad: int = encode_frame("no", 1)\n'
    plant(skeleton, source.format("..protocol"))
    (skeleton / "pitchpipe" / "planted.py").write_text(source.format(".protocol"))
    source = (
        '"""Planted."""\n\nfrom ..manager import no_such_name\n\n\ndef f(x):\n    return no_such_name, x\n'
    )
    (skeleton / "cli" / "unknown.py").write_text(source)

    result = make(skeleton, "types")

    assert result.returncode != 0
    for folder in FOLDERS:
        lines = [line for line in result.stdout.splitlines() if f"/{folder}/planted.py:5" in line]
        assert any('Type "bytes" is not assignable to declared type "int"' in line for line in lines), folder
        assert any('"CommandType"' in line for line in lines), folder
    assert '"no_such_name" is unknown import symbol' in result.stdout
    assert "cli/unknown.py:6:7 - error: Type annotation is missing" in result.stdout


def test_tree_is_the_layout_of_the_installed_package_over_the_files_of_the_checkout(
    skeleton: Path,
) -> None:
    make(skeleton, "tree")
    inside = skeleton / "build" / "types" / "pitchpipe"
    assert {path.name for path in inside.iterdir()} >= {*FOLDERS, "__init__.py"} - {"pitchpipe"}
    frames = inside / "protocol" / "frames.py"
    assert frames.resolve() == (skeleton / "protocol" / "frames.py").resolve()
