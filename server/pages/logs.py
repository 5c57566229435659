"""The logs of the manager, the dispatcher and the agents, as they are written."""

from __future__ import annotations

import asyncio
from functools import partial

from nicegui import html, ui

from ...store.reading import ExperimentView, FeedEvent
from ..experiments import Experiments
from .frame import experiment_frame
from .log_view import LogView

__all__ = ["logs_page"]

_MEANINGS = {
    "manager.log": "manager: its actions and errors",
    "dispatcher.log": "dispatcher: the tuner, the assessor and their output",
    "dispatcher.out": "dispatcher: output before its log started",
    "agents.log": "agents: the processes that run trials, and the output of functions",
}


async def logs_page(experiments: Experiments, experiment_id: str, name: str = "") -> None:
    """Show one of the logs as it grows; `name` is the one to start with."""
    async with experiment_frame(experiments, experiment_id, "Logs", "logs") as (view, where, live):
        files = [file.name for file in await asyncio.to_thread(view.logs)]
        html.h1("Logs").classes("pp-hidden")
        if not files:
            html.p("There are no logs yet.").classes("pp-panel")
            return
        first = name if name in files else "manager.log" if "manager.log" in files else files[0]
        with html.section().classes("pp-panel pp-stack").props('aria-label="Log"'):
            with html.div().classes("pp-row"):
                options = {file: _MEANINGS.get(file, file) for file in files}
                chosen = (
                    ui.select(options, label="Log", value=first)
                    .props("outlined dense")
                    .style("min-width: 20rem")
                )
            log = LogView("Log", partial(view.log, first), tall=True)
            await log.look()
        chosen.on_value_change(lambda event: _change(view, log, event.value))

        async def refresh(_events: list[FeedEvent]) -> None:
            where.show_status(await asyncio.to_thread(view.summary))

        live.on_change(refresh)
        live.on_tick(log.look)


async def _change(view: ExperimentView, log: LogView, name: str) -> None:
    log.start_with(partial(view.log, name))
    await log.look()
