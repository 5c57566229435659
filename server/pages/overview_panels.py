"""The panels of the overview: the best trials, what runs, which parameters matter, why trials failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nicegui import html, ui

from ...protocol import counted
from ...store.reading import Curve, ExperimentView, FailureGroup, ParetoFront, Summary, TrialRow
from ...telling import (
    FailedTrial,
    best_intermediate_text,
    changes_of_schedule,
    differing_parameters,
    duration_text,
    escaped,
    front_lines,
    gain_text,
    number_text,
    parameters_text,
    repeats_text,
    value_text,
    visible,
)
from ..figures import Importance
from .elements import Place, attributed, badge, panel, parameter_columns, table
from .figure_view import FigureView, curve_figure
from .frame import Where
from .parameter_copies import copy_menu

MOST_BEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """The best `trials` in order, or those on the `front` if there is one, with what is said about them."""

    summary: Summary
    trials: Sequence[TrialRow]
    front: ParetoFront | None = None
    repeats: int = 1
    closeness: Sequence[str] = field(default_factory=tuple)
    why_none: str = ""
    changes: int = 0  # of the parameters of the only best trial, while it was trained

    @property
    def knee(self) -> int | None:
        """The number of the trial at the knee of the front."""
        return None if self.front is None else self.front.knee

    @property
    def lines(self) -> list[str]:
        """Sentences about the front, and about trials close to the defaults, without a full stop."""
        lines = [*(front_lines(self.front, repeats=self.repeats) if self.front else ()), *self.closeness]
        return [line[0].upper() + line[1:] for line in lines]


class BestPanel:
    """The best trial with its parameters; at the knee of a front."""

    def __init__(self, view: ExperimentView, where: Where, title: str, metrics: Sequence[str]) -> None:
        self._view = view
        self._where = where
        self._metrics = [] if len(metrics) < 2 else metrics
        with panel(title):
            self._body = Place(html.div().classes("pp-stack"))

    def show(self, leaders: Leaders) -> None:
        """Show the best trial, or why there is none."""
        at_knee = [trial for trial in leaders.trials if trial.sequence_id == leaders.knee]
        best = next(iter(at_knee or leaders.trials), None)
        lines = [gain_text(leaders.summary), *leaders.lines]
        if best is None:
            lines = [leaders.why_none, _intermediate(leaders.summary), *lines]

        def draw() -> None:
            if best is not None:
                self._trial(best, is_knee=bool(at_knee))
                self._schedule(best, leaders.changes)
            for line in filter(None, lines):
                html.p(escaped(line)).classes("pp-dim")

        self._body.show((best, bool(at_knee), leaders.changes, lines), draw)

    def _schedule(self, trial: TrialRow, changes: int) -> None:
        if text := changes_of_schedule(changes):
            with html.p().classes("pp-dim"):
                html.span(f"{text[0].upper()}{text[1:]}: see its ")
                html.a("schedule", href=self._where.path(f"trials/{trial.sequence_id}"))

    def _trial(self, trial: TrialRow, *, is_knee: bool) -> None:
        repeats = repeats_text(trial)
        with html.div().classes("pp-row"):
            html.a(_name(trial), href=self._where.path(f"trials/{trial.sequence_id}"))
            in_order = dict.fromkeys((*self._metrics, *trial.values))
            names = [name for name in in_order if name in trial.values]
            for name in names:
                if len(names) > 1 or name != "default":
                    html.span("result" if name == "default" else visible(name)).classes("pp-dim")
                html.strong(value_text(trial, name)).classes("pp-mono")
            for text in filter(None, (repeats, "the knee" if is_knee else "")):
                html.span(text).classes("pp-dim")
            html.span().style("flex: 1")
            copy_menu(self._view, trial, "Copy the parameters of the best trial")
        parameter_columns(trial.parameters)


class LeadersPanel:
    """The table of the best trials, and the way to the others."""

    def __init__(self, where: Where, title: str, metrics: Sequence[str], noun: str) -> None:
        self._where = where
        self._metrics = metrics
        results = ["Result" if name == "default" else name for name in metrics]
        heads = ["Rank", noun.capitalize(), *results, "Parameters", "Took"]
        with panel(title, classes="pp-leaders") as self._panel:
            self._rows = Place(table(heads, title, ["Rank", *results, "Took"]))
            with html.a(href=where.path("trials")):
                self._rest = ui.label()

    def show(self, leaders: Leaders) -> None:
        """Show the best trials."""
        self._rest.set_text(f"All {leaders.summary.trials} trials, best first")
        self._panel.set_visibility(bool(leaders.trials))

        def draw() -> None:
            shown = leaders.trials[:MOST_BEST]
            words = differing_parameters([trial.parameters for trial in shown])
            for rank, trial in enumerate(shown, start=1):
                self._row(rank, trial, words[rank - 1], is_knee=trial.sequence_id == leaders.knee)

        results = [(trial.sequence_id, trial.values, trial.duration) for trial in leaders.trials]
        self._rows.show((results, leaders.knee), draw)

    def _row(self, rank: int, trial: TrialRow, words: str, *, is_knee: bool) -> None:
        with html.tr():
            html.td(str(rank)).classes("pp-dim number")
            with html.td().style("white-space: nowrap"):
                _link(self._where, trial.sequence_id, _name(trial))
                if is_knee:
                    html.span(" knee").classes("pp-dim")
            for name in self._metrics:
                html.td(value_text(trial, name) or "–").classes("number")
            with html.td(title=parameters_text(trial.parameters)).classes("pp-cut"):
                html.span(words).classes("pp-two-lines")
            html.td("" if trial.duration is None else duration_text(trial.duration)).classes("number")


def _intermediate(summary: Summary) -> str:
    """Return the sentence that is shown in the place of the best trial."""
    best = summary.best_intermediate
    return "" if best is None else f"best intermediate result: {best_intermediate_text(best)}"


def _name(trial: TrialRow) -> str:
    return f"{'Family' if repeats_text(trial) else 'Trial'} {trial.sequence_id}"


def _link(where: Where, number: int, name: str) -> None:
    """Make a link to a trial that shows its number; screen readers read its `name`."""
    attributed(html.a(str(number), href=where.path(f"trials/{number}")), aria_label=name)


class CurvesPanel:
    """The intermediate results of the running trials, while there is no other result, or they take long."""

    def __init__(self, where: Where) -> None:
        with panel("Learning curves of the running trials") as self._panel:
            self._figure = FigureView("Intermediate results of the running trials", where=where, height=300)
        self._panel.set_visibility(False)

    def show(self, curves: Sequence[Curve], metric: str, trials: Sequence[TrialRow]) -> None:
        """Show these curves of these trials; nothing without curves."""
        self._panel.set_visibility(bool(curves))
        if curves:
            parameters = {trial.sequence_id: trial.parameters for trial in trials}
            self._figure.show(curve_figure(curves, metric, parameters))


_RUNNING_HEADS = ("Trial", "Parameters", "Results", "Last result", "Running for")


class RunningPanel:
    """The trials that are running."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._clocks: list[tuple[ui.label, float]] = []
        with panel("Running now") as self._panel:
            self._body = table(_RUNNING_HEADS, "Running now", _RUNNING_HEADS[2:])
            self._more = ui.label().classes("pp-dim")

    def show(self, trials: Sequence[TrialRow], count: int, now: float) -> None:
        """Show these of `count` running trials; `now` in seconds since the epoch."""
        self._panel.set_visibility(count > 0)
        self._more.set_text(f"and {count - len(trials)} more" if count > len(trials) else "")
        self._clocks = []
        self._body.clear()
        with self._body:
            for trial in trials:
                with html.tr():
                    with html.td():
                        _link(self._where, trial.sequence_id, f"Trial {trial.sequence_id}")
                    words = parameters_text(trial.parameters)
                    with html.td(title=words).classes("pp-cut"):
                        html.span(words).classes("pp-two-lines")
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


