"""Every example in a docstring of the installed package runs, and the runner sees a planted error."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PLANTED = '''
def twice(x):
    """Double a number.

    >>> twice(2)
    5
    """
    return 2 * x
'''


def run_doctests(tree: Path, *arguments: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run examples outside the tree, so that only an installed package, or the one in `site`, is found."""
    environment = {**os.environ, "PYTHONPATH": str(site) if site else ""}
    command = [sys.executable, str(tree / "tests" / "run_doctests.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_examples_of_the_installed_package_run(tree: Path) -> None:
    result = run_doctests(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    names = [line.split(":")[0] for line in result.stdout.splitlines()]
    assert "pitchpipe.protocol.frames" in names
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_planted_wrong_example_is_seen(tree: Path, wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "pitchpipe" / "protocol" / "planted.py").write_text(PLANTED)
    result = run_doctests(tree, "pitchpipe.protocol", site=site)
    assert result.returncode == 1, result.stderr
    assert "pitchpipe.protocol.planted: 1/1" in result.stdout
    assert "Expected:\n    5\nGot:\n    4\n" in result.stdout
