"""A hook of mkdocs: adds the pages that are made from the code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import pitchpipe
from pitchpipe.server.application import create_app
from pitchpipe.server.experiments import Experiments

__all__ = ["on_config", "on_files"]

FOLDER = "docs/reference"
VERBS = """\
# All verbs and options

[Command line](cli.md) explains them and has examples.

::: mkdocs-click
    :module: pitchpipe.cli.app
    :command: pitchpipe
    :prog_name: pitchpipe
    :depth: 1
    :style: plain
"""
ROUTES = """\
# All routes and fields

[HTTP API](http.md) explains them. A server describes them at `/api/v1/openapi.json`.

<swagger-ui src="openapi.json"/>
"""
# The rooms that the names of `pitchpipe` come from, in the order of the page.
HEADINGS = {
    "sdk": "In a trial",
    "pitchpipe": "Experiments",
    "manager": "Stoppers and callbacks",
    "tuners": "Tuners",
    "assessors": "Assessors",
    "server": "Servers",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the version into the title: a site describes one version."""
    config.site_name += f" {pitchpipe.__version__}"
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    pages = {
        "all-verbs.md": VERBS,
        "all-routes.md": ROUTES,
        "openapi.json": routes(),
        "all-names.md": names(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    return files


def routes() -> str:
    """Return the description of the HTTP API."""
    with tempfile.TemporaryDirectory() as nothing:
        return json.dumps(create_app(Experiments(Path(nothing)), pages=False).openapi())


def names() -> str:
    """Return the page with all names of `pitchpipe`."""
    modules = {name: getattr(pitchpipe, name).__module__ for name in pitchpipe.__all__ if name[0] != "_"}
    return "\n".join(["# All names of `pitchpipe`", *_directives(modules)])


def _directives(modules: dict[str, str]) -> Iterator[str]:
    for room, heading in HEADINGS.items():
        yield f"\n## {heading}\n"
        for name, module in modules.items():
            if _room(module) == room:
                yield f"::: {module}.{name}"


def _room(module: str) -> str:
    """Return the room of a module; those of the face are `pitchpipe.NAME`."""
    package, first, *_ = module.split(".")
    return first if first in HEADINGS else package
