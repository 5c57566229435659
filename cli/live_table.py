"""The live table of a run on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..telling import (
    ENDED,
    STATUS_WORDS,
    BestSoFar,
    RunProgress,
    escaped,
    experiment_text,
    left_text,
    parameter_texts,
    rate_text,
    visible,
)
from .display import Display

_TRIAL_STYLES = {
    "RUNNING": "cyan",
    "WAITING": "dim",
    "PAUSED": "dim",
    "SUCCEEDED": "green",
    "EARLY_STOPPED": "yellow",
    "FAILED": "red",
    "USER_CANCELED": "magenta",
    "SYS_CANCELED": "magenta",
}
_STATUS_STYLES = {
    "DONE": "bold green",
    "ERROR": "bold red",
    "STOPPING": "bold yellow",
    "STOPPED": "bold yellow",
}
_ENDING = ("STOPPING", *ENDED)
_MAX_FAILURES = 3
_WIDEST_BAR, _SHORTEST_BAR = 40, 10


class LiveDisplay(Display):
    """Redraws the table in place, 4 times a second."""

    def __init__(self, output: IO[str]) -> None:
        super().__init__()
        self._console = Console(file=output)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)
        self._frame: list[int] = []

    def drawing(self) -> Live:
        """Return the live part of the screen."""
        return self._live

    def write(self, text: str) -> None:
        """Print a line above the table; the terminal wraps it, so that it can be copied whole."""
        self._console.print(Text(escaped(text, keep="\n"), style="yellow"), soft_wrap=True)

    def draw(self, progress: RunProgress) -> None:
        """Redraw the table."""
        width = self._console.width
        if any(length > width for length in self._frame):
            self._wipe(width)
        table = render(progress)
        self._live.update(table, refresh=True)
        self._frame = [*map(Segment.get_line_length, self._console.render_lines(table, pad=False))]

    def _wipe(self, width: int) -> None:
        """Remove a frame whose lines the terminal has wrapped because it became narrower.

        rich moves up by the rows that the frame had; this moves the cursor to where those rows begin.
        """
        rows = sum(max(1, -(-length // width)) for length in self._frame)
        self._console.control(Control.move(0, 1 - rows), Control.move_to_column(0))
        self._console.file.write("\x1b[J" + "\n" * (len(self._frame) - 1))


def render(progress: RunProgress) -> RenderableType:
    """Return the table; no line of it is wider than the terminal."""
    parts: list[RenderableType] = [_head(progress), _Bar(progress), _Counts(progress)]
    if progress.waiting:
        parts.append(Text(escaped(f"  waiting: {progress.waiting}"), style="yellow"))
    parts += [_cut(Text(escaped(f"  {warning}"), style="yellow")) for warning in progress.warnings]
    parts += _best(progress.best)
    if progress.front:
        parts.append(_cut(Text(f"  {progress.front}")))
    if progress.closest:
        parts.append(_cut(Text(f"  {progress.closest}", style="yellow")))
    parts += _failures(progress)
    if progress.status not in _ENDING:
        parts.append(_cut(Text("  Ctrl-C stops the experiment; results are kept", style="dim")))
    return Group(*parts)


def _cut(text: Text) -> Text:
    """Cut a line at the width of the terminal, with an ellipsis."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _head(progress: RunProgress) -> Text:
    text = Text()
    if progress.name:
        text.append(f"{visible(progress.name)}  ", style="bold")
    text.append(progress.experiment_id, style="cyan")
    text.append(f"  {experiment_text(progress.status)}", style=_STATUS_STYLES.get(progress.status, "bold"))
    if progress.clock:
        text.append(f"  {progress.clock}")
    if progress.reason:
        text.append(escaped(f"  {progress.reason}"), style="yellow")
    return _cut(text)


class _Bar:
    """The bar and the forecast; a narrow terminal gets a shorter bar, then fewer facts."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        progress = self._progress
        facts = _facts(progress)
        while len(facts) > 1 and _left_for_bar(facts, options.max_width) < _SHORTEST_BAR:
            facts.pop()
        width = max(1, min(_WIDEST_BAR, _left_for_bar(facts, options.max_width)))
        bar = ProgressBar(
            total=progress.total, completed=progress.finished, width=width, pulse=progress.total is None
        )
        table = Table.grid(padding=(0, 1))
        table.add_row("", bar, _cut(Text("  ".join(facts))))
        yield table


def _left_for_bar(facts: list[str], width: int) -> int:
    return width - len("  ".join(facts)) - len("    ")


def _facts(progress: RunProgress) -> list[str]:
    """Return the facts, the least important last."""
    done = f"{progress.finished}" + (f"/{progress.total}" if progress.total is not None else "")
    facts = [f"{done} trials"]
    if progress.rate:
        facts.append(rate_text(progress.rate))
    if progress.remaining is not None and progress.status not in _ENDING:
        facts.append(left_text(progress.remaining, progress.is_bound))
    return facts


class _Counts:
    """The number of trials of each kind, on as many lines as needed."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text(" ")
        for count in self._texts():
            if len(line) > 1 and len(line) + len(count) > options.max_width:
                yield line
                line = Text(" ")
            line.append_text(count)
        yield line

    def _texts(self) -> Iterator[Text]:
        for status, style in _TRIAL_STYLES.items():
            count = self._progress.counts.get(status, 0)
            if count or status == "RUNNING":
                number = (f" {count}", f"bold {style}" if count else "dim")
                yield Text.assemble(number, (f" {STATUS_WORDS[status]}  ", style))


def _best(best: tuple[BestSoFar, ...]) -> Iterable[Text]:
    values = [escaped(trial.text) for trial in best]
    width = max(map(len, values), default=0)
    for number, (trial, value) in enumerate(zip(best, values, strict=True)):
        text = Text("  best  " if number == 0 else "        ", style="bold")
        text.append(f"{value:{width}}  ", style="bold green")
        yield _cut(text.append_text(_parameters(trial)))


def _parameters(best: BestSoFar) -> Text:
    text = Text(f"{best.where}  ", style="not bold dim")
    for name, value in parameter_texts(best.parameters).items():
        text.append(f"{name} ", style="dim")
        text.append(f"{value}  ", style="not dim")
    return text


def _failures(progress: RunProgress) -> Iterable[Text]:
    for failure in progress.failures[-_MAX_FAILURES:]:
        label = (f"  trial {failure.sequence_id} failed ", "red")
        yield _cut(Text.assemble(label, escaped(" ".join(str(failure).split()))))
