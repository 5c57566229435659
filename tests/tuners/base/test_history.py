"""The ranking of results: the same whether they arrive one by one or at once."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.base.embedding import Layout
from pitchpipe.tuners.base.history import History

from ..searches import LINE

SIZES = st.lists(st.integers(1, 250), min_size=1, max_size=4)


@given(SIZES, st.integers(0, 2**32 - 1))
def test_many_results_at_once_rank_as_one_by_one(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    at_once, one_by_one = (History(Layout.of(SearchSpace.parse(LINE))) for _ in range(2))
    for history in (at_once, one_by_one):
        for _ in range(300):
            history.add(np.array([0.5]))
    for size in sizes:  # few different losses, some of trials that had one
        for row in rng.choice(300, size, replace=False).tolist():
            loss = rng.choice([0.0, 1.0, 2.0, 3.0, math.inf])
            at_once.settle(row, loss)
            one_by_one.settle(row, loss)
            assert len(one_by_one.ranked) == one_by_one.finished
        assert at_once.ranked.tolist() == one_by_one.ranked.tolist()
        assert at_once.losses.tolist() == one_by_one.losses.tolist()
