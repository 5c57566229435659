"""The notes on how a search went, read from the store of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..protocol import Config, Objective, main_objective, objectives_of
from ..runner import TUNE_SOMETHING, TUNES_NOTHING, UNASKED
from ..store.reading import ExperimentView, Summary, TrialQuery
from ..telling import code_note_of, number_text, repeats_text, value_text, violation_text

_FEWEST = 40  # trials that succeeded
_MOST = 2_000  # reading more would delay `pitchpipe status`
_FEWEST_TO_STOP = 5  # trials that reported intermediate results
_READ = 5  # trials of which the intermediate results are read
_FEWEST_EQUAL = 5  # results: of fewer, a tie is nothing special
_SCHEDULERS = ("hyperband", "asha", "bohb", "dehb", "pbt", "pb2")  # they stop trials without an assessor
# Tuners that do not learn from results where to search: that random search does as well is no news.
_MODEL_FREE = ("random", "gridsearch", "batch", "qmc", "hyperband", "asha", "pbt", "pb2")


def read_health(view: ExperimentView) -> list[str]:
    """Return the notes on an experiment; raise `StoreError` if it cannot be read."""
    summary, config = view.summary(), view.config()
    trials, results = sum(summary.counts.values()), summary.intermediate_results
    unused = ""
    if trials >= _FEWEST_TO_STOP and results >= 2 * trials:
        unused = early_stopping_note(config, _intermediate(view, TrialQuery(limit=_READ)))
    equal = _equality_note(view, summary)
    notes = [
        code_note_of(view, summary),
        unused,
        _missing_note(view, summary, config),
        equal,
        _reference_note(view, summary),
    ]
    notes += [_cut_off_note(view, summary), _unasked_note(view, summary)]
    return [one for one in notes if one] + ([] if equal else _notes_on_the_search(view, summary, config))


def health_object(view: ExperimentView) -> dict[str, list[str]]:
    """Return the notes as the API has them; raise `StoreError` if the experiment cannot be read."""
    return {"notes": read_health(view)}


def early_stopping_note(config: Config, reports: Sequence[Any]) -> str:
    """Say that intermediate results, such as `reports`, are not used, if nothing in a stored config stops trials.

    It is empty for `assessor: none`, and where the reports lack a metric that is optimised or limited. What is advised
    stops only hopeless trials, since the number of trials limits the search. With several objectives, or limits on
    outcomes, Auto stops none.
    """
    if "assessor" in config or _tuner_of(config) in _SCHEDULERS:
        return ""
    objectives = objectives_of(config.get("objectives") or ())
    if _missing(reports, objectives):
        return ""
    is_single = len(objectives) < 2 and not any(one.is_limited for one in objectives)
    advised = "{name: Auto, class_args: {hopeless_only: true}}" if is_single else "Medianstop"
    return (
        "early stopping is off: trials report intermediate results, and no assessor reads them"
        f" (such as assessor: {advised}; assessor: none ends this note)"
    )


def _missing_note(view: ExperimentView, summary: Summary, config: Config) -> str:
    """Say which of several objectives early stopping did not know, because no stopped trial had reported it."""
    if not config.get("assessor") or not summary.counts.get("EARLY_STOPPED"):
        return ""
    reports = _intermediate(view, TrialQuery(statuses=["EARLY_STOPPED"], limit=_READ))
    missing = ", ".join(_missing(reports, objectives_of(config.get("objectives") or ())))
    return missing and (
        f"trials were stopped without considering {missing}, which their intermediate results do not contain; report"
        " it in them, too, or write assessor: none"
    )


def _intermediate(view: ExperimentView, query: TrialQuery) -> list[Any]:
    """Return the intermediate results of some trials."""
    found = [view.results_of([one.sequence_id]) for one in view.trials(query).trials]
    return [report for one in found for results in one.values() for report in results.values()]


def _missing(reports: Sequence[Any], objectives: Sequence[Objective]) -> list[str]:
    """Return the metrics that no report has; a plain number is the main one, which every report has."""
    known = {main_objective(objectives).name}.union(*(one for one in reports if isinstance(one, dict)))
    return [one.name for one in objectives if one.name not in known]


def _equality_note(view: ExperimentView, summary: Summary) -> str:
    """Say that nothing that was tried made a difference; else nothing."""
    count = summary.counts.get("SUCCEEDED", 0)
    if count < _FEWEST_EQUAL or len(summary.objectives) > 1:
        return ""
    ends = [
        TrialQuery(statuses=["SUCCEEDED"], sort="value", descending=way, limit=1) for way in (False, True)
    ]
    lowest, highest = (view.trials(end).trials[0].values for end in ends)
    main = summary.objectives[0].name
    if lowest.get(main) != highest.get(main):
        return ""
    return f"all {count} results are equal; check that the script reads the parameters of the search space, by name"


def _unasked_note(view: ExperimentView, summary: Summary) -> str:
    """Say that no trial that succeeded knew its parameters; else nothing."""
    succeeded = summary.counts.get("SUCCEEDED", 0)
    first = view.trials(TrialQuery(statuses=["SUCCEEDED"], limit=_READ)).trials if succeeded else ()
    unasked = succeeded and all(trial.reason.startswith(UNASKED) for trial in first)
    return f"{TUNES_NOTHING}; {TUNE_SOMETHING}" if unasked else ""


def _reference_note(view: ExperimentView, summary: Summary) -> str:
    """Say that no trial is better than the reference point in every objective; else nothing."""
    front = view.front() if len(summary.objectives) > 1 else None
    if front is None or front.hypervolume != 0:
        return ""
    point = ", ".join(f"{name} {number_text(value)}" for name, value in front.reference.items())
    return (
        f"no trial is better than the reference point ({point}) in every objective, so the hypervolume is 0;"
        " choose the worst values that you would accept"
    )


def _cut_off_note(view: ExperimentView, summary: Summary) -> str:
    """Say that a family which the end of the experiment cut off is better than the best whole one; else nothing."""
    if view.repeats() < 2 or len(summary.objectives) > 1 or not summary.best:
        return ""
    name, limits = summary.objectives[0].name, summary.outcome_limits
    sign = -1.0 if summary.objectives[0].direction == "maximize" else 1.0
    cut_off = [
        family
        for family in view.families()
        if family.status == "SYS_CANCELED"
        and name in family.values
        and not violation_text(family.values, limits)
    ]
    first, *_ = sorted([*summary.best[:1], *cut_off], key=lambda one: sign * one.values[name])
    if first.sequence_id == summary.best[0].sequence_id:
        return ""
    limit = " with a higher limit" if summary.status == "DONE" else ""
    return (
        f"family {first.sequence_id} has a better mean, {value_text(first, name)} ({repeats_text(first)}), but the"
        f" experiment ended before its other repeats; a resume{limit} runs them"
    )


def _notes_on_the_search(view: ExperimentView, summary: Summary, config: Config) -> list[str]:
    if not _FEWEST <= summary.counts.get("SUCCEEDED", 0) <= _MOST:
        return []  # without an import of numpy
    from .experiment_table import read_learnable
    from .figures import health_notes

    # Where the search starts from what users know, its first trials are not random.
    starts_at_random = not config.get("priors") and not config.get("warmStart")
    learns = starts_at_random and _tuner_of(config) not in _MODEL_FREE
    return health_notes(read_learnable(view), learns=learns, fewest=_FEWEST)


def _tuner_of(config: Config) -> str:
    name = str((config.get("tuner") or {}).get("name") or "")
    return name.replace("_", "").lower().removesuffix("tuner")
