"""What users read when a trial's agent is lost, or a cluster or a job cannot be had."""

from __future__ import annotations

import asyncio
import contextlib
import io
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from syrupy.assertion import SnapshotAssertion

from pitchpipe.cli.app import run
from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.ray.actor_calls import reason_of
from pitchpipe.executors.ray.join import find_cluster

from ..sentences import SentencesFile, answered

CONFIG = """
search_space: {x: {_type: uniform, _value: [0, 1]}}
trial_command: python trial.py
max_trial_number: 1
tuner: Random
training_service: {platform: ray, address: auto}
"""


def of_loss(line: str) -> list[str]:
    """Return the reason of a loss, given an expression for Ray's error."""
    import ray.exceptions

    return [reason_of(eval(line, {**vars(ray.exceptions), "failed": failed()}))]


def failed() -> Exception:
    from ray.exceptions import RayTaskError

    return RayTaskError("f", "Traceback\n  ...\nKeyError: 'lr'\n", KeyError("lr"))


def of_address(line: str) -> list[str]:
    with pytest.raises(ExecutorError) as caught:
        asyncio.run(find_cluster(line))
    return [str(caught.value)]


def of_raylets(line: str) -> list[str]:
    """Return what "auto" means where raylets of these clusters run, each given as its address and folder."""
    words = [word.partition("@") for word in line.split() if word != "none"]
    commands = [["raylet", f"--gcs-address={one}", f"--session_dir={folder}/s"] for one, _, folder in words]
    running = [SimpleNamespace(name=lambda: "raylet", cmdline=command.copy) for command in commands]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setattr(psutil, "process_iter", lambda: running)
        return of_address("auto")


def of_command(line: str) -> list[str]:
    """Return the lines that a refused command writes to stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert run(shlex.split(line)) == 2
    assert out.getvalue() == ""
    return err.getvalue().splitlines()


SECTIONS: dict[str, Any] = {
    "errors of Ray": of_loss,
    "addresses": of_address,
    "raylets on this machine": of_raylets,
    "commands": of_command,
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    Path("e.yml").write_text(CONFIG)
    Path("local.yml").write_text(CONFIG.replace(", address: auto", ""))
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)
