"""The functions that a script calls: alone, inside a command trial, and with values of every kind."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.sdk.current_trial import MAX_VALUE, CurrentTrial, SpoolChannel, metric_text, parameters_of
from pitchpipe.sdk.line_file import LineFile
from pitchpipe.sdk.variables import rank_in
from pitchpipe.trial_agent.environ import base_environment

from ..trial_agent.client import read_spool

SCRIPT = """
import pitchpipe as p
print(p.get_current_parameter(), p.get_current_parameter("lr"))
print(p.get_next_parameter(), p.get_current_parameter(), p.get_current_parameter("lr"))
for value in (0.81, {"default": 1, "loss": 2.5}):
    p.report_intermediate_result(value)
p.report_final_result(0.9)
print(p.get_experiment_id(), p.get_trial_id(), p.get_sequence_id())
"""


def test_script_without_an_experiment_prints_what_it_would_report(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    result = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [
        "None None",
        "{} {} None",
        "Intermediate result 0: 0.81",
        'Intermediate result 1: {"default": 1, "loss": 2.5}',
        "Final result: 0.9",
        "STANDALONE STANDALONE 0",
    ]
    assert result.stderr == ""


def channel(folder: Path) -> SpoolChannel:
    (folder / "parameters.json").write_text('{"parameter_id": 0, "parameters": {"lr": 0.1}}')
    return SpoolChannel(
        {
            "PITCHPIPE_REPORTS": str(folder / "reports-1.jsonl"),
            "PITCHPIPE_PARAMETERS": str(folder / "parameters.json"),
            "PITCHPIPE_EXPERIMENT_ID": "exp",
            "PITCHPIPE_TRIAL_ID": "AbCdE",
            "PITCHPIPE_SEQUENCE_ID": "7",
        }
    )


def test_spool_channel_has_the_ids_of_the_environment_and_parameters_that_the_script_may_change(
    tmp_path: Path,
) -> None:
    found = channel(tmp_path)
    assert (found.experiment_id, found.trial_id, found.sequence_id) == ("exp", "AbCdE", 7)
    found.parameters()["lr"] = 99
    assert found.parameters() == {"lr": 0.1}


@given(st.one_of(st.floats(), st.integers(-(2**53), 2**53), st.text(), st.lists(st.floats(allow_nan=False))))
def test_reported_value_is_read_back_as_its_json_text(value: object) -> None:
    path = f"value-{os.getpid()}.jsonl"
    environment = {"PITCHPIPE_REPORTS": path}
    SpoolChannel(environment).report("final", metric_text(value))
    events = read_spool(path, "AbCdE", 1)
    assert events[-1]["value"] == json.dumps(value)
    assert events[-1]["time"] > 1_700_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numpy.longdouble(0.5), "0.5"),
        (numpy.array(numpy.longdouble(0.5)), "0.5"),
        ({"default": numpy.ma.masked}, '{"default": NaN}'),
        (numpy.float16(0.5), "0.5"),
        (numpy.array(3), "3"),
    ],
)
def test_scalar_of_numpy_is_its_number(value: object, text: str) -> None:
    assert metric_text(value) == text


@pytest.mark.parametrize("value", [numpy.clongdouble(1), numpy.complex128(1), numpy.array([1.0])])
def test_what_holds_no_number_is_refused_where_it_is_reported(value: object) -> None:
    with pytest.raises(TypeError):
        metric_text(value)


def test_enormous_value_is_refused_where_it_is_reported() -> None:
    with pytest.raises(ValueError, match="over the limit"):
        metric_text("x" * (MAX_VALUE + 1))


def test_parameters_encoded_by_the_codec_are_decoded() -> None:
    record = '{"parameters": {"w": {"__ndarray__": [1.0, 2.0], "dtype": "float64", "shape": [2]}}}'
    weights = parameters_of(record)["w"]
    assert isinstance(weights, numpy.ndarray)
    assert weights.tolist() == [1.0, 2.0]


def test_channel_of_the_environment_is_found_at_the_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = CurrentTrial()
    monkeypatch.setenv("PITCHPIPE_REPORTS", str(tmp_path / "reports.jsonl"))
    assert isinstance(current.find(), SpoolChannel)
    monkeypatch.delenv("PITCHPIPE_REPORTS")
    assert isinstance(current.find(), SpoolChannel)  # it stays what it was
    current.enter(None)
    assert current.find().trial_id == "STANDALONE"


def test_lines_of_several_writers_never_mix(tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    files = [LineFile(path) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda f=f, c=c: [f.append(c * 5000) for _ in range(100)])
        for f, c in zip(files, "abcd", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file in files:
        file.close()
    lines = Path(path).read_text().splitlines()
    assert sorted(lines) == sorted(c * 5000 for c in "abcd" * 100)


def test_full_disk_is_an_error_in_the_script() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    file = LineFile("/dev/full")
    with pytest.raises(OSError):
        file.append("x")
    file.close()


CRAMPED = """
import resource, sys
from pitchpipe.sdk.line_file import LineFile
file = LineFile(sys.argv[1])
file.append("whole")
room = lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
room(6 + 4)
try:
    file.append("a line that does not fit")
