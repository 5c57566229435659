"""What goes on in an experiment: its running trials, or, once it is over, which parameters mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import html, ui

from ...store.reading import TrialRow, duration_text, number_text, visible
from .elements import attributed, panel, table
from .frame import Where

__all__ = ["ImportancePanel", "RunningPanel"]

_MOST = 8
_HEADS = ("Trial", "Results", "Last result", "Running for")


class RunningPanel:
    """The trials that are running."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._clocks: list[tuple[Any, float]] = []
        with panel("Running now") as self.panel:
            self._body = table(_HEADS, "Running now", _HEADS[1:])
            self._more = ui.label().classes("pp-dim")

    def show(self, trials: Sequence[TrialRow], count: int, now: float) -> None:
        """Show these of `count` running trials; `now` in seconds since the epoch."""
        self.panel.set_visibility(count > 0)
        self._more.set_text(f"and {count - len(trials)} more" if count > len(trials) else "")
        self._clocks = []
        self._body.clear()
        with self._body:
            for trial in trials:
                with html.tr():
                    with html.td():
                        number = trial.sequence_id
                        link = html.a(str(number), href=self._where.path(f"trials/{number}"))
                        attributed(link, aria_label=f"Trial {number}")
                    html.td(str(trial.intermediate_results)).classes("number")
                    html.td("–" if trial.last is None else number_text(trial.last)).classes("number")
                    with html.td().classes("number"):
                        clock = ui.label()
                    self._clocks.append((clock, trial.start_time or now))
        self.tick(now)

    def tick(self, now: float) -> None:
        """Advance the clocks."""
        for clock, began in self._clocks:
            clock.set_text(duration_text(max(0.0, now - began)))


class ImportancePanel:
    """The parameters that explain most of the results."""

    def __init__(self, where: Where) -> None:
        self._shown: Any = None
        with panel("Which parameters matter") as self.panel:
            self._note = ui.label().classes("pp-dim")
            self._bars = html.div().classes("pp-bars")
            html.a("How sure that is", href=f"{where.path('plots')}?figure=importance")
        self.panel.set_visibility(False)

    def show(self, found: Mapping[str, Any] | None) -> None:
        """Show the shares of an `Importance`; nothing if there are none."""
        if found == self._shown:
            return
        self._shown = found
        is_known = found is not None and not found["why_not"]
        self.panel.set_visibility(is_known)
        if found is None or not is_known:
            return
        weak = bool(found["warning"])
        says = found["warning"] or "share of the results' variance"
        self._note.set_text(f"Confidence {found['confidence']}: {says}.")
        self._bars.clear()
        self._bars.classes(add="weak" if weak else "", remove="" if weak else "weak")
        with self._bars:
            for name, share in list(zip(found["names"], found["shares"], strict=True))[:_MOST]:
                html.span(visible(name)).classes("pp-cut")
                with html.span().classes("pp-track"):
                    html.span().style["width"] = f"{100 * share:.1f}%"
                html.span(f"{share:.0%}").classes("number")
