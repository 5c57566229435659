"""An assessor that records how many results it judged, and when it judged the last one."""

import json
import time
from pathlib import Path

from pitchpipe.assessors import MedianstopAssessor


class Counting(MedianstopAssessor):
    """The median stopping rule, counted."""

    def __init__(self, path: str) -> None:
        super().__init__("minimize")
        self._path = Path(path)
        self._judged = 0
        self._last = 0.0

    def assess_trial(self, trial_job_id: str, trial_history: list) -> object:
        """Judge, and count."""
        verdict = super().assess_trial(trial_job_id, trial_history)
        self._judged += 1
        self._last = time.time()
        return verdict

    def _on_exit(self) -> None:
        self._path.write_text(json.dumps({"judged": self._judged, "last": self._last}), encoding="utf-8")