_MOST_BARS = 8


class ImportancePanel:
    """The parameters that explain most of the results' variance."""

    def __init__(self, where: Where) -> None:
        with panel("Which parameters matter") as self._panel:
            self._body = Place(html.div())
            html.a("How sure that is", href=where.path("plots", figure="importance"))
        self._panel.set_visibility(False)

    def show(self, importance: Importance | None) -> None:
        """Show the shares of the parameters; nothing if they are unknown."""
        self._panel.set_visibility(importance is not None and not importance.why_not)
        if importance is not None:
            self._body.show(importance, lambda: _draw_shares(importance))


def _draw_shares(importance: Importance) -> None:
    note = importance.warning or "share of the results' variance"
    ui.label(f"Confidence {importance.confidence}: {note}.").classes("pp-dim")
    shares = zip(importance.names, importance.shares, strict=True)
    with html.div().classes("pp-bars weak" if importance.warning else "pp-bars"):
        for name, share in list(shares)[:_MOST_BARS]:
            html.span(visible(name)).classes("pp-cut")
            with html.span().classes("pp-track"):
                html.span().style["width"] = f"{100 * share:.1f}%"
            html.span(f"{share:.0%}").classes("number")


_MOST_GROUPS = 20
_MOST_LINKS = 8
_TRACEBACK_LINES = 6


class FailuresPanel:
    """Why trials failed, by failure, with the last lines of their output; it appears once a trial has failed."""

    def __init__(self, where: Where) -> None:
        self._where = where
        with panel("Why trials failed") as self._panel:
            self._body = Place(html.div().classes("pp-stack"))
        self._panel.props("id=failures")

    def show(self, groups: Sequence[FailureGroup], failed: int) -> None:
        """Show these groups; `failed` is the number of trials in them."""
        self._panel.set_visibility(bool(groups))

        def draw() -> None:
            for group in groups[:_MOST_GROUPS]:
                self._group(group)
            if rest := groups[_MOST_GROUPS:]:
                others = sum(group.count for group in rest)
                text = f"{others} of {failed} failed trials failed in {len(rest)} other ways"
                html.a(text, href=self._where.path("trials", status="FAILED"))

        self._body.show([(group.count, group.reason) for group in groups], draw)

    def _group(self, group: FailureGroup) -> None:
        failure = FailedTrial.of(group, _TRACEBACK_LINES)
        with html.article().classes("pp-box"):
            with html.div().classes("pp-row"):
                html.strong(counted(group.count, "trial"))
                badge(group.kind or "FAILED", "bad")
                if failure.ending:
                    html.span(failure.ending).classes("pp-dim")
            html.p(escaped(str(failure))).classes("pp-reason")
            if failure.hint:
                html.p(escaped(failure.hint))
            if failure.lines:
                html.pre(escaped("\n".join(failure.lines), keep="\n\t")).classes("pp-dim")
            with html.div().classes("pp-row"):
                html.span("Trials").classes("pp-dim")
                for number in group.sequence_ids[:_MOST_LINKS]:
                    _link(self._where, number, f"Trial {number}")
                if group.count > _MOST_LINKS:
                    more = f"and {group.count - _MOST_LINKS} more"
                    html.a(more, href=self._where.path("trials", status="FAILED"))
