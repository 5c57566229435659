"""What every page has: the bar at the top, the keys, the theme, the style sheet, and updates while it is open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from nicegui import html, ui

from ...store import StoreError
from ...store.reading import ExperimentView, FeedEvent, Summary
from ...telling import escaped, standing_text, visible
from ..experiments import Experiments
from ..figures import template_layout
from .elements import EXPERIMENT_TONES, attributed, badge, named_values, set_badge
from .readers import may_change

# The path of all pages.
ROOT = "/ui"


@asynccontextmanager
async def experiment_frame(
    experiments: Experiments, experiment_id: str, title: str, here: str
) -> AsyncIterator[tuple[ExperimentView, Where, Live]]:
    """Make the frame of an experiment's page, and keep it up to date; raise `LookupError` if there is no experiment."""

    async def show_status(_events: list[FeedEvent]) -> None:
        where.show_status(await asyncio.to_thread(view.summary))

    view = experiments.view(experiment_id)
    live = Live(view, lambda why: _show_failure(notice, why))
    live.on_change(show_status)
    await live.begin()
    summary = await asyncio.to_thread(view.summary)
    where = Where(view.experiment_id, summary.name or "")
    with page_frame(f"{title} · {visible(where.title)}", where, here):
        where.show_status(summary)
        notice = html.div().props("role=alert").classes("pp-panel pp-notice")
        notice.set_visibility(False)
        yield view, where, live
        live.keep_up()


@contextmanager
def page_frame(title: str, where: Where | None = None, here: str | None = None) -> Iterator[None]:
    """Make the frame of a page around the `with` block; `here` is its path below the experiment."""
    ui.page_title(f"{escaped(title)} · Pitchpipe")
    with ui.header().classes("pp-header"):
        brand = html.a("Pitchpipe", href=f"{ROOT}/").classes("pp-brand")
        brand.props('aria-label="Pitchpipe: all experiments"')
        if where is not None:
            html.span(visible(where.title)).classes("pp-where")
            if where.title != where.experiment_id:
                html.span(visible(where.experiment_id)).classes("pp-dim pp-mono")
            where.badge = ui.label().classes("pp-status").props("role=status").mark("experiment-status")
            _navigation(where, here)
        else:
            html.span().style("flex: 1")
        if not may_change():
            attributed(badge("read only"), title="This link shows everything, and changes nothing.")
        _theme_button()
    _keys()
    with html.main().classes("pp-main") as main:
        yield
    ui.skip_link("Skip to the content", target=main)


def show_missing(message: str) -> None:
    """Show the page of something that does not exist or cannot be read."""
    ui.context.client.content.clear()
    ui.status_code(404)
    with page_frame("Not found"), html.section().classes("pp-panel pp-notice"):
        html.h1("Page not found")
        html.p(escaped(message))
        html.a("All experiments", href=f"{ROOT}/")


