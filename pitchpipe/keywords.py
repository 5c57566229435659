"""The keyword arguments of `Experiment`, `minimize` and `maximize`, as editors and notebooks complete them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, cast

from .protocol import Direction, Json

Section = Mapping[str, object]  # of a config: JSON, and paths
Algorithm = str | Section
Duration = float | str
Point = Mapping[str, Json]
Made = TypeVar("Made", bound=Callable[..., Any])


class SearchOptions(TypedDict, total=False):
    """The arguments that `minimize` and `maximize` pass to `Search`."""

    folder: str | Path | None
    metric: str
    tuner: Algorithm | None
    assessor: Algorithm | None
    constraints: Sequence[str] | None
    defaults: Point | None
    initial_points: Sequence[Point] | None
    priors: Section | None
    stop_when: Section | None
    seed: int | None
    name: str | None


class ExperimentOptions(TypedDict, total=False):
    """The fields of experiment.yml that `Experiment` takes; docs/reference/config.md says what each means."""

    experiment_name: str
    experiment_type: str
    search_space_file: str | Path
    constraints: Sequence[str]
    defaults: Point
    keep_close: bool
    initial_points: Sequence[Point]
    priors: Section
    warm_start: str | Section | Sequence[Any]
    objectives: Sequence[Section]
    repeats: int | Section
    trial_command: str
    trial_code_directory: str | Path
    trial_code: Literal["live", "snapshot"]
    trial_concurrency: int
    trial_cpu_number: float
    trial_gpu_number: float
    trial_memory_size: int | str
    trial_resources: Mapping[str, float]
    trial_environment: Mapping[str, str]
    trial_start: Literal["auto", "warm", "cold"]
    resources: Mapping[str, float]
    max_experiment_duration: Duration
    max_trial_number: int
    stop_when: Section
    max_trial_duration: Duration
    max_identical_failures: int
    max_failures: int | Mapping[str, int]
    fail_fast: bool
    checkpoint: Section
    storage_path: str | Path
    reuse_actors: bool
    seed: int
    durability: Literal["process", "power"]
    kill_grace: Duration
    orphan_timeout: Duration
    agent_timeout: Duration
    dispatcher_timeout: Duration
    nni_manager_ip: str
    use_annotation: bool
    debug: bool
    log_level: str
    experiment_working_directory: str | Path
    tuner_gpu_indices: int | str | Sequence[int]
    tuner: Algorithm
    assessor: Algorithm
    trackers: Mapping[str, Section]
    training_service: Section
    shared_storage: Section


ARGUMENTS = {"max_trial_number": "n_trials", "experiment_name": "name"}
"""The fields of a config whose arguments in `Search`, `minimize` and `maximize` have another name."""


def completed(*options: type) -> Callable[[Made], Made]:
    """Return a decorator that writes the `options` (TypedDicts) into a signature in place of `**options`.

    Type checkers know the options; notebooks and `help` read this signature. A mistyped keyword of the function itself
    is a `TypeError` that names the keyword that is probably meant.

    >>> @completed(SearchOptions)
    ... def search(space, **options): pass
    >>> list(inspect.signature(search).parameters)[:3]
    ['space', 'folder', 'metric']
    """

    def decorator(made: Made) -> Made:
        signature = inspect.signature(made)
        parameters = signature.parameters.values()
        own = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for option in options
            for name, annotation in option.__annotations__.items()
        ]
        own_names = [each.name for each in own]
        names = own_names + [each.name for each in more]
        elsewhere = () if options else ExperimentOptions.__annotations__

        @functools.wraps(made)
        def checked(*args: Any, **keywords: Any) -> Any:
            unknown = [name for name in keywords if name not in names]
            _refuse_mistyped(unknown, own_names, names, elsewhere)
            return made(*args, **keywords)

        checked.__signature__ = signature.replace(parameters=[*own, *more])  # pyright: ignore[reportAttributeAccessIssue]
        return cast("Made", checked)

    return decorator


def _refuse_mistyped(
    unknown: Iterable[str], own: Collection[str], names: Sequence[str], elsewhere: Collection[str]
) -> None:
    """Raise `TypeError` for a keyword that probably means one of a function's `own`. The options are checked later.

    Keywords in `elsewhere` are options of `Experiment` only.
    """
    from .config import OTHER_NAMES, did_you_mean, nearest

    for name in unknown:
        if (other := (OTHER_NAMES | ARGUMENTS).get(name)) in names:
            raise TypeError(f"there is no argument {name}: write {other}")
        if name in elsewhere:
            raise TypeError(f"there is no argument {name} here: Experiment has it")
        if nearest(name, names) in own:
            raise TypeError(f"there is no argument {name}: {did_you_mean(name, names)}")


def given_objectives(
    direction: Direction | None, metric: str, objectives: Sequence[Section] | None
) -> Sequence[Section] | None:
    """Return the `objectives` of a config: as given, or the single one; None lets the plug-ins choose.

    Raise `TypeError` if both are given, and for a metric without its direction.

    >>> given_objectives("maximize", "accuracy", None)
    [{'name': 'accuracy', 'direction': 'maximize'}]
    """
    if objectives is not None:
        if direction is not None or metric != "default":
            raise TypeError("give objectives, or the direction of one metric, not both")
        return objectives
    if direction is None and metric == "default":
        return None
    if direction is None:
        raise TypeError(f"metric={metric!r} needs a direction: 'minimize' or 'maximize'")
    return [{"name": metric, "direction": direction}]
