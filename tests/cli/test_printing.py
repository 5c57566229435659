"""Output: tables at the width of a terminal; streams that are closed, full or without a reader.

What is done is done then, and exit codes are right.
"""

import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from pitchpipe.cli import app
from pitchpipe.cli.printing import aligned
from pitchpipe.store import ExperimentFolder
from pitchpipe.store.reading import ExperimentView

from ..dispatcher_threads import dispatchers_on_threads
from ..forked_agents import NURSERY, fork_agents
from ..forked_verbs import ForkedVerb
from .conftest import QUICK, TRIAL, Call, Storing, make_trial, until

MANY = {f"parameter_{number}": number for number in range(20)}


class Verb(ForkedVerb):
    """A verb in a process whose streams are spoilt: `streams` is a word for each that is, such as `stdout:full`."""

    modules = (*ForkedVerb.modules, __name__)

    def __init__(self, folder: Path, streams: str, *words: str | Path) -> None:
        super().__init__(folder, streams, *words)


def main(words: Sequence[str]) -> None:
    """Run a verb in a process that was just forked."""
    requests, streams, *arguments = words
    for each in streams.split():
        name, _, how = each.partition(":")
        spoil(("stdin", "stdout", "stderr").index(name), how)
    NURSERY.join(socket.socket(fileno=int(requests)))
    patch = pytest.MonkeyPatch()
    dispatchers_on_threads(patch)
    fork_agents(patch)
    sys.argv[1:] = arguments
    app.main()


def spoil(descriptor: int, how: str) -> None:
    if how == "closed":
        os.close(descriptor)
        return
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(os.open("/dev/full", os.O_WRONLY) if how == "full" else writer, descriptor)
    os.close(writer)


@pytest.fixture
def run_verb(nursery: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "trial.sh").write_text(TRIAL)
    (tmp_path / "experiment.yml").write_text(QUICK.replace("number: 4", "number: 2"))
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "experiments"))

    def run_verb(streams: str, *words: str | Path) -> tuple[int, str, str]:
        verb = Verb(tmp_path, streams, *words)
        out, err = verb.communicate(60)
        return verb.wait(), out, err

    return run_verb


def state(folder: Path) -> tuple[str, int]:
    """Return the status of an experiment and how many of its trials have succeeded."""
    with ExperimentView(ExperimentFolder(folder)) as view:
        summary = view.summary()
    return summary.status, summary.counts.get("SUCCEEDED", 0)


STREAMS = [
    *("stdout:full", "stderr:gone"),
    *("stdout:full stderr:full", "stdout:gone stderr:closed"),
    *("stdout:closed stderr:full", "stdin:closed stdout:closed stderr:closed"),
]


@pytest.mark.parametrize("streams", STREAMS)
def test_experiment_ends_as_it_would_whatever_becomes_of_its_output(run_verb, tmp_path, streams):
    folder = tmp_path / "experiments"
    assert run_verb(streams, "run", tmp_path / "experiment.yml", "--experiment-id", "one")[0] == 0
    assert state(folder / "one") == ("DONE", 2)
    assert run_verb(streams, "resume", "one", "--max-trial-number", "3", "--json")[0] == 0
    assert state(folder / "one") == ("DONE", 3)
    assert run_verb(streams, "delete", "one", "--yes")[0] == 0
    assert list(folder.iterdir()) == []


def test_experiment_in_the_background_ends_as_it_would_if_its_start_cannot_be_told(run_verb, tmp_path):
    streams = "stdout:full stderr:full"
    assert run_verb(streams, "create", tmp_path / "experiment.yml", "--experiment-id", "one")[0] == 0
    until(lambda: state(tmp_path / "experiments" / "one") == ("DONE", 2))


@pytest.mark.parametrize("how", ["full", "gone", "closed"])
def test_each_of_several_experiments_is_deleted_if_that_cannot_be_told(run_verb, stored, directory, how):
    for name in ("one", "two"):
        stored().write(name, [])
    assert run_verb(f"stdout:{how}", "delete", "one", "two", "--yes")[0] == 0
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("verb", ["list", "trials first --json", "export first"])
@pytest.mark.parametrize("how", ["full", "gone", "closed"])
def test_verb_that_prints_fails_if_its_output_is_lost(run_verb, three, verb, how):
    code, _, err = run_verb(f"stdout:{how}", *verb.split())
    assert code == 1
    assert ("Bad file descriptor" in err) == (how == "closed")
    assert ("No space left on device" in err) == (how == "full")
    assert "Traceback" not in err


@pytest.mark.parametrize("how", ["full", "closed", "gone"])
def test_refusal_keeps_its_code_if_nobody_can_read_it(run_verb, tmp_path, how):
    assert run_verb(f"stderr:{how}", "run", tmp_path / "missing.yml")[0] == 2
    assert run_verb(f"stderr:{how}", "nonsense")[0] == 2


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that pretends to have a terminal of a width."""

    def terminal(width: int) -> None:
        monkeypatch.setattr("pitchpipe.cli.printing.sys", SimpleNamespace(stdout=_Terminal()))
        size = os.terminal_size((width, 24))
        monkeypatch.setattr("pitchpipe.cli.printing.shutil", SimpleNamespace(get_terminal_size=lambda: size))

    return terminal


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_very_long_cell_does_not_widen_all_rows() -> None:
    rows = [("#", "parameters", "reason"), ("0", "x" * 100_000, "bad"), *[("1", "lr=0.1", "worse")] * 50]
    lines = aligned(rows)
    assert f"  {'x' * 999}…  bad" in lines[1]
    assert max(map(len, lines)) < 1_050
    assert {line.index("worse") for line in lines[2:]} == {lines[0].index("reason")}


@pytest.mark.parametrize(("width", "has_parameters"), [(80, False), (130, True)])
def test_a_narrow_table_of_trials_keeps_status_result_and_reason(
    width: int, has_parameters: bool, terminal: Callable[[int], None], stored: Storing, call: Call
) -> None:
    failed = make_trial(1, "FAILED", MANY, reason="ValueError: the learning rate is far too big for this")
    stored().write("e1", [make_trial(0, "SUCCEEDED", MANY, 0.25), failed])
    terminal(width)
    lines = call("trials", "e1").out.splitlines()
    assert max(map(len, lines)) <= width
    assert "SUCCEEDED  0.25" in lines[1]
    assert "ValueError: the learning" in lines[2]
    assert ("parameters" in lines[0]) == ("parameter_0=0" in lines[1]) == has_parameters


def test_parameters_get_all_the_room_when_nothing_failed(
    terminal: Callable[[int], None], stored: Storing, call: Call
) -> None:
    stored().write("e1", [make_trial(0, "SUCCEEDED", MANY, 0.25)])
    terminal(80)
    line = call("trials", "e1").out.splitlines()[1]
    assert "parameter_0=0 parameter_1=1" in line
    assert len(line) <= 80
