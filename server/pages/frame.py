"""What every page has: the bar at the top, the skip link, the theme, and the page for missing things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from nicegui import html, ui

from ...store.reading import ExperimentView, Summary, escaped, experiment_text, visible
from ..experiments import Experiments
from .elements import facts, set_badge
from .live import Live
from .theme import theme_button
from .wording import EXPERIMENT_TONES

__all__ = [
    "PAGES",
    "ROOT",
    "Where",
    "add_style",
    "experiment_frame",
    "page_frame",
    "show_missing",
    "shown_status",
]

# The path of all pages.
ROOT = "/ui"
# The path below an experiment, and the name in the bar.
PAGES = (
    ("", "Overview"),
    ("trials", "Trials"),
    ("plots", "Plots"),
    ("settings", "Settings"),
    ("logs", "Logs"),
)


_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "/": "Search the trials",
        "← →": "The trial before and the one after (also k and j)",
        "Enter, Space": "In the table: open a trial, select it",
        "?": "This list",
    }
)


@dataclass(slots=True)
class Where:
    """The experiment of a page; `badge` is the element in the bar that shows its status."""

    experiment_id: str
    name: str = ""
    badge: Any = None

    def path(self, page: str = "") -> str:
        """Return the address of a page of the experiment, whose folder may have any name.

        >>> Where("k3x9a2bq", "digits").path("trials/7"), Where('"my copy"').path()
        ('/ui/k3x9a2bq/trials/7', '/ui/%22my%20copy%22')
        """
        return f"{ROOT}/{quote(self.experiment_id)}/{page}".rstrip("/")

    def show_status(self, summary: Summary) -> None:
        """Update the status in the bar."""
        status = shown_status(summary)
        set_badge(self.badge, experiment_text(status, summary.has_program), EXPERIMENT_TONES.get(status, ""))


def shown_status(summary: Summary) -> str:
    """Return the status of an experiment, or ABANDONED if it should be running and is not."""
    return "ABANDONED" if summary.is_abandoned else summary.status


def add_style() -> None:
    """Add style sheet and script to the head of every page, so that they are there before anything is drawn."""
    style, script = (
        (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("style.css", "page.js")
    )
    ui.add_head_html(f"<style>\n{style}</style>\n<script>\n{script}</script>", shared=True)


@contextmanager
def page_frame(title: str, where: Where | None = None, here: str | None = None) -> Iterator[None]:
    """Make the frame of a page around the `with` block; `here` is its path below the experiment."""
    ui.page_title(f"{escaped(title)} · Pitchpipe")
    with ui.header().classes("pp-header"):
        html.a("Pitchpipe", href=f"{ROOT}/").classes("pp-brand").props(
            'aria-label="Pitchpipe: all experiments"'
        )
        if where is not None:
            html.span(visible(where.name or where.experiment_id)).classes("pp-where")
            where.badge = ui.label().classes("pp-status").props("role=status").mark("experiment-status")
            _navigation(where, here)
        else:
            html.span().style("flex: 1")
        theme_button()
    _keys()
    with html.main().classes("pp-main") as main:
        yield
    ui.skip_link("Skip to the content", target=main)


@asynccontextmanager
async def experiment_frame(
    experiments: Experiments, experiment_id: str, title: str, here: str
) -> AsyncIterator[tuple[ExperimentView, Where, Live]]:
    """Make the frame of an experiment's page, and keep it up to date; raise `LookupError` if there is no experiment."""
    view = experiments.view(experiment_id)
    live = Live(view, lambda why: _show_failure(notice, why))
    await live.begin()
    summary = await asyncio.to_thread(view.summary)
    where = Where(view.experiment_id, summary.name or "")
    with page_frame(f"{title} · {visible(where.name or where.experiment_id)}", where, here):
        where.show_status(summary)
        notice = html.div().props("role=alert").classes("pp-panel pp-notice")
        notice.set_visibility(False)
        yield view, where, live
        live.keep_up()


def show_missing(message: str) -> None:
    """Show the page of something that does not exist or cannot be read."""
    ui.context.client.content.clear()
    ui.status_code(404)
    with page_frame("Not found"), html.section().classes("pp-panel pp-notice"):
        html.h1("Page not found")
        html.p(escaped(message))
        html.a("All experiments", href=f"{ROOT}/")


def _keys() -> None:
    """Make the list of keys, which the key ? shows."""
    with html.dialog().classes("pp-keys").props('aria-label="Keys"'):
        html.h2("Keys")
        facts(_KEYS.items())
        with html.form().props("method=dialog"):
            html.button("Close").props("type=submit autofocus")


def _navigation(where: Where, here: str | None) -> None:
    with html.nav().classes("pp-nav").props('aria-label="Pages of the experiment"'):
        for path, name in PAGES:
            link = html.a(name, href=where.path(path))
            if path == here:
                link.props("aria-current=page")


def _show_failure(notice: Any, why: str) -> None:
    notice.clear()
    notice.set_visibility(True)
    with notice:
        html.p(escaped(f"This page is no longer up to date: {why}"))
