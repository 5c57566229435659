"""Script trials whose first result is judged bad: how soon does the process end?"""

from deaths import Deaths
from harness import TRIALS, answer, command, options
from ours import rows_of, run

chosen = options()
deaths = Deaths()
assessor = {"class_name": "pitchpipe_judge.BadAtOnce", "code_directory": str(TRIALS)}
folder = run(command(TRIALS / "pitchpipe_judged.py"), chosen.size, assessor=assessor)
[(stopped,)] = rows_of(folder, "SELECT count(*) FROM trials WHERE status = 'EARLY_STOPPED'")
if not stopped == len(deaths.delays) == chosen.size:
    raise SystemExit(f"{stopped} of {chosen.size} trials were stopped, {len(deaths.delays)} deaths seen")
answer(seconds=deaths.median(), slowest=max(deaths.delays))
