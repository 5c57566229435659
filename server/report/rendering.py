"""The report as a page: facts and figures in one self-contained HTML file."""

from __future__ import annotations

import secrets
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...store import whole_file
from ...store.reading import ExperimentView, escaped
from ..experiment_table import read_table
from .drawings import drawings_of, packed_drawings, packed_plotly
from .facts import facts_of
from .reproducing import configuration_text, steps_of

__all__ = ["render_report", "write_report"]


def write_report(folder: Path, path: Path) -> int:
    """Write the report of an experiment's folder to a file, all of it or nothing; return its size in bytes.

    Raise `StoreError` if the experiment cannot be read and `OSError` if the file cannot be written.
    """
    with ExperimentView(folder) as view:
        page = render_report(view).encode("utf-8")
    with whole_file(path) as file:
        file.write(page)
    return len(page)


def render_report(view: ExperimentView) -> str:
    """Return the page of an experiment. Everything from the experiment is escaped by the template, or packed."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    table = read_table(view, attempts=True)
    facts, drawings = facts_of(view, table), drawings_of(table)
    values: dict[str, Any] = {
        "facts": facts,
        "drawings": drawings,
        "steps": steps_of(view),
        "configuration": configuration_text(view),
        "css": Markup(_own("report.css")),
        "js": Markup(_own("report.js")),
        "plotly": packed_plotly(),
        "figures": packed_drawings(drawings),
        # Scripts without this word do not run, wherever they come from.
        "nonce": secrets.token_urlsafe(16),
    }
    return environment.from_string(_own("report.html.j2")).render(values)


def _shown(value: Any) -> Any:
    """Return what the template writes: texts without control characters, except where they are of our own."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return escaped(value, keep="\n\t") if is_text else value


def _own(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")
