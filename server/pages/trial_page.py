"""The page of one trial: its parameters, curve, log, end, and how to run it again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi.responses import FileResponse
from nicegui import html, ui

from ...manager.control import read_running, why_waiting
from ...protocol import Config, size_text
from ...store import Annotation, Annotations, shell_word
from ...store.reading import (
    Attempt,
    Curve,
    ExperimentView,
    FeedEvent,
    FilePiece,
    Follow,
    Schedule,
    Summary,
    TrialDetail,
    flat,
)
from ...telling import (
    SCHEDULE_HEADS,
    Ending,
    ending_of,
    escaped,
    facts_of,
    moment_text,
    schedule_rows,
    start_lines,
    status_text,
    visible,
)
from ...trial_agent import output_name
from ..experiment_table import curve_metrics
from ..experiments import Experiments
from ..secrecy import hidden_values
from .actions import copy_button, notes_panel
from .elements import TRIAL_TONES, Place, metric_field, named_values, panel, parameter_list, set_badge, table
from .figure_view import FigureView, metrics_figure
from .frame import Where, experiment_frame
from .logs_page import LogView
from .parameter_copies import copy_menu
from .readers import may_change
from .trial_actions import TrialActions

_POINTS = 1000


async def trial_page(experiments: Experiments, experiment_id: str, name: str) -> None:
    """Show a trial, given by number or id, and keep it up to date."""
    async with experiment_frame(experiments, experiment_id, f"Trial {name}", "trials") as (view, where, live):
        snapshot = await asyncio.to_thread(_Snapshot.of, view, name)
        number = snapshot.trial.sequence_id
        page = _TrialPage(view, where, snapshot)
        page.show(snapshot)
        ui.timer(0.01, page.tick, once=True)

        async def refresh(events: list[FeedEvent]) -> None:
            if not events or any(event.sequence_id == number for event in events):
                page.show(await asyncio.to_thread(_Snapshot.of, view, str(number), page.metrics))

        live.on_change(refresh)
        live.on_tick(page.tick)


class _TrialPage:
    """The parts of the page, each of which can be updated."""

    def __init__(self, view: ExperimentView, where: Where, snapshot: _Snapshot) -> None:
        self.metrics: Sequence[str] = list(snapshot.curves)
        self._view = view
        self._where = where
        self._trial = snapshot.trial
        self._shown: TrialDetail | None = None
        self._heading(snapshot)
        self._ending = html.section().classes("pp-panel").props('aria-label="How it ended"')
        with html.div().classes("pp-columns"):
            with panel("Parameters"):
                parameter_list(snapshot.trial.parameters)
            with panel("Facts"):
                self._facts = html.div()
        with panel("Intermediate results") as self._results:
            self._fields = Place(html.div())
            self._figure = FigureView("Intermediate results of the trial")
        self._schedule = Place(html.div())
        self._log = _LogPanel(view, snapshot.trial, is_search=snapshot.summary.is_search)
        self._files = _FilesPanel(where, snapshot.trial.sequence_id)
        notes_panel(Annotations(view.folder), snapshot.trial.sequence_id, snapshot.annotation)
        with panel("Environment and rerun"):
            _environment(view, snapshot)
        self._attempts = html.div()

    def show(self, snapshot: _Snapshot) -> None:
        """Show what was read."""
        self._trial = trial = snapshot.trial
        set_badge(self._badge, status_text(trial.status), TRIAL_TONES.get(trial.status, ""))
        is_over = trial.status not in ("WAITING", "RUNNING", "PAUSED")
        self._actions.show_state(snapshot.summary, is_over=is_over)
        self._results.set_visibility(not is_over or bool(trial.intermediate_results))
        self._fields.show(snapshot.metrics, lambda: self._metric_field(snapshot.metrics))
        self._figure.show(metrics_figure(snapshot.curves))
        self._schedule.show(snapshot.schedule, lambda: self._show_schedule(snapshot.schedule))
        self._files.show(snapshot.outputs)
        if trial == self._shown:
            return
        self._shown = trial
        self._show_ending(snapshot.ending)
        self._facts.clear()
        named, own = facts_of(trial, self._view.folder), flat(trial.final)
        with (
            self._facts,
            named_values(
                (name if name in own else f"{name[0].upper()}{name[1:]}", value) for name, value in named
            ),
        ):
            self._copy_path_button(self._view.folder.trial(trial.sequence_id))
        self._show_attempts(trial.earlier_attempts)

    def _copy_path_button(self, files: Path) -> None:
        if files.is_dir():
            done = "The path of the trial's folder is on the clipboard"
            with html.dd().style("grid-column: 2"):  # below the path
                button = copy_button(str(files), "Copy the path of the trial's folder", done, "Copy the path")
            button.style("margin-left: -10px")

    async def tick(self) -> None:
        """Check for new output."""
        await self._log.look(self._trial)

    def _heading(self, snapshot: _Snapshot) -> None:
        number = snapshot.trial.sequence_id

        async def this() -> list[int]:
            return [number]

        self._actions = actions = TrialActions(self._view, self._where, this)
        with html.div().classes("pp-row"):
            html.h1(f"Trial {number}")
            html.span(snapshot.trial.trial_id).classes("pp-dim pp-mono")
            self._badge = ui.label().classes("pp-status").mark("trial-status")
            html.span().style("flex: 1")
            with html.div().classes("pp-row"):
                if number > 0:
                    html.a("Previous", href=self._where.path(f"trials/{number - 1}")).props("rel=prev")
                if number + 1 < snapshot.summary.trials:
                    html.a("Next", href=self._where.path(f"trials/{number + 1}")).props("rel=next")
            copy_menu(self._view, snapshot.trial, "Copy the parameters", "Copy parameters")
            actions.changes()

    def _metric_field(self, metrics: Sequence[str]) -> None:
        async def choose(event: Any) -> None:
            self.metrics = event.value or metrics[:1]
            number = self._trial.sequence_id
            self._figure.show(
                metrics_figure(await asyncio.to_thread(_curves, self._view, number, self.metrics))
            )

        if len(metrics) > 1:
            metric_field(metrics, list(self.metrics), choose, multiple=True)

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

    def _show_schedule(self, schedule: Schedule | None) -> None:
        """Show with which parameters the trial was trained when, if these changed."""
        if schedule is None or len(schedule.steps) < 2:
            return
        heads = [head.capitalize() for head in SCHEDULE_HEADS]
        rows = zip(schedule.steps, schedule_rows(schedule), strict=True)
        with panel("Schedule of parameters"), table(heads, "Schedule of parameters", heads[:2]):
            for step, (begin, number, parameters, copied) in rows:
                with html.tr():
                    html.td(begin).classes("number")
                    with html.td().classes("number"):
                        html.a(number, href=self._where.path(f"trials/{step.trial}"))
                    html.td(parameters)
                    html.td(copied)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """What is read of the trial at once; `metrics` are the names of the numbers in its intermediate results.

    The `curves` are those of the chosen ones, at first of the objective.
    """

    trial: TrialDetail
    config: Config
    metrics: Sequence[str]
    curves: Mapping[str, Curve]
    schedule: Schedule | None
    summary: Summary
    ending: Ending
    outputs: list[tuple[str, int]]
    annotation: Annotation

    @classmethod
    def of(cls, view: ExperimentView, name: str, chosen: Sequence[str] = ()) -> _Snapshot:
        trial = view.trial(name)
        number = trial.sequence_id
        metrics = curve_metrics(view, [number])
        return cls(
            trial=trial,
            config=view.config(),
            metrics=metrics,
            curves=_curves(view, number, chosen or metrics[:1]),
            schedule=view.schedule(number) if view.has_schedules() else None,
            summary=view.summary(),
            ending=ending_of(trial, view, why_waiting),
            outputs=[(file.name, file.size) for file in view.outputs(number)],
            annotation=Annotations(view.folder).read(number),
        )


def _curves(view: ExperimentView, number: int, metrics: Sequence[str]) -> dict[str, Curve]:
    return {name: view.curve(number, name, _POINTS) for name in metrics}


def _environment(view: ExperimentView, snapshot: _Snapshot) -> None:
    named_values(_environment_facts(view, snapshot))
    directory = shell_word(view.folder.path.parent)
    command = f"pitchpipe trial rerun {view.experiment_id} {snapshot.trial.sequence_id} --dir {directory}"
    with html.div().classes("pp-row").style("margin-top: .7rem"):
        html.span("To rerun it in a terminal:").classes("pp-dim")
        html.code(escaped(command)).classes("pp-box").mark("rerun-command")
        copy_button(command, "Copy the command", "The command is on the clipboard")


def _environment_facts(view: ExperimentView, snapshot: _Snapshot) -> Iterator[tuple[str, object]]:
    """Yield what the trial ran and where; the machine is that of the last start of the manager before its end."""
    config, trial = snapshot.config, snapshot.trial
    if not may_change():
        config = hidden_values(config)
    yield "Command", config.get("trialCommand") or "a Python function or class"
    yield "Code directory", config.get("trialCodeDirectory")
    service = config.get("trainingService") or {}
    yield "Runs on", service.get("platform")
    yield from sorted((config.get("trialEnvironment") or {}).items())
    yield "Seed of the experiment", config.get("seed")
    ended = math.inf if trial.end_time is None else trial.end_time
    starts = [start for start in view.starts() if start.time <= ended]
    if starts:
        yield from start_lines(starts[-1])
    version = next((one for one in view.code_versions() if trial.code in one.digests), None)
    if version is not None:
        yield "Files that it ran", ", ".join(f"{path} {digest}" for path, digest in version.files.items())
        yield "Packages", ", ".join(f"{name} {number}" for name, number in version.packages.items())


_OUTPUTS = {"stdout": "Output", "stderr": "Errors"}


class _LogPanel:
    """The output of a trial on stdout and stderr; that of a search is its program's."""

    def __init__(self, view: ExperimentView, trial: TrialDetail, *, is_search: bool) -> None:
        self._view = view
        self._trial = trial
        self._logs: dict[str, LogView] = {}
        with panel("Log"):
            if is_search:
                html.p("The program that runs the search prints it.").classes("pp-dim")
            else:
                self._add_tabs()

    def _add_tabs(self) -> None:
        with ui.tabs().props("dense no-caps align=left inline-label") as tabs:
            for file, name in _OUTPUTS.items():
                ui.tab(file, label=name)
        first = "stderr" if self._trial.status == "FAILED" else "stdout"
        with ui.tab_panels(tabs, value=first, keep_alive=True, animated=False).style("width: 100%"):
            for file, name in _OUTPUTS.items():
                with ui.tab_panel(file).style("padding: .5rem 0"):
                    self._logs[file] = LogView(f"{name} of the trial", partial(self._read, file))

    async def look(self, trial: TrialDetail) -> None:
        """Show what has been printed since the last time; `trial` is its present state."""
        is_next = trial.attempt > self._trial.attempt  # which has other files
        self._trial = trial
        is_over = trial.end_time is not None
        for file, log in self._logs.items():
            await (log.start_with(partial(self._read, file)) if is_next else log.look())
            if is_over:
                log.end()

    def _read(self, file: str, follow: Follow) -> FilePiece:
        """Return a piece of the output; from the agent if the trial runs on a node that does not see the folder."""
        trial, folder = self._trial, self._view.folder
        file = output_name(file, trial.attempt)
        try:
            return self._view.trial_log(trial.sequence_id, file, follow)
        except LookupError:
            if trial.status != "RUNNING" or folder.manager() is None:
                raise
        offset = 0 if follow.lines is not None else follow.offset
        data = read_running(folder.path, trial.trial_id, file, offset)
        end = offset + len(data)
        return FilePiece(data.decode(errors="replace"), offset, end, end)