except OSError as error:
    print(error)
room(1000)
file.append("another")
"""


MPI = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_PROCID")


@pytest.mark.parametrize(
    ("ranks", "speaks"),
    [
        ({}, True),
        ({"RANK": "0", "WORLD_SIZE": "2"}, True),
        ({"RANK": "1", "WORLD_SIZE": "2"}, False),
        ({"RANK": "1"}, True),  # of something else
        # Lightning's default launcher, on one node and on two
        ({"WORLD_SIZE": "4", "NODE_RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"WORLD_SIZE": "4", "NODE_RANK": "0", "LOCAL_RANK": "2"}, False),
        ({"WORLD_SIZE": "4", "NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"RANK": "0", "WORLD_SIZE": "4", "GROUP_RANK": "0", "LOCAL_RANK": "0", "SLURM_PROCID": "1"}, True),
        *(({name: "0"}, True) for name in MPI),
        *(({name: "1"}, False) for name in MPI),
        # Slurm, in a trial and around the agent
        ({"SLURM_PROCID": "1", "SLURM_STEP_ID": "2"}, False),
        ({"SLURM_PROCID": "1", "PITCHPIPE_OUTER_LAUNCHES": "SLURM_PROCID=1"}, True),
    ],
)
def test_only_the_first_of_several_ranks_reports_and_saves(
    tmp_path: Path, ranks: dict[str, str], speaks: bool
) -> None:
    reports, checkpoints = tmp_path / "reports.jsonl", tmp_path / "checkpoints"
    checkpoints.mkdir()
    places = {"PITCHPIPE_REPORTS": str(reports), "PITCHPIPE_CHECKPOINTS": str(checkpoints)}
    channel = SpoolChannel({**places, **ranks})
    channel.report("final", "0.5")
    channel.save(lambda folder: Path(folder, "data").touch())
    assert len(reports.read_text().splitlines() if reports.exists() else []) == 2 * speaks
    assert len(list(checkpoints.iterdir())) == speaks


OUTER = {"SLURM_PROCID": "3", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "PMI_RANK": "3", "PMI_FD": "9"}


@pytest.mark.parametrize(
    ("of_trial", "rank"),
    [
        ({}, "0"),
        ({"SLURM_PROCID": "1", "SLURM_STEP_ID": "1"}, "1"),
        ({"SLURM_PROCID": "3", "SLURM_STEP_ID": "1"}, "3"),  # the same rank in another step
        ({"SLURM_PROCID": "0", "SLURM_STEP_ID": "1"}, "0"),
        ({"PMI_RANK": "2"}, "2"),
        ({"PMI_RANK": "3", "PMI_FD": "5"}, "3"),
        ({"OMPI_COMM_WORLD_RANK": "1"}, "1"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "1"),
        ({"WORLD_SIZE": "2", "NODE_RANK": "0", "LOCAL_RANK": "1"}, "1"),
    ],
)
def test_rank_of_an_agent_that_mpi_or_slurm_started_is_not_one_of_its_trial(
    of_trial: dict[str, str], rank: str
) -> None:
    outer = {**OUTER, "OMPI_COMM_WORLD_RANK": "3", "HOROVOD_RANK": "3", "RANK": "3", "WORLD_SIZE": "4"}
    base = base_environment(outer)
    assert OUTER.items() <= base.items()  # the programs of that launch need them
    assert rank_in({**base, **of_trial}) == rank


def test_rank_that_a_script_sets_after_its_first_call_counts(tmp_path: Path) -> None:
    environment = {"PITCHPIPE_REPORTS": str(tmp_path / "reports.jsonl")}
    channel = SpoolChannel(environment)
    channel.report("intermediate", "0")
    environment.update(WORLD_SIZE="2", NODE_RANK="0", LOCAL_RANK="1")
    channel.report("intermediate", "1")
    lines = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert [json.loads(line)["intermediate"] for line in lines] == [0]


def test_line_that_does_not_fit_on_the_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "reports-1.jsonl"
    line = [sys.executable, "-P", "-c", CRAMPED, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert "No space left on device" in done.stdout, done.stderr
    assert path.read_text() == "whole\nanother\n"


CARELESS = """
import os, sys
{before}
from pitchpipe import report_final_result, report_intermediate_result
report_intermediate_result(1)
{between}
mine = [open(os.path.join(sys.argv[1], str(number)), "w") for number in range(9)]
report_intermediate_result(2)
report_final_result(3)
for file in mine:
    file.close()
