"""`pitchpipe run`: what it prints, what it leaves, how it exits."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ..homeless import leave_home
from .conftest import Call, Called, Start, Storing


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_run_to_the_end_tells_the_best_and_where_everything_is_without_rich(
    start: Start, config: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    fails = 'case $PITCHPIPE_SEQUENCE_ID in [12]) echo "ValueError: too big" >&2; exit 1;; esac\n'
    trial = config.parent / "trial.sh"
    trial.write_text("sleep 1; " + fails + trial.read_text())
    started = start("run", config, "--experiment-id", "mine")
    called = started.finish()

    assert called.code == 0
    imported = called.err.splitlines()
    assert [line for line in imported if not line.startswith("import time:")] == []
    names = {line.rpartition("|")[2].strip() for line in imported}
    assert ("pitchpipe.cli.display" in names, "rich.console" in names) == (True, False)
    progress = re.search(r"^[\d.]+ s: [A-Z]+; \d/4 trials", called.out, re.MULTILINE)
    assert progress is not None
    assert progress.start() < called.out.index("DONE: experiment")
    lines = called.out.splitlines()
    assert lines[0] == f"experiment mine in {directory / 'mine'}"
    assert "DONE: experiment mine, 4 trials (2 succeeded, 2 failed) in " in called.out
    failed = "2 trials failed (USER_ERROR, exit code 1): ValueError: too big (pitchpipe trial log mine 1)"
    assert failed in called.out
    assert any(line.startswith("best: 0.") for line in lines)
    assert f"everything is in {directory / 'mine'}" in lines
    assert (directory / "mine" / "experiment.yml").read_text() == config.read_text()
    assert "experiment mine is DONE" in (directory / "mine" / "logs" / "manager.log").read_text()
    assert started.left() == []


@pytest.mark.dispatcher_process
def test_dispatcher_of_a_quiet_run_has_stood_by(config: Path, directory: Path, call: Call) -> None:
    tuner = "import sys\nfrom pitchpipe.tuners import RandomTuner\nprint(sys.argv[1:])\nclass Mine(RandomTuner): ..."
    (config.parent / "mine.py").write_text(tuner)
    config.write_text(
        config.read_text().replace("{name: Random}", "{class_name: mine.Mine, code_directory: .}")
    )
    called = call("run", config, "--experiment-id", "mine", "--quiet")
    assert (called.code, called.err, called.out.startswith("DONE: experiment ")) == (0, "", True)
    printed = directory / "mine" / "logs" / "dispatcher.log"
    assert "['--standby']" in printed.read_text().splitlines()


@pytest.mark.dispatcher_process
def test_dispatcher_that_stands_by_ends_if_there_is_no_experiment_for_it(
    call: Call, config: Path, directory: Path
) -> None:
    (directory / "mine").mkdir(parents=True)
    assert call("run", config, "--experiment-id", "mine").code == 2
    assert not [child for child in psutil.Process().children() if "--standby" in child.cmdline()]


def test_direction_that_is_a_default_is_said(call: Call, config: Path, directory: Path) -> None:
    config.write_text(config.read_text().replace("Random", "Evolution"))
    note = "maximizing default: no direction is given, and maximize is the default of the tuner Evolution"
    called = call("run", config, "--experiment-id", "mine")
    assert note in called.out.splitlines()
    assert note in (directory / "mine" / "logs" / "manager.log").read_text()
    assert f"  objective     {note}" in call("validate", config).out.splitlines()
    values = [trial["final"] for trial in json.loads(call("export", "mine").out)["trials"]]
    assert json.loads(call("status", "mine", "--json").out)["best"]["value"] == max(values)


def test_json_is_one_object_and_goes_alone_to_a_terminal(call: Call, config: Path, tmp_path: Path) -> None:
    trial = config.parent / "trial.sh"
    trial.write_text(
        "sleep 0.5; " + trial.read_text()
    )  # long enough for lines of progress, if there were any
    ours, its = os.openpty()
    command = [sys.executable, "-P", "-m", "pitchpipe", "run", str(config), "--json"]
    command += ["--dir", str(tmp_path / "runs")]
    done = subprocess.run(command, stdout=its, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
    os.close(its)
    result = json.loads(os.read(ours, 65536))
    os.close(ours)

    assert done.stderr == ""
    assert sorted(result) == ["best", "counts", "folder", "id", "status"]
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": 4})
    assert result["folder"] == str(tmp_path / "runs" / result["id"])
    exported = json.loads(call("export", result["id"], "--dir", tmp_path / "runs").out)["trials"]
    smallest = min(exported, key=lambda trial: trial["final"])
    assert result["best"] == {
        "trial_id": smallest["id"],
        "sequence_id": smallest["sequence_id"],
        "value": smallest["final"],
        "parameters": smallest["parameters"],
    }
    assert [trial["intermediate"] for trial in exported] == [[trial["final"]] for trial in exported]


def test_all_problems_of_a_config_come_at_once_and_nothing_is_left(
    call: Call, config: Path, directory: Path
) -> None:
    text = config.read_text().replace("max_trial_number: 4", "max_trial_numbr: 4").replace("[0, 1]", "[1, 0]")
    config.write_text(
        text.replace("concurrency: 2", "concurrency: two").replace("name: Random", "name: Randm")
    )
    before = psutil.Process().children()  # a browser, perhaps, that other tests use
    called = call("run", config, "--json")

    assert (called.code, called.out) == (2, "")
    *problems, last = called.err.splitlines()
    assert len(problems) == 4
    assert last == "4 problems found, nothing was started"
    assert all(line.startswith(f"{config}:") for line in problems)
    places = [line.removeprefix(f"{config}:").split(":")[0] for line in problems]
    assert places == ["2", "4", "5", "8"]
    assert "did you mean max_trial_number?" in called.err
    assert not directory.exists()
    assert psutil.Process().children() == before


def test_a_folder_that_is_taken_is_a_sentence(stored: Storing, call: Call, config: Path) -> None:
    folder = stored().write("mine", [])
    called = call("run", config, "--experiment-id", "mine")
    assert (called.code, called.out) == (2, "")
    assert called.err == (
        f"error: {folder.path} exists already: choose another --experiment-id,"
        f" or delete that one: pitchpipe delete {folder.path}\n"
    )
    assert call("delete", folder.path, "--yes").code == 0
    for status, end in (
        ("RUNNING", ""),
        ("STOPPED", f", or delete that one: pitchpipe delete {folder.path}"),
    ):
        stored(status=status).write("mine", [])
        called = call("run", config, "--experiment-id", "mine")
        assert called.err == (
            f"error: {folder.path} exists already: choose another --experiment-id,"
            f" or continue that one: pitchpipe resume {folder.path}{end}\n"
        )
        shutil.rmtree(folder.path)


@pytest.mark.slow
def test_a_run_that_is_repeated_continues_or_shows_what_there_is(
    call: Call, config: Path, directory: Path
) -> None:
    def run(*words: str) -> Called:
        return call("run", config, "--experiment-id", "again", "--resume-if-exists", "--json", *words)

    made = [json.loads(run("--set", f"max_trial_number={number}").out) for number in (2, 2, 4, 3)]
    assert [summary["status"] for summary in made] == ["DONE"] * 4
    assert "max_trial_number stays 4" in run("--set", "max_trial_number=3").err
    assert [sum(summary["counts"].values()) for summary in made] == [2, 2, 4, 4]
    other = run("--set", "objectives=[{name: default, direction: maximize}]")
    assert other.code == 2
    assert "has another objectives: choose another id" in other.err
    assert call("run", config, "--resume-if-exists").code == 2


@pytest.mark.parametrize("experiment_id", ["../out", "a b", "x" * 33, "-x"])
def test_an_id_that_is_none_is_refused(experiment_id: str, call: Call, config: Path, directory: Path) -> None:
    called = call("run", config, f"--experiment-id={experiment_id}")
    assert called.code == 2
    assert "is not an experiment id" in called.err
    assert not directory.exists()


def test_a_directory_that_cannot_be_made_is_a_sentence(call: Call, config: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    called = call("run", config, "--dir", tmp_path / "file" / "runs")
    assert called.code == 2
    assert "cannot be made: Not a directory" in called.err
    assert "Traceback" not in called.err


def test_experiment_with_a_directory_needs_no_home(
    call: Call, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PITCHPIPE_DIR", raising=False)
    leave_home(monkeypatch)
    named = ("--dir", tmp_path / "runs")
    ran = call("run", config, "--experiment-id", "mine", *named)
    assert (ran.code, f"--dir {tmp_path / 'runs'}" in ran.out) == (0, True)
    resumed = call("resume", tmp_path / "runs" / "mine", "--max-trial-number", 5, "--json")
    assert json.loads(resumed.out)["counts"] == {"SUCCEEDED": 5}
    for words in ("list", "status", "trials mine", "export mine", "stop mine", "delete mine --yes"):
        called = call(*words.split(), *named)
        assert (called.code, "Traceback" in called.err) == (0, False)


def test_folders_and_files_may_have_names_that_are_not_utf_8(
    call: Call, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    config.parent.joinpath("trial.sh").rename(make(place) / "trial.sh")
    moved = config.rename(place / os.fsdecode(b"h\xf6he.yml"))
    monkeypatch.setenv("PITCHPIPE_DIR", str(place / os.fsdecode(b"l\xe4ufe")))
    monkeypatch.setenv("FROM_ELSEWHERE", os.fsdecode(b"\xff\xfe"))
    report, table = place / os.fsdecode(b"\xfc.html"), place / os.fsdecode(b"\xfc.csv")
    for stream in (sys.stdout, sys.stderr):  # as those of the process are
        stream.reconfigure(errors="backslashreplace")
    assert call("validate", moved).code == 0
    assert call("run", moved, "--experiment-id", "mine").code == 0
    resumed = call("resume", "mine", "--max-trial-number", 5, "--json")
    assert json.loads(resumed.out)["counts"] == {"SUCCEEDED": 5}
    (listed,) = json.loads(call("list", "--json").out)
    shown = json.loads(call("status", "mine", "--json").out)
    assert (listed["id"], listed["folder"]) == ("mine", shown["folder"])
    assert os.fsencode(shown["folder"]).endswith(b"/caf\xe9/l\xe4ufe/mine")
    for words in (("status", "mine"), ("export", "mine", "-o", table), ("report", "mine", "-o", report)):
        assert call(*words).code == 0
    assert (len(table.read_text().splitlines()), report.is_file()) == (6, True)
    assert call("trial", "rerun", "mine", 0).code == 0
    assert call("trial", "log", "mine", 0).out.startswith("x is ")
    assert call("delete", "mine", "--yes").code == 0


def test_without_a_home_the_default_directory_is_refused_in_a_sentence(
    call: Call, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PITCHPIPE_DIR", raising=False)
    leave_home(monkeypatch)
    assert call("validate", config).code == 0
    for words in (("run", config), ("create", config), ("list",), ("status", "mine"), ("doctor",)):
        called = call(*words)
        assert (called.code, called.out) == (2, "")
        assert "PITCHPIPE_DIR" in called.err


@pytest.mark.parametrize("verb", ["run", "create", "validate"])
@pytest.mark.parametrize("place", ["{}/file/x", "{}/" + 100 * "x"], ids=["below a file", "too long"])
def test_without_a_place_for_sockets_nothing_is_made(
    verb: str, place: str, call: Call, config: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config.parent / "file").touch()
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", place.format(config.parent))
    called = call(verb, config)
    assert (called.code, called.out) == (2, "")
    assert "PITCHPIPE_RUNTIME_DIR" in called.err
    assert not directory.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_a_sentence(call: Call, config: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    called = call("run", config, "--dir", tmp_path / "locked")
    assert called.code == 2
    assert "cannot be made: Permission denied" in called.err


def test_an_experiment_whose_trials_all_fail_alike_ends_with_the_traceback(
    call: Call, config: Path, directory: Path
) -> None:
    config.write_text(
        config.read_text().replace("sh trial.sh", "sh fail.sh").replace("number: 4", "number: 20")
    )
    (config.parent / "fail.sh").write_text("echo 'Traceback' >&2; echo 'KeyError: lr' >&2; exit 3")
    called = call("run", config, "--experiment-id", "bad")

    assert called.code == 1
    assert "reason: the first 5 trials failed alike: KeyError: lr" in called.out
    assert "\n  Traceback\n  KeyError: lr\n" in called.out
    assert (
        "to continue after fixing the code (a changed config needs a new run): pitchpipe resume bad"
        in called.out
    )
    assert called.out.count("trials failed (") == 1


def test_an_experiment_in_which_no_trial_succeeds_is_not_a_success(
    call: Call, config: Path, directory: Path
) -> None:
    (config.parent / "trial.sh").write_text('echo "{\\"final\\": \\"no number\\"}" >> "$PITCHPIPE_REPORTS"')
    called = call("run", config, "--set", "max_trial_number=1")
    assert called.code == 1
    assert "DONE: experiment" in called.out
    assert "best: none, no trial has succeeded" in called.out


def test_a_search_whose_trials_are_all_stopped_early_is_not_a_success(
    call: Call, config: Path, directory: Path
) -> None:
    (config.parent / "trial.sh").write_text(
        'echo "{\\"intermediate\\": 5}" >> "$PITCHPIPE_REPORTS"; sleep 60'
    )
    rule = "assessor={name: Threshold, class_args: {upper: 1}}"
    called = call("run", config, "--set", rule, "--set", "max_trial_number=2")
    assert called.code == 1
    assert "best: none, all 2 trials were stopped early: use a milder assessor, or more trials" in called.out
