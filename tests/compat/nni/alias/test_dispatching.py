"""The dispatcher as NNI's code makes and drives it: over two files, one command after another."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from pitchpipe import Assessor, Tuner
from pitchpipe.compat.nni.alias.dispatching import (
    HyperoptTuner,
    LegacyCommandChannel,
    MsgDispatcher,
    RegularizedEvolutionTuner,
    packed_parameter,
    receive,
    send,
    set_in_file,
    set_out_file,
)
from pitchpipe.protocol import CommandType
from pitchpipe.tuners import TpeTuner


class Counting(Tuner):
    """Suggests how many results there were."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def update_search_space(self, search_space: Any) -> None:
        self.search_space = search_space

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return {"results": list(self.results)}

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.results.append((parameter_id, value, kwargs["customized"]))


class Odd(Assessor):
    """Stops trials whose last result is odd."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> bool:
        return trial_history[-1] % 2 == 0


def driven(plugins: Sequence[Any], *commands: tuple[CommandType, str]) -> tuple[MsgDispatcher, list[Any]]:
    """Run a dispatcher of a tuner and an assessor over some commands; return it and what it sent."""
    incoming, outgoing = io.BytesIO(), io.BytesIO()
    set_out_file(incoming)
    for command in commands:
        send(*command)
    incoming.seek(0)
    set_in_file(incoming)
    set_out_file(outgoing)
    dispatcher = MsgDispatcher("ws://nowhere", *plugins)
    dispatcher._channel = LegacyCommandChannel()
    dispatcher.run()
    outgoing.seek(0)
    set_in_file(outgoing)
    return dispatcher, list(iter(receive, (None, None)))


def test_tuner_answers_before_the_end_of_the_file() -> None:
    _, sent = driven(
        [Counting()],
        (CommandType.UpdateSearchSpace, "{}"),
        (CommandType.RequestTrialJobs, "1"),
        (CommandType.ReportMetricData, '{"parameter_id": 0, "type": "FINAL", "value": "5"}'),
        (CommandType.RequestTrialJobs, "1"),
    )
    records = [json.loads(payload) for _, payload in sent]
    assert [record["parameters"]["results"] for record in records] == [[], [[0, 5, False]]]
    assert [record["parameter_id"] for record in records] == [0, 1]


def test_assessor_needs_no_tuner() -> None:
    metric = '{"parameter_id": 0, "trial_job_id": "A", "type": "PERIODICAL", "sequence": 0, "value": "3"}'
    dispatcher, sent = driven([None, Odd()], (CommandType.ReportMetricData, metric))
    assert (sent, dispatcher.worker_exceptions) == ([(CommandType.KillTrialJob, '"A"')], [])


def test_command_that_a_dispatcher_does_not_handle_is_an_assertion_error() -> None:
    dispatcher, _ = driven([Counting()], (CommandType.NewTrialJob, "null"))
    error = dispatcher.worker_exceptions[0]
    assert type(error) is AssertionError
    assert str(error) == "Unsupported command: CommandType.NewTrialJob"


def test_record_of_a_trial_says_who_made_it() -> None:
    record = json.loads(packed_parameter(3, {"x": 1}, customized=True, trial_job_id="A", parameter_index=1))
    expected = {"parameter_source": "customized", "trial_job_id": "A", "parameter_index": 1}
    assert record.items() >= expected.items()


def test_hyperopt_tuner_is_ours_by_the_name_of_its_algorithm() -> None:
    assert isinstance(HyperoptTuner("tpe", "maximize"), TpeTuner)
    with pytest.raises(ValueError, match="has anneal and tpe, not 'smac'"):
        HyperoptTuner("smac")


def test_tuner_for_architectures_says_that_there_is_none() -> None:
    with pytest.raises(NotImplementedError, match="for hyper-parameters there is EvolutionTuner"):
        RegularizedEvolutionTuner(optimize_mode="maximize")
