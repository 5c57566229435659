"""What `pitchpipe mcp --skill` prints for agents: each command in it is one that the command line takes."""

from __future__ import annotations

import re

from .conftest import Call
from .test_documented_commands import parse


def test_commands_of_the_skill_are_accepted(call: Call) -> None:
    text = call("mcp", "--skill").out
    commands = re.findall(r"`(pitchpipe [a-z][^`]*)`", text)
    assert len(commands) > 10
    for command in commands:
        parse(command)


def test_skill_says_when_it_is_of_use(call: Call) -> None:
    head = call("mcp", "--skill").out.split("---")[1]
    assert "\nname: pitchpipe\n" in head
    assert "\ndescription: Tune the hyper-parameters" in head