"""
CAREFUL = {
    "closes all": ("", "os.closerange(3, 256)"),
    "closes all and opens a pipe": ("", "os.closerange(3, 256); pipes = [os.pipe() for _ in range(9)]"),
    "puts other files there": ("", "[os.dup2(2, number) for number in range(3, 20)]"),
    "opens the same file to read it": (
        "",
        "os.closerange(3, 256); read = [os.open(os.environ['PITCHPIPE_REPORTS'], os.O_RDONLY) for _ in range(9)]",
    ),
    "changes its directory": (
        "os.environ['PITCHPIPE_REPORTS'] = os.path.relpath(os.environ['PITCHPIPE_REPORTS'])",
        "os.closerange(3, 256); os.chdir('/')",
    ),
    "prints where stdout was closed": (
        "os.closerange(0, 256); os.open('/dev/null', os.O_RDONLY)",
        "os.open('/dev/null', os.O_WRONLY); print('printed', flush=True)",
    ),
    "forks and ends": ("", "os.closerange(3, 256); os.fork() and os._exit(0)"),
}


@pytest.mark.parametrize("how", CAREFUL)
def test_reports_of_a_script_that_closes_or_replaces_descriptors_are_where_they_belong(
    tmp_path: Path, how: str
) -> None:
    before, between = CAREFUL[how]
    reports, files = tmp_path / "reports-1.jsonl", tmp_path / "files"
    files.mkdir()
    environment = {**os.environ, "PITCHPIPE_REPORTS": str(reports), "PITCHPIPE_TRIAL_ID": "AbCdE"}
    script = CARELESS.format(before=before, between=between)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script, str(files)],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.read()  # to the end of all that have it
    values = [(event["kind"], event["sequence"], event["value"]) for event in read_spool(reports, "AbCdE", 1)]
    assert values == [("intermediate", 0, "1"), ("intermediate", 1, "2"), ("final", 0, "3")]
    assert [(files / str(number)).read_bytes() for number in range(9)] == [b""] * 9


@pytest.mark.parametrize("replaced", [False, True])
def test_report_fails_if_the_file_is_gone_and_its_descriptor_closed(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "reports-1.jsonl"
    file = LineFile(str(path))
    with path.open() as agents:
        path.unlink()
        file.append("seen")
        os.close(file._descriptor)
        if replaced:
            path.touch()
        with pytest.raises(FileNotFoundError, match=r"reports-1\.jsonl"):
            file.append("unseen")
        assert agents.read() == "seen\n"
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b""] * replaced
