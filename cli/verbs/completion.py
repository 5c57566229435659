"""`pitchpipe completion`: shell completion of verbs, options and the ids of experiments."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..verb import verb


@verb(
    "completion",
    "pitchpipe completion bash >> ~/.bashrc",
    "pitchpipe completion fish > ~/.config/fish/completions/pitchpipe.fish",
)
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell: str) -> None:
    """Print the completion of verbs, options and experiment ids for SHELL; add it to the shell's start-up file."""
    from ..app import pitchpipe

    if (made := get_completion_class(shell)) is not None:
        click.echo(made(pitchpipe, {}, "pitchpipe", "_PITCHPIPE_COMPLETE").source())
