"""What is noted at the start of a manager: the state of a repository, whatever it is, and the file of a function."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from pitchpipe.manager import start_facts as module
from pitchpipe.manager.start_facts import MAX_DIFF, start_facts

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


def test_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.05)
    git_program = tmp_path / "git"
    git_program.write_text("#!/bin/sh\nexec sleep 60\n")
    git_program.chmod(0o755)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert start_facts(tmp_path).commit is None
