"""`pitchpipe completion`: words that complete themselves at the Tab key, ids of experiments included."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..verb import verb

__all__ = ["completion"]


@verb(
    "completion",
    "pitchpipe completion bash >> ~/.bashrc",
    "pitchpipe completion fish > ~/.config/fish/completions/pitchpipe.fish",
)
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete verbs, options and the ids of experiments: put it into its start-up file."""
    from ..app import pitchpipe

    if (made := get_completion_class(shell)) is not None:
        click.echo(made(pitchpipe, {}, "pitchpipe", "_PITCHPIPE_COMPLETE").source())
