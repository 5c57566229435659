"""The output at the end of a run: how it went, the best parameters, where everything is and how to continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict

from ..protocol import Parameters, counted
from ..runner import ExperimentStatus, fingerprint
from ..server import read_health
from ..store import ExperimentFolder, is_default, shell_word
from ..store.reading import (
    BestIntermediate,
    ExperimentView,
    FailureGroup,
    FamilyRow,
    Repeats,
    Summary,
    TrialRow,
    closest_object,
)
from ..telling import (
    FailedTrial,
    best_intermediate_text,
    changes_of_schedule,
    closeness_lines,
    code_note_of,
    counts_text,
    duration_text,
    ending_text,
    experiment_text,
    front_lines,
    gain_text,
    gains_over_defaults,
    nouns,
    parameter_texts,
    parameters_text,
    region_object,
    region_text,
    trials_text,
    value_text,
    values_text,
    visible,
    who_text,
    why_none_text,
)
from ..trial_agent import output_name
from .printing import aligned

_MAX_KINDS = 5
_MAX_BEST = 10
_FRONT = ("trials", "knee", "hypervolume", "reference", "infeasible", "limits")  # what scripts get of it


def command_for(folder: ExperimentFolder, words: str, *after: str) -> str:
    """Return a command line for this experiment, with `--dir` where it is needed."""
    line = f"pitchpipe {words} {folder.experiment_id} {' '.join(after)}".rstrip()
    directory = folder.path.parent
    return line if is_default(directory) else f"{line} --dir {shell_word(directory)}"


def can_resume(folder: ExperimentFolder, summary: Summary) -> bool:
    """Return whether `resume` continues the experiment without a new limit: it and its manager have ended."""
    return summary.status in ("STOPPED", "ERROR") and not summary.is_search and folder.manager() is None


def none_succeeded(summary: Summary) -> bool:
    """Return whether trials failed or were stopped early, and none succeeded."""
    counts = summary.counts
    return bool(counts.get("FAILED") or counts.get("EARLY_STOPPED")) and not counts.get("SUCCEEDED")


def has_front(summary: Summary) -> bool:
    """Return whether an experiment has several objectives, or limits."""
    return len(summary.objectives) > 1 or bool(summary.outcome_limits)


def chosen_best(view: ExperimentView, summary: Summary, by: str | None) -> Summary:
    """Return the summary with the best trial by one objective, or with the knee; raise `QueryError`."""
    return summary if by is None else replace(summary, best=view.best(1, by))


class StateObject(TypedDict):
    """Where an experiment stands, for scripts."""

    id: str
    status: str
    folder: str
    counts: dict[str, int]


class BestObject(TypedDict, total=False):
    """A best trial, or family, for scripts; `values` only with metrics that are not objectives.

    `parameters` are the last ones of a trial that had others before: `parameter_changes` says how often they changed.
    """

    trial_id: str
    sequence_id: int
    value: float | dict[str, float] | None
    values: dict[str, float]
    parameters: Parameters
    parameter_changes: int
    repeats: Repeats


class OutcomeObject(StateObject):
    """How an experiment went, for scripts; what it does not have is left out."""

    best: BestObject | list[BestObject] | None
    front: NotRequired[Mapping[str, object]]
    defaults: NotRequired[Mapping[str, object]]
    closest_to_defaults: NotRequired[Mapping[str, object]]
    failures: NotRequired[Sequence[Mapping[str, object]]]
    failure_regions: NotRequired[Sequence[Mapping[str, object]]]
    retries: NotRequired[dict[str, int]]
    health: NotRequired[list[str]]
    best_intermediate: NotRequired[BestIntermediate]
    reason: NotRequired[str]


def state_object(summary: Summary) -> StateObject:
    """Return where an experiment stands."""
    return {
        "id": summary.id,
        "status": summary.status,
        "folder": summary.folder,
        "counts": summary.counts,
    }


def summary_object(view: ExperimentView, summary: Summary) -> OutcomeObject:
    """Return how an experiment went."""
    names = [objective.name for objective in summary.objectives]
    best = [_best_object(trial, names) for trial in summary.best]
    if len(best) == 1 and (changes := view.parameter_changes(summary.best[0].sequence_id)):
        best[0]["parameter_changes"] = changes
    outcome: OutcomeObject = {
        **state_object(summary),
        "best": best if len(names) > 1 else (best[0] if best else None),
    }
    if has_front(summary):
        front = view.front()
        outcome["front"] = {**{name: getattr(front, name) for name in _FRONT}, "closest": summary.closest}
    if (defaults := summary.defaults) is not None:
        gains = gains_over_defaults(summary)
        gain = gains[names[0]] if gains and len(names) == 1 else gains
        outcome["defaults"] = {**_best_object(defaults, names), "status": defaults.status, "gain": gain}
    if (closest := view.closest_to_defaults()) is not None:
        outcome["closest_to_defaults"] = closest_object(closest, lambda trial: _best_object(trial, names))
    if failures := view.failures():
        outcome["failures"] = [_failure_object(group) for group in failures]
    if regions := view.failure_regions():
        outcome["failure_regions"] = [region_object(region) for region in regions]
    if retries := view.retries():
        outcome["retries"] = retries
    if health := _health(view, summary):
        outcome["health"] = health
    if summary.best_intermediate is not None:
        outcome["best_intermediate"] = summary.best_intermediate
    if summary.reason:
        outcome["reason"] = summary.reason
    return outcome


def _best_object(trial: TrialRow, names: Sequence[str]) -> BestObject:
    values = {name: trial.values[name] for name in names if name in trial.values}
    best: BestObject = {
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "value": values if len(names) > 1 else values.get(names[0]),
    }
    if not set(trial.values) <= set(names):
        best["values"] = trial.values
    best["parameters"] = trial.parameters
    if isinstance(trial, FamilyRow):
        best["repeats"] = trial.repeats
    return best


def _failure_object(group: FailureGroup) -> Mapping[str, object]:
    return {
        "trials": group.count,
        "kind": group.kind,
        "reason": str(FailedTrial.of(group)),
        "first_sequence_id": group.sequence_id,
    }


def outcome_lines(view: ExperimentView, summary: Summary) -> Iterator[str]:
    """Yield the lines that end a run."""
    named = f" ({visible(summary.name)})" if summary.name else ""
    counts = f" ({counts_text(summary.counts)})" if summary.trials else ""
    trials = f"{counted(summary.trials, 'trial')}{counts} in {duration_text(summary.run_time)}"
    yield f"{experiment_text(summary.status)}: experiment {summary.id}{named}, {trials}"
    yield from reason_lines(summary)
    yield from best_lines(view, summary)
    yield from failure_lines(view, summary)
    yield f"everything is in {summary.folder}"
    yield from _next_lines(view.folder, summary)


def reason_lines(summary: Summary) -> Iterator[str]:
    """Yield why an experiment has its status, with its error."""
    if summary.reason:
        yield f"reason: {summary.reason}"
    yield from (f"  {line}" for line in summary.error.rstrip().splitlines())


def best_lines(view: ExperimentView, summary: Summary, gain: str = "") -> Iterator[str]:
    """Yield the best trial with its parameters, or the front, the gain over the defaults, and notes on the search.

    If the summary has only one trial of the front, `gain` is the line about the whole front.
    """
    yield from _best_lines(view, summary)
    if has_front(summary):
        yield from front_lines(view.front(), repeats=view.repeats())
    if gain := gain or gain_text(summary):
        yield gain
    yield from closeness_lines(view.closest_to_defaults())
    yield from (f"note: {note}" for note in _health(view, summary))


def _health(view: ExperimentView, summary: Summary) -> list[str]:
    """Return the notes on a search; while it runs only on its code: scripts ask often, and the others take time."""
    is_searching = summary.is_running and not ExperimentStatus(summary.status).is_final
    if is_searching:
        return [note for note in (code_note_of(view, summary),) if note]
    return read_health(view)


def _best_lines(view: ExperimentView, summary: Summary) -> Iterator[str]:
    if not summary.best:
        yield f"best: none, {why_none_text(view, summary)}"
    if summary.best_intermediate is not None:
        yield f"best intermediate result: {best_intermediate_text(summary.best_intermediate)}"
    if (closest := summary.closest) is not None:
        yield _closest_line(view, summary, closest)
        yield from parameter_lines(view.trial(closest).parameters)
    if len(summary.best) > 1:
        yield from _front_table(view, summary)
        return
    for trial in summary.best:
        trial_id = "" if isinstance(trial, FamilyRow) else f", {trial.trial_id}"
        yield f"best: {values_text(trial, summary.metrics)} ({who_text(trial)}{trial_id})"
        yield from parameter_lines(trial.parameters)
        if changes := changes_of_schedule(view.parameter_changes(trial.sequence_id)):
            example = command_for(view.folder, "trial show", str(trial.sequence_id), "--schedule")
            yield f"  {changes} ({example})"


def _front_table(view: ExperimentView, summary: Summary) -> Iterator[str]:
    """Yield the table of a front, sorted by the first objective; a long one is cut, and keeps the knee."""
    front, names = summary.best, summary.metrics
    is_repeated = any(isinstance(trial, FamilyRow) for trial in front)
    yield f"best: {counted(len(front), *nouns(view.repeats()))} on the Pareto front"
    rows = [
        (
            str(trial.sequence_id),
            *(value_text(trial, name) for name in names),
            parameters_text(trial.parameters),
        )
        for trial in _shown(view, front)
    ]
    head = ("family" if is_repeated else "trial", *names, "parameters")
    yield from (f"  {line}" for line in aligned([head, *rows]))
    if len(front) > _MAX_BEST:
        options = ("--families", "--sort best", "--limit 0")[not is_repeated :]
        yield f"  and {len(front) - _MAX_BEST} more: {command_for(view.folder, 'trials', *options)}"


def parameter_lines(parameters: object) -> Iterator[str]:
    """Yield the parameters of a trial, one on a line."""
    texts = parameter_texts(parameters)
    width = max(map(len, texts), default=0)
    yield from (f"  {name:{width}}  {text}" for name, text in texts.items())


def _shown(view: ExperimentView, front: Sequence[TrialRow]) -> Sequence[TrialRow]:
    """Return the trials of a front that the table shows: at most ten, the knee among them."""
    rest = {trial.sequence_id for trial in front[_MAX_BEST:]}
    knee = [trial for trial in (view.best(1, "knee") if rest else ()) if trial.sequence_id in rest]
    return [*front[: _MAX_BEST - len(knee)], *knee]


def _closest_line(view: ExperimentView, summary: Summary, closest: int) -> str:
    """Return a line with the results of the trial, or family, that is closest to the limits."""
    trial = view.trial(closest)
    family = view.family(trial)
    values = values_text(trial if family is None else family, summary.metrics)
    return f"  {'trial' if family is None else 'family'} {closest} has {values}"


def _run_again(retries: Mapping[str, int], *, is_search: bool) -> str:
    """Return what was run again; trials of a search were given back, or reclaimed from a process that ended."""
    if is_search:
        return f"begun again: {counted(sum(retries.values()), 'attempt')}, given back or reclaimed"
    kinds = (counted(count, f"{kind} attempt") for kind, count in retries.items())
    return f"run again: {', '.join(kinds)}"


def failure_lines(view: ExperimentView, summary: Summary) -> Iterator[str]:
    """Yield what was run again, how trials failed (kind, reason, last lines of a traceback), and for which values."""
    if retries := view.retries():
        yield _run_again(retries, is_search=summary.is_search)
    groups = view.failures()
    for group in groups[:_MAX_KINDS]:
        failure = FailedTrial.of(group)
        prints = failure.has_output and printed(view, failure.sequence_id)
        example = command_for(view.folder, "trial log" if prints else "trial show", str(failure.sequence_id))
        facts = f" ({failure.facts})" if failure.facts else ""
        # The reason of the first of several trials may have numbers of its own.
        text = str(failure).replace(ending_text(group.exit_code), "")
        such_as = ", such as" if group.count > 1 and fingerprint(text) != text else ""
        yield f"{trials_text(group)} failed{facts}{such_as}: {failure} ({example})"
        if "\n".join(failure.lines) not in summary.error:  # which the experiment's own error may contain
            yield from (f"  {line}" for line in failure.lines)
        if failure.hint:
            yield f"  hint: {failure.hint}"
    if len(groups) > _MAX_KINDS:
        more, kinds = sum(group.count for group in groups[_MAX_KINDS:]), len(groups) - _MAX_KINDS
        example = command_for(view.folder, "trials", "--status FAILED")
        ways = "another way" if kinds == 1 else f"{kinds} other ways"
        yield f"{counted(more, 'more trial')} failed in {ways} ({example})"
    yield from map(region_text, view.failure_regions())


def printed(view: ExperimentView, sequence_id: int) -> list[str]:
    """Return the stderr and the stdout of the last attempt of a trial that has printed, those with any output."""
    written = {file.name for file in view.trial_logs(sequence_id) if file.size}
    for attempt in range(view.trial(sequence_id).attempt, 0, -1):
        names = [output_name(stream, attempt) for stream in ("stderr", "stdout")]
        if found := [name for name in names if name in written]:
            return found
    return []


def continue_line(folder: ExperimentFolder, summary: Summary) -> str:
    """Return how to continue an experiment that is not DONE."""
    when = " after fixing the code (a changed config needs a new run)" if summary.status == "ERROR" else ""
    return f"to continue{when}: {command_for(folder, 'resume')}"


def _next_lines(folder: ExperimentFolder, summary: Summary) -> Iterator[str]:
    if summary.status != "DONE":
        yield continue_line(folder, summary)
    if summary.trials:
        yield f"to see the trials: {command_for(folder, 'trials')}"
        yield f"to export them: {command_for(folder, 'export', '--format csv')}"
