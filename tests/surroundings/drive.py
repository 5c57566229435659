"""Runs verbs one after the other in a surrounding: `python drive.py FOLDER WORDS`; the words are `run` and `resume`...

Each verb is forked from this process, which has imported the command line once, and ends like one that was typed.
`codes.json` in the folder has the exit codes, and `out-VERB` and `err-VERB` what was printed, unless stdout is closed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

IS_CLOSED = sys.stdout is None


def half(parameters: dict[str, Any]) -> float:
    """Return the result of a trial."""
    return parameters["x"] / 2


def type_in(*words: str) -> NoReturn:
    """Run a command line."""
    from pitchpipe.cli import main

    sys.argv[1:] = words
    main()
    raise AssertionError("main exits")


def run_in_python(directory: str) -> None:
    """Run an experiment without the command line."""
    import pitchpipe

    space = {"x": pitchpipe.uniform(0, 1)}
    tuner = {"name": "Random"}
    experiment = pitchpipe.Experiment(
        half, space, platform="local", tuner=tuner, max_trial_number=2, directory=directory
    )
    result = experiment.run()
    assert (result.status, result.counts) == ("DONE", {"SUCCEEDED": 2})


def forked(folder: Path, name: str, call: Callable[[], None]) -> int:
    """Return the exit code of a call in a process of its own."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not IS_CLOSED:
        for descriptor, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / f"{stream}-{name}", os.O_WRONLY | os.O_CREAT, 0o666), descriptor)
    call()
    sys.exit()


def main(folder: Path, names: list[str]) -> None:
    """Run the verbs that are named."""
    import pitchpipe.cli.app  # noqa: F401  (once for all)

    directory = str(folder / "runs")
    lines = {
        "run": ("run", str(folder / "experiment.yml"), "--experiment-id", "one"),
        "resume": ("resume", "one", "--max-trial-number", "3"),
        "list": ("list", "--json"),
        "trials": ("trials", "one", "--json"),
        "log": ("trial", "log", "one", "0"),
        "export": ("export", "one", "--output", str(folder / "one.csv")),
        "stop": ("stop", "one"),
        "doctor": ("doctor",),
        "delete": ("delete", "one", "--yes"),
    }
    codes = {}
    for name in names:
        call = (
            (lambda: run_in_python(directory))
            if name == "python"
            else (lambda words=lines[name]: type_in(*words, "--dir", directory))
        )
        codes[name] = forked(folder, name, call)
    (folder / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main(Path(os.fsdecode(os.fsencode(sys.argv[1]))), sys.argv[2:])
