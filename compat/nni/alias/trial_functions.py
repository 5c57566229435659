"""NNI's functions for trial scripts, and the channel behind them, which a user's test or launcher can replace.

>>> class Fixed(TrialCommandChannel):
...     def receive_parameter(self): return {"parameter_id": 0, "parameters": {"lr": 0.1}}
...     def send_metric(self, type, parameter_id, trial_job_id, sequence, value): print(type, sequence, value)
>>> set_default_trial_command_channel(Fixed())
>>> get_next_parameter()
{'lr': 0.1}
>>> report_intermediate_result(0.5)
PERIODICAL 0 0.5
>>> current.enter(None)  # the next example has no channel yet
"""

from __future__ import annotations

import os

from ....sdk import StandaloneChannel, current, metric_text

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every script that imports nni imports this
if TYPE_CHECKING:
    from typing import Any

    from ....protocol import JsonObject, Parameters

_KINDS = {"intermediate": "PERIODICAL", "final": "FINAL"}


class TrialCommandChannel:
    """Where the parameters of a trial come from and its results go."""

    def receive_parameter(self) -> JsonObject | None:
        """Return the parameter record, with `parameters` and `parameter_id`; None if there is none."""
        raise NotImplementedError(f"{type(self).__name__} does not override receive_parameter")

    def send_metric(self, type: str, parameter_id: Any, trial_job_id: str, sequence: int, value: Any) -> None:
        """Take a result; the type is PERIODICAL or FINAL."""
        raise NotImplementedError(f"{self.__class__.__name__} does not override send_metric")


def get_next_parameter() -> Parameters:
    """Return the parameters of this trial, with the budget of Hyperband or BOHB as `TRIAL_BUDGET`."""
    channel = _channel()
    parameters = current.here().parameters = channel.parameters()
    if channel.budget is not None:
        budget = channel.budget
        parameters["TRIAL_BUDGET"] = int(budget) if budget == int(budget) else budget
    return parameters


def report_intermediate_result(metric: Any) -> None:
    """Report a result while the trial runs: any value that NNI takes, an array for example."""
    _channel().report("intermediate", _text(metric))


def report_final_result(metric: Any) -> None:
    """Report the result of the trial: any value that NNI takes, an array for example."""
    _channel().report("final", _text(metric))


def overwrite_intermediate_seq(value: int) -> None:
    """Set the number of the next intermediate result; in an experiment the manager counts, and this has no effect."""
    channel = _channel()
    if isinstance(channel, _OfUser):
        channel.sequence = value


def get_default_trial_command_channel() -> TrialCommandChannel:
    """Return the channel of this process."""
    channel = _channel()
    return channel.user if isinstance(channel, _OfUser) else _Own(channel)


def set_default_trial_command_channel(channel: TrialCommandChannel) -> None:
    """Let this process get its parameters from a channel, and send its results there."""
    current.here().enter(channel.own if isinstance(channel, _Own) else _OfUser(channel))


class _OfUser(StandaloneChannel):
    """A channel of NNI's kind, as the functions of a trial use it."""

    def __init__(self, user: TrialCommandChannel) -> None:
        self.user = user
        self.sequence = 0
        self.experiment_id = os.environ.get("NNI_EXP_ID", self.experiment_id)
        self.trial_id = os.environ.get("NNI_TRIAL_JOB_ID", self.trial_id)
        self._record: JsonObject | None = None

    def parameters(self) -> Parameters:
        self._record = self.user.receive_parameter()
        return {} if self._record is None else self._record["parameters"]

    def report(self, kind: str, value: str) -> None:
        from ....protocol import loads

        if self._record is None:
            self.parameters()
        self.user.send_metric(
            type=_KINDS[kind],
            parameter_id=(self._record or {}).get("parameter_id"),
            trial_job_id=self.trial_id,
            sequence=self.sequence if kind == "intermediate" else 0,
            value=loads(value),
        )
        self.sequence += kind == "intermediate"


class _Own(TrialCommandChannel):
    """The channel of an experiment's trial, as NNI's kind."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def receive_parameter(self) -> JsonObject:
        return {"parameter_id": None, "parameters": self.own.parameters()}

    def send_metric(self, type: str, parameter_id: Any, trial_job_id: str, sequence: int, value: Any) -> None:
        self.own.report("final" if type == "FINAL" else "intermediate", _text(value))


class _Standalone(TrialCommandChannel):
    """A script run by hand: no parameters, and results are logged."""

    def receive_parameter(self) -> JsonObject:
        import warnings

        what = "Running trial code without runtime. The script gets no parameters and uses its defaults."
        warnings.warn(what, RuntimeWarning, stacklevel=4)
        return {"parameter_id": None, "parameters": {}}

    def send_metric(self, type: str, parameter_id: Any, trial_job_id: str, sequence: int, value: Any) -> None:
        import logging
        import sys

        log = logging.getLogger("nni")
        log.setLevel(logging.INFO)
        if not log.hasHandlers():
            log.addHandler(logging.StreamHandler(sys.stdout))
        if type == "FINAL":
            log.info("Final result: %s", value)
        else:
            log.info("Intermediate result: %s  (Index %d)", value, sequence)


def _channel() -> Any:
    """Return the channel of this trial; for a script run by hand, one that logs as NNI does."""
    trial = current.here()
    if type(trial.find()) is StandaloneChannel:
        trial.enter(_OfUser(_Standalone()))
    return trial.find()


def _text(metric: Any) -> str:
    """Return the JSON text of a result; raise TypeError for one that cannot be written."""
    try:
        return metric_text(metric)
    except TypeError as error:
        import json

        from ....protocol import JsonError, dumps

        try:
            text = dumps(metric)
        except JsonError:
            raise error from None
        return metric_text(json.loads(text))
