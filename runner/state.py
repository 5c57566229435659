"""The state of the experiment, shared by all parts of the runner."""

from __future__ import annotations

from .experiment_state import EXPERIMENT_MOVES, ExperimentStatus
from .limits import Limits


class ExperimentState:
    """The status of one experiment, its limits, and whether its dispatcher is ready.

    `reason` says why the experiment ended early, `error` is a traceback if one ended it.
    """

    def __init__(self, experiment_id: str, limits: Limits) -> None:
        self.experiment_id = experiment_id
        self.limits = limits
        self.status = ExperimentStatus.INITIALIZED
        self.is_ending = False  # stopping or over: no attempt starts any more
        self.reason = ""
        self.error = ""
        self.is_ready = False  # the dispatcher takes requests
        self.wants_periodical = True  # the dispatcher wants intermediate results
        self.any_results: tuple[str, ...] = ()  # the kinds of results that need no number
        self.unread_result = ""  # the first intermediate result that the dispatcher could not read, and why
        self.has_asked: bool | None = (
            None  # whether a trial that ended well knew its parameters; None: none has
        )
        self.tuner_learns = True  # proposals may depend on results

    @property
    def may_start(self) -> bool:
        """Whether attempts may start now."""
        return self.is_ready and not self.is_ending

    def move(self, status: ExperimentStatus) -> None:
        """Change the status; raise `RuntimeError` if the table has no such move."""
        if status is self.status:
            return
        if status not in EXPERIMENT_MOVES[self.status]:
            raise RuntimeError(f"experiment {self.experiment_id} is {self.status} and cannot become {status}")
        self.status = status
        self.is_ending = status is ExperimentStatus.STOPPING or status.is_final
