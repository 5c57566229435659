"""`pitchpipe doctor` and `pitchpipe validate --try`: one trial in a real worker."""

import json
import os
import re
import sys
import tempfile
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.verbs.doctor import Diagnosis, checks
from pitchpipe.cli.verbs.validate import Tried, forecast_lines, tried_lines
from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.private_ray import head

from .conftest import Call, Storing, make_trial

VERSION = metadata.version


def config_with(**fields: Any) -> ExperimentConfig:
    return ExperimentConfig.from_dict({"search_space": {}, "trial_command": "true", **fields})


def lines_of(tried: Tried, **fields: Any) -> list[str]:
    return [" ".join(line.split()) for line in forecast_lines(tried, config_with(**fields))]


def tried(status: str = "SUCCEEDED", seconds: float = 6.0, size: int = 2400) -> Tried:
    return Tried(
        status=status,
        seconds=seconds,
        bytes=size,
        parameters={"x": 1},
        intermediate=[0.5] * 50,
        final=0.5,
        failure="",
        last_lines="",
    )


def found(directory: Path) -> dict[str, Diagnosis]:
    return {finding.subject: finding for finding in checks(directory)}


def test_doctor_finds_nothing_wrong_and_runs_a_trial(call: Call, directory: Path) -> None:
    called = call("doctor", "--json")
    findings = {finding["subject"]: finding for finding in json.loads(called.out)}
    assert called.code == 0
    assert findings["a trial (local)"]["level"] == "ok"
    assert findings["database"]["level"] == "ok"
    assert str(directory) in findings["directory"]["text"]
    assert not directory.exists()


def test_doctor_says_which_extras_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extras = found(tmp_path)["extras"]
    installed, _, others = extras.text.partition("; not installed: ")
    assert {"ui", "pandas", "nni"} <= set(installed.removeprefix("installed: ").split(", "))
    assert (extras.level, extras.hint) == ("ok", "")
    assert "test" not in f"{installed}, {others}".split(", ")

    monkeypatch.setitem(sys.modules, "plotly", None)
    old = {"pandas": "1.5.3"}
    monkeypatch.setattr(metadata, "version", lambda name: old.get(name) or VERSION(name))
    extras = found(tmp_path)["extras"]
    installed, _, others = extras.text.partition("; not installed: ")
    assert {"ui", "pandas (pandas 1.5.3 is too old)"} <= set(others.split(", "))
    assert extras.level == "ok"
    assert re.fullmatch(r"for web pages, figures and reports: pip install 'plotly>=[\d.]+'", extras.hint)


def test_doctor_names_the_lack_of_a_place_for_sockets_and_completes_its_checks(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / "file" / "x"))
    called = call("doctor", "--json")
    levels = {finding["subject"]: finding["level"] for finding in json.loads(called.out)}
    assert called.code == 1
    assert [name for name, level in levels.items() if level == "fail"] == ["sockets", "a trial (local)"]
    assert levels["Ray"] == "warn"


def test_doctor_tells_experiments_that_lost_their_manager_or_cannot_be_read(
    stored: Storing, directory: Path
) -> None:
    stored(status="RUNNING").write("left", [])
    stored().write("torn", [])
    (directory / "torn" / "experiment.db").write_bytes(b"no database" * 100)
    finding = found(directory)["experiments"]
    assert finding.level == "warn"
    assert finding.text.startswith("without a manager: left; unreadable: torn (")
    continuing, restoring = finding.hint.split("; ")
    assert "pitchpipe resume ID" in continuing
    assert "delete ID" in restoring
    assert "resume" not in restoring


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_doctor_fails_where_nothing_can_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert found(tmp_path / "experiments")["directory"].level == "fail"


def test_doctor_fails_where_the_directory_is_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("unmounted")
    finding = found(tmp_path / "link")["directory"]
    assert (finding.level, finding.text.split()[0]) == ("fail", str(tmp_path / "link"))


def test_doctor_fails_where_sqlite_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.cli.verbs.doctor._try_database", lambda path: "delete")
    finding = found(tmp_path)["database"]
    assert (finding.level, finding.hint) == ("fail", "choose a local disk")


def test_doctor_fails_with_sockets_that_others_can_reach(tmp_path: Path, apart: Path) -> None:
    apart.mkdir(mode=0o755)
    finding = found(tmp_path)["sockets"]
    assert finding.level == "fail"
    assert "is open to others" in finding.text


def test_forecast_counts_rounds_of_concurrent_trials() -> None:
    [time, disk] = lines_of(tried(), max_trial_number=10, trial_concurrency=4)
    assert time == "time 18 s for 10 trials, 4 at a time"
    assert disk == "disk 6 kB per trial, 60 kB in all"


