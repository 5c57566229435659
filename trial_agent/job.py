"""What the manager asks of an agent, read from its messages: how trials run, and one attempt to run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol import CHECKPOINT_GONE
from . import environ
from .checkpoint_store import CheckpointStore, Keeping
from .spool import spool_name

__all__ = ["Job", "RunSpec"]


@dataclass(frozen=True, slots=True)
class RunSpec:
    """How the experiment's trials run: as a command or as a pickled function (`kind`).

    `grace` (s) is between SIGTERM and SIGKILL; `memory_limit` is in bytes; `orphan_timeout` (s) is how long an agent
    and its trial continue without a manager; `reuse_actors` keeps a class's instance for the next trial. `synced`:
    reports and checkpoints are forced to the disk before the manager gets them. `keeping` is sent with each start,
    not with the rest.
    """

    kind: str
    experiment: str
    folder: str
    command: str = ""
    code_directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    shell: bool = True
    path: str = ""
    grace: float = 5.0
    memory_limit: int | None = None
    orphan_timeout: float = 60.0
    reuse_actors: bool = False
    synced: bool = False
    keeping: Keeping = field(default_factory=Keeping)

    @property
    def is_function(self) -> bool:
        """Whether trials are calls of a function in the agent's own process."""
        return self.kind == "function"

    def message(self) -> dict[str, Any]:
        """Return the `configure` message that `of` reads.

        >>> RunSpec.of(RunSpec("command", "e", "/exp", "./train.sh").message()).command
        './train.sh'
        """
        run = {name: getattr(self, name) for name in _RUN_FIELDS}
        return {"op": "configure", "experiment": self.experiment, "folder": self.folder, "run": run}

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> RunSpec:
        """Read a `configure` message; raise ValueError if it asks for an unknown kind of trial.

        >>> run = {"kind": "command", "command": "./train.sh"}
        >>> RunSpec.of({"op": "configure", "experiment": "e", "folder": "/exp", "run": run}).command
        './train.sh'
        """
        run = {name: value for name, value in message["run"].items() if value is not None}
        if run["kind"] not in ("command", "function"):
            raise ValueError(f"trials are commands or functions, not {run['kind']!r}")
        known = {name: run[name] for name in _RUN_FIELDS if name in run}
        folder = os.path.abspath(message["folder"])  # trials run in other directories; paths identify them
        return cls(experiment=message["experiment"], folder=folder, **known)


_RUN_FIELDS = tuple(name for name in RunSpec.__slots__ if name not in ("experiment", "folder", "keeping"))


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt of one trial, and how to run it; `parameters` is the parameter record as JSON text.

    `checkpoint` is the path from which the attempt continues, with result number `first_sequence`. `mark` distinguishes
    the trial from a forgotten one with the same number and id.
    """

    trial: str
    attempt: int
    sequence_id: int
    parameters: str
    run: RunSpec
    first_sequence: int = 0
    gpus: Sequence[int] | None = None
    checkpoint: str | None = None
    budget: float | None = None
    keeping: Keeping = field(default_factory=Keeping)
    mark: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """The trial's id and the number of the attempt."""
        return self.trial, self.attempt

    @property
    def pauses_at_budget(self) -> bool:
        """Whether the tuner pauses the trial when it has spent its budget."""
        return self.budget is not None and json.loads(self.parameters).get("pauses_at_budget") is True

    @property
    def folder(self) -> str:
        """The trial's own folder."""
        return os.path.join(self.run.folder, "trials", str(self.sequence_id))

    @property
    def checkpoint_folder(self) -> str:
        """The folder of the trial's checkpoints."""
        return os.path.join(self.folder, "checkpoints")

    def checkpoints(self) -> CheckpointStore:
        """Return the trial's checkpoints, as this attempt sees them."""
        root = self.run.folder if self.run.synced else None
        return CheckpointStore(
            self.checkpoint_folder, self.attempt, self.keeping, self.checkpoint, synced_root=root
        )

    @property
    def spool(self) -> str:
        """The file to which a command appends its reports."""
        return os.path.join(self.folder, spool_name(self.attempt, self.mark))

    @property
    def parameters_file(self) -> str:
        """The file in which a command finds its parameter record."""
        return os.path.join(self.folder, "parameters.json")

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command: `base`, the config's additions, and the trial's paths and ids.

        >>> run = RunSpec("command", "e", "/exp", command="./train.sh", environment={"MODE": "fast"})
        >>> environment = Job("AbCdE", 1, 0, "{}", run).environment({"PATH": "/bin"})
        >>> environment["MODE"], environment["PITCHPIPE_REPORTS"]
        ('fast', '/exp/trials/0/reports-1.jsonl')
        """
        return {
            **base,
            "PYTHONUNBUFFERED": "1",  # so that the last output of a killed script is not lost
            **self.run.environment,
            **environ.visible_devices(self.gpus),
            environ.REPORTS: self.spool,
            environ.PARAMETERS: self.parameters_file,
            environ.OUTPUT_DIRECTORY: self.folder,
            environ.CHECKPOINTS: self.checkpoint_folder,
            **({} if self.checkpoint is None else {environ.CHECKPOINT: self.checkpoint}),
            **({} if self.budget is None else {environ.BUDGET: repr(self.budget)}),
            environ.EXPERIMENT_ID: self.run.experiment,
            environ.TRIAL_ID: self.trial,
            environ.ATTEMPT: str(self.attempt),
            environ.SEQUENCE_ID: str(self.sequence_id),
        }

    def check(self) -> None:
        """Raise FileNotFoundError if the checkpoint is gone: a fresh start would look like a resume."""
        if self.checkpoint is not None and not os.path.isdir(self.checkpoint):
            raise FileNotFoundError(f"{CHECKPOINT_GONE}: {self.checkpoint}")
