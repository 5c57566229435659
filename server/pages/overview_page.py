"""The overview of an experiment: which trial is best, whether results still improve, what runs, what failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nicegui import html, ui
from nicegui.element import Element

from ...manager.control import ControlError, manager_status
from ...protocol import JsonObject
from ...runner import ExperimentStatus
from ...store.reading import (
    Curve,
    ExperimentView,
    FailureGroup,
    FeedEvent,
    HistoryEntry,
    ParetoFront,
    Summary,
    TrialEnd,
    TrialQuery,
    TrialRow,
)
from ...telling import (
    STATUS_WORDS,
    FailedTrial,
    best_intermediate_text,
    closeness_lines,
    duration_text,
    escaped,
    left_text,
    nouns,
    pace_text,
    rate_text,
    region_text,
    status_text,
    value_text,
    who_text,
    why_none_text,
)
from ..experiment_table import read_importance, read_table
from ..experiments import Experiments, ServedExperiment
from ..figures import Importance, Objective, number_or_none, plot_pareto
from ..health import health_object
from .actions import dismiss_button, resume_button
from .elements import TRIAL_TONES, Place, attributed, badge, boxes, panel
from .figure_view import BY, By, FigureView, StoppedTrial, progress_figure
from .frame import Where, experiment_frame
from .overview_panels import (
    MOST_BEST,
    BestPanel,
    CurvesPanel,
    FailuresPanel,
    ImportancePanel,
    Leaders,
    LeadersPanel,
    RunningPanel,
)
from .readers import may_change

if TYPE_CHECKING:
    import plotly.graph_objects as go

_INTERMEDIATE = "Best intermediate result"
_BOXES = ("Finished trials", "Best so far", _INTERMEDIATE, "Throughput", "Time left", "Run time")
_OPEN = ("WAITING", "RUNNING", "PAUSED")
_MOST_RUNNING = 8
# Of a trial that runs so many seconds, the curve is worth a look although others have ended.
_LONG = 60.0
_CURVE_POINTS = 200
_MOST_STOPPED = 600  # are drawn, like results
# Computing the importance of more takes seconds.
_MOST_FOR_IMPORTANCE = 2000


async def overview_page(experiments: Experiments, experiment_id: str) -> None:
    """Show the status of the experiment, and keep it up to date."""
    async with experiment_frame(experiments, experiment_id, "Overview", "") as (view, where, live):
        served = experiments.served(experiment_id)
        first = await asyncio.to_thread(_Snapshot.of, served, is_first=True)
        page = _Overview(where, view, first.summary)
        page.show(first)

        async def refresh(_events: list[FeedEvent]) -> None:
            page.show(await asyncio.to_thread(_Snapshot.of, served))

        ui.timer(0.01, lambda: refresh([]), once=True)
        live.on_change(refresh)
        live.on_tick(page.tick)


class _Overview:
    """The parts of the page, each of which can be updated."""

    def __init__(self, where: Where, view: ExperimentView, summary: Summary) -> None:
        self._view = view
        self._where = where
        self._summary = summary
        self._details: _Details | None = None
        self._front: ParetoFront | None = None
        self._by: By = "time"
        self._panels: list[Element] = []  # those that are empty until a trial has succeeded
        html.h1("Overview").classes("pp-hidden")
        self._notices = Place(html.div().classes("pp-stack"))
        with html.div().classes("pp-row") as self._resume:
            resume_button(view.folder)
        with html.div() as self._row:
            self._boxes = boxes(_BOXES)
        self._counts = Place(html.nav().classes("pp-row").props('aria-label="Trials by status"'))
        self._nothing = html.section().classes("pp-panel pp-empty")
        with html.div().classes("pp-columns pp-overview") as self._results:
            one, several = nouns(view.repeats())
            left, right = (html.div().classes("pp-stack") for _ in range(2))
            with left:
                self._curves = CurvesPanel(where)
            if _has_front(summary):
                self._build_front(summary, one, several, left, right)
            else:
                self._build_best(summary, one, several, left, right)
            with right:
                self._running = RunningPanel(where)
                self._importance = ImportancePanel(where)
        self._failures = FailuresPanel(where)

    def _build_best(self, summary: Summary, one: str, several: str, left: Element, right: Element) -> None:
        self._pareto = None
        with left:
            self._build_progress("Best so far")
            self._leaders = LeadersPanel(self._where, f"Top {MOST_BEST} {several}", summary.metrics, one)
        with right:
            self._best = BestPanel(self._view, self._where, f"Best {one}", summary.metrics)

    def _build_front(self, summary: Summary, one: str, several: str, left: Element, right: Element) -> None:
        with left:
            with panel("Pareto front") as section:
                self._pareto = FigureView("Trials by two objectives", where=self._where)
            self._panels.append(section)
            self._build_progress("Best so far: hypervolume of the front")
        with right:
            title = f"Best {several}: the Pareto front"
            self._leaders = LeadersPanel(self._where, title, summary.metrics, one)
            self._best = BestPanel(self._view, self._where, "A balanced choice", summary.metrics)

    def _build_progress(self, title: str) -> None:
        with panel("") as section:
            self._panels.append(attributed(section, aria_label=title))
            with html.div().classes("pp-row pp-spread"):
                html.h2(title)
                choice = ui.toggle(BY, value=self._by, on_change=lambda event: self._show_by(event.value))
                choice.props("dense no-caps unelevated padding='1px 8px'")
            self._figure = FigureView("Results, and the best so far", where=self._where, height=250)

    def show(self, snapshot: _Snapshot) -> None:
        """Show what was read."""
        self._summary = summary = snapshot.summary
        self._show_notices(snapshot.notices)
        self._show_boxes(summary)
        self._show_counts(summary.counts, snapshot.failures)
        self._show_nothing(summary)
        self._best.show(snapshot.leaders)
        self._leaders.show(snapshot.leaders)
        self._running.show(snapshot.running, summary.counts.get("RUNNING", 0), time.time())
        self._failures.show(snapshot.failures, summary.counts.get("FAILED", 0))
        if snapshot.details is not None:
            self._curves.show(snapshot.details.curves, summary.objectives[0].name, snapshot.running)
            self._show_details(snapshot.details, snapshot.leaders.front if _has_front(summary) else None)

    def _show_details(self, details: _Details, front: ParetoFront | None) -> None:
        self._details, self._front = details, front
        for section in self._panels:
            section.set_visibility(bool(details.history or not details.curves))
        self._show_by(self._by)
        self._importance.show(details.importance)
        if self._pareto is not None and details.pareto is not None:
            height = 60 + 240 * len([*details.pareto.select_yaxes()])
            look = {"title": None, "margin": {"t": 30, "r": 10}, "height": height}
            self._pareto.show(details.pareto.update_layout(look))

    def _show_by(self, by: By) -> None:
        self._by = by
        first = self._summary.objectives[0]
        objective = Objective(name=first.name, direction=first.direction)
        if (details := self._details) is not None:
            drawn = progress_figure(
                details.history, objective, self._front, by, ends=details.ends, stopped=details.stopped
            )
            self._figure.show(drawn)

    async def tick(self) -> None:
        """Advance the clocks between two changes."""
        summary = self._summary
        if summary.is_running:
            left = None if summary.remaining is None else max(0.0, summary.remaining - 1.0)
            self._summary = replace(summary, run_time=summary.run_time + 1.0, remaining=left)
            self._show_boxes(self._summary)
            self._running.tick(time.time())

    def _show_boxes(self, summary: Summary) -> None:
        ended = sum(count for status, count in summary.counts.items() if status not in _OPEN)
        total = summary.limits.get("max_trial_number")
        left, intermediate = summary.remaining, summary.best_intermediate
        texts = {
            "Finished trials": f"{ended} of {total}" if total is not None else str(ended),
            "Best so far": best_text(summary),
            _INTERMEDIATE: "" if intermediate is None else best_intermediate_text(intermediate),
            "Throughput": _throughput(summary, ended) or "–",
            "Time left": "–" if left is None else left_text(left, at_most=False).removesuffix(" left"),
            "Run time": duration_text(summary.run_time),
        }
        for name, text in texts.items():
            self._boxes[name].set_text(text)
        self._boxes["Time left"].set_visibility(summary.is_running)
        self._boxes["Best so far"].set_visibility(intermediate is None)
        self._boxes[_INTERMEDIATE].set_visibility(intermediate is not None)

    def _show_nothing(self, summary: Summary) -> None:
        """Show a sentence in the place of the results before there is a trial."""
        is_empty = not summary.trials
        self._results.set_visibility(not is_empty)
        self._nothing.set_visibility(is_empty and summary.status != "ERROR")
        self._row.set_visibility(not is_empty)
        self._nothing.clear()
        with self._nothing:
            if summary.is_running:
                html.p("No trial has started yet. The first results appear here by themselves.")
            else:
                html.p("No trial has run.")
                if may_change():
                    html.a("Set the number of trials, and resume", href=self._where.path("settings"))

    def _show_notices(self, notices: list[Notice]) -> None:
        self._resume.set_visibility(any(notice.resumes for notice in notices))

        def draw() -> None:
            for notice in notices:
                with html.section().classes("pp-panel pp-notice") as section:
                    section.classes("" if notice.is_bad else "pp-mild")
                    html.p(escaped(notice.text)).props("role=status")
                    if notice.kind:
                        dismiss_button(section, f"{self._where.title}: {notice.kind}")
                    if notice.error:
                        html.pre(escaped(notice.error, keep="\n\t"))

        self._notices.show(notices, draw)

    def _show_counts(self, counts: dict[str, int], failures: Sequence[FailureGroup]) -> None:
        most = _main_failure(failures, counts.get("FAILED", 0))

        def draw() -> None:
            for status in STATUS_WORDS:
                if counts.get(status):
                    link = html.a(href=self._where.path("trials", status=status))
                    with link.style("text-decoration: none"):
                        badge(f"{counts[status]} {status_text(status)}", TRIAL_TONES.get(status, ""))
            if most:
                html.a(escaped(most), href="#failures", title=escaped(most)).classes("pp-cut pp-why")

        self._counts.show((counts, most), draw)


def _main_failure(failures: Sequence[FailureGroup], failed: int) -> str:
    """Return why trials failed, with the share of the largest group if there are others; empty without failures."""
    if not failures:
        return ""
    largest = failures[0]
    share = f"{largest.count} of {failed} failed" if len(failures) > 1 else "Why"
    return f"{share}: {FailedTrial.of(largest)}"


def best_text(summary: Summary) -> str:
    """Return the best result and whose it is, such as `0.5 (trial 6)`, or `0.5 (mean of 3 repeats, family 6)`."""
    best = summary.best
    if not best:
        return "–"
    if len(best) > 1:
        return f"{len(best)} trade-offs"
    return f"{value_text(best[0], summary.objectives[0].name)} ({who_text(best[0])})"


def _throughput(summary: Summary, ended: int) -> str:
    """Return the throughput: over the last minute while the experiment runs, over the whole time afterwards."""
    if summary.is_running:
        return pace_text(summary.trials_per_minute, summary.results_per_minute)
    return rate_text(ended / max(summary.run_time, 1e-3)) if ended else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """What the page shows, read at once; without `details` at first."""

    summary: Summary
    leaders: Leaders
    running: Sequence[TrialRow]
    failures: list[FailureGroup]
    notices: list[Notice]
    details: _Details | None

    @classmethod
    def of(cls, served: ServedExperiment, *, is_first: bool = False) -> _Snapshot:
        """Read what is shown; what takes longer is left out `is_first`, so that the page is up soon."""
        view, summary = served.view, served.view.summary()
        running = view.trials(TrialQuery(statuses=("RUNNING",), limit=_MOST_RUNNING)).trials
        details = None if is_first else _Details.of(served, summary, running)
        return cls(
            summary=summary,
            leaders=_leaders(served, summary),
            running=running,
            failures=view.failures(),
            notices=notices_of(summary, view, () if details is None else details.health),
            details=details,
        )


def _leaders(served: ServedExperiment, summary: Summary) -> Leaders:
    view, has_front = served.view, _has_front(summary)
    return Leaders(
        summary=summary,
        trials=summary.best if has_front else view.best(MOST_BEST),
        front=view.front() if has_front or summary.outcome_limits else None,
        repeats=view.repeats(),
        why_none="" if summary.best else why_none_text(view, summary),
        changes=view.parameter_changes(summary.best[0].sequence_id) if len(summary.best) == 1 else 0,
        closeness=served.cached(_closeness),
    )


def _closeness(view: ExperimentView) -> list[str]:
    return list(closeness_lines(view.closest_to_defaults()))


def _has_front(summary: Summary) -> bool:
    return len(summary.objectives) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """What takes longer to read, and is shown once the page is up."""

    history: list[HistoryEntry]
    ends: list[float]
    stopped: list[StoppedTrial]
    curves: list[Curve]
    health: list[str]
    pareto: go.Figure | None
    importance: Importance | None

    @classmethod
    def of(cls, served: ServedExperiment, summary: Summary, running: Sequence[TrialRow]) -> _Details:
        view = served.view
        is_over = ExperimentStatus(summary.status).is_final
        is_small = summary.trials <= _MOST_FOR_IMPORTANCE
        ends = view.ends()
        return cls(
            history=view.history(),
            ends=[end.time for end in ends],
            stopped=_stopped(view, ends, summary.objectives[0].name),
            curves=_curves(view, summary, running),
            health=served.cached(health_object)["notes"],
            pareto=plot_pareto(read_table(view, curves=0), columns=1) if _has_front(summary) else None,
            importance=_importance(served) if is_over and is_small else None,
        )


def _stopped(view: ExperimentView, ends: Sequence[TrialEnd], metric: str) -> list[StoppedTrial]:
    """Return the trials that were stopped early and had a result; of very many, some evenly over time."""
    stopped = [end for end in ends if end.status == "EARLY_STOPPED"]
    stopped = stopped[:: -(-len(stopped) // _MOST_STOPPED) or 1]
    last = view.latest([end.sequence_id for end in stopped])
    results = [(end, number_or_none(last.get(end.sequence_id, {}).get(metric))) for end in stopped]
    return [StoppedTrial(end.sequence_id, end.time, value) for end, value in results if value is not None]


def _curves(view: ExperimentView, summary: Summary, running: Sequence[TrialRow]) -> list[Curve]:
    """Return the curves of running trials that have reported: of all before one has succeeded, then of long ones."""
    is_first = not summary.counts.get("SUCCEEDED")
    shown = [
        trial.sequence_id
        for trial in running
        if trial.intermediate_results and (is_first or (trial.seconds or 0.0) >= _LONG)
    ]
    is_live = summary.is_running or summary.has_program
    return view.curves(shown, summary.objectives[0].name, _CURVE_POINTS) if shown and is_live else []


def _importance(served: ServedExperiment) -> Importance:
    """Return the importance for the first objective, which the API has in the same cache."""
    fields: JsonObject = served.cached(read_importance, None)
    # JSON has no tuples.
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return Importance(**fields)


# A trial that waits this many seconds for its start is normal.
_USUAL_WAIT = 5.0
# What comes before the reason of an experiment that is not running; one that is stopped may have been extended.
_LEADS = {"VIEWED": "This is ", "STOPPED": "It is stopped: "}


_NOTE = "Note: "


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence, its traceback, whether it is bad, and whether resuming the experiment is what to do."""

    text: str
    error: str = ""
    is_bad: bool = False
    resumes: bool = False

    @property
    def kind(self) -> str:
        """What a note on the search is about, by which it can be dismissed; empty for any other notice."""
        return self.text.removeprefix(_NOTE).partition(":")[0] if self.text.startswith(_NOTE) else ""


