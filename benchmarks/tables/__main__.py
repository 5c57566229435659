"""`python -m benchmarks.tables`: runs `run.py` beside it, where the folder `pitchpipe/` here hides nothing."""

import subprocess
import sys
from pathlib import Path

sys.exit(subprocess.call([sys.executable, str(Path(__file__).with_name("run.py")), *sys.argv[1:]]))
