"""From `pitchpipe run` to the first action of the first trial."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import SPACE, answer, options

PROGRAM = Path(sys.executable).with_name("pitchpipe")
RAY_ALONE = """
import ray
ray.init(address="local", include_dashboard=False, log_to_driver=False)
print(flush=True)
"""
TRIAL = """
date +%s.%N >> {path}
echo '{{"final": 1}}' >> "$PITCHPIPE_REPORTS"
"""


def to_first_trial(number: int, platform: str, kept: float = 0) -> float:
    """Return the seconds until the first trial's command runs; the trial reports and ends.

    A private Ray stays for `kept` seconds.
    """
    began_file = Path(f"first-{number}")
    script = Path(f"trial-{number}.sh")
    script.write_text(TRIAL.format(path=began_file.absolute()))
    service = {"platform": platform} | ({"idle_timeout": kept} if platform == "ray" else {})
    config = {"search_space": SPACE, "trial_command": f"sh {script.absolute()}", "max_trial_number": 1}
    config |= {"tuner": {"name": "TPE"}, "training_service": service}
    path = Path(f"experiment-{number}.yml")
    path.write_text(json.dumps(config))
    began = time.time()
    subprocess.run([PROGRAM, "run", path, "--dir", Path.cwd()], check=True)
    return float(began_file.read_text().split()[0]) - began


def to_validate() -> float:
    """Return the seconds that checking a config takes."""
    began = time.time()
    subprocess.run([PROGRAM, "validate", "experiment-0.yml"], check=True)
    return time.time() - began


def ray_alone() -> float:
    """Return the seconds until a bare Ray is up; it has ended on return."""
    began = time.time()
    process = subprocess.Popen([sys.executable, "-c", RAY_ALONE], stdout=subprocess.PIPE)
    if process.stdout is None or not process.stdout.readline():
        raise SystemExit("Ray did not start")
    took = time.time() - began
    process.wait()
    return took


chosen = options(platform="local")
if chosen.platform == "ray":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    alone = ray_alone()
    took = to_first_trial(0, "ray", kept=20)
    kept = to_first_trial(1, "ray")
    answer(seconds=took, ray_alone=alone, beyond_ray=took - alone, kept=kept)
else:
    answer(
        seconds=statistics.median(to_first_trial(n, "local") for n in range(chosen.size)),
        validate=statistics.median(to_validate() for _ in range(chosen.size)),
    )
