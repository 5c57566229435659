"""Script trials that do nothing, two at once, started cold or warm."""

from harness import TRIALS, answer, command, options
from ours import run, succeeded_per_second

chosen = options(start="cold")
folder = run(command(TRIALS / "pitchpipe_noop.py"), chosen.size, trial_start=chosen.start)
answer(trials_per_second=succeeded_per_second(folder, chosen.size))
