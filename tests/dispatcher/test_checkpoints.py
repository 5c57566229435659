"""Checkpoints of the dispatcher: when they are made, what they cover, and how one is restored."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.assessors import Assessor
from pitchpipe.dispatcher import ChannelClosed, Ending, MemoryChannel, MsgDispatcher
from pitchpipe.dispatcher.checkpointing import _HEAD, CheckpointUnusable, Saver, read_checkpoint
from pitchpipe.dispatcher.dispatcher_settings import DispatcherSettings
from pitchpipe.dispatcher.stop_rule import StopRule
from pitchpipe.protocol import CommandType, loads
from pitchpipe.tuners import RandomTuner, Tuner, create

from .conftest import Hosted, encode_exp_params

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class Counting(Assessor):
    """Judges each trial bad at its third result; knows how many it has judged."""

    def __init__(self) -> None:
        self.judged = 0

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> bool:
        self.judged += 1
        self.reason = f"verdict {self.judged}"
        return len(trial_history) < 3


class Unsaveable(RandomTuner):
    """A tuner that holds what cannot be pickled."""

    def __init__(self) -> None:
        super().__init__(seed=1)
        self.lock = threading.Lock()


def hosted(tuner: Tuner, folder: Path, worth: float = 0.0, assessor: Assessor | None = None) -> Hosted:
    """Return a dispatcher that saves itself after every command, or after none (`worth` in seconds of handling)."""
    channel = MemoryChannel()
    dispatcher = MsgDispatcher(tuner, assessor, channel, protocol=1)
    dispatcher.save_into(Saver(folder, worth=worth, spacing=0.0))
    return Hosted(dispatcher, channel)


def checkpoint(one: Hosted) -> dict[str, Any]:
    """Return the next announcement of a whole checkpoint; what comes before must be its two marks."""
    marks = {}
    while True:
        frame = one.receive()
        if frame.command is CommandType.Checkpoint:
            saved = loads(frame.payload)
            if "path" in saved:
                assert marks == {"default": saved["n"], "assessor": saved["n"]}
                return saved
            marks[saved["queue"]] = saved["n"]


def test_restored_tuner_continues_as_the_saved_one(tmp_path: Path) -> None:
    one = hosted(create("TPE", seed=3), tmp_path, assessor=Counting())
    one.send(CommandType.Initialize, SPACE)
    checkpoint(one)  # the next command begins the next one
    one.send(CommandType.RequestTrialJobs, 3)
    checkpoint(one)
    one.final(0, 0.25)
    checkpoint(one)
    one.metric("AbCdE", 0, 0.5)
    saved = checkpoint(one)
    assert saved["n"] == 4
    again = MsgDispatcher(create("TPE"), Counting(), MemoryChannel(), protocol=1)
    again.restore(*read_checkpoint(tmp_path / saved["path"]))
    other = Hosted(again, again.channel)
    assert other.expect(CommandType.Initialized)["protocol"] == 1
    answers = []
    for side in (one, other):
        side.rest()
        side.final(1, 0.5)
        for sequence in (1, 2):
            side.metric("AbCdE", sequence, 0.5)
        side.send(CommandType.RequestTrialJobs, 2)
        side.terminate()
        found = side.rest()
        answers.append(
            (
                [f.payload for f in found if f.command is CommandType.NewTrialJob],
                [f.payload for f in found if f.command is CommandType.KillTrialJob],
                max(loads(f.payload)["n"] for f in found if f.command is CommandType.Processed),
            )
        )
    assert answers[0] == answers[1]
    assert loads(answers[0][0][0])["parameter_id"] == 3
    assert loads(answers[0][1][0])["reason"] == "verdict 3"


def test_mark_of_a_queue_comes_after_what_the_queue_sent_before(tmp_path: Path) -> None:
    one = hosted(RandomTuner(seed=1), tmp_path)
    one.send(CommandType.Initialize, SPACE)
    checkpoint(one)
    one.send(CommandType.RequestTrialJobs, 1)
    saved: dict[str, Any] = {}
    names = []
    while saved.get("n", 0) < 2 or "path" not in saved:
        frame = one.receive()
        saved = loads(frame.payload) if frame.command is CommandType.Checkpoint else {}
        names.append((frame.command.name, saved.get("queue"), saved.get("n")))
    assert names.index(("NewTrialJob", None, None)) < names.index(("Checkpoint", "default", 2))
    one.terminate()


def test_nothing_is_saved_that_is_quickly_sent_again(tmp_path: Path) -> None:
    one = hosted(RandomTuner(seed=1), tmp_path, worth=100.0)
    one.send(CommandType.Initialize, SPACE)
    one.send(CommandType.RequestTrialJobs, 5)
    one.terminate()
    assert one.rest_of(CommandType.Checkpoint) == []
    assert list(tmp_path.iterdir()) == []


def test_what_took_long_is_saved_at_the_end(tmp_path: Path) -> None:
    one = hosted(RandomTuner(seed=1), tmp_path, worth=100.0)
    one.dispatcher.default_worker.handled_s = 1.0
    one.send(CommandType.Initialize, SPACE)
    one.terminate()
    saved = checkpoint(one)
    assert read_checkpoint(tmp_path / saved["path"])[0] == saved["n"] == 1


class Deaf(MemoryChannel):
    """A channel whose manager no longer reads, from the first frame of a kind on."""

    def __init__(self, first: CommandType) -> None:
        super().__init__()
        self._first, self._is_closed = first, False

    def send(self, command: CommandType, payload: str = "") -> None:
        self._is_closed = self._is_closed or command is self._first

    def flush(self) -> None:
        if self._is_closed:
            raise ChannelClosed("the manager no longer reads (Broken pipe)")


@pytest.mark.parametrize(
    ("first", "received", "ending"),
    [
        (CommandType.Initialized, (), Ending.CLOSED),
        (CommandType.Ping, (CommandType.Ping,), Ending.CLOSED),
        (CommandType.Checkpoint, (CommandType.Terminate,), Ending.TERMINATED),
    ],
)
def test_manager_that_is_gone_is_no_failure_of_a_dispatcher_that_tells_it_something(
    first: CommandType, received: tuple[CommandType, ...], ending: Ending, tmp_path: Path
) -> None:
    channel = Deaf(first)
    dispatcher = MsgDispatcher(RandomTuner(seed=1), None, channel, protocol=1)
    dispatcher.save_into(Saver(tmp_path))
    dispatcher.default_worker.handled_s = 1.0  # worth a checkpoint at the end
    dispatcher.restore(3, {queue: dispatcher.state_of(queue) for queue in ("default", "assessor")})
    for command in received:
        channel.deliver(command)
    channel.end()
    assert dispatcher.run() is ending
    assert dispatcher.worker_exceptions == []


def test_checkpoint_waits_until_the_last_one_has_paid_off() -> None:
    now = [0.0]
    saver = Saver(Path("/nonexistent"), worth=1.0, spacing=50.0, clock=lambda: now[0], effort=lambda: now[0])
    saver.begin(1, handled=1.0, halves=1)

    def slow_state() -> dict[str, Any]:
        now[0] += 0.1
        return {}

    saver._write = lambda: "a file"  # type: ignore[method-assign]
    assert saver.add("default", slow_state) == "a file"
    assert not saver.is_due(handled=1.9, now=1000.0)
    assert not saver.is_due(handled=2.0, now=5.0)
    assert saver.is_due(handled=2.0, now=5.1)


def test_checkpoint_gets_its_name_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    replace = os.replace

    def watched(source: str, target: Path) -> None:
        seen.append((target.exists(), read_checkpoint(Path(source))))
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    saver = Saver(tmp_path)
    saver.begin(7, handled=1.0, halves=1)
    assert saver.add("default", lambda: {"x": 1}) == "dispatcher-7.pkl"
    assert seen == [(False, (7, {"default": {"x": 1}}))]


def test_checkpoint_that_cannot_be_written_is_left_to_the_next(tmp_path: Path) -> None:
    now = [0.0]
    folder = tmp_path / "full"  # that it is not there is as good as a full disk
    saver = Saver(folder, worth=1.0, spacing=50.0, clock=lambda: now[0], effort=lambda: 0.0)
    saver.begin(7, handled=1.0, halves=1)
    assert saver.add("default", dict) is None
    assert saver.problem is None
    assert not saver.is_due(handled=9.0, now=9.9)
    assert saver.is_due(handled=9.0, now=10.0)
    folder.mkdir()
    saver.begin(8, handled=9.0, halves=1)
    assert saver.add("default", dict) == "dispatcher-8.pkl"


def test_tuner_that_cannot_be_pickled_is_said_once_and_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = hosted(Unsaveable(), tmp_path)
    one.send(CommandType.Initialize, SPACE)
    for _ in range(5):
        one.send(CommandType.RequestTrialJobs, 1)
    one.terminate()
    frames = one.rest()
    assert sum(frame.command is CommandType.NewTrialJob for frame in frames) == 5
    assert not any(frame.command is CommandType.Checkpoint and "path" in frame.payload for frame in frames)
    warnings = [record.message for record in caplog.records if "cannot be saved" in record.message]
    assert len(warnings) == 1
    assert "The tuner cannot be saved" in warnings[0]


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data[:-1],
        lambda data: data[:60] + b"?" + data[61:],
        lambda data: data[: len(_HEAD)] + b"00000000" + data[len(_HEAD) + 8 :],
        lambda data: b"",
        lambda data: data.replace(_HEAD, b"pitchpipe dispatcher checkpoint 9\n"),
    ],
    ids=["cut", "changed", "another checksum", "empty", "another version"],
)
def test_damaged_checkpoint_is_refused_by_name(harm: Callable[[bytes], bytes], tmp_path: Path) -> None:
    saver = Saver(tmp_path)
    saver.begin(7, 0.0, 1)
    name = saver.add("default", lambda: {"tuner": RandomTuner(seed=1)})
    assert name == "dispatcher-7.pkl"
    assert read_checkpoint(tmp_path / name)[0] == 7
    (tmp_path / name).write_bytes(harm((tmp_path / name).read_bytes()))
    with pytest.raises(CheckpointUnusable, match=name):
        read_checkpoint(tmp_path / name)


def test_what_the_dispatcher_keeps_besides_the_plug_ins_is_that_of_the_layout_in_the_file() -> None:
    """If this fails, the number in `checkpointing._HEAD` must rise: an earlier checkpoint has other names."""
    rule = StopRule({"expectedGainBelow": 0.05, "minTrials": 10}, [{"direction": "minimize"}])
    dispatcher = MsgDispatcher(RandomTuner(seed=1), Counting(), MemoryChannel(), stop_rule=rule)
    names = {queue: dispatcher.state_of(queue) for queue in ("default", "assessor")}
    assert _HEAD == b"pitchpipe dispatcher checkpoint 3\n"
    assert set(names["default"]) == {"tuner", "suggesting", "recovered", "stop_rule"}
    assert set(names["default"]["suggesting"]) == {
        "violations", "_next_id", "_parameters", "_reported", "_ids", "_held"
    }  # fmt: skip
    assert set(names["default"]["stop_rule"]) == {"_space", "_results", "_reported"}
    assert set(names["assessor"]) == {"assessor", "judging"}
    assert set(names["assessor"]["judging"]) == {"_histories", "_stopped", "_ended"}


def test_process_ends_with_3_when_its_checkpoint_is_unusable(spawn: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.pkl").write_bytes(b"nonsense")
    parameters = encode_exp_params({"tuner": {"name": "Random"}})
    command = [sys.executable, "-m", "pitchpipe.dispatcher", "--exp_params", parameters]
    one = spawn({}, command=[*command, "--restore", str(tmp_path / "bad.pkl")])
    assert one.expect(CommandType.Checkpoint) == {"unusable": "is damaged"}
    assert one.joined() == 3


def test_sign_of_life_comes_from_a_dispatcher_whose_tuner_thinks(spawn: Any, plugin_file: Any) -> None:
    text = (
        "import time\nfrom pitchpipe import Tuner\n"
        "class Slow(Tuner):\n    def update_search_space(self, space): time.sleep(600)\n"
    )
    one = spawn({"tuner": plugin_file("slow.Slow", text)})
    one.send(CommandType.Initialize, SPACE)
    one.send(CommandType.Ping)
    assert one.receive().command is CommandType.Ping
    one.process.kill()


@pytest.mark.parametrize("synced", [False, True])
def test_checkpoint_is_on_the_disk_before_it_is_announced_if_the_experiment_asks_for_it(
    synced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: forced.append(os.readlink(f"/proc/self/fd/{fd}")))
    saver = Saver(tmp_path, synced=synced)
    saver.begin(7, 1.0, 1)
    name = saver.add("default", dict)
    assert name == "dispatcher-7.pkl"
    assert forced == ([str(tmp_path / name.replace(".pkl", ".part")), str(tmp_path)] if synced else [])


def test_durability_of_the_experiment_reaches_the_dispatcher() -> None:
    tuner = {"tuner": {"name": "TPE"}}
    assert DispatcherSettings.read({**tuner, "durability": "power"}, {}).synced
    assert not DispatcherSettings.read({**tuner, "durability": "process"}, {}).synced
    assert not DispatcherSettings.read(tuner, {}).synced