_MOST_FILES = 100
_MOST_IMAGES = 12
# Only these are shown: anything else, a page or a drawing with a script, is saved.
_IMAGE_TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}


def file_response(path: Path) -> FileResponse:
    """Return a file for the browser: an image to be shown, anything else to be saved."""
    image = _IMAGE_TYPES.get(path.suffix.lower())
    return FileResponse(
        path,
        media_type=f"image/{image}" if image else "application/octet-stream",
        filename=path.name,
        content_disposition_type="inline" if image else "attachment",
    )


class _FilesPanel:
    """The files that the trial wrote: images are shown, all can be saved; it appears once there is one."""

    def __init__(self, where: Where, number: int) -> None:
        self._root = where.path(f"trials/{number}/files")
        with panel("Files") as self._panel:
            self._body = Place(html.div().classes("pp-stack"))

    def show(self, files: Sequence[tuple[str, int]]) -> None:
        """Show these files, each with its size in bytes."""
        self._panel.set_visibility(bool(files))
        self._body.show(files, lambda: self._draw(files))

    def _draw(self, files: Sequence[tuple[str, int]]) -> None:
        images = [name for name, _ in files if Path(name).suffix.lower() in _IMAGE_TYPES][:_MOST_IMAGES]
        with html.div().classes("pp-images"):
            for name in images:
                with html.a(href=self._address(name)):
                    html.img(src=self._address(name), alt=visible(name), loading="lazy")
        with html.ul().classes("pp-files"):
            for name, size in files[:_MOST_FILES]:
                with html.li():
                    html.a(visible(name), href=self._address(name))
                    html.span(f" {size_text(size)}").classes("pp-dim")
        if len(files) > _MOST_FILES:
            html.p(f"and {len(files) - _MOST_FILES} more").classes("pp-dim")

    def _address(self, name: str) -> str:
        return f"{self._root}/{quote(name)}"
