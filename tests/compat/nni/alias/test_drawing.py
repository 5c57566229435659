"""Random parameters by NNI's helpers: points of the space, each once, also in the form of its evolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pitchpipe.compat.nni.alias.drawing import Deduplicator, json2parameter, json2space, suggest
from pitchpipe.compat.nni.alias.hpo_utils import deformat_parameters, format_search_space
from pitchpipe.compat.nni.alias.utils import split_index
from pitchpipe.protocol import dumps
from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import NoMoreTrialError

OP = {"_type": "choice", "_value": ["relu", "tanh"]}
FINITE = {
    "q": {"_type": "quniform", "_value": [0, 1, 0.6]},
    "layer": {"_type": "choice", "_value": [{"_name": "A", "op": OP}, {"_name": "B"}]},
    "n": {"_type": "qloguniform", "_value": [1, 3, 1]},
}
B = {"_name": "B", "x": {"_type": "uniform", "_value": [0, 1]}}
NESTED = {"layer": {"_type": "choice", "_value": [{"_name": "A", "op": OP}, B]}}


@pytest.mark.parametrize(("space", "most"), [(FINITE, 3 * 3 * 3), (NESTED, None)])
def test_each_point_comes_once_until_there_are_no_more(space: dict[str, Any], most: int | None) -> None:
    formatted, rng = format_search_space(space), np.random.default_rng(1)
    once, seen = Deduplicator(formatted), set[str]()
    for _ in range(most or 40):
        parameters = deformat_parameters(once(suggest(rng, formatted)), formatted)
        assert not SearchSpace.parse(space).validate(parameters)
        seen.add(dumps(parameters))
    assert len(seen) == (most or 40)
    if most is not None:
        with pytest.raises(NoMoreTrialError):
            once(suggest(rng, formatted))


def test_history_counts_as_seen() -> None:
    once = Deduplicator(format_search_space({"op": OP}))
    once.add_history({("op",): 0})
    assert once({("op",): 0}) == {("op",): 1}


def test_form_of_evolution_keeps_what_is_not_drawn_again() -> None:
    state = np.random.RandomState(1)
    places = json2space(NESTED)
    layer = "root[layer]-choice"
    assert places == [layer, f"{layer}[0][op]-choice", f"{layer}[1][x]-uniform"]
    drawn = [json2parameter(NESTED, {}, state) for _ in range(20)]
    assert {one["layer"]["_index"] for one in drawn} == {0, 1}
    assert all(not SearchSpace.parse(NESTED).validate(split_index(one)) for one in drawn)
    kept = [json2parameter(NESTED, dict.fromkeys(places, False), state, one) for one in drawn]
    assert kept == drawn
