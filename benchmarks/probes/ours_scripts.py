"""Script trials that do nothing, two at once."""

import sys

from harness import TRIALS, answer, options
from ours import run, succeeded_per_second

chosen = options()
folder = run(f"{sys.executable} {TRIALS}/pitchpipe_noop.py", chosen.size)
answer(trials_per_second=succeeded_per_second(folder, chosen.size))
