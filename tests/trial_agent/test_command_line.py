"""From a command to a program: plain commands directly, others through a shell, with readable errors."""

import os
from pathlib import Path

import pytest

from pitchpipe.trial_agent.command_line import StartError, arguments_of


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_program_with_a_slash_is_relative_to_the_code_directory(tmp_path: Path) -> None:
    train = program(tmp_path / "train.sh")
    assert arguments_of("./train.sh", str(tmp_path), {}) == [os.path.join(tmp_path, "./train.sh")]
    assert train.exists()


def test_first_executable_file_on_the_path_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "one" / "train", 0o644)
    (tmp_path / "two" / "train").mkdir(parents=True)
    third = program(tmp_path / "three" / "train")
    path = os.pathsep.join(str(tmp_path / name) for name in ("one", "two", "three"))
    assert arguments_of("train", str(tmp_path), {"PATH": path}) == [str(third)]


def test_without_a_shell_its_characters_are_arguments(tmp_path: Path) -> None:
    train = program(tmp_path / "train")
    assert arguments_of("./train $HOME", str(tmp_path), {}, shell=False)[1:] == ["$HOME"]
    assert train.exists()


def test_empty_command_cannot_start() -> None:
    with pytest.raises(StartError, match="the command is empty"):
        arguments_of("", "/", {"PATH": "/bin"})


def test_missing_code_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"code directory does not exist: .*gone"):
        arguments_of("ls", str(tmp_path / "gone"), {"PATH": "/bin"})
