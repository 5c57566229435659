"""What importing a module costs beyond bare Python, and what the command's `--help` costs."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import answer, options


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


chosen = options(module="", command="")
bare = [sys.executable, "-c", "pass"]
importing = [sys.executable, "-c", f"import {chosen.module}"]
seconds(importing)
pairs = [(seconds(bare), seconds(importing)) for _ in range(chosen.size)]
found = {
    "bare": statistics.median(one for one, _ in pairs),
    "import": statistics.median(other - one for one, other in pairs),
}
if chosen.command:
    help_command = [str(Path(sys.executable).with_name(chosen.command)), "--help"]
    seconds(help_command)
    found["help"] = statistics.median(seconds(help_command) for _ in range(chosen.size))
answer(**found)
