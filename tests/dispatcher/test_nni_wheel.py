"""The published nni 2.7, the last release that speaks over pipes: our manager's side drives its dispatcher,
and the same bytes drive ours.

The wheel is unpacked into a folder of the test's own. What it imports and is not installed here gets a
stand-in beside it, a module without contents; the captured output of the tests (`-rP`) names them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.protocol import CommandType, Frame, dumps, encode_frame, loads

from .conftest import encode_exp_params

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "size": {"_type": "choice", "_value": [16, 32, 64]},
    "drop": {"_type": "quniform", "_value": [0, 0.5, 0.1]},
    "net": {
        "_type": "choice",
        "_value": [{"_name": "flat"}, {"_name": "deep", "layers": {"_type": "randint", "_value": [1, 5]}}],
    },
}

# Stands for any module: its names are classes, its calls return nothing of interest.
STAND_IN = """
class _Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls
    def __add__(cls, other):
        return other
    def __radd__(cls, other):
        return other

class Anything(metaclass=_Meta):
    def __new__(cls, *args, **kwargs):
        return cls if cls is Anything else super().__new__(cls)
    def __init__(self, *args, **kwargs):
        pass

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything
"""


@dataclass
class Nni:
    """Where the wheel lies, and how to run its dispatcher."""

    folder: Path

    def environment(self, work: Path) -> dict[str, str]:
        return {
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(self.folder / "stand_ins")]),
            "SDK_PROCESS": "dispatcher",
            "NNI_PLATFORM": "local",
            "NNI_MODE": "start",
            "NNI_LOG_DIRECTORY": str(work),
            "NNI_CHECKPOINT_DIRECTORY": str(work),
            "NNI_CONFIG_DIR": str(work / "config"),
        }


@pytest.fixture(scope="module")
def nni(tmp_path_factory: pytest.TempPathFactory) -> Nni:
    folder = tmp_path_factory.mktemp("nni")
    command = [sys.executable, "-m", "pip", "download", "nni==2.7", "--no-deps", "--quiet"]
    platform = ["--only-binary=:all:", "--platform=manylinux1_x86_64", "--dest", str(folder)]
    try:
        got = subprocess.run([*command, *platform], capture_output=True, text=True, timeout=200)
    except subprocess.TimeoutExpired:
        pytest.skip("the wheel of nni 2.7 did not arrive in time")
    if got.returncode:
        pytest.skip(f"the wheel of nni 2.7 cannot be had: {got.stderr.strip().splitlines()[-1:]}")
    with zipfile.ZipFile(next(folder.glob("nni-2.7-*.whl"))) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("nni/")])
    return with_stand_ins(Nni(folder))


# Imports what its dispatcher does; writes a stand-in for each module that is not there, and begins again. At last,
# nni's own protocol module returns the frames that it receives: an import of it takes seconds.
IMPORT = """
import importlib, pathlib, sys
folder, text = pathlib.Path(sys.argv[1]), sys.argv[2]
for _ in range(12):
    try:
        import nni.__main__, nni.algorithms.hpo.tpe_tuner, nni.algorithms.hpo.medianstop_assessor
        break
    except ModuleNotFoundError as error:
        missing = error.name.partition(".")[0]
        (folder / f"{missing}.py").write_text(text)
        print(missing)
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.startswith("nni")]:
            del sys.modules[name]
else:
    sys.exit("more is missing")
from nni.runtime import protocol
while (frame := protocol.receive())[0] is not None:
    protocol.send(*frame)
"""
TEXTS = ["", "2", '{"name": "é€"}', "x" * 70_000]
FRAMES = b"".join(encode_frame(CommandType.ImportData, text) for text in TEXTS)


def with_stand_ins(nni: Nni) -> Nni:
    """Add a substitute for each module that nni's dispatcher imports and that is not installed."""
    folder = nni.folder / "stand_ins"
    folder.mkdir()
    (folder / "in").write_bytes(FRAMES)
    command = ["/bin/sh", "-c", 'exec "$@" 3<in 4>out', "sh", sys.executable, "-c", IMPORT, folder, STAND_IN]
    environment = {**os.environ, **nni.environment(nni.folder)}
    tried = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert tried.returncode == 0, tried.stderr
    print("stand-ins for:", *tried.stdout.split())
    return nni


