"""Script trials of NNI whose first result is judged bad: how soon does the process end?"""

from deaths import Deaths
from harness import TRIALS, answer, options
from nni_trials import judged_bad, run

chosen = options()
deaths = Deaths()
run(TRIALS / "nni_judged.py", chosen.size, judged_bad(TRIALS))
answer(seconds=deaths.median(), slowest=max(deaths.delays))
