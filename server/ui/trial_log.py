"""What a trial prints, as it prints it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .elements import panel
from .log_view import LogView

if TYPE_CHECKING:
    from ..reading import ExperimentView

__all__ = ["TrialLog"]

_NAMES = {"stdout": "Output", "stderr": "Errors"}


class TrialLog:
    """The panel with what the trial wrote to stdout and to stderr."""

    def __init__(self, view: ExperimentView, trial: dict[str, Any]) -> None:
        from nicegui import ui

        number = trial["sequence_id"]
        with panel("Log"):
            if trial["exit_code"] is None and trial["pid"] is None and not view.folder.trial(number).is_dir():
                ui.label("What a function prints is in the log of the agents: see Logs.").classes("pp-dim")
            with ui.tabs().props("dense no-caps align=left inline-label") as tabs:
                for file, name in _NAMES.items():
                    ui.tab(file, label=name)
            self._logs: dict[str, LogView] = {}
            first = "stderr" if trial["status"] == "FAILED" else "stdout"
            with ui.tab_panels(tabs, value=first, keep_alive=True, animated=False).style("width: 100%"):
                for file, name in _NAMES.items():
                    with ui.tab_panel(file).style("padding: .5rem 0"):
                        self._logs[file] = LogView(f"{name} of the trial", partial(_read, view, number, file))

    async def look(self, *, is_over: bool) -> None:
        """Show what has been printed since the last time."""
        for log in self._logs.values():
            await log.look()
            if is_over:
                log.end()


def _read(view: ExperimentView, number: int, file: str, follow: Any) -> Any:
    return view.trial_log(number, file, follow)
