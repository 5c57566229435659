"""`pitchpipe schema`: what an editor needs to complete a config."""

from __future__ import annotations

import json

import click

from ..verb import verb

SCHEMA_FILE = "experiment.schema.json"
"""The file in which `init` looks for a schema, beside the config that it writes."""


@verb("schema", f"pitchpipe schema > {SCHEMA_FILE}")
def schema() -> None:
    """Print the JSON schema of experiment.yml, with which editors complete fields and show what they mean.

    In VS Code (with the YAML extension), Neovim and others the first line of a config names it:
    `# yaml-language-server: $schema=experiment.schema.json`. `init` writes this line where the file is there.
    """
    from ...config import config_schema

    click.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))
