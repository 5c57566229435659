"""The overview of an experiment: its status, its best results over time, its failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nicegui import html, ui

from ...store.reading import (
    FailureGroup,
    closeness_lines,
    closest_text,
    duration_text,
    front_lines,
    gain_text,
    left_text,
    number_text,
    rate_text,
    repeats_text,
    value_text,
)
from ..experiments import Experiments, Shown
from ..figures import Objective, ThemeName
from ..health import read_health
from .elements import badge, figures, panel, parameter_facts
from .failures import FailuresPanel
from .frame import Where, experiment_frame
from .live import Event
from .notices import Notice, notices_of
from .plotting import FigureView
from .progress_figure import progress_figure
from .theme import theme_name
from .wording import STATUSES, TRIAL_TONES, trial_word

__all__ = ["overview_page"]

_BOXES = ("Finished trials", "Best so far", "Throughput", "Time left", "Run time")
_OPEN = ("WAITING", "RUNNING", "PAUSED")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """What the page shows, read at once; `history` follows after the page is up.

    `front` is that of several objectives, or of limits.
    """

    summary: dict[str, Any]
    history: list[dict[str, Any]] | None
    front: dict[str, Any] | None
    closeness: list[str]
    failures: list[FailureGroup]
    notices: list[Notice]

    @classmethod
    def of(cls, shown: Shown, *, is_first: bool = False) -> _Snapshot:
        """Read what is shown; what takes longer is left out `is_first`, so that the page is up soon."""
        view, summary = shown.view, shown.view.summary()
        has_front = len(summary["objectives"]) > 1 or bool(summary["outcome_limits"])
        return cls(
            summary=summary,
            history=None if is_first else view.history(),
            front=view.front() if has_front else None,
            closeness=list(closeness_lines(_cached(shown, "closest", view.closest_to_defaults))),
            failures=view.failures(),
            notices=notices_of(summary, view, () if is_first else _health(shown)),
        )


def _health(shown: Shown) -> list[str]:
    """Return the notes on how the search went."""
    return _cached(shown, "health", lambda: {"notes": read_health(shown.view)})["notes"]


def _cached(shown: Shown, key: str, compute: Callable[[], Any]) -> Any:
    """Return what the API has in its cache until the experiment changes."""
    return json.loads(shown.responses.get(key, compute).body)


async def overview_page(experiments: Experiments, experiment_id: str) -> None:
    """Show the status of the experiment, and keep it up to date."""
    async with experiment_frame(experiments, experiment_id, "Overview", "") as (_view, where, live):
        shown = experiments.shown(experiment_id)
        first = await asyncio.to_thread(_Snapshot.of, shown, is_first=True)
        page = _Overview(where, _best_title(first.summary, shown.view.repeats()))
        page.show(first)

        async def refresh(_events: list[Event]) -> None:
            page.show(await asyncio.to_thread(_Snapshot.of, shown))

        ui.timer(0.01, lambda: refresh([]), once=True)
        live.on_change(refresh)
        live.on_tick(page.tick)


class _Overview:
    """The parts of the page, each of which can be updated."""

    def __init__(self, where: Where, best: str) -> None:
        self._where = where
        self._summary: dict[str, Any] = {}
        self._theme: ThemeName = theme_name()
        html.h1("Overview").classes("pp-hidden")
        self._notice = html.div().classes("pp-stack")
        self._boxes = figures(_BOXES)
        self._counts = html.nav().classes("pp-row").props('aria-label="Trials by status"')
        with html.div().classes("pp-columns"):
            with panel("Best so far, over time"):
                self._figure = FigureView("Results by time, and the best so far")
            with panel(best):
                self._best = html.div()
        self._failures = FailuresPanel(where)
        self._shown_best: Any = None
        self._shown_counts: Any = None
        self._shown_notices: Any = None

    def show(self, found: _Snapshot) -> None:
        """Show what was read."""
        self._summary = summary = found.summary
        self._where.show_status(summary)
        self._show_notices(found.notices)
        self._show_boxes(summary)
        self._show_counts(summary["counts"])
        self._show_best(summary, found.front, found.closeness)
        self._failures.show(found.failures, summary["counts"].get("FAILED", 0))
        if found.history is None:
            return
        first = summary["objectives"][0]
        objective = Objective(name=first["name"], direction=first["direction"])
        front = found.front if len(summary["objectives"]) > 1 else None
        self._figure.show(progress_figure(found.history, objective, self._theme, front))

    async def tick(self) -> None:
        """Advance the clock between two changes."""
        summary = self._summary
        if summary.get("is_running"):
            summary["run_time"] += 1.0
            if summary["remaining"] is not None:
                summary["remaining"] = max(0.0, summary["remaining"] - 1.0)
            self._show_boxes(summary)

    def _show_boxes(self, summary: dict[str, Any]) -> None:
        ended = sum(count for status, count in summary["counts"].items() if status not in _OPEN)
        total = summary["limits"].get("max_trial_number")
        left = summary["remaining"]
        texts = {
            "Finished trials": f"{ended} of {total}" if total is not None else str(ended),
            "Best so far": _best_text(summary),
            "Throughput": rate_text(_rate(summary, ended)) if ended else "–",
            "Time left": "–" if left is None else left_text(left, at_most=False).removesuffix(" left"),
            "Run time": duration_text(summary["run_time"]),
        }
        for name, text in texts.items():
            self._boxes[name].set_text(text)

    def _show_notices(self, notices: list[Notice]) -> None:
        if notices == self._shown_notices:
            return
        self._shown_notices = notices
        self._notice.clear()
        with self._notice:
            for notice in notices:
                with html.section().classes(f"pp-panel pp-notice {'' if notice.is_bad else 'pp-mild'}"):
                    html.p(notice.text).props("role=status")
                    if notice.error:
                        html.pre(notice.error)

    def _show_counts(self, counts: dict[str, int]) -> None:
        if counts == self._shown_counts:
            return
        self._shown_counts = counts
        self._counts.clear()
        with self._counts:
            for status in STATUSES:
                if counts.get(status):
                    address = f"{self._where.path('trials')}?{urlencode({'status': status})}"
                    with html.a(href=address).style("text-decoration: none"):
                        badge(f"{counts[status]} {trial_word(status)}", TRIAL_TONES.get(status, ""))

    def _show_best(self, summary: dict[str, Any], front: dict[str, Any] | None, closeness: list[str]) -> None:
        shown = (summary["best"], summary["closest"], summary["defaults"], front, closeness)
        if shown == self._shown_best:
            return
        self._shown_best = shown
        self._best.clear()
        with self._best:
            for line in front_lines(front) if front else ():
                html.p(line[0].upper() + line[1:])
            if summary["closest"] is not None:
                html.p(closest_text(summary["closest"])).classes("pp-dim")
            elif not summary["best"]:
                html.p("No trial has succeeded yet.").classes("pp-dim")
            knee = None if front is None else front["knee"]
            best = sorted(summary["best"], key=lambda trial: trial["sequence_id"] != knee)
            for trial in best[:10]:
                _best_trial(trial, self._where, is_knee=trial["sequence_id"] == knee)
            if len(best) > 10:
                html.p(f"and {len(best) - 10} more on the Pareto front: see Plots")
            if gain := gain_text(summary):
                html.p(gain).classes("pp-dim")
            for line in closeness:
                html.p(line[0].upper() + line[1:])


def _best_title(summary: Mapping[str, Any], repeats: int) -> str:
    """Return what the best are: one trial or family by one objective, the front by several, with its knee first."""
    one, several = ("family", "families") if repeats > 1 else ("trial", "trials")
    return f"Best {one}" if len(summary["objectives"]) == 1 else f"Best {several}: the Pareto front"


def _best_trial(trial: dict[str, Any], where: Where, *, is_knee: bool) -> None:
    values = ", ".join(
        value_text(trial, name) if name == "default" else f"{name} {value_text(trial, name)}"
        for name in trial["values"]
    )
    repeats = repeats_text(trial)
    with html.div().classes("pp-row").style("margin-bottom: .4rem"):
        kind = "Family" if repeats else "Trial"
        html.a(f"{kind} {trial['sequence_id']}", href=where.path(f"trials/{trial['sequence_id']}"))
        html.strong(values).classes("pp-mono")
        if repeats:
            html.span(repeats).classes("pp-dim")
        if is_knee:
            html.span("the knee").classes("pp-dim")
    parameter_facts(trial["parameters"])


def _best_text(summary: dict[str, Any]) -> str:
    best = summary["best"]
    if not best:
        return "–"
    return number_text(best[0]["value"]) if len(best) == 1 else f"{len(best)} trade-offs"


def _rate(summary: dict[str, Any], ended: int) -> float:
    """Return the trials per second: over the last minute while it runs, over the whole time afterwards."""
    if summary["is_running"]:
        return summary["trials_per_minute"] / 60.0
    return ended / max(summary["run_time"], 1e-3)