def test_forecast_is_a_lower_bound_for_a_trial_that_was_stopped() -> None:
    [time, disk] = lines_of(tried("SYS_CANCELED"), max_trial_number=1)
    assert time == "time more than 6.0 s for 1 trial, 1 at a time"
    assert disk.startswith("disk more than 6 kB per trial")


def test_forecast_heeds_max_experiment_duration() -> None:
    [time, _] = lines_of(tried(), max_trial_number=100, max_experiment_duration="1m")
    assert (
        time
        == "time 1 min 00 s for 100 trials, 1 at a time (max_experiment_duration ends it after 1 min 00 s)"
    )
    [time, _] = lines_of(tried(), max_experiment_duration="1m")
    assert time == "time 1 min 00 s: about 10 trials, 1 at a time"


def test_try_runs_one_trial_and_keeps_nothing(
    call: Call, config: Path, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    called = call("validate", config, "--try")
    assert called.code == 0
    assert "succeeded in" in called.out
    assert "intermediate  1, the last 0." in called.out
    assert "for 4 trials, 2 at a time" in called.out
    assert not directory.exists()
    assert list(scratch.iterdir()) == []


def test_try_runs_as_many_trials_at_a_time_as_the_experiment(call: Call, config: Path) -> None:
    script = """\
cd "$PITCHPIPE_OUTPUT_DIR/.." && touch "ran-$PITCHPIPE_SEQUENCE_ID"
until [ -e ran-0 ] && [ -e ran-1 ]; do sleep 0.01; done
echo "{\\"final\\": 1}" >> "$PITCHPIPE_REPORTS"
"""
    (config.parent / "trial.sh").write_text(script)
    called = call("validate", config, "--try")
    assert "succeeded in" in called.out, called.out


def test_try_of_a_trial_that_fails_shows_why(call: Call, config: Path) -> None:
    (config.parent / "trial.sh").write_text("echo no such data >&2; exit 3")
    called = call("validate", config, "--try")
    assert called.code == 1
    assert re.search(r"^a trial with x=\S+ failed: ", called.out, re.MULTILINE)
    assert "  no such data\n" in called.out


def test_try_stops_a_trial_after_its_seconds(call: Call, config: Path) -> None:
    (config.parent / "trial.sh").write_text("exec sleep 60")
    called = call("validate", config, "--try", "--seconds", "0.3")
    assert called.code == 0
    assert "and was stopped" in called.out
    assert "more than" in called.out


@pytest.mark.parametrize("verb", ["validate", "run"])
def test_impossible_constraint_is_named_with_its_place(
    call: Call, config: Path, directory: Path, verb: str
) -> None:
    lines = config.read_text().splitlines()
    config.write_text("\n".join([*lines, 'constraints: ["x >= 0", "x > 20"]', ""]))
    called = call(verb, config)
    assert called.code == 2
    assert f"{config}:{len(lines) + 1}:25: constraints[1]: 10000 samples in a row violate" in called.err
    assert not directory.exists()


def test_try_in_which_no_trial_ran_does_not_speak_of_a_trial() -> None:
    nothing = replace(tried("NONE"), failure="the tuner failed")
    assert [*tried_lines(nothing, config_with())] == ["no trial ran: the tuner failed"]


def test_everything_that_this_machine_lacks_is_named_with_its_place(
    call: Call, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITCHPIPE_GPUS", "")
    text = config.read_text().replace("sh trial.sh", "sh gone.sh")
    config.write_text(f"{text}trialCpuNumber: 10000\ntrial_memory_size: 400tb\ntrial_gpu_number: 1\n")
    called = call("validate", config, "--set", "trial_resources.tpu=2")
    command, cpu, memory, gpu, custom = called.err.removeprefix("error: ").splitlines()
    assert command.startswith(f"{config}:3:16: trial_command: there is no file ")
    assert cpu.startswith(f"{config}:10:17: trialCpuNumber: a trial needs 10000 CPUs, and there ")
    assert memory.startswith(f"{config}:11:20: trial_memory_size: a trial needs ")
    assert gpu.startswith(
        f"{config}:12:19: trial_gpu_number: a trial needs 1 GPU, and there is none on this machine ("
    )
    assert "pitchpipe doctor" in gpu
    assert custom == "--set trial_resources.tpu: a trial needs 2 tpu, and there is none on this machine"
    assert called.code == 1


@pytest.mark.parametrize("verb", ["validate", "run"])
def test_what_a_private_ray_cannot_have_is_named_and_starts_nothing(
    call: Call, config: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(head, "_gpus", lambda: 1.0)
    text = config.read_text().replace("platform: local", "platform: ray").replace("sh trial.sh", "sh gone.sh")
    config.write_text(f"{text}trialCpuNumber: 10000\ntrial_gpu_number: 2\ntrial_resources: {{widget: 1}}\n")
    command, cpu, gpu = call(verb, config).err.removeprefix("error: ").splitlines()
    assert command.startswith(f"{config}:3:16: trial_command: there is no file ")
    assert cpu.startswith(f"{config}:10:17: trialCpuNumber: a trial needs 10000 CPUs, and there ")
    assert gpu.startswith(
        f"{config}:11:19: trial_gpu_number: a trial needs 2 GPUs, and there is only 1 on this"
    )
    assert not directory.exists()


def test_fewer_trials_at_a_time_than_wanted_are_forecast(
    call: Call, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {4, 5}, raising=False)
    config.write_text(config.read_text() + "resources: {processes: 2}\n")
    called = call("validate", config, "--try")
    assert "  trials        1 at a time, on local (2 CPUs" in called.out
    assert "  trial_concurrency is 2, and this machine has room for 1\n" in called.out
    assert " for 4 trials, 1 at a time\n" in called.out
    for platform in ("local", "ray"):
        words = ("--set", f"training_service.platform={platform}", "--json")
        found = json.loads(call("validate", config, *words).out)
        assert (found["platform"], found["trial_concurrency"], found["at_a_time"]) == (platform, 2, 1)


@pytest.mark.usefixtures("directory", "left")
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.parametrize("verb", ["validate", "run", "create"])
def test_warm_start_of_which_nothing_fits_is_a_warning(call: Call, config: Path, verb: str) -> None:
    (config.parent / "earlier.csv").write_text("y,value\n1,2\n")
    config.write_text(f"warmStart: [earlier.csv]\n{config.read_text()}")
    called = call(verb, config)
    text = f"warning: warm start from {config.parent}/earlier.csv: 0 of 1 results fit this search space"
    assert (called.code, called.err.count(text), "warm start" in called.out) == (0, 1, False)


def test_try_needs_no_earlier_search_in_its_own_folder(call: Call, config: Path, stored: Storing) -> None:
    stored().write("old", [make_trial(0, "SUCCEEDED", {"x": 0.5}, final=0.1)])
    config.write_text(f"warmStart: [old]\n{config.read_text()}")
    called = call("validate", config, "--try")
    assert (called.code, called.out.count("warm start from old: 1 of 1 results fit")) == (0, 1), called.err


@pytest.mark.parametrize(
    ("verb", "mistake", "place"),
    [
        ("validate", "", "warmStart[0]"),
        ("run", "", "warmStart[0]"),
        ("validate", "max_trial_numbr: 3", "max_trial_numbr"),
        ("validate", "trial_cpu_number: 10000", "a trial needs"),
        ("run", "trial_cpu_number: 10000", "a trial needs"),
    ],
)
def test_warm_start_that_cannot_be_read_is_named_with_its_place_beside_other_problems(
    call: Call, config: Path, directory: Path, verb: str, mistake: str, place: str
) -> None:
    (config.parent / "earlier.csv").write_text("x,loss\n1,2\n")
    config.write_text(f"warmStart: [earlier.csv, unknown]\n{config.read_text()}{mistake}\n")
    called = call(verb, config)
    assert called.code == (1 if "cpu" in mistake else 2)
    assert place in called.err
    unusable = f"{config.parent}/earlier.csv cannot be used: no column has"
    assert f"{config}:1:13: warmStart[0]: {unusable}" in called.err
    assert f"{config}:1:26: warmStart[1]: unknown cannot be used: there is no experiment" in called.err
    assert not directory.exists()


def test_warm_start_is_sought_where_the_new_experiment_will_be(
    call: Call, config: Path, tmp_path: Path, stored: Storing
) -> None:
    elsewhere = tmp_path / "elsewhere"
    stored(directory=elsewhere).write("old", [make_trial(0, "SUCCEEDED", {"x": 0.5}, final=0.1)])
    config.write_text(f"warmStart: [old]\n{config.read_text()}max_trial_numbr: 3\n")
    assert "warmStart" not in call("run", config, "--dir", elsewhere).err
    assert "warmStart[0]: old cannot be used" in call("run", config).err


def test_config_for_a_cluster_is_not_checked_against_this_machine(call: Call, config: Path) -> None:
    text = config.read_text().replace("platform: local", "platform: ray, address: 127.0.0.1:1")
    config.write_text(f"{text}trial_gpu_number: 1\ntrial_cpu_number: 10000\n")
    assert call("validate", config).code == 0


def test_try_of_a_bad_config_starts_nothing(call: Call, config: Path) -> None:
    config.write_text(config.read_text() + "max_trial_numbr: 3\n")
    called = call("validate", config, "--try")
    assert called.code == 2
    assert "did you mean max_trial_number?" in called.err
