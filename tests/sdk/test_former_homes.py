"""What was pickled when the sdk was a part of the agent's room still loads."""

import pickle

import pytest

import pitchpipe
from pitchpipe import sdk, trial_agent

FORMER = [
    ("checkpoint", "Checkpoint"),
    ("sdk", "TrialStopped"),
    ("sdk", "get_next_parameter"),
    ("sdk", "report_final_result"),
    ("trainable", "FunctionTrainable"),
    ("trainable", "Trainable"),
]


@pytest.mark.parametrize(("module", "name"), FORMER)
def test_pickle_that_names_the_former_home_is_the_same_object(module: str, name: str) -> None:
    former = f"cpitchpipe.trial_agent.{module}\n{name}\n."
    assert pickle.loads(former.encode()) is getattr(pitchpipe, name)


def test_names_of_scripts_are_still_in_the_room_of_the_agent() -> None:
    names = [name for name in sdk.__all__ if name in pitchpipe.__all__]
    assert len(names) > 15
    assert [name for name in names if getattr(trial_agent, name) is not getattr(sdk, name)] == []
