"""An assessor of one's own: stops a trial that has not improved for a while."""

from typing import Any

from pitchpipe import Assessor, AssessResult


class Patience(Assessor):
    """Says Bad when none of the last `patience` results is better than the best one before them."""

    def __init__(self, patience: int = 5, optimize_mode: str = "minimize") -> None:
        if patience < 1:
            raise ValueError(f"patience is {patience}; it must be at least 1")
        self.patience = patience
        self.better = min if optimize_mode == "minimize" else max

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Judge a running trial by all its intermediate results, oldest first."""
        before, recent = trial_history[: -self.patience], trial_history[-self.patience :]
        if not before or self.better(before + recent) != self.better(before):
            return AssessResult.Good
        self.reason = f"no better than {self.better(before):.4g} for {self.patience} results"
        return AssessResult.Bad
