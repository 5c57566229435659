"""An assessor of NNI that judges every result bad."""

from nni.assessor import Assessor, AssessResult


class BadAtOnce(Assessor):
    """Ends every trial at its first result."""

    def assess_trial(self, trial_job_id: str, trial_history: list) -> AssessResult:
        """Return Bad."""
        del trial_job_id, trial_history
        return AssessResult.Bad
