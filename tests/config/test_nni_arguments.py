"""Arguments that algorithms had in earlier versions of NNI."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig, with_plugins_checked
from pitchpipe.config.written_for_nni import with_todays_arguments


@pytest.mark.parametrize(
    ("given", "todays"),
    [
        ({"constant_liar_type": "min"}, {"tpe_args": {"constant_liar_type": "best"}}),
        ({"constant_liar_type": "max"}, {"tpe_args": {"constant_liar_type": "worst"}}),
        ({"parallel_optimize": True}, {"tpe_args": {"constant_liar_type": "best"}}),
        ({"parallel_optimize": False, "constant_liar_type": "mean", "seed": 1}, {"seed": 1}),
        (
            {"constant_liar_type": "mean", "tpe_args": {"gamma": 0.3}},
            {"tpe_args": {"constant_liar_type": "mean", "gamma": 0.3}},
        ),
        ({"constant_liar_type": "least"}, {"constant_liar_type": "least"}),
        ({"constant_liar_type": 3}, {"constant_liar_type": 3}),
        ({"parallel_optimize": "yes"}, {"parallel_optimize": "yes"}),
        ({"constant_liar_type": "min", "tpe_args": 3}, {"constant_liar_type": "min", "tpe_args": 3}),
        ({"seed": 1}, {"seed": 1}),
    ],
)
def test_arguments_of_tpe_become_todays(given: dict[str, Any], todays: dict[str, Any]) -> None:
    for name in ("TPE", "tpe_legacy"):
        assert with_todays_arguments(name, given) == todays


def test_arguments_of_others_stay() -> None:
    given = {"parallel_optimize": True, "constant_liar_type": "min"}
    assert with_todays_arguments("Anneal", given) == with_todays_arguments(None, given) == given


def test_config_with_them_is_valid() -> None:
    arguments = {"optimize_mode": "maximize", "constant_liar_type": "min"}
    config = ExperimentConfig.from_dict(
        {
            "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trialCommand": "x",
            "tuner": {"name": "TPE", "classArgs": arguments},
        }
    )
    checked = with_plugins_checked(config)
    assert checked.tuner.class_args["tpe_args"] == {"constant_liar_type": "best"}
