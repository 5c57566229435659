"""What a trial script calls: parameters in, results out. Standard library only, imported in milliseconds.

Inside a command trial, results are appended to the spool named in the environment; inside a function trial,
they go to the agent in the same process; with neither, the script runs alone and prints what it would
report.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from math import isfinite

from .checkpoint import Checkpoint, save_folder, write_data
from .errors import MachineError
from .line_file import LineFile, note_refusal
from .variables import Variables, rank_in

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, Protocol

    from ..protocol import Parameters
    from .checkpoint import Fill, SavedState
    from .loaded_code import LoadedCode

    ReportKind = Literal["intermediate", "final"]

    class TrialChannel(Protocol):
        """Where a trial's parameters come from and its results go to."""

        experiment_id: str
        trial_id: str
        sequence_id: int
        checkpoint: str | None
        budget: float | None
        seed: int | None

        def parameters(self) -> Parameters:
            """Return the trial's parameters."""
            ...

        def report(self, kind: ReportKind, value: str) -> None:
            """Take one result as JSON text."""
            ...

        def save(self, fill: Fill) -> None:
            """Make a checkpoint of what `fill` puts into a folder."""
            ...


OWN_PROCESS = "a function trial reports from its own process, not from one that it has started"
MAX_VALUE = 900_000  # characters of JSON; a line of the spool is bounded


class TrialStopped(BaseException):
    """Raised by this module's functions in a stopped or paused function trial; let it pass or re-raise it."""


class NoRunningTrial(RuntimeError):
    """A call for a function trial that is over, or from a thread or process that does not belong to a trial."""


