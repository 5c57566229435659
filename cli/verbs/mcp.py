"""`pitchpipe mcp`: experiments for agents, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from ...protocol import require_extra
from ..verb import directory_option, verb


@verb("mcp", "pitchpipe mcp", "pitchpipe mcp --dir runs", "pitchpipe mcp --skill")
@directory_option
@click.option(
    "--skill", is_flag=True, help="Print what an agent should know, for its folder of skills; serve nothing."
)
def mcp(directory: Path | None, skill: bool) -> None:
    """Serve experiments to an agent, by the Model Context Protocol on stdin and stdout.

    An MCP client starts this command and uses its tools: write, check, start, watch, steer and explain an
    experiment. It may run any command that a config names. Needs the extra mcp; an agent with a shell needs only the
    verbs, and what `--skill` prints.
    """
    if skill:
        click.echo(Path(__file__).with_name("skill.md").read_text(encoding="utf-8"), nl=False)
        return
    require_extra("pitchpipe mcp needs", "mcp")
    from .mcp_tools import mcp_server

    mcp_server(directory).run()
