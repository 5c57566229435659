"""The page of one trial: its parameters, curve, log, end, and how to run it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import html, ui

from ...store import Annotation, Annotations, shell_word
from ...store.reading import (
    Attempt,
    Curve,
    ExperimentView,
    FeedEvent,
    ReportedResult,
    Summary,
    TrialDetail,
    escaped,
    moment_text,
    visible,
)
from ..experiments import Experiments
from ..trial_story import Ending, ending_of, facts_of
from .actions import copied, notes_panel
from .elements import action, facts, panel, parameter_facts, set_badge, table
from .figure_view import FigureView, curve_figure
from .files import FilesPanel
from .frame import Where, experiment_frame
from .trial_actions import TrialActions
from .trial_log import TrialLog
from .wording import TRIAL_TONES, trial_word

__all__ = ["trial_page"]

_POINTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """What is read of the trial at once; `metrics` are the names of the numbers in its intermediate results."""

    trial: TrialDetail
    config: dict[str, Any]
    metrics: list[str]
    curve: Curve
    summary: Summary
    ending: Ending
    outputs: list[tuple[str, int]]
    annotation: Annotation

    @classmethod
    def of(cls, view: ExperimentView, name: str, metric: str) -> _Snapshot:
        trial = view.trial(name)
        number = trial.sequence_id
        first = view.metrics(number, limit=1).results
        curve = view.curve(number, metric, _POINTS)
        return cls(
            trial=trial,
            config=view.config(),
            metrics=_metrics(first, view.main_objective()),
            curve=curve,
            summary=view.summary(),
            ending=ending_of(trial, view),
            outputs=[(file.name, file.size) for file in view.outputs(number)],
            annotation=Annotations(view.folder).read(number),
        )


async def trial_page(experiments: Experiments, experiment_id: str, name: str) -> None:
    """Show a trial, given by number or id, and keep it up to date."""
    async with experiment_frame(experiments, experiment_id, f"Trial {name}", "trials") as (view, where, live):
        found = await asyncio.to_thread(_Snapshot.of, view, name, "default")
        number = found.trial.sequence_id
        page = _TrialPage(view, where, found, TrialActions(view, where))
        page.show(found)
        ui.timer(0.01, page.tick, once=True)

        async def refresh(events: list[FeedEvent]) -> None:
            if not events or any(event.sequence_id == number for event in events):
                page.show(await asyncio.to_thread(_Snapshot.of, view, str(number), page.metric))
            if not events or any(event.kind == "experiment" for event in events):
                where.show_status(await asyncio.to_thread(view.summary))

        live.on_change(refresh)
        live.on_tick(page.tick)


class _TrialPage:
    """The parts of the page, each of which can be updated."""

    def __init__(self, view: ExperimentView, where: Where, found: _Snapshot, actions: TrialActions) -> None:
        self.metric = found.metrics[0]
        self._view = view
        self._where = where
        self._trial = found.trial
        self._shown: Any = None
        self._actions = actions
        self._heading(found, actions)
        self._ending = html.section().classes("pp-panel").props('aria-label="How it ended"')
        with html.div().classes("pp-columns"):
            with panel("Parameters"):
                parameter_facts(found.trial.parameters)
            with panel("Facts"):
                self._facts = html.div()
        with panel("Intermediate results") as self._results:
            if len(found.metrics) > 1:
                self._metric_field(found.metrics)
            self._figure = FigureView("Intermediate results of the trial")
        self._log = TrialLog(view, where, found.trial, is_function=not found.config.get("trialCommand"))
        self._files = FilesPanel(where, found.trial.sequence_id)
        notes_panel(Annotations(view.folder), found.trial.sequence_id, found.annotation)
        with panel("Environment and rerun"):
            _environment(view, found)
        self._attempts = html.div()

    def show(self, found: _Snapshot) -> None:
        """Show what was read."""
        self._trial = trial = found.trial
        set_badge(self._badge, trial_word(trial.status), TRIAL_TONES.get(trial.status, ""))
        is_over = trial.status not in ("WAITING", "RUNNING", "PAUSED")
        self._actions.show_state(found.summary)
        self._kill.set_visibility(found.summary.is_running and not is_over)
        number = trial.sequence_id
        self._results.set_visibility(not is_over or bool(trial.intermediate_results))
        self._figure.show(curve_figure([found.curve], self.metric))
        self._files.show(found.outputs)
        if trial == self._shown:
            return
        self._shown = trial
        self._show_ending(found.ending)
        self._facts.clear()
        with self._facts, facts(facts_of(trial, self._view.folder)):
            self._copy_path_button(self._view.folder.trial(number))
        self._show_attempts(trial.earlier_attempts)

    def _copy_path_button(self, files: Path) -> None:
        async def copy() -> None:
            await copied(str(files), "The path of the trial's folder is on the clipboard")

        if files.is_dir():
            with html.dd().style("grid-column: 2"):  # below the path
                button = action("Copy the path", copy, icon="content_copy").style("margin-left: -10px")
            button.props('aria-label="Copy the path of the trial\'s folder"')

    async def tick(self) -> None:
        """Check for new output."""
        await self._log.look(self._trial)

    def _heading(self, found: _Snapshot, actions: TrialActions) -> None:
        number = found.trial.sequence_id

        async def this() -> list[int]:
            return [number]

        with html.div().classes("pp-row"):
            html.h1(f"Trial {number}")
            html.span(found.trial.trial_id).classes("pp-dim pp-mono")
            self._badge = ui.label().classes("pp-status").mark("trial-status")
            html.span().style("flex: 1")
            with html.div().classes("pp-row"):
                if number > 0:
                    html.a("Previous", href=self._where.path(f"trials/{number - 1}")).props("rel=prev")
                if number + 1 < found.summary.trials:
                    html.a("Next", href=self._where.path(f"trials/{number + 1}")).props("rel=next")
            action("Copy parameters", lambda: actions.copy(this), icon="content_copy")
            _, self._kill = actions.changes(this)

    def _metric_field(self, metrics: list[str]) -> None:
        async def choose(event: Any) -> None:
            self.metric = event.value
            number = self._trial.sequence_id
            curve = await asyncio.to_thread(self._view.curve, number, self.metric, _POINTS)
            self._figure.show(curve_figure([curve], self.metric))

        ui.select(
            {name: visible(name) for name in metrics}, label="Metric", value=self.metric, on_change=choose
        ).props("outlined dense")

    def _show_ending(self, ending: Ending) -> None:
        self._ending.clear()
        self._ending.classes(replace="pp-panel pp-notice" if ending.is_bad else "pp-panel")
        with self._ending:
            html.h2(ending.title)
            html.p(escaped(ending.sentence)).classes("pp-reason").mark("reason")
            for note in ending.notes:
                html.p(escaped(note))
            if ending.error:
                html.pre(escaped(ending.error, keep="\n\t"))

    def _show_attempts(self, attempts: list[Attempt]) -> None:
        self._attempts.clear()
        if not attempts:
            return
        heads = ("Attempt", "Outcome", "Why", "Kind", "Where", "Ended")
        with self._attempts, panel("Earlier attempts"), table(heads, "Earlier attempts"):
            for row in attempts:
                with html.tr():
                    cells = (row.attempt, row.outcome, row.reason, row.kind, row.agent)
                    for value in (*cells, moment_text(row.end_time)):
                        html.td("" if value is None else escaped(str(value)))


def _metrics(results: list[ReportedResult], main: str) -> list[str]:
    """Return the names of the numbers in a result; the `main` objective comes first."""
    value = results[0].value if results else None
    names = (
        [key for key, inner in value.items() if isinstance(inner, int | float)]
        if isinstance(value, dict)
        else []
    )
    return sorted({main, *names}, key=lambda name: (name != main, name))


def _environment(view: ExperimentView, found: _Snapshot) -> None:
    command = _rerun_command(view, found.trial.sequence_id)
    facts(_environment_facts(found.config))
    with html.div().classes("pp-row").style("margin-top: .7rem"):
        html.span("To rerun it in a terminal:").classes("pp-dim")
        html.code(escaped(command)).classes("pp-box").mark("rerun-command")
        copy = partial(copied, command, "The command is on the clipboard")
        action("Copy", copy, icon="content_copy").props('aria-label="Copy the command"')


def _rerun_command(view: ExperimentView, number: int) -> str:
    directory = shell_word(view.folder.path.parent)
    return f"pitchpipe trial rerun {view.experiment_id} {number} --dir {directory}"


def _environment_facts(config: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "Command", config.get("trialCommand") or "a Python function or class"
    yield "Code", config.get("trialCodeDirectory")
    service = config.get("trainingService") or {}
    yield "Runs on", service.get("platform")
    yield from sorted((config.get("trialEnvironment") or {}).items())
    yield "Seed of the experiment", config.get("seed")