def add_head() -> None:
    """Add to the head of every page what has to be there before anything is drawn: the style sheet and the scripts.

    Figures are drawn in the browser, in the theme that it shows, so it has the templates of both.
    """
    style, script = (
        (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("style.css", "page.js")
    )
    templates = {name: {"layout": template_layout(name)} for name in ("light", "dark")}
    script += f"pitchpipe.templates = {json.dumps(templates)}\n"
    ui.add_head_html(f"<style>\n{style}</style>\n<script>\n{script}</script>", shared=True)


@dataclass(slots=True)
class Where:
    """The experiment of a page; `badge` is the element in the bar that shows its status."""

    experiment_id: str
    name: str = ""
    badge: Any = None

    @property
    def title(self) -> str:
        """The name of the experiment, or its id if it has none."""
        return self.name or self.experiment_id

    def path(self, page: str = "", **query: str) -> str:
        """Return the address of a page of the experiment, whose folder may have any name.

        >>> Where("k3x9a2bq", "digits").path("trials/7"), Where('"my copy"').path("trials", status="FAILED")
        ('/ui/k3x9a2bq/trials/7', '/ui/%22my%20copy%22/trials?status=FAILED')
        """
        path = f"{ROOT}/{quote(self.experiment_id)}/{page}".rstrip("/")
        return f"{path}?{urlencode(query)}" if query else path

    def show_status(self, summary: Summary) -> None:
        """Update the status in the bar."""
        set_badge(self.badge, standing_text(summary), tone_of(summary))


def tone_of(summary: Summary) -> str:
    """Return the colour of a status; one that should be running and is not has none."""
    return "" if summary.is_abandoned else EXPERIMENT_TONES.get(summary.status, "")


_PERIOD = 1.0
_MOST_EVENTS = 5000


class Live:
    """Keeps an open page up to date: queries the store every second, in a thread, and passes on what has happened.

    An update gets the events of the feed; an empty list means that anything may have changed. It is not called when
    there are no events. A failure is reported once by `on_failure`, and the query is repeated.
    """

    def __init__(self, view: ExperimentView, on_failure: Callable[[str], None]) -> None:
        self._view = view
        self._on_failure = on_failure
        self._updates: list[Callable[[list[FeedEvent]], Awaitable[None]]] = []
        self._ticks: list[Callable[[], Awaitable[None]]] = []
        self._cursor: str | None = None
        self._failure = ""

    def on_change(self, update: Callable[[list[FeedEvent]], Awaitable[None]]) -> None:
        """Call `update` when something has happened."""
        self._updates.append(update)

    def on_tick(self, tick: Callable[[], Awaitable[None]]) -> None:
        """Call `tick` once a second, for what changes without the store, such as a log."""
        self._ticks.append(tick)

    async def begin(self) -> None:
        """Note the present state: later events are delivered, even those while the page is built."""
        self._cursor = (await asyncio.to_thread(self._view.events)).cursor

    def keep_up(self) -> None:
        """Query once a second while the page is open; the timer belongs to the element being built."""
        ui.timer(_PERIOD, self._look, immediate=False)

    async def _look(self) -> None:
        try:
            page = await asyncio.to_thread(self._view.events, self._cursor, _MOST_EVENTS)
            self._cursor = page.cursor
            if page.events or page.reset:
                for update in self._updates:
                    await update([] if page.reset else page.events)
            for tick in self._ticks:
                await tick()
        except (StoreError, OSError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                self._on_failure(self._failure)


def _show_failure(notice: Any, why: str) -> None:
    notice.clear()
    notice.set_visibility(True)
    with notice:
        html.p(escaped(f"This page is no longer up to date: {why}"))


# The path below an experiment, and the name in the bar.
_PAGES = (
    ("", "Overview"),
    ("trials", "Trials"),
    ("plots", "Plots"),
    ("settings", "Settings"),
    ("logs", "Logs"),
)


def _navigation(where: Where, here: str | None) -> None:
    with html.nav().classes("pp-nav").props('aria-label="Pages of the experiment"'):
        for path, name in _PAGES:
            link = html.a(name, href=where.path(path))
            if path == here:
                link.props("aria-current=page")


_KEYS: Mapping[str, str] = {
    "/": "Search the trials",
    "← →": "The trial before and the one after (also k and j)",
    "Enter, Space": "In the table: open a trial, select it",
    "?": "This list",
}


def _keys() -> None:
    """Make the list of keys, which the key ? shows."""
    with html.dialog().classes("pp-keys").props('aria-label="Keys"'):
        html.h2("Keys")
        named_values(_KEYS.items())
        with html.form().props("method=dialog"):
            html.button("Close").props("type=submit autofocus")


# The browser knows the theme of the system; a cookie keeps what the user chose instead.
_CHOSEN = "pitchpipe-theme"
# The page is not loaded again, so nothing that was typed is lost.
_TURN = f"""() => {{
  const theme = document.body.classList.contains("body--dark") ? "light" : "dark";
  document.cookie = `{_CHOSEN}=${{theme}}; path=/; max-age=31536000; SameSite=Strict`;
  emit(theme);
}}"""
_IS_DARK: Mapping[str, bool] = {"light": False, "dark": True}
_TURN_HINT = "Switch between light and dark colours"


def _theme_button() -> None:
    """Show the page in the chosen theme, else in that of the system; make a button that switches and remembers it."""
    request = ui.context.client.request
    chosen = "" if request is None else request.cookies.get(_CHOSEN, "")
    theme = ui.dark_mode(_IS_DARK.get(chosen))
    button = ui.button(icon="contrast").props("flat round dense color=grey")
    attributed(button, aria_label=_TURN_HINT).tooltip(_TURN_HINT)
    # Each update of the page applies the element's value again: what only the browser knew would be lost.
    button.on("click", lambda event: theme.set_value(_IS_DARK[event.args]), js_handler=_TURN)
