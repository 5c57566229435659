"""What is sent to an agent that works in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.executors.base import RunSetup
from pitchpipe.executors.ray.care import AgentCare
from pitchpipe.executors.ray.leftovers import AgentLocation
from pitchpipe.trial_agent import Ping, RunSpec

RUN = RunSpec(
    kind="function", experiment="exp", folder="/exp", path="/exp/trial.pkl", code_directory="/home/ada"
)


@pytest.fixture
def care() -> AgentCare:
    setup = RunSetup(
        experiment_id="exp", folder=Path("/exp"), token="secret", run=RUN, concurrency=1, clock=lambda: 0.0
    )
    return AgentCare("0-0", setup, list, list)


def location(**where: str) -> AgentLocation:
    return AgentLocation(node="n", host="far", pid=1, created=0.0, **where)


def test_request_has_the_folders_of_the_agent(care: AgentCare) -> None:
    care.where = location(folder="/scratch/exp/0-0", code_directory="/ray/code")
    assert care.localized(RUN) == RunSpec(
        kind="function",
        experiment="exp",
        folder="/scratch/exp/0-0",
        path="/scratch/exp/0-0/trial.pkl",
        code_directory="/ray/code",
    )


def test_request_stays_as_it_is_for_an_agent_that_sees_the_experiments_folder(care: AgentCare) -> None:
    care.where = location()
    assert care.localized(RUN) is RUN
    assert care.localized(Ping()) == Ping()
