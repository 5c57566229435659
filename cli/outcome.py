"""What a run says at its end: how it went, the best parameters, where everything is and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..store import ExperimentFolder, default_directory
from ..store.reading import counts_text, duration_text, flat, hint_text, number_text
from .progress import Best
from .reading import ViewedExperiment

__all__ = ["command_for", "outcome_lines"]

_MAX_KINDS = 5
_MAX_BEST = 10


def command_for(folder: ExperimentFolder, words: str, *after: str) -> str:
    """A command line for this experiment, with `--dir` where it is needed."""
    line = f"pitchpipe {words} {folder.experiment_id} {' '.join(after)}".rstrip()
    directory = folder.path.parent
    return line if directory == default_directory() else f"{line} --dir {shlex.quote(_short(directory))}"


def outcome_lines(view: ViewedExperiment) -> Iterator[str]:
    """The lines that end a run."""
    row = view.row
    named = f" ({row.name})" if row.name else ""
    yield f"{row.status}: experiment {row.id}{named}, {_trials(view)} in {duration_text(row.run_time)}"
    if row.reason:
        yield f"reason: {row.reason}"
    if row.error:
        yield from (f"  {line}" for line in row.error.rstrip().splitlines())
    yield from best_lines(view)
    yield from failure_lines(view)
    yield f"everything is in {view.folder.path}"
    yield from _next_lines(view)


def best_lines(view: ViewedExperiment) -> Iterator[str]:
    """The best trial with its parameters, or the Pareto front."""
    if not view.best:
        yield "best: none, no trial has succeeded" if view.total else "best: none, there are no trials"
        return
    for best in view.best[:_MAX_BEST]:
        yield f"best: {_value(best)} (trial {best.sequence_id}, {best.trial_id})"
        parameters = {name.removesuffix("._name"): value for name, value in flat(best.parameters).items()}
        width = max(map(len, parameters), default=0)
        yield from (f"  {name:{width}}  {number_text(value)}" for name, value in parameters.items())
    if len(view.best) > _MAX_BEST:
        yield f"and {len(view.best) - _MAX_BEST} more that no other beats in every objective"


def _value(best: Best) -> str:
    if isinstance(best.value, dict):
        return ", ".join(f"{name} {number_text(value)}" for name, value in best.value.items())
    return number_text(best.value)


def _trials(view: ViewedExperiment) -> str:
    counted = "1 trial" if view.total == 1 else f"{view.total} trials"
    return f"{counted} ({counts_text(view.counts)})" if view.total else counted


def failure_lines(view: ViewedExperiment) -> Iterator[str]:
    """What was run again, and in which ways trials failed: the kind, the reason, the last lines of a traceback."""
    if view.retries:
        yield "run again: " + ", ".join(
            f"{count} {kind} {'attempt' if count == 1 else 'attempts'}"
            for kind, count in view.retries.items()
        )
    ways = view.failures
    for count, failure in ways[:_MAX_KINDS]:
        times = f"{count} trials" if count > 1 else f"trial {failure.sequence_id}"
        # What a function raised is in the database, and what we know of a trial that said nothing, too.
        is_logged = failure.has_output and "trialCommand" in view.row.config
        verb = "trial log" if is_logged else "trial show"
        example = command_for(view.folder, verb, str(failure.sequence_id))
        facts = f" ({failure.facts})" if failure.facts else ""
        yield f"{times} failed{facts}: {failure} ({example})"
        if not _is_shown(failure.lines, view.row.error):
            yield from (f"  {line}" for line in failure.lines)
        if hint := hint_text(str(failure)):
            yield f"  hint: {hint}"
    if len(ways) > _MAX_KINDS:
        more = sum(count for count, _ in ways[_MAX_KINDS:])
        yield f"{more} more trials failed in {len(ways) - _MAX_KINDS} other ways"


def _is_shown(lines: Sequence[str], error: str) -> bool:
    """Does what is said of the experiment's own error hold these lines already?"""
    return bool(lines) and "\n".join(lines) in error


def _next_lines(view: ViewedExperiment) -> Iterator[str]:
    if view.row.status != "DONE":
        yield f"to go on: {command_for(view.folder, 'resume')}"
    if view.total:
        yield f"to see the trials: {command_for(view.folder, 'trials')}"
        yield f"to export them: {command_for(view.folder, 'export', '--format csv')}"


def _short(directory: Path) -> str:
    """A path as one would type it here."""
    try:
        return str(directory.relative_to(Path.cwd()))
    except ValueError:
        return str(directory)