class StandaloneChannel:
    """A script run by hand: no parameters, and results are printed."""

    experiment_id = "STANDALONE"
    trial_id = "STANDALONE"
    sequence_id = 0
    checkpoint: str | None = None
    budget: float | None = None
    seed: int | None = None

    def __init__(self) -> None:
        self._index = 0

    def parameters(self) -> Parameters:
        """Return no parameters: the script uses its defaults."""
        return {}

    def report(self, kind: ReportKind, value: str) -> None:
        """Print the result."""
        if kind == "final":
            print(f"Final result: {value}", flush=True)
            return
        print(f"Intermediate result {self._index}: {value}", flush=True)
        self._index += 1

    def save(self, fill: Fill) -> None:
        """Write the checkpoint, so that mistakes show, print its contents and discard it."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            fill(folder)
            names = sorted(os.listdir(folder))
        print(f"Checkpoint: {', '.join(names) or 'nothing'}", flush=True)


class SpoolChannel:
    """A command trial: the parameter record is a file, results are lines appended to the spool."""

    def __init__(self, environment: os._Environ[str] | dict[str, str]) -> None:
        self.experiment_id = environment.get(Variables.EXPERIMENT_ID, "")
        self.trial_id = environment.get(Variables.TRIAL_ID, "")
        self.sequence_id = int(environment.get(Variables.SEQUENCE_ID, "0"))
        self.checkpoint = environment.get(Variables.CHECKPOINT)
        budget = environment.get(Variables.BUDGET)
        self.budget = None if budget is None else float(budget)
        seed = environment.get(Variables.SEED)
        self.seed = None if seed is None else int(seed)
        self._attempt = int(environment.get(Variables.ATTEMPT, "1"))
        self._checkpoints = environment.get(Variables.CHECKPOINTS, "checkpoints")
        self._parameters = environment.get(Variables.PARAMETERS)
        self._reports = environment[Variables.REPORTS]
        try:
            self._spool = LineFile(self._reports)
        except MachineError as error:
            note_refusal(self._reports, error)
            raise
        self._environment = environment
        self._code: LoadedCode | None = None
        if (directory := environment.get(Variables.CODE_DIRECTORY)) is not None:
            from .loaded_code import LoadedCode

            self._code = LoadedCode(directory)
            self._code.look()  # now: the files may change before the first result
        self._has_said = False
        self._has_asked = False

    def parameters(self) -> Parameters:
        """Read the parameter record written by the agent."""
        self._has_asked = True
        if self._parameters is None:
            return {}
        with open(self._parameters, encoding="utf-8") as file:
            record = file.read()
        with suppress(OSError):  # another user's file; most file systems note by themselves that it was read
            os.utime(self._parameters, ns=(time.time_ns(), os.stat(self._parameters).st_mtime_ns))
        return parameters_of(record)

    def report(self, kind: ReportKind, value: str) -> None:
        """Append one line; when this returns, it is in the file. Of several processes, only rank 0 reports."""
        if self._is_ignored():
            return
        more = "" if self._has_asked else ', "asked": false'
        if self._code is not None and (news := self._code.news()) is not None:
            more += f', "code": {json.dumps(news)}'
        self._append(f'{{"{kind}": {value}, "time": {time.time()!r}{more}}}')

    def save(self, fill: Fill) -> None:
        """Make the checkpoint, then append its name: only then does it count. Only rank 0 saves."""
        if self._is_ignored():
            return
        try:
            name = save_folder(self._checkpoints, self._attempt, fill)
        except MachineError as error:
            note_refusal(self._reports, error)
            raise
        if name is not None:
            self._append(f'{{"checkpoint": "{name}", "time": {time.time()!r}}}')

    def _append(self, line: str) -> None:
        try:
            self._spool.append(line)
        except MachineError as error:
            note_refusal(self._reports, error)
            raise

    def _is_ignored(self) -> bool:
        """Return whether this is one of several processes, and not the first; say once what that means."""
        rank = rank_in(self._environment)  # scripts set it after the first call, too
        if rank == "0":
            return False
        if not self._has_said:
            self._has_said = True
            what = f"pitchpipe: results and checkpoints of rank {rank} are ignored"
            print(f"{what}: rank 0 reports for the trial", file=sys.stderr, flush=True)
        return True


class CurrentTrial:
    """A trial: its channel, found at the first use, and its parameters.

    A process usually has one, `current`. One that calls trial functions itself has another for each of them, which
    `here` returns in the threads of that trial; `trial_threads` sets `find_trial` and `hosted`.
    """

    def __init__(self) -> None:
        self.channel: TrialChannel | None = None
        self.parameters: Parameters | None = None
        self.find_trial: Callable[[], CurrentTrial] | None = None
        self.hosted: set[CurrentTrial] = set()

    def here(self) -> CurrentTrial:
        """Return the trial of the calling thread; raise NoRunningTrial if it may be that of another one."""
        return self if self.find_trial is None else self.find_trial()

    def enter(self, channel: TrialChannel | None) -> None:
        """Make this module's functions use `channel`; with None they look for one."""
        self.channel = channel
        self.parameters = None

    def find(self) -> TrialChannel:
        """Return the trial's channel; raise NoRunningTrial in a process that a trial function has started."""
        if self.channel is None:
            _refuse_child_of_function()
            in_trial = Variables.REPORTS in os.environ
            self.channel = SpoolChannel(os.environ) if in_trial else StandaloneChannel()
        return self.channel


def _refuse_child_of_function() -> None:
    """Raise NoRunningTrial in what `multiprocessing` starts as a new Python; a script that a function runs is alone."""
    process = sys.modules.get("multiprocessing.process")
    parent = None if process is None else process.parent_process()
    if parent is not None and os.environ.get(Variables.FUNCTIONS) == str(parent.pid):
        raise NoRunningTrial(OWN_PROCESS)


current = CurrentTrial()


def get_next_parameter() -> Parameters:
    """Return the parameters of this trial as a dict; an empty one when the script runs without an experiment.

    A later call returns the same: a trial is one evaluation of one parameter set.

    >>> get_next_parameter()
    {}
    """
    trial = current.here()
    trial.parameters = trial.find().parameters()
    return trial.parameters


get_next_parameters = get_next_parameter


def get_current_parameter(tag: str | None = None) -> Any:
    """Return the last parameters that were fetched, or the one called `tag`; None before the first fetch.

    >>> get_next_parameter()
    {}
    >>> get_current_parameter()
    {}
    """
    parameters = current.here().parameters
    return parameters if tag is None or parameters is None else parameters.get(tag)


def parse_args(parser: ArgumentParser, arguments: Sequence[str] | None = None) -> Namespace:
    """Return the arguments of an argparse parser, with this trial's parameters in place of those that they name.

    `arguments` are those of the command line if not given. An argument named like a nested choice gets the name of the
    option, and the option's parameters are arguments, too. Values go through the parser's types. Raises ValueError for
    a parameter that the parser does not have.

    >>> import argparse
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--lr", type=float, default=0.1)
    >>> parse_args(parser, [])
    Namespace(lr=0.1)
    """
    from .command_arguments import parsed_with

    return parsed_with(parser, arguments, get_next_parameter())


