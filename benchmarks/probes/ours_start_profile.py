"""Where the processor time goes from `pitchpipe run` to its first trial, by process; on Ray, then on that Ray again."""

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

from harness import SPACE, answer, options
from usage import used

PROGRAM = Path(sys.executable).with_name("pitchpipe")
# The trial says that it runs, and waits until it has been looked at.
TRIAL = """
echo > {folder}/began
read line < {folder}/go
echo '{{"final": 1}}' >> "$PITCHPIPE_REPORTS"
"""


def to_first_trial(name: str, platform: str, kept: float = 0) -> Counter[str]:
    """Return what the processes have used when the first trial runs; a private Ray stays for `kept` seconds."""
    folder = Path(name).absolute()
    folder.mkdir()
    (folder / "trial.sh").write_text(TRIAL.format(folder=folder))
    for pipe in ("began", "go"):
        os.mkfifo(folder / pipe)
    service = {"platform": platform} | ({"idle_timeout": kept} if platform == "ray" else {})
    config = {"search_space": SPACE, "trial_command": f"sh {folder}/trial.sh", "max_trial_number": 1}
    config |= {"tuner": {"name": "TPE"}, "training_service": service}
    (folder / "experiment.yml").write_text(json.dumps(config))
    before = used("probe")
    process = subprocess.Popen([PROGRAM, "run", folder / "experiment.yml", "--dir", folder])
    (folder / "began").read_text()
    after = used("probe")
    (folder / "go").write_text("\n")
    if process.wait() != 0:
        raise SystemExit("the experiment failed")
    after.subtract(before)
    return Counter({role: spent for role, spent in after.items() if "probe" not in role})


chosen = options(platform="local")
if chosen.platform == "ray":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    first, second = to_first_trial("first", "ray", kept=20), to_first_trial("second", "ray")
    kept = {f"kept: {role}": spent for role, spent in second.items()}
    answer(**first, **kept, total=first.total(), kept=second.total())
else:
    looks = [to_first_trial(f"run-{n}", "local") for n in range(chosen.size)]
    figures = {role: statistics.median(look[role] for look in looks) for role in set().union(*looks)}
    answer(**figures, total=statistics.median(look.total() for look in looks))
