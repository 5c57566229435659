"""What is noted at the start of a manager: the state of a repository, whatever it is, and the file of a function."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager import start_facts as module
from pitchpipe.manager.start_facts import MAX_DIFF, function_files, start_facts
from pitchpipe.sdk.loaded_code import file_digest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    return tmp_path


def git(directory: Path, *arguments: str) -> str:
    names = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    run = subprocess.run(
        ["git", *names, *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return run.stdout.strip()


def committed(repository: Path, text: str = "x = 1\n") -> str:
    (repository / "train.py").write_text(text)
    git(repository, "add", "train.py")
    git(repository, "commit", "--quiet", "-m", "first")
    return git(repository, "rev-parse", "HEAD")


@needs_git
def test_commit_branch_and_changes(repository: Path) -> None:
    commit = committed(repository)
    inner = repository / "experiments"
    inner.mkdir()
    facts = start_facts(inner)
    assert (facts.commit, facts.branch, facts.changed, facts.diff) == (commit, "main", 0, "")
    (repository / "train.py").write_text("x = 2\n")
    facts = start_facts(inner)
    assert facts.changed == 1
    assert "-x = 1\n+x = 2" in facts.diff


@needs_git
def test_repository_without_a_commit(repository: Path) -> None:
    facts = start_facts(repository)
    assert (facts.commit, facts.branch, facts.changed, facts.diff) == (None, None, None, "")


@needs_git
def test_detached_head(repository: Path) -> None:
    commit = committed(repository)
    git(repository, "checkout", "--quiet", "--detach")
    facts = start_facts(repository)
    assert (facts.commit, facts.branch) == (commit, None)


@needs_git
def test_long_difference_is_cut(repository: Path) -> None:
    committed(repository)
    (repository / "train.py").write_text("y = 22222222\n" * 40_000)
    assert len(start_facts(repository).diff) == MAX_DIFF


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_facts(tmp_path).commit is None
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert start_facts(tmp_path).commit is None


@needs_git
def test_broken_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /no/such/folder\n")
    assert start_facts(tmp_path).commit is None


def test_stored_facts_have_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret-of-ada")
    text, diff = start_facts(tmp_path).stored()
    assert "secret-of-ada" not in text
    assert {"host", "system", "python", "pitchpipe"} <= json.loads(text).keys()
    assert diff == ""


def objective(parameters: dict[str, float]) -> float:
    return parameters["x"]


class Objective:
    """A callable object."""

    def __call__(self, parameters: dict[str, float]) -> float:
        return parameters["x"]


@pytest.mark.parametrize(
    "function", [objective, partial(objective), Objective, Objective(), Objective().__call__]
)
def test_function_has_the_digest_of_its_file(function: object) -> None:
    here = Path(__file__)
    assert callable(function)
    assert function_files(function, here.parent) == {here.name: file_digest(str(here))}
    assert function_files(function, Path("/no/such/folder")) == {str(here): file_digest(str(here))}


def test_function_without_a_file_has_one_of_its_code() -> None:
    def made(source: str) -> dict[str, str]:
        space: dict[str, object] = {}
        exec(source, space)
        function = space["f"]
        assert callable(function)
        return function_files(function, Path("/"))

    once, twice = (made("def f(p): return p['x'] in {'a', 'b', 'c'}") for _ in range(2))
    assert once == twice
    assert once != made("def f(p): return p['x'] in {'a', 'b', 'd'}")
    assert list(once) == ["f()"]


PROGRAM = """
from functools import lru_cache, partial
EPOCHS = 3
WIDTHS = {"small": [1, 2], "large": {8, 9}}
@lru_cache
def scaled(x): return x * 2
class Net:
    depth = 4
    def forward(self, x): return scaled(x) + self.depth
def made(k):
    def inner(p): return k
    return inner
def train(p, rate=0.1): return [Net().forward(p["x"]) * EPOCHS for _ in WIDTHS]
def never(): return 7
inner, part = made(5), partial(train, rate=0.3)
MOST = 20
def search(): return MOST, train
"""


def of_program(name: str, *change: str) -> dict[str, str]:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(PROGRAM.replace(*change) if change else PROGRAM, space)
    return function_files(space[name], Path("/"))


@pytest.mark.parametrize(
    "change", [("MOST = 20", "MOST = 24"), ("return 7", "return 8"), ("EPOCHS = 3", "\nEPOCHS = 3")]
)
def test_function_of_the_program_is_the_same_whatever_it_does_not_use(change: tuple[str, str]) -> None:
    assert list(of_program("train")) == ["train()"]
    assert of_program("train") == of_program("train", *change)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("train", ("EPOCHS = 3", "EPOCHS = 4")),
        ("train", ("{8, 9}", "{8, 10}")),
        ("train", ("x * 2", "x * 3")),
        ("train", ("depth = 4", "depth = 5")),
        ("train", ("rate=0.1", "rate=0.2")),
        ("train", ("* EPOCHS", "+ EPOCHS")),
        ("Net", ("+ self.depth", "- self.depth")),
        ("inner", ("made(5)", "made(6)")),
        ("part", ("rate=0.3", "rate=0.4")),
    ],
)
def test_function_of_the_program_has_changed_with_what_it_uses(name: str, change: tuple[str, str]) -> None:
    assert of_program(name) != of_program(name, *change)


def test_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.05)
    git_program = tmp_path / "git"
    git_program.write_text("#!/bin/sh\nexec sleep 60\n")
    git_program.chmod(0o755)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert start_facts(tmp_path).commit is None