def notices_of(summary: Summary, view: ExperimentView, health: Sequence[str] = ()) -> list[Notice]:
    """Return the notices about an experiment, the worst first; a running manager is asked for its warnings.

    `health` are the notes on how the search went.
    """
    status, reason = summary.status, summary.reason
    if summary.is_abandoned:
        return [
            Notice(
                "The manager of this experiment is gone, perhaps killed. Trials may continue for a while.",
                is_bad=True,
                resumes=True,
            )
        ]
    if status == "ERROR":
        return [
            Notice(
                f"The experiment failed: {reason or 'no reason was given'}. Once the cause is mended, resume it.",
                summary.error,
                is_bad=True,
                resumes=True,
            )
        ]
    notices = [Notice(warning) for warning in _warnings(summary, view)]
    regions = map(region_text, view.failure_regions())
    notices += [Notice(f"{text[0].upper()}{text[1:]}.") for text in regions]
    if reason and status != "RUNNING":
        notices.append(Notice(f"{_LEADS.get(status, 'It ended early: ')}{reason}."))
    return [*notices, *(Notice(f"{_NOTE}{note}.") for note in health)]


def _warnings(summary: Summary, view: ExperimentView) -> list[str]:
    """Return the warnings of a running experiment's manager, and why nothing runs."""
    if not summary.is_running:
        return []
    try:
        state = manager_status(view.folder.path)
    except ControlError as error:
        return [f"This page may be out of date: {error}."]
    warnings, reasons = [*state["warnings"]], state["waiting"]
    first = view.trials(TrialQuery(statuses=("WAITING",), limit=1)).trials
    if first and not summary.counts.get("RUNNING") and time.time() - first[0].created > _USUAL_WAIT:
        warnings.append(
            f"Nothing is running: {reasons.get(first[0].trial_id) or 'a trial waits to be started'}"
        )
    return warnings
