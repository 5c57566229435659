"""Script trials of NNI whose first result is judged bad: how soon does the process end?"""

from deaths import Deaths
from harness import TRIALS, answer, options
from nni_trials import condemning, run

chosen = options()
deaths = Deaths()
run(TRIALS / "nni_condemned.py", chosen.size, condemning(TRIALS))
answer(seconds=deaths.median(), slowest=max(deaths.delays))