@dataclass
class Recording:
    """A conversation: what was sent in each step, and what came back before the next."""

    steps: list[tuple[bytes, list[Frame]]] = field(default_factory=list)

    def answers(self) -> list[Frame]:
        return [frame for _, frames in self.steps for frame in frames]


def play(one: Any, recording: Recording) -> Recording:
    """Send the bytes of a recording, waiting after each step for as many frames as came then."""
    played = Recording()
    for data, answers in recording.steps:
        one.send_bytes(data)
        played.steps.append((data, [one.receive() for _ in answers]))
    return played


class Conversation:
    """Drives a dispatcher as a manager does, and records it."""

    def __init__(self, one: Any) -> None:
        self.one = one
        self.recording = Recording()

    def step(self, *frames: tuple[CommandType, Any], answers: int = 0) -> list[Frame]:
        data = b"".join(encode_frame(c, "" if payload is None else dumps(payload)) for c, payload in frames)
        self.one.send_bytes(data)
        got = [self.one.receive() for _ in range(answers)]
        self.recording.steps.append((data, got))
        return got

    def run_trial(self, trial: str, record: Frame, values: list[float]) -> None:
        """Record a trial from its first intermediate result to its end."""
        parameter_id = loads(record.payload)["parameter_id"]
        metrics = [metric(trial, parameter_id, "PERIODICAL", i, value) for i, value in enumerate(values)]
        end = {"trial_job_id": trial, "event": "SUCCEEDED", "hyper_params": record.payload}
        self.step(*metrics, metric(trial, parameter_id, "FINAL", 0, values[-1]))
        # Its own step after a reply: nni lets the end of a trial overtake its final result.
        self.step((CommandType.Ping, None), (CommandType.RequestTrialJobs, 1), answers=1)
        self.step((CommandType.TrialEnd, end))


def metric(trial: str, parameter_id: int, kind: str, sequence: int, value: float) -> tuple[CommandType, Any]:
    record = {"parameter_id": parameter_id, "trial_job_id": trial, "type": kind, "sequence": sequence}
    return CommandType.ReportMetricData, {**record, "value": dumps(value)}


def converse(one: Any) -> Recording:
    """Record an experiment of four trials, the last of which deserves to be stopped."""
    talk = Conversation(one)
    talk.step((CommandType.Initialize, SPACE), answers=1)
    talk.step((CommandType.ImportData, [{"parameter": POINT, "value": 0.7}]))
    trials = talk.step((CommandType.RequestTrialJobs, 3), answers=3)
    for number, record in enumerate(trials):
        talk.run_trial(f"good{number}", record, [0.8, 0.9])
    talk.step(metric("bad", 3, "PERIODICAL", 0, 0.1), answers=1)
    talk.step((CommandType.UpdateSearchSpace, SPACE), (CommandType.RequestTrialJobs, 1), answers=1)
    return talk.recording


POINT = {"lr": 0.1, "size": 32, "drop": 0.1, "net": {"_name": "flat"}}


def shape(frame: Frame) -> Any:
    """Return what two dispatchers must have in common: all but the values that a tuner draws."""
    if frame.command is not CommandType.NewTrialJob:
        return frame
    record = loads(frame.payload)
    parameters = record.pop("parameters")
    return frame.command, list(record.items()), sorted(parameters)


def test_nni_and_our_dispatcher_answer_the_same_bytes_alike(nni, spawn, tmp_path):
    arguments = {"optimize_mode": "maximize", "seed": 1}
    config = {"tuner": {"name": "TPE", "classArgs": arguments}, "assessor": {"name": "Medianstop"}}
    command = [sys.executable, "-m", "nni", "--exp_params", encode_exp_params(config)]
    theirs = spawn({}, command=command, peer=False, **nni.environment(tmp_path))
    recording = converse(theirs)
    assert theirs.terminate() == 0

    ours = spawn(config, peer=False)
    played = play(ours, recording)
    assert ours.terminate() == 0
    assert ours.rest() == []
    assert list(map(shape, played.answers())) == list(map(shape, recording.answers()))
    assert Frame(CommandType.KillTrialJob, '"bad"') in played.answers()


def test_our_frames_are_read_by_nni_and_the_other_way_round(nni):
    assert (nni.folder / "stand_ins" / "out").read_bytes() == FRAMES
