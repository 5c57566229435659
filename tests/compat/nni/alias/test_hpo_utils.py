"""Search spaces as flat specs, and parameters in their terms."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

from pitchpipe.compat.nni.alias.hpo_utils import (
    deformat_parameters,
    format_parameters,
    format_search_space,
    validate_search_space,
)
from pitchpipe.tuners import create

INNER = [{"_name": "a", "deep": {"_type": "qnormal", "_value": [5, 2, 1]}}, {"_name": "b"}]
CONV = {
    "_name": "conv",
    "size": {"_type": "choice", "_value": [[1, 1], [3, 3]]},
    "rate": {"_type": "qlognormal", "_value": [0, 1, 0.25]},
    "inner": {"_type": "choice", "_value": INNER},
}
SPACE: dict[str, Any] = {
    "units": {"_type": "randint", "_value": [4, 9]},
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "layer": {"_type": "choice", "_value": [{"_name": "none"}, CONV]},
    "drop": {"_type": "quniform", "_value": [0.1, 1, 0.25]},
}


def test_specs_are_flat_and_in_order() -> None:
    specs = format_search_space(SPACE)
    inside = [
        ("layer", 1, "size"),
        ("layer", 1, "rate"),
        ("layer", 1, "inner"),
        ("layer", 1, "inner", 0, "deep"),
    ]
    assert list(specs) == [("units",), ("lr",), ("layer",), *inside, ("drop",)]
    units, lr, drop, rate = (specs[key] for key in [("units",), ("lr",), ("drop",), ("layer", 1, "rate")])
    assert (units.categorical, units.size, units.low) == (True, 5, None)
    assert (lr.low, lr.high, lr.log_distributed, lr.clip) == (math.log(1e-4), 0.0, True, None)
    assert (drop.q, drop.clip, drop.normal_distributed) == (0.25, (0.1, 1.0), False)
    assert (rate.mu, rate.sigma, rate.low, rate.clip, rate.log_distributed) == (0.0, 1.0, None, None, True)


@pytest.mark.parametrize("seed", range(5))
def test_parameters_go_there_and_back(seed: int) -> None:
    tuner, specs = create("Random", seed=seed), format_search_space(SPACE)
    tuner.update_search_space(SPACE)
    for number in range(20):
        parameters = tuner.generate_parameters(number)
        formatted = format_parameters(parameters, specs)
        assert all(specs[key].is_activated_in(formatted) for key in formatted)
        back = format_parameters(deformat_parameters(formatted, specs), specs)
        assert list(back) == list(formatted)
        np.testing.assert_allclose(list(back.values()), list(formatted.values()), rtol=1e-9, atol=1e-9)


def test_numbers_are_rounded_then_moved_between_the_bounds() -> None:
    specs = format_search_space(SPACE)
    made = deformat_parameters({("units",): 2, ("lr",): math.log(0.1), ("layer",): 0, ("drop",): 0.05}, specs)
    assert made == {"units": 6, "lr": pytest.approx(0.1), "layer": {"_name": "none"}, "drop": 0.1}


def test_parameters_that_do_not_fit_are_errors() -> None:
    specs = format_search_space(SPACE)
    with pytest.raises(KeyError, match="lr"):
        format_parameters({"units": 4}, specs)
    with pytest.raises(ValueError, match="'pool' is not in list"):
        format_parameters({"units": 4, "lr": 0.1, "layer": {"_name": "pool"}}, specs)


def test_what_is_wrong_with_a_space_is_logged_or_raised(caplog: pytest.LogCaptureFixture) -> None:
    assert validate_search_space(SPACE)
    with caplog.at_level(logging.ERROR):
        assert not validate_search_space({"x": {"_type": "choic", "_value": [1]}})
    assert "search space: x._type: unknown type 'choic'" in caplog.text
    with pytest.raises(ValueError, match="the type choice is not supported; the type loguniform"):
        validate_search_space(SPACE, ["randint", "qlognormal", "qnormal", "quniform"], raise_exception=True)


def test_log_integers_and_constants_have_specs() -> None:
    space = {"units": {"_type": "lograndint", "_value": [1, 100]}, "epochs": 10}
    specs = format_search_space(space)
    flat = format_parameters({"units": 10, "epochs": 10}, specs)
    assert flat == {("units",): pytest.approx(math.log(10)), ("epochs",): 0}
    back = deformat_parameters({("units",): math.log(99.9), ("epochs",): 0}, specs)
    assert back == {"units": 99, "epochs": 10}
