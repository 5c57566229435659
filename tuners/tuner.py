"""The base class of tuners, with NNI's method names, what a scheduler may do, and the error that ends a search.

This module does not import numpy, so subclassing `Tuner` costs a plug-in nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..plugins import CheckpointFolder, taken
from ..protocol import Json


class NoMoreTrialError(Exception):
    """Raised by `generate_parameters` when there is nothing left to suggest.

    >>> str(NoMoreTrialError())
    'Search space fully explored'
    """

    def __init__(self, ErrorInfo: str = "Search space fully explored") -> None:
        super().__init__(ErrorInfo)
        self.errorinfo = ErrorInfo


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Parameters of a new trial with a budget, or with the checkpoint of another trial to start from.

    Return it in place of plain parameters. `budget` is in the units that the tuner and the trials agree on, usually
    intermediate results; `checkpoint_of` is the id of a trial. With `pauses_at_budget` the budget counts intermediate
    results, and a trial that obeys it is paused there instead of ending.

    >>> Suggestion({"lr": 0.1}, budget=3)
    Suggestion(parameters={'lr': 0.1}, budget=3, checkpoint_of=None, pauses_at_budget=False)
    """

    parameters: Any
    budget: float | None = None
    checkpoint_of: str | None = None
    pauses_at_budget: bool = False


class TrialControl:
    """Lets a tuner pause, resume and stop existing trials; the dispatcher provides a connected one.

    This one is not connected: its methods raise RuntimeError. Unpickling always returns one like this.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return TrialControl, ()

    def pause(self, trial_job_id: str, reason: str) -> None:
        """Make a trial save a checkpoint and free its slot."""
        raise _not_connected("pause")

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Json] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Continue a paused trial."""
        raise _not_connected("resume")

    def stop(self, trial_job_id: str, reason: str) -> None:
        """End a trial."""
        raise _not_connected("stop")


def _not_connected(what: str) -> RuntimeError:
    return RuntimeError(f"cannot {what} trials: the tuner is not run by a manager")


class Tuner(CheckpointFolder):
    """Proposes parameters and learns from results; subclass it and override what is needed.

    `update_search_space` is called once before anything else; `generate_parameters`,
    `receive_trial_result`, `trial_end` and `import_data` follow in any order, never concurrently.
    `__init__` of this class need not be called.

    >>> class Constant(Tuner):
    ...     def update_search_space(self, search_space): pass
    ...     def generate_parameters(self, parameter_id, **kwargs): return {"x": 1}
    ...     def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass
    >>> Constant().generate_multiple_parameters([0, 1])
    [{'x': 1}, {'x': 1}]
    """

    #: True to receive every intermediate result, "with an assessor" to receive them only if there is one.
    wants_periodical: bool | Literal["with an assessor"] = False
    #: False if proposals do not depend on results: while trials are short, some are asked for ahead. Not inherited.
    learns: bool = True
    #: Constraints between parameters, as last given to `update_constraints`.
    constraints: Sequence[str] = ()
    _accept_customized: bool = False
    _trials: TrialControl = TrialControl()

    def update_constraints(self, constraints: Sequence[str]) -> None:
        """Take the constraints of the search space that comes next."""
        self.constraints = tuple(constraints)

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space in its JSON form; called first, and whenever the space changes."""
        raise NotImplementedError(f"{type(self).__name__} does not override update_search_space")

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        """Return the parameters of one trial, or raise `NoMoreTrialError`."""
        raise NotImplementedError(f"{type(self).__name__} does not override generate_parameters")

    def generate_multiple_parameters(self, parameter_id_list: Sequence[int], **kwargs: Any) -> list[Any]:
        """Return parameters for each id in order; a shorter list means that the space is exhausted."""
        suggestions: list[Any] = []
        options = taken(self.generate_parameters, kwargs)
        for parameter_id in parameter_id_list:
            try:
                suggestions.append(self.generate_parameters(parameter_id, **options))
            except NoMoreTrialError:
                break
        return suggestions

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Learn the final result of a trial; `value` is what the trial reported."""
        raise NotImplementedError(f"{type(self).__name__} does not override receive_trial_result")

    def receive_repeats(self, parameter_id: int, parameters: Any, values: Sequence[Any]) -> None:
        """Learn the results of the repeats of a configuration; `receive_trial_result` with their mean follows."""

    def receive_intermediate_result(
        self, parameter_id: int, parameters: Any, value: Any, *, trial_job_id: str, sequence: int
    ) -> None:
        """Learn an intermediate result; `sequence` counts from 0 in each trial. See `wants_periodical`."""

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Note that a trial ended; called after its final result, if it has one."""

    def trial_stopped(self, parameter_id: int) -> None:
        """Note that a trial that is about to end without a final result was stopped and did not fail."""

    def trial_end_cause(self, parameter_id: int, cause: str) -> None:
        """Note why a trial that is about to end without a final result did so.

        `cause` is its kind of failure (`OOM`, `TIMEOUT`, `NAN`, `IMPORT`, `USER_ERROR`, `KILLED`, `INFRA`), or its
        status if it was cancelled (`USER_CANCELED`, `SYS_CANCELED`).
        """

    def import_data(self, data: list[Any]) -> None:
        """Learn from items with `parameter` and `value`, measured elsewhere or by an earlier run."""

    def connect_trials(self, control: TrialControl) -> None:
        """Take the connection that `pause_trial`, `resume_trial` and `stop_trial` use; called by the dispatcher."""
        self._trials = control

    def pause_trial(self, trial_job_id: str, reason: str = "") -> None:
        """Make a running trial save a checkpoint and free its slot; it keeps its parameters and can be resumed."""
        self._trials.pause(trial_job_id, reason)

    def resume_trial(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Json] | None = None,
        checkpoint_of: str | None = None,
        budget: float | None = None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Continue a paused trial, from its own checkpoint or from that of the trial `checkpoint_of`.

        `parameters` replace its own. A trial whose pause is pending is resumed after it.
        """
        self._trials.resume(trial_job_id, parameters, checkpoint_of, budget, pauses_at_budget)

    def stop_trial(self, trial_job_id: str, reason: str = "") -> None:
        """Stop a running or paused trial; it counts as stopped early."""
        self._trials.stop(trial_job_id, reason)

    def trials_stalled(self) -> None:
        """Resume paused trials: none is running and no new one may be made. Those left paused are ended.

        Without this call, a tuner that needs more trials than `max_trial_number` would wait forever.
        """

    def load_checkpoint(self) -> None:
        """Restore what `save_checkpoint` wrote; called before `update_search_space` of a resumed run."""

    def save_checkpoint(self) -> None:
        """Save the tuner's state; tuners that pickle do not need this."""

    def _accept_customized_trials(self, accept: bool = True) -> None:
        """Choose whether to receive the results of trials that the user added by hand."""
        self._accept_customized = accept

    def _on_exit(self) -> None:
        """Clean up; called when the dispatcher ends normally."""

    def _on_error(self) -> None:
        """Clean up; called when the dispatcher ends by an error."""
