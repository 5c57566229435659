"""Makes the folders that later versions must continue: experiments in every state, by the version that is given.

    python tests/corpus/make.py PITCHPIPE NAME    # writes tests/corpus/NAME.tar.xz

PITCHPIPE is the command of the version; its Python lies beside it. What a version does not know, such as a tuner, is
left out. Nothing in the folders names the machine that made them: they are made in /tmp/corpus, which must not exist,
the scripts of their trials are in the configuration, and logs and the name of the manager's host are removed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

__all__ = ["HOST", "make"]

HOST = "corpus"
"""The name of the machine in the folders of killed managers."""

_BASE = Path("/tmp/corpus")
_VERSION = _BASE / "version"  # pickles name the files of their functions
_FOLDERS = _BASE / "experiments"
_HOLD = _BASE / "hold"
_PATIENCE_S = 120.0

_SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
    "kind": {"_type": "choice", "_value": ["a", "b"]},
}
# While the file is there, trials from this number on wait at this step.
_HELD = {"HOLD_FROM": "6", "HOLD_AT": "1"}
_LATE = _HELD | {"HOLD_FROM": "14"}  # models are fitted by then
_PAUSED = {"HOLD_FROM": "2", "HOLD_AT": "4", "SAVES": "1"}
_TRIAL = f"""
x=$(sed -n 's/.*"x": *\\([^,}}]*\\).*/\\1/p' "$PITCHPIPE_PARAMETERS")
y=$(sed -n 's/.*"y": *\\([^,}}]*\\).*/\\1/p' "$PITCHPIPE_PARAMETERS")
step=0
if [ -n "$PITCHPIPE_CHECKPOINT" ]; then step=$(cat "$PITCHPIPE_CHECKPOINT/step"); fi
last=${{PITCHPIPE_BUDGET:-4}}
while [ "$step" -lt "${{last%.*}}" ]; do
    echo "{{\\"intermediate\\": {{\\"default\\": $x, \\"cost\\": $y}}}}" >> "$PITCHPIPE_REPORTS"
    step=$((step + 1))
    if [ "$step" -eq "$HOLD_AT" ]; then
        while [ -e {_HOLD} ] && [ "$PITCHPIPE_SEQUENCE_ID" -ge "$HOLD_FROM" ]; do sleep 0.05; done
    fi
    if [ -z "$SAVES" ]; then continue; fi
    name="$PITCHPIPE_ATTEMPT-$step"
    mkdir "$PITCHPIPE_CHECKPOINTS/$name"
    echo "$step" > "$PITCHPIPE_CHECKPOINTS/$name/step"
    echo "{{\\"checkpoint\\": \\"$name\\"}}" >> "$PITCHPIPE_REPORTS"
done
echo "{{\\"final\\": {{\\"default\\": $x, \\"cost\\": $y}}}}" >> "$PITCHPIPE_REPORTS"
"""

_COMMON = {
    "search_space": _SPACE,
    "objectives": [{"name": "default", "direction": "minimize"}],
    "trial_command": _TRIAL,
    "trial_code_directory": "/tmp",
    "trial_environment": _HELD,
    "trial_concurrency": 1,
    "max_trial_number": 10,
    "orphan_timeout": 2,
    "seed": 1,
    "tuner": {"name": "TPE"},
    "training_service": {"platform": "local"},
}
_TWO = [{"name": "default", "direction": "minimize"}, {"name": "cost", "direction": "maximize"}]
_PACED = {"interval": 2, "generations": 3, "population_size": 4}

_TUNERS: Mapping[str, Mapping[str, Any]] = {
    "Anneal": {},
    "ASHA": {"R": 4, "eta": 2},
    "Auto": {},
    "BOHB": {"min_budget": 1, "max_budget": 4, "eta": 2},
    "CMAES": {},
    "DEHB": {"min_budget": 1, "max_budget": 4, "eta": 2},
    "DNGO": {},
    "Evolution": {"population_size": 4},
    "GP": {},
    "Hyperband": {"R": 4, "eta": 2},
    "Metis": {},
    "NSGA": {"population_size": 4},
    "Optuna": {},
    "PB2": _PACED,
    "PBT": _PACED,
    "SMAC": {},
    "TPE": {},
}

_BUDGETS = ("ASHA", "BOHB", "DEHB", "Hyperband")

_FUNCTION = """
import pitchpipe

