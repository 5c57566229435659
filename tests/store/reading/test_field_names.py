"""The names that users have for columns: what each means, and what is said of one that means nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pitchpipe.protocol import dumps
from pitchpipe.store.reading import TrialQuery
from pitchpipe.store.reading.field_names import ORDERS
from pitchpipe.store.reading.trial_columns import COLUMNS, TrialTable
from pitchpipe.store.reading.trial_query import Condition, QueryError
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, results

Viewing = Callable[..., ExperimentView]
GOALS = [{"name": "acc", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]


@pytest.fixture
def view(view_of: Viewing) -> ExperimentView:
    """Return a view of trials that report metrics beside two objectives, some with the names of other columns."""
    final = {"acc": 0.5, "ms": 3.0, "train_loss": 0.25, "val_loss": 1, "lr": 7, "status": "warm", "best": 2}
    point = {"lr": 0.1, "units": 16, "solver": {"_name": "sgd", "momentum": 0.9}}
    trials = [a_trial(n, parameters=point, final=dumps(final), values=(0.5, 3.0), finals=1) for n in range(2)]
    return view_of(*trials, objectives=GOALS)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("acc", "value.acc"),
        ("ms", "value.ms"),
        ("lr", "parameters.lr"),
        ("solver", "parameters.solver"),
        ("solver.momentum", "parameters.solver.momentum"),
        ("train_loss", "metrics.train_loss"),
        ("status", "status"),
        ("Trial", "sequence_id"),
        ("result", "value"),
        ("Last result", "last"),
        ("took", "duration"),
        ("Why it ended", "reason"),
        ("reason", "reason"),
        ("metrics.status", "metrics.status"),
        ('metrics["lr"]', "metrics.lr"),
        ("value.acc", "value.acc"),
        ("value", "value"),
        ("final.train_loss", "final.train_loss"),
        ("parameters.units", "parameters.units"),
    ],
)
def test_name_means_a_field(view: ExperimentView, name: str, field: str) -> None:
    assert view.field(name) == field


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("train_los", "train_loss"),
        ("metrics.train_los", "train_loss"),
        ("final.train_los", "train_loss"),
        ("value.accc", "acc"),
        ("parameters.unit", "units"),
        ("unit", "units"),
        ("durations", "duration"),
        ("value.final.train_loss", "final.train_loss"),
        ("value.train_loss", "train_loss"),
        ("value.lr", "metrics.lr"),
        ("parameters[lr]", 'parameters["lr"]'),
    ],
)
def test_what_the_refusal_of_a_name_suggests_is_a_name(view: ExperimentView, name: str, near: str) -> None:
    with pytest.raises(QueryError) as refused:
        view.field(name)
    assert near in str(refused.value).replace("?", "").partition(": ")[2].split(" ")
    assert view.field(near)


def test_name_of_an_objective_and_a_parameter_is_ambiguous(view_of: Viewing) -> None:
    view = view_of(a_trial(0, value=0.5), objectives=[{"name": "lr", "direction": "maximize"}])
    with pytest.raises(QueryError, match=r"write value\.lr or parameters\.lr"):
        view.field("lr")


def test_heading_of_a_taken_name_has_a_prefix(view: ExperimentView) -> None:
    names = view.names()
    headings = [names.heading(one.name) for one in names.beside]
    assert headings == ["train_loss", "val_loss", "metrics.lr", "metrics.status", "metrics.best"]
    assert [view.field(heading) for heading in headings] == [f"metrics.{one.name}" for one in names.beside]


def test_every_heading_and_no_order_is_a_name(view: ExperimentView) -> None:
    heads = {
        head: column
        for column in COLUMNS
        for head in (column.head, column.short_head)
        if head and column.tables & (TrialTable.PAGE | TrialTable.MENU | TrialTable.TERMINAL)
        if column.name not in ("parameters", "metrics")  # become several columns
    }
    others = {"values": "value"}
    assert {head: view.field(head) for head in heads} == {
        head: others.get(column.name, column.name) for head, column in heads.items()
    }
    assert not {*map(str.lower, heads)} & {*ORDERS}


def test_conditions_and_orders_take_names(view: ExperimentView) -> None:
    for condition in (
        "train_loss < 0.3 and lr = 0.1",
        "Took > 1 and acc = 0.5",
        "solver = sgd",
        "Trial >= 0",
    ):
        assert view.trials(TrialQuery(conditions=Condition.parse_all(condition))).total == 2
    assert [row.sequence_id for row in view.trials(TrialQuery(sort="trial", descending=True)).trials] == [
        1,
        0,
    ]
    unknown = TrialQuery(conditions=[Condition("nothing", "<", 1)])
    refusals = (
        lambda: view.trials(TrialQuery(sort="nothing")),
        lambda: view.trials(unknown),
        lambda: view.check_query(unknown),
        lambda: view.family_page(TrialQuery(sort="nothing")),
    )
    for refused in refusals:
        with pytest.raises(QueryError, match="there is no column 'nothing'"):
            refused()


def test_metrics_that_trials_begin_to_report_are_known(made: MadeExperiment) -> None:
    with ExperimentView(made.folder) as view:
        made.commit(a_trial(0, value=0.5))
        assert view.names().metrics == ()
        with pytest.raises(QueryError, match="there is no column 'loss'"):
            view.field("loss")
        trial = a_trial(1, "RUNNING")
        made.commit(trial, metrics=results(trial, [{"default": 0.5, "loss": 0.25}]))
        assert view.field("loss") == "metrics.loss"
