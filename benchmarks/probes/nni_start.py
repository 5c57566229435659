"""From the start of Python to the first trial of NNI."""

from harness import TRIALS, answer, began, options
from nni_trials import run

options()
[job] = run(TRIALS / "nni_noop.py", 1)
answer(seconds=job.startTime / 1000 - began())
