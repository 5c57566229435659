"""`pitchpipe run --ui`: the pages start and end with the run."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

TRIAL = """
import pitchpipe

open("gate").close()  # a pipe: waits for the test
pitchpipe.report_final_result(1.0)
"""
CONFIG = {
    "trial_command": f"{sys.executable} trial.py",
    "max_trial_number": 1,
    "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
    "tuner": {"name": "Random"},
    "training_service": {"platform": "local"},
}


def test_pages_of_a_run_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "trial.py").write_text(TRIAL)
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "experiment.yml").write_text(json.dumps(CONFIG))
    words = ["run", "experiment.yml", "--dir", "runs", "--experiment-id", "e", "--ui", "--json"]
    command = [sys.executable, "-P", "-m", "pitchpipe", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr is not None
        line = next(line for line in run.stderr if line.startswith("web pages: "))
        address = line.removeprefix("web pages: ").strip()
        assert address.endswith("/ui/e")
        with urllib.request.urlopen(address, timeout=30) as page:
            assert "Best trial" in page.read().decode()
        (tmp_path / "gate").open("w").close()
        printed, _ = run.communicate(timeout=60)
    assert json.loads(printed)["status"] == "DONE"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
