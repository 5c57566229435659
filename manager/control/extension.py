"""More trials, more time, another concurrency for an experiment that does not run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ...config import ExperimentConfig
from ...runner import ExperimentStatus
from ...store import ExperimentFolder, Store
from .change_checks import problems_of

__all__ = ["LIMITS", "Extension", "ExtensionError", "extend_experiment"]


class ExtensionError(ValueError):
    """The limits make no sense for this experiment; the message says which would."""


@dataclass(frozen=True, slots=True)
class Extension:
    """New limits, by the names of the config (seconds for durations); None leaves a limit as it is."""

    max_trial_number: int | None = None
    max_experiment_duration: float | None = None
    trial_concurrency: int | None = None

    def changes(self) -> dict[str, Any]:
        """Return the limits that are given.

        >>> Extension(max_trial_number=20).changes()
        {'max_trial_number': 20}
        """
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}


LIMITS = tuple(field.name for field in fields(Extension))
"""The limits that can be changed, whether the experiment runs or not."""


def extend_experiment(folder: ExperimentFolder, extension: Extension) -> None:
    """Write new limits into an experiment's store, so that it can be resumed, also if it was DONE.

    Raises `ExtensionError`, `StoreError`, or `FolderError` if it runs.
    """
    if problems := problems_of(extension.changes()):
        raise ExtensionError("; ".join(problems))
    folder.own()
    try:
        store = Store.open(folder.database)
        try:
            _extend(store, extension)
        finally:
            store.close()
    finally:
        folder.disown()


def _extend(store: Store, extension: Extension) -> None:
    row = store.experiment()
    config = ExperimentConfig.from_canonical(row.config).model_copy(update=extension.changes())
    made, number = sum(store.counts().values()), extension.max_trial_number
    if row.status != ExperimentStatus.DONE and number is not None and number < made:
        raise ExtensionError(f"{made} trials are made already: max_trial_number must be at least {made}")
    if row.status != ExperimentStatus.DONE:
        store.set_config(config.canonical())
        return
    if (why := _why_done(config, made, row.run_time)) is not None:
        raise ExtensionError(why)
    store.set_config(config.canonical())
    store.set_status(ExperimentStatus.STOPPED.value, "extended, and not yet resumed")


def _why_done(config: ExperimentConfig, made: int, run_time: float) -> str | None:
    """Say why an experiment that is done would be done again at once."""
    number, duration = config.max_trial_number, config.max_experiment_duration
    if number is not None and made >= number:
        return f"{made} trials are made already: max_trial_number must be more than {made}"
    if duration is not None and run_time >= duration:
        return f"it has run for {run_time:.0f} s already: max_experiment_duration must be more"
    return None
