"""What the manager asks of an agent, read from its messages: how trials run, and one attempt to run."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from ..protocol import CHECKPOINT_GONE, foreign, loads, seed_of_repeat
from ..sdk import Variables, is_there
from . import environ
from .agent_events import AttemptFields
from .checkpoint_store import CheckpointStore
from .launcher import StartError, Team
from .messages import RunSpec, Start
from .placeholders import filled
from .spool import output_name, read_spool, spool_name


@dataclass(kw_only=True)
class Job(Start):
    """An attempt and how to run it; here `checkpoint` is the whole path."""

    run: RunSpec

    @classmethod
    def of(cls, start: Start, run: RunSpec) -> Job:
        """Return the job for a request."""
        checkpoint = None if start.checkpoint is None else os.path.join(run.folder, start.checkpoint)
        return cls(**{**vars(start), "checkpoint": checkpoint}, run=run)

    @property
    def who(self) -> AttemptFields:
        """What every event of the attempt carries."""
        return {"trial": self.trial, "attempt": self.attempt, "mark": self.mark}

    @property
    def key(self) -> tuple[str, int]:
        """The trial's id and the number of the attempt."""
        return self.trial, self.attempt

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells the attempt from another one with its key; not its checkpoint, which may be a later one by now."""
        return self.mark, self.parameters, self.first_sequence, self.budget

    @property
    def pauses_at_budget(self) -> bool:
        """Whether the tuner pauses the trial when it has spent its budget."""
        return self.budget is not None and json.loads(self.parameters).get("pauses_at_budget") is True

    @property
    def seed(self) -> int | None:
        """The seed of the trial, if it is one of several repeats with seeds."""
        return seed_of_repeat(self.parameters)

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
        folder, root = self.checkpoint_folder, self.run.folder if self.run.synced else None
        return CheckpointStore(folder, self.attempt, self.keep, self.checkpoint, synced_root=root)

    @property
    def command(self) -> str:
        """The command of the trial, with its parameters where the command asks for them; raises StartError."""
        parameters = loads(self.parameters).get("parameters") if "{" in self.run.command else {}
        try:
            return filled(self.run.command, parameters if isinstance(parameters, dict) else {})
        except ValueError as error:
            raise StartError(str(error)) from error

    @property
    def spool(self) -> str:
        """The file to which a command appends its reports."""
        return os.path.join(self.folder, spool_name(self.attempt, self.mark, self.node))

    def has_run(self, agents_spool: str | os.PathLike[str]) -> bool:
        """Return whether the attempt ran before: a command makes its spool, a function writes into its agent's."""
        if not self.run.is_function:
            return os.path.exists(self.spool)
        try:
            events = read_spool(agents_spool, *self.key, mark=self.mark)
        except FileNotFoundError:
            return False
        return any(event.e != "problem" for event in events)  # a damaged line names no attempt

    @property
    def parameters_file(self) -> str:
        """The file in which a command finds its parameter record."""
        return os.path.join(self.folder, f"parameters{self._of_node}.json")

    def log(self, name: str) -> str:
        """Return the path of an output file of the attempt: of its `stdout` or its `stderr`."""
        return os.path.join(self.folder, output_name(name, self.attempt) + self._of_node)

    @property
    def team(self) -> Team | None:
        """The processes of the trial on this node; None if the command is the only one."""
        if self.run.processes == 1:
            return None
        return Team(
            processes=self.run.processes,
            nodes=self.run.nodes,
            node=self.node,
            master=self.master,
            folder=self.folder,
            suffix=output_name("", self.attempt),
            grace=self.run.grace,
        )

    @property
    def _of_node(self) -> str:
        """What keeps the files of the other nodes apart in a shared folder."""
        return f"-node{self.node}" if self.node else ""

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command: `base`, the config's additions, and the trial's paths and ids.

        >>> run = RunSpec(kind="command", experiment="e", folder="/exp", environment={"MODE": "fast"}, threads=2)
        >>> job = Job(trial="AbCdE", attempt=1, sequence_id=0, parameters="{}", run=run)
        >>> environment = job.environment({"PATH": "/bin"})
        >>> environment["MODE"], environment["OMP_NUM_THREADS"], environment["PITCHPIPE_REPORTS"]
        ('fast', '2', '/exp/trials/0/reports-1.jsonl')
        """
        python_path = {**base, **self.run.environment}.get("PYTHONPATH")
        aliases = foreign("import alias")
        return {
            **base,
            **environ.limited_threads(self.run.threads, base, self.run.environment),
            **environ.UNBUFFERED,
            **dict(chain.from_iterable(alias.variables(self).items() for alias in aliases)),
            **self.run.environment,
            "PYTHONPATH": os.pathsep.join(filter(None, [python_path, *(alias.PATH for alias in aliases)])),
            **environ.visible_devices(self.gpus),
            Variables.REPORTS: self.spool,
            Variables.PARAMETERS: self.parameters_file,
            Variables.OUTPUT_DIRECTORY: self.folder,
            **(
                {} if self.run.code_directory is None else {Variables.CODE_DIRECTORY: self.run.code_directory}
            ),
            Variables.CHECKPOINTS: self.checkpoint_folder,
            **({} if self.checkpoint is None else {Variables.CHECKPOINT: self.checkpoint}),
            **({} if self.budget is None else {Variables.BUDGET: repr(self.budget)}),
            **({} if self.seed is None else {Variables.SEED: str(self.seed)}),
            Variables.EXPERIMENT_ID: self.run.experiment,
            Variables.TRIAL_ID: self.trial,
            Variables.ATTEMPT: str(self.attempt),
            Variables.SEQUENCE_ID: str(self.sequence_id),
        }

    def check(self) -> None:
        """Raise FileNotFoundError if the checkpoint is gone: a fresh start would look like a resume."""
        if self.checkpoint is not None and not is_there(self.checkpoint, stat.S_ISDIR):
            raise FileNotFoundError(f"{CHECKPOINT_GONE}: {self.checkpoint}")
