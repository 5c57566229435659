"""Every command line in the documentation is one that the command line accepts."""

import re
import shlex
from pathlib import Path

import click
import pytest

from pitchpipe.cli.app import pitchpipe
from pitchpipe.compat.nni.nnictl_words import translated

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What stands for a value in the documentation, by the value that is tried.
PLACEHOLDERS = {" N": " 8", " D": " 2h"}


def command_lines(text: str) -> list[str]:
    """Return the lines of indented blocks that begin with `pitchpipe VERB`, without comments and redirections."""
    lines = re.findall(r"^(?:    |\$ )(pitchpipe [a-z].*)$", text, re.MULTILINE)
    return [re.split(r"\s{2,}|\s#|\s>>?\s", line)[0] for line in lines]


COMMANDS = sorted({line for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))})


def parse(line: str) -> None:
    """Parse a command line without running it; raise `ClickException` if it is refused."""
    for placeholder, value in PLACEHOLDERS.items():
        line = line.replace(placeholder, value)
    command: click.Command = pitchpipe
    words = translated(shlex.split(line)[1:])
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(click.Context(command), list(words))
        assert found is not None
        command = found
    command.make_context("pitchpipe", list(words))


def test_documentation_has_command_lines() -> None:
    assert len(COMMANDS) > 60


def test_command_lines_are_accepted() -> None:
    refused = {}
    for line in COMMANDS:
        try:
            parse(line)
        except click.ClickException as error:
            refused[line] = error.message
    assert refused == {}


def test_unknown_option_is_refused() -> None:
    with pytest.raises(click.ClickException, match="No such option"):
        parse("pitchpipe trials --newest")