def report_intermediate_result(metric: Any) -> None:
    """Report a result while the trial runs: a number, or a dict with a number under `default`.

    Raises TypeError when the value cannot be written as JSON.

    >>> current.enter(None)
    >>> report_intermediate_result(0.81)
    Intermediate result 0: 0.81
    """
    current.here().find().report("intermediate", metric_text(metric))


def report_final_result(metric: Any) -> None:
    """Report the result of the trial, once, at its end: a number, or a dict with a number under `default`.

    Raises TypeError when the value cannot be written as JSON.

    >>> report_final_result({"default": 0.9, "loss": 0.3})
    Final result: {"default": 0.9, "loss": 0.3}
    """
    current.here().find().report("final", metric_text(metric))


def save_checkpoint(data: SavedState | str | os.PathLike[str]) -> None:
    """Save the state from which this trial can continue: a dict, or a file or folder, which is copied.

    Report the results of an epoch before you save its checkpoint: the trial continues with the next result. Raises
    TypeError for other data, and OSError when it cannot be written; earlier checkpoints stay as they are.

    >>> save_checkpoint({"epoch": 3})
    Checkpoint: data.json
    """
    current.here().find().save(lambda folder: write_data(folder, data))


def get_checkpoint() -> Checkpoint | None:
    """Return the checkpoint from which this trial continues, None when it begins: see `path` and `to_dict()`.

    >>> saved = get_checkpoint()
    >>> epoch = saved.to_dict()["epoch"] + 1 if saved else 0
    >>> epoch
    0
    """
    path = current.here().find().checkpoint
    return None if path is None else Checkpoint(path)


def get_budget() -> float | None:
    """Return how long to train in all, in the tuner's unit (epochs, say); None when there is no such limit.

    >>> get_budget() is None
    True
    """
    return current.here().find().budget


def get_seed() -> int | None:
    """Return the seed for this run of its parameters, None if the experiment has no `repeats` with seeds.

    Repeat 0, 1, 2 ... of every configuration has the same seed, so that all are compared under the same conditions.

    >>> import random
    >>> random.seed(get_seed())
    """
    return current.here().find().seed


def get_experiment_id() -> str:
    """Return the id of the experiment.

    >>> get_experiment_id()
    'STANDALONE'
    """
    return current.here().find().experiment_id


def get_trial_id() -> str:
    """Return the id of this trial.

    >>> get_trial_id()
    'STANDALONE'
    """
    return current.here().find().trial_id


def get_sequence_id() -> int:
    """Return the number of this trial in its experiment, from 0.

    >>> get_sequence_id()
    0
    """
    return current.here().find().sequence_id


def metric_text(metric: Any) -> str:
    """Return a metric as JSON text; numpy and torch scalars become plain numbers.

    Raises TypeError for what JSON cannot express, and ValueError for more than `MAX_VALUE` characters.

    >>> metric_text({"default": 1, "loss": float("nan")})
    '{"default": 1, "loss": NaN}'
    """
    # The same text, for the usual report.
    text = repr(metric) if type(metric) is float and isfinite(metric) else _encode(metric)
    if len(text) > MAX_VALUE:
        raise ValueError(f"a result of {len(text)} characters is over the limit of {MAX_VALUE}")
    return text


def _plain(value: Any) -> Any:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        from ..protocol import scalar_item

        if not hasattr(item := scalar_item(value), "item"):  # a complex longdouble is its own
            return item
    raise TypeError(
        f"cannot report {value!r:.200}: {type(value).__name__} is neither a number nor JSON;"
        " report a number, or a dict with a number under 'default'"
    )


_encode = json.JSONEncoder(default=_plain).encode  # made once: a report costs microseconds


def parameters_of(record: str) -> Parameters:
    """Return the parameters in a parameter record (JSON text).

    >>> parameters_of('{"parameter_id": 0, "parameters": {"lr": 0.1}}')
    {'lr': 0.1}
    """
    if '"__' in record:  # a value that plain JSON cannot hold, encoded by the codec
        from ..protocol import loads

        return loads(record)["parameters"]
    return json.loads(record)["parameters"]
