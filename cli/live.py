"""The live table of a run on a terminal."""

from __future__ import annotations

from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .display import Display
from .progress import Best, Progress
from .words import duration_text, flat, number_text, rate_text

__all__ = ["LiveDisplay", "render"]

_SHOWN = (
    ("RUNNING", "running", "cyan"),
    ("WAITING", "waiting", "dim"),
    ("PAUSED", "paused", "dim"),
    ("SUCCEEDED", "succeeded", "green"),
    ("EARLY_STOPPED", "stopped early", "yellow"),
    ("FAILED", "failed", "red"),
    ("USER_CANCELED", "killed", "magenta"),
    ("SYS_CANCELED", "cancelled", "magenta"),
)
_STATUS_STYLES = {
    "DONE": "bold green",
    "ERROR": "bold red",
    "STOPPING": "bold yellow",
    "STOPPED": "bold yellow",
}
_MAX_FAILURES = 3


class LiveDisplay(Display):
    """Redraws the table in place, 4 times a second."""

    def __init__(self, output: IO[str]) -> None:
        super().__init__()
        self._console = Console(file=output)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)

    def drawing(self) -> Live:  # type: ignore[override]
        """The part of the screen that is redrawn."""
        return self._live

    def write(self, text: str) -> None:
        """Print a line above the table."""
        self._console.print(Text(text, style="yellow"))

    def draw(self, progress: Progress) -> None:
        """Redraw the table."""
        self._live.update(render(progress), refresh=True)


def render(progress: Progress) -> RenderableType:
    """The table as rich draws it."""
    parts: list[RenderableType] = [_head(progress), _bar(progress), _counts(progress)]
    if progress.waiting_for:
        parts.append(Text(f"  waiting: {progress.waiting_for}", style="yellow"))
    if progress.best:
        parts.append(_best(progress.best))
    if progress.failures:
        parts.append(_failures(progress))
    parts.append(Text("  Ctrl-C stops the experiment; what is done is kept", style="dim"))
    return Group(*parts)


def _head(progress: Progress) -> Text:
    text = Text()
    if progress.name:
        text.append(f"{progress.name}  ", style="bold")
    text.append(progress.experiment_id, style="cyan")
    text.append(f"  {progress.status}", style=_STATUS_STYLES.get(progress.status, "bold"))
    text.append(f"  {duration_text(progress.elapsed)}")
    if progress.reason:
        text.append(f"  {progress.reason}", style="yellow")
    return text


def _bar(progress: Progress) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    done = f"{progress.finished}" + (f"/{progress.total}" if progress.total is not None else "")
    bar = ProgressBar(
        total=progress.total, completed=progress.finished, width=40, pulse=progress.total is None
    )
    facts = [f"{done} trials"]
    if progress.rate:
        facts.append(rate_text(progress.rate))
    if progress.remaining is not None and progress.status != "STOPPING":
        facts.append(f"about {duration_text(progress.remaining)} left")
    table.add_row("", bar, "  ".join(facts))
    return table


def _counts(progress: Progress) -> Text:
    text = Text("  ")
    for status, word, style in _SHOWN:
        count = progress.counts.get(status, 0)
        if count or status == "RUNNING":
            text.append(f"{count} ", style=f"bold {style}" if count else "dim")
            text.append(f"{word}   ", style=style)
    return text


def _best(best: tuple[Best, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="bold green", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for number, one in enumerate(best):
        values = one.value.items() if isinstance(one.value, dict) else [("", one.value)]
        value = "  ".join(f"{name} {number_text(v)}".strip() for name, v in values)
        table.add_row("  best" if number == 0 else "", value, _parameters(one))
    return table


def _parameters(best: Best) -> Text:
    text = Text(f"trial {best.sequence_id}  ", style="dim")
    for name, value in flat(best.parameters).items():
        text.append(f"{name.removesuffix('._name')} ", style="dim")
        text.append(f"{number_text(value)}  ", style="default")
    return text


def _failures(progress: Progress) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="red", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for failure in progress.failures[-_MAX_FAILURES:]:
        table.add_row(f"  trial {failure.sequence_id} failed", Text(str(failure)))
    return table
