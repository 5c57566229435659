"""The table of families: its orders, and what is not one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pitchpipe.protocol import dumps
from pitchpipe.store.reading import TrialQuery
from pitchpipe.store.reading.trial_query import Condition, QueryError
from pitchpipe.store.reading.view import ExperimentView

from .test_families import a_repeat

Viewing = Callable[..., ExperimentView]


@pytest.fixture
def view(view_of: Viewing) -> ExperimentView:
    """Return a view of three families of two repeats; the last one failed."""
    plan = [(0, 0.5, 4.0), (0, 0.3, 6.0), (2, 0.1, 9.0), (2, 0.2, 7.0), (4, None, None), (4, None, None)]
    trials = []
    for number, (family, value, loss) in enumerate(plan):
        end = "" if number % 2 else ("failed" if value is None else "complete")
        trial = a_repeat(number, family, number % 2, value, end)
        if loss is not None:
            trial.final = dumps({"default": value, "loss": loss})
        trials.append(trial)
    return view_of(*trials, repeats={"count": 2})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"sort": "sequence_id"}, [0, 2, 4]),
        ({"sort": "best"}, [2, 0, 4]),
        ({"sort": "value", "descending": True}, [0, 2, 4]),
        ({"sort": "default"}, [2, 0, 4]),
        ({"sort": "loss"}, [0, 2, 4]),
        ({"sort": "metrics.loss", "descending": True}, [2, 0, 4]),
        ({"sort": "lr", "descending": True}, [4, 2, 0]),
        ({"sort": "parameters.lr"}, [0, 2, 4]),
        ({"sort": "status"}, [4, 0, 2]),
        ({"sort": "best", "offset": 1, "limit": 1}, [0]),
        ({"statuses": ["FAILED"]}, [4]),
        ({"limit": 0}, []),
    ],
)
def test_families_are_sorted_and_paged(
    view: ExperimentView, asked: dict[str, object], expected: list[int]
) -> None:
    page = view.family_page(TrialQuery(**asked))  # type: ignore[arg-type]
    assert [row.sequence_id for row in page.trials] == expected
    assert page.total == (1 if "statuses" in asked else 3)


@pytest.mark.parametrize(
    "query",
    [
        TrialQuery(conditions=[Condition("value", "<", 1)]),
        TrialQuery(search="x"),
        TrialQuery(sort="tags"),
        TrialQuery(sort="nothing"),
    ],
)
def test_what_families_do_not_have_is_refused(view: ExperimentView, query: TrialQuery) -> None:
    with pytest.raises(QueryError):
        view.family_page(query)


def test_experiment_without_repeats_has_no_families(view_of: Viewing) -> None:
    assert view_of().family_page(TrialQuery(sort="best")).trials == []
