"""`create`, `resume`, `stop` and `trial kill`: experiments in processes of their own."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe import NoMoreTrialError, Search, uniform

from .conftest import Call, Left, Start, until

# What starts an experiment in the background does not wait for it.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")

LONG = """\
echo "{\\"intermediate\\": 1}" >> "$PITCHPIPE_REPORTS"
echo started
exec sleep 600
"""


@pytest.fixture
def long(config: Path) -> Path:
    """Return a config whose trials never end."""
    (config.parent / "trial.sh").write_text(LONG)
    return config


def create(call: Call, config: Path) -> dict[str, Any]:
    called = call("create", config, "--json", "--experiment-id", "e")
    assert called.code == 0, called.err
    return json.loads(called.out)


def exported(call: Call) -> dict[str, Any]:
    return json.loads(call("export", "e").out)


def all_reported(call: Call) -> bool:
    return [trial["intermediate"] for trial in exported(call)["trials"]] == [[1], [1]]


def test_create_returns_when_trials_can_run_and_what_it_started_is_steered(
    long: Path, directory: Path, left: Left, call: Call
) -> None:
    details = create(call, long)
    assert (details["id"], details["folder"]) == ("e", str(directory / "e"))
    assert details["status"] in ("RUNNING", "NO_MORE_TRIAL")
    assert os.getsid(details["pid"]) == details["pid"]
    assert json.loads(call("status", "e", "--json").out)["running"] is True

    until(lambda: all_reported(call))
    assert call("trial", "kill", "e", "0").code == 0
    until(lambda: len(exported(call)["trials"]) == 3)
    first = until(
        lambda: [trial for trial in exported(call)["trials"] if trial["status"] == "USER_CANCELED"]
    )[0]
    assert (first["sequence_id"], first["reason"]) == (0, "killed by the user")
    assert call("trial", "log", "e", "1").out == "started\n"

    stopped = call("stop", "e")
    assert stopped.out.startswith("experiment e is STOPPED")
    assert left() == []
    assert exported(call)["experiment"]["reason"] == "stopped by the user"
    assert call("stop", "e").out == "experiment e is not running\n"

    assert call("resume", "e", "--detach", "--quiet", "--max-trial-number", "9").out == "e\n"
    assert json.loads(call("status", "e", "--json").out)["running"] is True
    assert exported(call)["experiment"]["config"]["maxTrialNumber"] == 9
    assert call("stop", "--all").out.startswith("experiment e is STOPPED")
    assert call("stop", "--all").out == f"no experiment is running in {directory}\n"
    assert left() == []


def test_create_of_what_can_never_run_says_why(long: Path, directory: Path, left: Left, call: Call) -> None:
    long.write_text(long.read_text() + "trial_resources: {unicorn: 1}\n")
    called = call("create", long, "--experiment-id", "e")
    assert (called.code, called.out) == (1, "")
    assert "unicorn" in called.err
    assert "Traceback" not in called.err
    assert left() == []


def test_what_a_killed_manager_left_running_is_named_and_ended(
    long: Path, directory: Path, left: Left, call: Call
) -> None:
    details = create(call, long)
    until(lambda: all_reported(call))
    manager = psutil.Process(details["pid"])
    manager.kill()
    manager.wait(10)
    assert "RUNNING (manager gone): pitchpipe resume e" in call("status", "e").out
    refused = call("trial", "kill", "e", "0")
    assert (refused.code, "is not running" in refused.err) == (1, True)

    stopped = call("stop", "e")
    assert (stopped.code, stopped.out.split(",")[0]) == (0, "experiment e is STOPPED")
    assert left() == []
    found = exported(call)
    assert found["experiment"]["status"] == "STOPPED"
    assert [(t["status"], t["intermediate"]) for t in found["trials"]] == [("SYS_CANCELED", [1])] * 2


def test_a_stopped_experiment_continues_to_its_end(
    long: Path, directory: Path, left: Left, call: Call
) -> None:
    created = call("create", long, "--experiment-id", "e").out
    assert created.startswith(f"experiment e runs in {directory / 'e'} (process ")
    assert "to stop it: pitchpipe stop e\n" in created
    until(lambda: all_reported(call))
    running = call("resume", "e")
    assert (running.code, "is run by process" in running.err) == (2, True)
    call("stop", "e")
    too_short = call("resume", "e", "--max-experiment-duration", "0.001s")
    assert (too_short.code, "it has run for" in too_short.err) == (2, True)
    (long.parent / "trial.sh").write_text('echo "{\\"final\\": 1}" >> "$PITCHPIPE_REPORTS"')

    resumed = call("resume", "e", "--json")
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out)["counts"] == {"SUCCEEDED": 4}
    again = call("resume", "e")
    hint = "to extend it: pitchpipe resume e --max-trial-number N"
    assert (again.code, again.err) == (
        2,
        f"error: experiment e is DONE: there is nothing to continue; {hint}\n",
    )


@pytest.mark.parametrize("more", [[], ["--max-trial-number", 5], ["--extend", "--trial-concurrency", 2]])
def test_resume_of_a_search_is_refused_and_changes_nothing(
    more: list[object], directory: Path, call: Call
) -> None:
    with Search({"x": uniform(0, 1)}, folder=directory / "own", tuner="Random", n_trials=1) as search:
        search.tell(search.ask(), 1)
        with pytest.raises(NoMoreTrialError):
            search.ask()
    before = call("status", "own").out
    refused = call("resume", "own", *more)
    assert refused.code == 2
    assert f"continue it with pitchpipe.Search(folder='{directory / 'own'}') in Python" in refused.err
    added = call("trial", "add", "own", "--parameters", '{"x": 0.5}')
    assert added.err.endswith("does not run: only the program that asks and tells continues it\n")
    assert "pitchpipe resume" not in refused.err
    assert call("status", "own").out == before


def test_experiment_that_is_done_is_extended_where_its_script_is(
    config: Path, directory: Path, call: Call
) -> None:
    assert call("run", config, "--experiment-id", "e", "--quiet").code == 0
    script = config.parent / "trial.sh"
    moved = script.rename(script.with_suffix(".moved"))
    refused = call("resume", "e", "--max-trial-number", "9")
    assert refused.code == 1
    assert refused.err.startswith("error: experiment e cannot continue here: there is no file ")
    assert "DONE" in call("status", "e").out
    renamed = config.parent / "renamed"
    renamed.mkdir()
    moved.rename(renamed / script.name)
    assert call("resume", "e", "--code-directory", renamed, "--max-trial-number", "5", "--quiet").code == 0
    line = "to continue: pitchpipe resume e"
    assert line in call("update", "e", "--max-trial-number", "6").out.splitlines()
    words = ["--max-trial-number", "7", "--trial-concurrency", "3", "--max-experiment-duration", "2h"]
    extended = call("resume", "e", "--json", *words)
    assert extended.code == 0, extended.err
    assert json.loads(extended.out)["counts"] == {"SUCCEEDED": 7}
    shutil.copytree(directory / "e", directory / "copy")
    assert json.loads(call("status", "copy", "--json").out)["id"] == "copy"


def test_process_that_no_longer_waits_for_a_start_does_not_disturb_it(config: Path, call: Call) -> None:
    assert call("run", config, "--experiment-id", "e", "--quiet").code == 0
    reader, writer = os.pipe()
    os.close(reader)
    resumed = call("resume", "e", "--max-trial-number", "5", "--quiet", "--announce-fd", writer)
    assert (resumed.code, resumed.err) == (0, "")


def test_experiment_is_fetched_from_its_storage(
    config: Path, directory: Path, tmp_path: Path, call: Call
) -> None:
    shared = tmp_path / "shared"
    config.write_text(f"{config.read_text()}storage_path: {shared}\n")
    assert call("run", config, "--experiment-id", "e", "--quiet").code == 0
    refused = call("resume", "e", "--from", shared)
    assert (refused.code, "is here already" in refused.err) == (2, True)
    shutil.rmtree(directory / "e")
    assert "no copy of experiment 'f'" in call("resume", "f", "--from", shared).err
    refused = call("resume", "e", "--from", shared, "--max-trial-number", "4")
    assert (refused.code, "4 trials are made already" in refused.err) == (2, True)
    assert not (directory / "e").exists()
    words = ["--from", str(shared), "--extend", "--max-trial-number", "6", "--json"]
    resumed = call("resume", "e", *words)
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out)["counts"] == {"SUCCEEDED": 6}


def test_a_signal_to_create_stops_what_it_started(config: Path, directory: Path, start: Start) -> None:
    slow = "import time\nfrom pathlib import Path\nif Path('experiments/e').exists():\n    time.sleep(3600)\n"
    slow = slow.replace("experiments/e", str(directory / "e"))
    (config.parent / "slow_tuner.py").write_text(
        slow + "from pitchpipe.tuners.random import RandomTuner as Slow\n"
    )
    config.write_text(
        config.read_text().replace("{name: Random}", "{class_name: slow_tuner.Slow, code_directory: .}")
    )
    started = start("create", config, "--experiment-id", "e")
    until((directory / "e" / "logs" / "dispatcher.out").exists)
    started.process.send_signal(signal.SIGINT)
    called = started.finish()

    assert (called.code, called.out) == (130, "")
    assert "STOPPED" in called.err
    assert started.left() == []
