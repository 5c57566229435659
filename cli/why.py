"""`pitchpipe trial show --why`: why a trial ended as it did, and how it compares with others."""

from __future__ import annotations

from collections.abc import Iterator

from ..manager.control import why_waiting
from ..store.reading import ExperimentView, Follow, TrialDetail
from ..telling import ending_of, number_text, violation_text
from .outcome import command_for, printed

__all__ = ["why_lines"]

_LINES = 5


def why_lines(view: ExperimentView, sequence_id: int) -> Iterator[str]:
    """Yield the story of a trial in sentences with their numbers."""
    trial = view.trial(sequence_id)
    ending = ending_of(trial, view, why_waiting)
    yield f"trial {trial.sequence_id} ({trial.trial_id}): {ending.title.lower()}"
    yield f"  {ending.sentence}"
    yield from (f"  {note}" for note in ending.notes)
    yield from (f"  {sentence}" for sentence in _beside_others(view, trial))
    if ending.error:
        yield "error"
        yield from (f"  {line}" for line in ending.error.splitlines())
    if trial.status == "FAILED":
        yield from _output_lines(view, sequence_id, is_shown=not ending.error)


def _output_lines(view: ExperimentView, number: int, *, is_shown: bool) -> Iterator[str]:
    """Yield the end of what a trial printed, if it `is_shown`, and where all of it is."""
    names = printed(view, number)
    for name in names if is_shown else ():
        yield f"the end of its {name}"
        yield from (
            f"  {line}" for line in view.trial_log(number, name, Follow(lines=_LINES)).text.splitlines()
        )
    if names:
        yield f"all that it printed: {command_for(view.folder, 'trial log', str(number))}"


def _beside_others(view: ExperimentView, trial: TrialDetail) -> Iterator[str]:
    if trial.status == "FAILED":
        yield from _failed_alike(view, trial)
    elif trial.status == "SUCCEEDED":
        yield from _broken_limits(view, trial)
    elif trial.status == "EARLY_STOPPED":
        yield from _at_the_same_step(view, trial)


def _failed_alike(view: ExperimentView, trial: TrialDetail) -> Iterator[str]:
    for group in view.failures():
        if trial.sequence_id in group.sequence_ids and group.count > 1:
            yield f"{group.count} trials failed the same way; the first was trial {group.sequence_ids[0]}."


def _broken_limits(view: ExperimentView, trial: TrialDetail) -> Iterator[str]:
    front, family = view.front(), view.family(trial)
    it, number = ("It", trial.sequence_id) if family is None else ("Its family", family.sequence_id)
    if number in front.infeasible:
        values = (trial if family is None else family).values
        yield f"{it} {violation_text(values, front.limits)}, and is never the best."


def _at_the_same_step(view: ExperimentView, trial: TrialDetail) -> Iterator[str]:
    """Compare the last result with those of other trials at the same step."""
    step = trial.intermediate_results - 1
    if step < 0:
        return
    others = view.step(step)
    own = others.pop(trial.sequence_id, None)
    if own is None or not others:
        return
    sign = 1.0 if view.objectives()[0].direction == "minimize" else -1.0
    better = sum(sign * value < sign * own for value in others.values())
    best = min(others.values(), key=lambda value: sign * value)
    after = "1 result" if step == 0 else f"{step + 1} results"
    yield (
        f"After {after} it had {number_text(own)}; of the {len(others)} other trials that got there,"
        f" {better} had a better one, the best {number_text(best)}."
    )
