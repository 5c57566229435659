"""`pitchpipe mcp`: experiments for agents, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

from ...protocol import require_extra
from ..verb import directory_option, verb


@verb("mcp", "pitchpipe mcp", "pitchpipe mcp --dir runs")
@directory_option
def mcp(directory: Path | None) -> None:
    """Serve experiments to an agent, by the Model Context Protocol on stdin and stdout.

    An MCP client starts this command and uses its tools: write, check, start, watch, steer and explain an
    experiment. It may run any command that a config names. Needs the extra mcp.
    """
    require_extra("pitchpipe mcp needs", "mcp")
    from .mcp_tools import mcp_server

    mcp_server(directory).run()
