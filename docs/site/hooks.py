"""A hook of mkdocs: adds the pages that are made from the code."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from routes_page import routes_page

import pitchpipe
from pitchpipe.server.application import create_app
from pitchpipe.server.experiments import Experiments

__all__ = ["on_config", "on_files", "on_page_markdown"]

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
# The rooms that the names of `pitchpipe` come from, in the order of the page.
HEADINGS = {
    "sdk": "In a trial",
    "pitchpipe": "Experiments",
    "search_space": "Search spaces",
    "manager": "Stoppers and callbacks",
    "tuners": "Tuners",
    "assessors": "Assessors",
    "compat": "Servers",
}
# Classes that users get from the names of `pitchpipe`, and do not import: they follow the first.
RETURNED = {
    "ExperimentResult": ("pitchpipe.results.BestTrial",),
    "Search": ("pitchpipe.search.SearchTrial",),
}
# The figures are methods of all three, and described once.
FIGURES = """\
## Figures

Methods of `Experiment`, `ExperimentResult` and `Search`; [Figures and reports](../use/figures.md) shows them.

::: pitchpipe.plots.Plots
"""
LANGUAGES = {".py": "python", ".yml": "yaml", ".sh": "sh", ".json": "json"}
_FIRST_TEXT = re.compile(r"(?<=\n\n)(?!\[!|```|[#>|!<-]|\s).+(?:\n(?!\s*\n).+)*", re.MULTILINE)
_LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])+)\]\([^)]*\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the version into the title: a site describes one version. Only one made by mike has a choice of versions."""
    if "MIKE_DOCS_VERSION" not in os.environ:
        config.extra.pop("version", None)
    config.site_name += f" {pitchpipe.__version__}"
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    pages = {
        "all-verbs.md": VERBS,
        "all-routes.md": routes(),
        "all-names.md": names(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    files.append(
        File.generated(config, "llms.txt", content="\n".join(index_for_agents(config, files)) + "\n")
    )
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Show the files of an example on its page, and find pages for users before those on measurements and decisions."""
    source = page.file.src_uri
    if source.startswith(("docs/lab/", "docs/decisions/")):
        page.meta["search"] = {"boost": 0.2}
    if not source.startswith("examples/") or source.count("/") < 2 or page.file.abs_src_path is None:
        return markdown
    folder = Path(page.file.abs_src_path).resolve().parent
    return "\n".join([markdown, *_files_of(folder)])


def _files_of(folder: Path) -> Iterator[str]:
    """Yield the text files below a folder as sections of a page."""
    for path in sorted(folder.rglob("*")):
        if language := LANGUAGES.get(path.suffix):
            fence = f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"
            yield f"\n## `{path.relative_to(folder)}`\n\n{fence}\n"


def routes() -> str:
    """Return the page with all routes of the HTTP API."""
    with tempfile.TemporaryDirectory() as nothing:
        return routes_page(create_app(Experiments(Path(nothing)), pages=False).openapi())


def index_for_agents(config: MkDocsConfig, files: Files) -> Iterator[str]:
    """Yield the lines of llms.txt: what Pitchpipe is, and what each page is about, for programs that read."""
    yield f"# {config.site_name}\n\n> {config.site_description}\n"
    yield "`pitchpipe mcp` serves tools to an agent; `pitchpipe mcp --skill` prints how to use the command line.\n"
    yield from _indexed(config.nav or [], files)


def _indexed(entries: list[Any], files: Files) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, dict):
            ((title, inner),) = entry.items()
            yield f"\n## {title}\n"
            yield from _indexed(inner, files)
        elif (file := files.get_file_from_path(entry)) is not None:
            text = file.content_string
            title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), entry)
            about = _FIRST_TEXT.search(text)
            said = [] if about is None else [_LINK.sub(r"\1", " ".join(about[0].split()))]
            yield ": ".join([f"- [{title}]({file.url})", *said])


def names() -> str:
    """Return the page with all names of `pitchpipe`."""
    modules = {name: getattr(pitchpipe, name).__module__ for name in pitchpipe.__all__ if name[0] != "_"}
    return "\n".join(["# All names of `pitchpipe`", *_directives(modules), "", FIGURES])


def _directives(modules: dict[str, str]) -> Iterator[str]:
    for room, heading in HEADINGS.items():
        yield f"\n## {heading}\n"
        for name, module in modules.items():
            if _room(module) == room:
                yield f"::: {module}.{name}"
                yield from (f"::: {returned}" for returned in RETURNED.get(name, ()))


def _room(module: str) -> str:
    """Return the room of a module; those of the face are `pitchpipe.NAME`."""
    package, first, *_ = module.split(".")
    return first if first in HEADINGS else package