def train(parameters):
    saved = pitchpipe.get_checkpoint()
    step = 0 if saved is None else saved.to_dict()["step"]
    while step < 4:
        step += 1
        pitchpipe.report_intermediate_result(parameters["x"] / step)
        pitchpipe.save_checkpoint({"step": step, "kept": {1, 2}})
    return parameters["x"]

if __name__ == "__main__":
    config = __import__("json").load(open("function.json"))
    stop = pitchpipe.MaximumIterationStopper(3)
    space = config.pop("search_space")
    pitchpipe.Experiment(train, space, **config, stop=stop, experiment_id="function").run()
"""

_SEARCH = """
import pitchpipe

search = pitchpipe.Search({"x": {"_type": "uniform", "_value": [0, 1]}}, folder="experiments/search", seed=1)
for _ in range(5):
    trial = search.ask()
    trial.report(0, trial.parameters["x"])
    search.tell(trial, trial.parameters["x"])
search.ask()  # and never tells
"""


class _Unknown(Exception):
    """The version does not know what an experiment uses."""


def make(command: Path, target: Path) -> None:
    """Make the folders with the command of a version, and pack them into one file."""
    _BASE.mkdir()
    _FOLDERS.mkdir()
    _VERSION.symlink_to(command.parent.parent)
    try:
        for name, making in _experiments(_VERSION / "bin" / command.name):
            try:
                making(name)
            except _Unknown as why:
                print(f"{name}: left out ({why})")
                shutil.rmtree(_FOLDERS / name, ignore_errors=True)
        for folder in _FOLDERS.iterdir():
            _scrub(folder)
        _pack(target)
    finally:
        shutil.rmtree(_BASE)


def _experiments(command: Path) -> Iterator[tuple[str, Callable[[str], None]]]:
    def done(**config: Any) -> Callable[[str], None]:
        return lambda name: _run(command, name, config)

    def stopped(**config: Any) -> Callable[[str], None]:
        return lambda name: _stop(command, name, config)

    for name, arguments in _TUNERS.items():
        held = _PAUSED if arguments is _PACED else _LATE | ({"SAVES": "1"} if name in _BUDGETS else {})
        tuner = {"name": name, "class_args": arguments}
        yield f"stopped-{name}", stopped(tuner=tuner, trial_environment=held, max_trial_number=16)
    yield "done", done()
    yield "done-two", done(objectives=_TWO)
    yield (
        "stopped-assessed",
        stopped(assessor={"name": "Medianstop", "class_args": {"start_step": 3}}, trial_concurrency=2),
    )
    yield "stopped-repeats", stopped(repeats=2)
    yield (
        "stopped-two",
        stopped(objectives=_TWO, tuner={"name": "Auto"}, trial_environment=_LATE, max_trial_number=16),
    )
    for name in ("killed-running", "killed-ended"):
        yield name, lambda name: _kill(command, name, {"trial_concurrency": 2})
    yield "function", lambda name: _python(command, _FUNCTION, name)
    yield "search", lambda name: _python(command, _SEARCH, name)


def _run(command: Path, name: str, config: Mapping[str, Any]) -> None:
    with _running(command, name, config) as process:
        _check(process, process.wait(_PATIENCE_S))


def _stop(command: Path, name: str, config: Mapping[str, Any]) -> None:
    """Make an experiment that is stopped while its trials wait, and others are done."""
    with _held(), _running(command, name, config) as process:
        _await_held(process, name)
        process.send_signal(signal.SIGINT)
        process.wait(_PATIENCE_S)


def _kill(command: Path, name: str, config: Mapping[str, Any]) -> None:
    """Make an experiment whose manager is killed while trials run: as it is then, or after they have ended."""
    folder, copy = _FOLDERS / name, _BASE / name
    with _held(), _running(command, name, config) as process:
        _await_held(process, name)
        process.kill()
        process.wait()
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.sock"))
    _await(lambda: len(_with_finals(folder)) == len(list(folder.glob("trials/*"))), "the final results")
    time.sleep(2 * _COMMON["orphan_timeout"])  # the agents wait for a manager, and leave
    if name == "killed-running":
        shutil.rmtree(folder)
        copy.rename(folder)


def _with_finals(folder: Path) -> list[Path]:
    return [spool for spool in folder.glob("trials/*/reports-1*.jsonl") if '"final"' in spool.read_text()]


def _python(command: Path, program: str, name: str) -> None:
    (_BASE / f"{name}.py").write_text(program)
    config = _COMMON | {"experiment_working_directory": str(_FOLDERS)}
    del config["trial_command"], config["training_service"]
    (_BASE / f"{name}.json").write_text(json.dumps(config | {"platform": "local"}))
    ended = subprocess.run(
        [command.with_name("python"), f"{name}.py"],
        cwd=_BASE,
        capture_output=True,
        text=True,
        check=False,
        env=_environment(command),
    )
    if ended.returncode:
        raise _Unknown(ended.stderr[-300:])


def _environment(command: Path) -> dict[str, str]:
    return {"PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(_BASE)}


@contextmanager
def _held() -> Iterator[None]:
    _HOLD.touch()
    try:
        yield
    finally:
        _HOLD.unlink()


@contextmanager
def _running(command: Path, name: str, config: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    file = _BASE / f"{name}.json"
    file.write_text(json.dumps({**_COMMON, **config}))
    words = ["run", file, "--dir", _FOLDERS, "--experiment-id", name, "--json"]
    process = subprocess.Popen(
        [command.with_name("python"), command, *words],
        cwd=_BASE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(command),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _check(process: subprocess.Popen[str], code: int) -> None:
    if code:
        raise _Unknown((process.stderr.read() if process.stderr else "")[-300:])


def _await_held(process: subprocess.Popen[str], name: str) -> None:
    """Wait until the trials that wait have reported what they report before, and it is committed."""
    config = _COMMON | json.loads((_BASE / f"{name}.json").read_text())
    held = [int(config["trial_environment"][key]) for key in ("HOLD_FROM", "HOLD_AT")]

    def is_held() -> bool:
        if process.poll() is not None:
            _check(process, process.returncode)
            raise RuntimeError(f"{name} ended before it was stopped")
        return _count(name, *held) >= config["trial_concurrency"]

    _await(is_held, name)


def _count(name: str, number: int, step: int) -> int:
    """Return how many trials from this number on have reported as many results."""
    query = "SELECT count(*) FROM metrics WHERE sequence_id >= ? AND sequence = ? - 1"
    try:
        with closing(sqlite3.connect(f"file:{_FOLDERS / name}/experiment.db?mode=ro", uri=True)) as db:
            return int(db.execute(query, (number, step)).fetchone()[0])
    except sqlite3.Error:
        return 0  # it is not made yet


def _await(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


def _scrub(folder: Path) -> None:
    """Remove what is not needed, and what names this machine."""
    for path in [folder / "logs", *folder.glob("*.sock"), *folder.glob("manager.lock")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if folder.name.startswith("stopped-") and not any(folder.glob("trials/*/checkpoints/*")):
        shutil.rmtree(folder / "trials")  # only reports that are in the database, in many small files
    info = folder / "manager.json"
    if info.exists():
        info.write_text(json.dumps(json.loads(info.read_text()) | {"host": HOST, "clock": {}}))


def _pack(target: Path) -> None:
    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(target, "w:xz", preset=9) as archive:
        archive.add(_FOLDERS, ".", filter=anonymous)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute(), Path(__file__).with_name(f"{sys.argv[2]}.tar.xz"))
