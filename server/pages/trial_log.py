"""The output of a trial, as it is printed."""

from __future__ import annotations

from functools import partial

from nicegui import html, ui

from ...manager.control import read_running
from ...store.reading import ExperimentView, FilePiece, Follow, TrialDetail
from .elements import panel
from .frame import Where
from .log_view import LogView

__all__ = ["TrialLog"]

_NAMES = {"stdout": "Output", "stderr": "Errors"}


class TrialLog:
    """The panel with the output of a trial on stdout and stderr; functions share the log of their agents."""

    def __init__(self, view: ExperimentView, where: Where, trial: TrialDetail, *, is_function: bool) -> None:
        self._view = view
        self._trial = trial
        self._logs: dict[str, LogView] = {}
        with panel("Log"):
            if is_function:
                html.span("The output of functions is in ").classes("pp-dim")
                html.a("the log of the agents", href=where.path("logs", name="agents.log"))
            else:
                self._add_tabs()

    def _add_tabs(self) -> None:
        with ui.tabs().props("dense no-caps align=left inline-label") as tabs:
            for file, name in _NAMES.items():
                ui.tab(file, label=name)
        first = "stderr" if self._trial.status == "FAILED" else "stdout"
        with ui.tab_panels(tabs, value=first, keep_alive=True, animated=False).style("width: 100%"):
            for file, name in _NAMES.items():
                with ui.tab_panel(file).style("padding: .5rem 0"):
                    self._logs[file] = LogView(f"{name} of the trial", partial(self._read, file))

    async def look(self, trial: TrialDetail) -> None:
        """Show what has been printed since the last time; `trial` is its present state."""
        self._trial = trial
        is_over = trial.end_time is not None
        for log in self._logs.values():
            await log.look()
            if is_over:
                log.end()

    def _read(self, file: str, follow: Follow) -> FilePiece:
        """Return a piece of the output; from the agent if the trial runs on a node that does not see the folder."""
        trial, folder = self._trial, self._view.folder
        try:
            return self._view.trial_log(trial.sequence_id, file, follow)
        except LookupError:
            if trial.status != "RUNNING" or folder.manager() is None:
                raise
        offset = 0 if follow.lines is not None else follow.offset
        data = read_running(folder.path, trial.trial_id, file, offset)
        end = offset + len(data)
        return FilePiece(data.decode(errors="replace"), offset, end, end)
