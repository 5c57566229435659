"""The wheel: what is in it, what it leaves in an environment, and that it runs the demo on its own."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from configparser import ConfigParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .conftest import FOLDERS


def script(name: str, python: str = sys.executable) -> str:
    """Return the path of a console script that lies next to a Python."""
    return str(Path(python).parent / name)


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


# Hydra finds its plug-ins in this namespace, which all distributions share.
HYDRA_PLUGIN = "hydra_plugins/pitchpipe_sweeper/__init__.py"


def test_wheel_puts_nothing_but_pitchpipe_into_site_packages(wheel: Path) -> None:
    files = files_of(wheel)
    tops = {name.split("/")[0] for name in files}
    version = metadata.version("pitchpipe")
    assert tops == {"pitchpipe", f"pitchpipe-{version}.dist-info", "hydra_plugins"}
    assert {name for name in files if name.startswith("hydra_plugins/")} == {HYDRA_PLUGIN}


def test_wheel_has_every_module_of_the_tree_and_no_other(tree: Path, wheel: Path) -> None:
    paths = [
        path.relative_to(tree).as_posix() for folder in FOLDERS for path in (tree / folder).rglob("*.py")
    ]
    expected = {path if path.startswith("pitchpipe/") else f"pitchpipe/{path}" for path in paths}
    expected = expected - {f"pitchpipe/integrations/{HYDRA_PLUGIN}"} | {HYDRA_PLUGIN}
    assert {name for name in files_of(wheel) if name.endswith(".py")} == expected
    assert "pitchpipe/py.typed" in files_of(wheel)


def test_every_folder_with_modules_is_a_package_of_setup_cfg(tree: Path) -> None:
    parser = ConfigParser()
    parser.read(tree / "setup.cfg", encoding="utf-8")
    packages = parser["options"]["packages"].split()
    folders = sorted(path.parent for name in FOLDERS for path in (tree / name).rglob("__init__.py"))
    folders.remove(tree / "pitchpipe")
    folders.remove(tree / "compat/nni/alias/path/nni")  # data: scripts import it as `nni`
    folders.remove(tree / "integrations" / Path(HYDRA_PLUGIN).parent)
    dotted = {".".join(("pitchpipe", *folder.relative_to(tree).parts)) for folder in folders}
    assert set(packages) == {"pitchpipe", "hydra_plugins.pitchpipe_sweeper", *dotted}
    others = {"tests", "benchmarks", "examples", "docs", "build"}
    with_modules = {path.parent.name for path in tree.glob("*/*.py")}
    assert with_modules - others == {*FOLDERS}


def test_suite_runs_against_the_installed_wheel() -> None:
    if not os.environ.get("PITCHPIPE_WHEEL"):
        pytest.skip("not started by `make test`")
    import pitchpipe.protocol

    for module in (pitchpipe, pitchpipe.protocol):
        assert "site-packages" in str(module.__file__)
        assert str(Path(str(module.__file__)).resolve()).startswith(str(Path(sys.prefix).resolve()))


def test_console_script_says_its_version() -> None:
    result = subprocess.run([script("pitchpipe"), "--version"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert metadata.version("pitchpipe") in result.stdout


def requirements(name: str, extras: set[str], found: set[str]) -> set[str]:
    """Add to `found` all distributions that this one needs, directly or through others."""
    for requirement in map(Requirement, metadata.requires(name) or []):
        marker = requirement.marker
        applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if applies and requirement.name not in found:
            found.add(requirement.name)
            requirements(requirement.name, requirement.extras, found)
    return found


@pytest.fixture(scope="module")
def empty_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make an environment that has nothing but the wheel and what it requires; return its Python.

    What it requires is linked, not installed: no download, and no gigabyte to unpack.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = str(folder / "bin" / "python")
    (site,) = folder.glob("lib/python*/site-packages")
    for name in requirements("pitchpipe", {"examples"}, set()):
        for top in {file.parts[0] for file in metadata.files(name) or []} - {"..", "__pycache__"}:
            if not (site / top).exists():  # parts of a namespace package come together
                (site / top).symlink_to(metadata.distribution(name).locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--quiet", "--no-compile"]
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True, cwd=folder)
    return python


def test_trial_needs_nothing_but_the_wheel(wheel: Path, tmp_path: Path) -> None:
    trial = """
import argparse, pitchpipe
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
pitchpipe.report_intermediate_result({"default": pitchpipe.parse_args(parser).lr})
pitchpipe.report_final_result(pitchpipe.get_next_parameter().get("lr", 0.1))
"""
    (tmp_path / "trial.py").write_text(trial)
    wheel_only = [sys.executable, "-S", "-P", "trial.py"]  # -S: no site-packages
    environment = {"PYTHONPATH": str(wheel), "PATH": os.defpath}
    done = subprocess.run(
        wheel_only, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Final result: 0.1" in done.stdout


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_wheel_in_an_empty_environment_runs_the_demo(
    tree: Path, empty_environment: str, tmp_path: Path
) -> None:
    demo = tmp_path / "digits"
    shutil.copytree(tree / "examples" / "digits", demo, ignore=shutil.ignore_patterns("__pycache__"))
    config = (demo / "experiment.yml").read_text()
    assert "max_trial_number: 40" in config
    (demo / "experiment.yml").write_text(config.replace("max_trial_number: 40", "max_trial_number: 1"))
    training = (demo / "train.py").read_text()
    assert "EPOCHS = 60\n" in training
    (demo / "train.py").write_text(training.replace("EPOCHS = 60\n", "EPOCHS = 10\n"))

    path = f"{Path(empty_environment).parent}{os.pathsep}{os.environ['PATH']}"
    command = [script("pitchpipe", empty_environment), "run", "experiment.yml", "--json", "--dir", tmp_path]
    result = subprocess.run(
        command, cwd=demo, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr
    summary = json.loads(result.stdout)
    assert summary["status"] == "DONE"
    assert summary["counts"] == {"SUCCEEDED": 1}
    assert 0.5 < summary["best"]["value"] <= 1.0
    assert set(summary["best"]["parameters"]) >= {"learning_rate", "solver", "hidden_units"}

    # What brings pages and figures is not among the requirements.
    command = [script("pitchpipe", empty_environment), "report", summary["id"], "--dir", tmp_path]
    result = subprocess.run(command, cwd=demo, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: a report needs the extra ui: pip install 'fastapi>=")
