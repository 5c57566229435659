"""Script trials of NNI that do nothing, two at once."""

from harness import TRIALS, answer, options
from nni_trials import run

chosen = options()
jobs = run(TRIALS / "nni_noop.py", chosen.size)
first, last = min(job.startTime for job in jobs), max(job.endTime for job in jobs)
answer(trials_per_second=len(jobs) / ((last - first) / 1000))
