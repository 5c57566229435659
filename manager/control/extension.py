"""More trials, more time, another concurrency, another place of the code for an experiment that does not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ...config import ExperimentConfig, UnitError, parse_duration
from ...protocol import Json, brief_json
from ...runner import ExperimentStatus
from ...search_space import non_finite
from ...store import ExperimentFolder, FolderError, Store, StoreError, absolute
from ..experiment_factory import directory_of, experiment_config, resume_experiment
from ..run_settings import difference_in

if TYPE_CHECKING:
    from ..hooks import Callback, Stopper
    from ..manager import FirstEvents, Manager

EXTENDED = "extended, and not yet resumed"
"""The reason for which an experiment with new limits is STOPPED."""

_MOST = {"max_trial_number": 2**53 - 1, "trial_concurrency": 1_000_000}
_LONGEST = 1e12


class ExtensionError(ValueError):
    """The limits make no sense for this experiment; the message says which would."""


@dataclass(frozen=True, slots=True)
class Extension:
    """New limits, by the names of the config (seconds for durations); None leaves a limit as it is."""

    max_trial_number: int | None = None
    max_experiment_duration: float | None = None
    trial_concurrency: int | None = None

    def changes(self) -> dict[str, float]:
        """Return the limits that are given.

        >>> Extension(max_trial_number=20).changes()
        {'max_trial_number': 20}
        """
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}


LIMITS = tuple(field.name for field in fields(Extension))
"""The limits that can be changed, whether the experiment runs or not."""


class CurrentLimits(TypedDict):
    """The limits of an experiment; None: there is none."""

    max_trial_number: int | None
    max_experiment_duration: float | None
    trial_concurrency: int


def current_limits(config: ExperimentConfig) -> CurrentLimits:
    """Return the limits in a configuration."""
    return {
        "max_trial_number": config.max_trial_number,
        "max_experiment_duration": config.max_experiment_duration,
        "trial_concurrency": config.trial_concurrency,
    }


def extend_experiment(folder: ExperimentFolder, extension: Extension, *, to_continue: bool = True) -> None:
    """Write new limits into an experiment's store, so that it can be resumed, also if it was DONE.

    Unless it is `to_continue`, it stays DONE while another limit is reached, or if only its concurrency changes.
    Raises `ExtensionError`, `StoreError`, or `FolderError` if it runs.
    """
    if problems := problems_of(extension.changes()):
        raise ExtensionError("; ".join(problems))
    with owned_store(folder) as store:
        _extend(store, extension, to_continue=to_continue)


def continue_experiment(
    config: ExperimentConfig,
    experiment_id: str,
    *,
    directory: Path | None = None,
    function: Callable[..., object] | None = None,
    callbacks: Iterable[Callback] = (),
    stopper: Stopper | None = None,
    first_events: FirstEvents | None = None,
) -> Manager | None:
    """Return the manager of the experiment with this id, which continues as `config` says; None if there is none.

    Of the limits on trials and time only higher ones count: it may have been extended meanwhile. If that leaves it
    DONE, no trial runs again. Raises what `resume_experiment` raises, and `FolderError` if anything but the limits
    differs, or if a limit is missing that it has.
    """
    folder = ExperimentFolder(absolute(directory or directory_of(config)) / experiment_id)
    folder.refuse_if_closed()
    if not folder.has_experiment:
        return None
    try:
        stored = experiment_config(folder)
    except StoreError:
        folder.refuse_if_run()  # it may be at its start, before there is anything to read
        raise
    wanted = ExperimentConfig.from_canonical(config.canonical())
    free = {*LIMITS, "experiment_working_directory", *(("seed",) if wanted.seed is None else ())}
    lifted = {name for name in _UPWARDS if getattr(wanted, name) is None}
    fields = [name for name in ExperimentConfig.model_fields if name not in free - lifted]
    if differing := [difference for name in fields if (difference := difference_in(name, stored, wanted))]:
        raise FolderError(
            f"the experiment in {folder.path} has another {' and another '.join(differing)}: choose another id for this"
            " one, or resume that one as it is"
        )
    higher = {name: _higher(getattr(stored, name), getattr(wanted, name)) for name in _UPWARDS}
    changes = Extension(**higher, trial_concurrency=wanted.trial_concurrency)
    extend_experiment(folder, changes, to_continue=False)
    manager = resume_experiment(
        folder, function=function, callbacks=callbacks, stopper=stopper, first_events=first_events
    )
    manager.start_warnings = [*_kept_limits(stored, wanted)]
    return manager


_UPWARDS = ("max_trial_number", "max_experiment_duration")


def _kept_limits(stored: ExperimentConfig, wanted: ExperimentConfig) -> Iterator[str]:
    """Say which limits of an experiment are higher than those asked for, and stay."""
    for name in _UPWARDS:
        kept, lower = getattr(stored, name), getattr(wanted, name)
        if _higher(lower, kept) is not None:
            yield f"{name} stays {kept:g}: an experiment that continues keeps its higher limit"


def _higher(before: float | None, now: float | None) -> Any:
    return now if before is not None and now is not None and now > before else None


@contextmanager
def owned_store(folder: ExperimentFolder) -> Iterator[Store]:
    """Yield the store of an experiment that does not run, for changes; raise `StoreError`, `FolderError` if it runs."""
    folder.own()
    try:
        with closing(Store.open(folder.database)) as store:
            yield store
    finally:
        folder.disown()


def with_code_in(config: ExperimentConfig, directory: Path) -> ExperimentConfig:
    """Return a configuration for a project that was moved: what was in its code directory is in `directory` now."""
    before = config.trial_code_directory

    def moved(path: Path) -> Path:
        return directory / path.relative_to(before) if path.is_relative_to(before) else path

    sections = {
        name: section.model_copy(update={"code_directory": moved(section.code_directory)})
        for name in ("tuner", "assessor")
        if (section := getattr(config, name)) is not None and section.code_directory is not None
    }
    return config.model_copy(update={"trial_code_directory": directory, **sections})


def options_to_extend(folder: ExperimentFolder) -> str:
    """Return the options of `resume` that extend an experiment that is done, such as `--max-trial-number N`."""
    store = Store.view(folder.database)
    try:
        row, made = store.experiment(), sum(store.counts().values())
        has_all = not store.has_trials_to_run_again()
    finally:
        store.close()
    config = ExperimentConfig.from_canonical(row.config)
    number, duration = config.max_trial_number, config.max_experiment_duration
    is_over = duration is not None and row.run_time >= duration
    has_all = has_all and number is not None and made >= number
    by_number = ["--max-trial-number N"] if has_all or not is_over else []
    return " ".join([*by_number, *(["--max-experiment-duration TIME"] if is_over else [])])


def _extend(store: Store, extension: Extension, *, to_continue: bool) -> None:
    row = store.experiment()
    config = ExperimentConfig.from_canonical(row.config).model_copy(update=extension.changes())
    made, is_done = sum(store.counts().values()), row.status == ExperimentStatus.DONE
    needs_more = is_done and not store.has_trials_to_run_again()
    least = f"more than {made}" if needs_more else f"at least {made}"
    if extension.max_trial_number is not None and extension.max_trial_number < made + needs_more:
        trials = "1 trial is" if made == 1 else f"{made} trials are"
        raise ExtensionError(f"{trials} made already: max_trial_number must be {least}")
    too_short = f"it has run for {row.run_time:.0f} s already: max_experiment_duration must be more"
    if extension.max_experiment_duration is not None and row.run_time >= extension.max_experiment_duration:
        raise ExtensionError(too_short)
    number, duration = config.max_trial_number, config.max_experiment_duration
    # An experiment that is not done may have reached its limits already: its trials still continue.
    has_all = needs_more and number is not None and number <= made
    is_over = is_done and duration is not None and row.run_time >= duration
    if to_continue and has_all:
        raise ExtensionError(f"the experiment is done: to extend it, set max_trial_number to {least}, too")
    if to_continue and is_over:
        raise ExtensionError(too_short)
    store.set_config(config.canonical())
    is_extended = to_continue or {"max_trial_number", "max_experiment_duration"} & set(extension.changes())
    if is_done and is_extended and not (has_all or is_over):
        store.set_status(ExperimentStatus.STOPPED.value, EXTENDED)


# ------------------------------------------------------------------ checks of a change


def problems_of(changes: Mapping[str, Json]) -> list[str]:
    """Return what is wrong with changed limits or a changed search space, as sentences; None lifts a limit.

    The models of the config are lenient, as YAML needs it: they accept "9" and true as numbers. A change comes from a
    program or a form, where those are mistakes.

    >>> problems_of({"max_trial_number": "9", "trial_concurrency": 4})
    ['max_trial_number must be a whole number from 1 to 9007199254740991, not "9"']
    """
    return [problem for name, value in changes.items() if value is not None for problem in _of(name, value)]


def _of(name: str, value: Json) -> Iterator[str]:
    if name in _MOST:
        yield from _of_count(name, value, _MOST[name])
    elif name == "max_experiment_duration":
        yield from _of_duration(name, value)
    elif name != "search_space":
        raise LookupError(f"{name} has no check: write it here")
    elif not isinstance(value, Mapping) or not value:
        yield 'search_space must be an object with at least one parameter, such as {"lr": {...}}'
    else:
        yield from map(str, non_finite(value, (name,)))


def _of_count(name: str, value: Json, most: int) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        yield f"{name} must be a whole number from 1 to {most}, not {brief_json(value)}"


def _of_duration(name: str, value: Json) -> Iterator[str]:
    try:
        seconds = parse_duration(value)
    except UnitError as error:
        yield f"{name}: {error.with_hint()}"
        return
    if not 0 < seconds < _LONGEST:
        yield f"{name} must be more than 0 s and less than {_LONGEST:g} s, not {brief_json(value)}"
