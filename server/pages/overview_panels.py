"""The best trials of an experiment: the parameters of the best one, and a table of the first ten or of the front."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nicegui import html, ui

from ...store.reading import (
    ParetoFront,
    Summary,
    TrialRow,
    closest_text,
    duration_text,
    escaped,
    front_lines,
    gain_text,
    parameters_text,
    repeats_text,
    value_text,
    visible,
)
from .actions import copied
from .elements import action, attributed, pairs, panel, parameter_pairs, table
from .frame import Where

__all__ = ["BestPanel", "Leaders", "LeadersPanel"]

MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """What is shown of the best: `trials` in order, those of the `front` if there is one, and remarks on them."""

    summary: Summary
    trials: Sequence[TrialRow]
    front: ParetoFront | None = None
    repeats: int = 1
    closeness: Sequence[str] = field(default_factory=tuple)

    @property
    def knee(self) -> int | None:
        """The number of the trial at the knee of the front."""
        return None if self.front is None else self.front.knee

    @property
    def lines(self) -> list[str]:
        """The remarks, as sentences without a full stop."""
        lines = [*(front_lines(self.front, repeats=self.repeats) if self.front else ()), *self.closeness]
        return [line[0].upper() + line[1:] for line in lines]


class BestPanel:
    """The best trial with its parameters; at the knee of a front."""

    def __init__(self, where: Where, title: str, metrics: Sequence[str]) -> None:
        self._where = where
        self._metrics = [] if len(metrics) < 2 else metrics
        self._shown: Any = None
        with panel(title):
            self._body = html.div().classes("pp-stack")

    def show(self, leaders: Leaders) -> None:
        """Show the best trial, or why there is none."""
        summary = leaders.summary
        shown = (leaders.trials[:1], leaders.knee, summary.closest, summary.defaults, leaders.lines)
        if shown == self._shown:
            return
        self._shown = shown
        best = next((one for one in leaders.trials if one.sequence_id == leaders.knee), None)
        best = best or next(iter(leaders.trials), None)
        self._body.clear()
        with self._body:
            if best is not None:
                self._trial(best, is_knee=best.sequence_id == leaders.knee)
            elif summary.closest is not None:
                text = closest_text(summary.closest, summary.status, repeats=leaders.repeats)
                html.p(escaped(text)).classes("pp-dim")
            else:
                html.p("No trial has succeeded yet.").classes("pp-dim")
            if gain := gain_text(summary):
                html.p(escaped(gain)).classes("pp-dim")
            for line in leaders.lines:
                html.p(escaped(line)).classes("pp-dim")

    def _trial(self, trial: TrialRow, *, is_knee: bool) -> None:
        repeats = repeats_text(trial)
        with html.div().classes("pp-row"):
            html.a(_name(trial), href=_address(self._where, trial))
            in_order = dict.fromkeys((*self._metrics, *trial.values))
            names = [name for name in in_order if name in trial.values]
            for name in names:
                if len(names) > 1 or name != "default":
                    html.span("result" if name == "default" else visible(name)).classes("pp-dim")
                html.strong(value_text(trial, name)).classes("pp-mono")
            for text in filter(None, (repeats, "the knee" if is_knee else "")):
                html.span(text).classes("pp-dim")
            html.span().style("flex: 1")
            copy = action("Copy", lambda: _copy(trial), icon="content_copy")
            copy.props('aria-label="Copy the parameters of the best trial as JSON"')
        with pairs():
            parameter_pairs(trial.parameters)


class LeadersPanel:
    """The table of the best trials, and the way to the others."""

    def __init__(
        self, where: Where, title: str, metrics: Sequence[str], noun: str = "trial", *, is_front: bool = False
    ) -> None:
        self._where = where
        self._metrics = metrics
        self._is_front = is_front
        self._shown: Any = None
        results = ["Result" if name == "default" else name for name in metrics]
        heads = ["Rank", noun.capitalize(), *results, "Parameters", "Took"]
        with panel(title, classes="pp-leaders") as self.panel:
            self._body = table(heads, title, ["Rank", *results, "Took"])
            with html.a(href=where.path("trials")):
                self._rest = ui.label()

    def show(self, leaders: Leaders) -> None:
        """Show the best trials."""
        shown = [(one.sequence_id, one.values, one.duration) for one in leaders.trials]
        self._rest.set_text(f"All {leaders.summary.trials} trials, best first")
        if (shown, leaders.knee) == self._shown:
            return
        self._shown = shown, leaders.knee
        self.panel.set_visibility(bool(shown))
        self._body.clear()
        with self._body:
            for rank, trial in enumerate(leaders.trials[:MOST], start=1):
                self._row(rank, trial, is_knee=trial.sequence_id == leaders.knee)

    def _row(self, rank: int, trial: TrialRow, *, is_knee: bool) -> None:
        with html.tr():
            html.td(str(rank)).classes("pp-dim number")
            with html.td().style("white-space: nowrap"):
                link = html.a(str(trial.sequence_id), href=_address(self._where, trial))
                attributed(link, aria_label=_name(trial))
                if is_knee:
                    html.span(" knee").classes("pp-dim")
            for name in self._metrics:
                html.td(value_text(trial, name) if name in trial.values else "–").classes("number")
            words = parameters_text(trial.parameters)
            with html.td(title=words).classes("pp-cut"):
                html.span(words).classes("pp-two-lines" if self._is_front else "")
            html.td("" if trial.duration is None else duration_text(trial.duration)).classes("number")


def _name(trial: TrialRow) -> str:
    return f"{'Family' if repeats_text(trial) else 'Trial'} {trial.sequence_id}"


def _address(where: Where, trial: TrialRow) -> str:
    return where.path(f"trials/{trial.sequence_id}")


async def _copy(trial: TrialRow) -> None:
    done = f"The parameters of trial {trial.sequence_id} are on the clipboard"
    await copied(json.dumps(trial.parameters), done)
