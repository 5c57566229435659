"""From a command to a program: plain commands directly, others through a shell, with readable errors."""

import os
from pathlib import Path

import pytest

from pitchpipe.trial_agent.command_line import StartError, arguments_of, needs_shell


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "command",
    ["a | b", "a > log", "a && b", "a; b", "echo $HOME", "ls *.py", "A=1 train", "cd x", "exit 3", "~/train"],
)
def test_command_with_shell_syntax_goes_to_a_shell(command: str) -> None:
    assert needs_shell(command)
    arguments = arguments_of(command, "/", dict(os.environ))
    assert arguments[0] in ("/bin/bash", "/bin/sh")
    assert arguments[1:] == ["-c", command]


def test_plain_command_is_executed_directly_with_its_quotes_removed(tmp_path: Path) -> None:
    train = program(tmp_path / "bin" / "train")
    arguments = arguments_of("train --name 'a b' \"c\"", str(tmp_path), {"PATH": str(train.parent)})
    assert arguments == [str(train), "--name", "a b", "c"]


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


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [
        ("trainn --x 1", "command not found: trainn", 127),
        ("./missing", "command not found: ./missing", 127),
        ("./plain", "not executable: ./plain", 126),
        ("", "the command is empty", 127),
        ("echo 'a", "cannot understand the command", 2),
    ],
)
def test_command_that_cannot_start_says_why(tmp_path: Path, command: str, words: str, code: int) -> None:
    program(tmp_path / "plain", 0o644)
    with pytest.raises(StartError, match=words) as caught:
        arguments_of(command, str(tmp_path), {"PATH": "/bin"})
    assert caught.value.exit_code == code


def test_missing_code_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"code directory does not exist: .*gone"):
        arguments_of("ls", str(tmp_path / "gone"), {"PATH": "/bin"})
