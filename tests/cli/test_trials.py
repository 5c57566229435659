"""`pitchpipe trials`: what it selects, and in which order."""

import json

import pytest

from ..stored import results
from .conftest import Call, Storing, make_trial


def test_trials_are_sorted_filtered_and_limited(stored: Storing, call: Call) -> None:
    values = [0.3, 0.9, 0.1, 0.5]
    trials = [make_trial(n, "SUCCEEDED", None, value) for n, value in enumerate(values)]
    trials.append(make_trial(4, "FAILED", None, reason="no good", end_time=2000.0))
    stored().write("e", trials)

    def numbers(*words: str) -> list[str]:
        return [line.split()[0] for line in call("trials", "e", *words).out.splitlines()[1:]]

    assert numbers() == ["0", "1", "2", "3", "4"]
    assert numbers("--sort", "best") == ["1", "3", "0", "2", "4"]
    assert numbers("--sort", "highest", "--limit", "2") == ["1", "3"]
    assert numbers("--sort", "lowest", "--limit", "2") == ["2", "0"]
    assert numbers("--sort", "longest")[0] == "4"
    assert numbers("--sort", "latest") == ["4", "3", "2", "1", "0"]
    assert numbers("--limit", "2") == ["3", "4"]
    assert numbers("--limit", "2", "--sort", "best") == ["1", "3"]
    assert numbers("--status", "failed") == ["4"]
    assert "no good" in call("trials", "e").out
    assert "2 of 5 trials" in call("trials", "e", "--limit", "2").err
    assert numbers("--where", "value > 0.2 and status == 'SUCCEEDED' AND sequence_id != 1") == ["0", "3"]
    assert numbers("--where", "reason ~ 'no good'") == ["4"]
    listed = json.loads(call("trials", "e", "--where", "value >= 0.5", "--json", "--sort", "best").out)
    assert [(trial["sequence_id"], trial["final"]) for trial in listed] == [(1, 0.9), (3, 0.5)]


@pytest.mark.usefixtures("three")
def test_filter_without_a_hit_is_an_empty_list(call: Call) -> None:
    assert json.loads(call("trials", "first", "--where", "value > 1e9", "--json").out) == []


@pytest.fixture
def reporting(stored: Storing) -> None:
    """Store trials that report metrics beside the objective: one succeeded, one was stopped, one runs."""
    finals = {
        "default": 0.5,
        "train_loss": 0.25,
        "eval": {"acc": 0.75},
        "status": "warm",
        "a": 1,
        "b": [1, 2],
    }
    trials = [
        make_trial(0, "SUCCEEDED", {"x": 0.0, "lr": 1}, finals, values=(0.5,)),
        make_trial(1, "EARLY_STOPPED", {"x": 0.1, "lr": 2}),
        make_trial(2, "RUNNING", {"x": 0.2, "lr": 3}, end_time=None),
    ]
    metrics = [
        *results(trials[1], [{"default": 0.1, "train_loss": 0.5, "eval": {"acc": 0.5}}, {"default": 0.2}]),
        *results(trials[2], [{"default": 0.3, "train_loss": 0.125}]),
    ]
    stored().write("e", trials, metrics)


def lines_of(call: Call, *words: str) -> list[list[str]]:
    return [line.split() for line in call("trials", "e", *words).out.splitlines()]


@pytest.mark.usefixtures("reporting")
def test_metrics_are_columns_with_the_last_values(call: Call) -> None:
    shown = call("trials", "e")
    head = shown.out.splitlines()[0].split()
    metrics = ["train_loss", "eval.acc", "metrics.status"]
    assert head == ["#", "id", "status", "result", *metrics, "took", "parameters", "reason"]
    assert "a, b" in shown.err
    columns = "train_loss,eval.acc,metrics.status,b,lr,status"
    assert lines_of(call, "--columns", columns, "--sort", "train_loss") == [
        ["#", "train_loss", "eval.acc", "metrics.status", "b", "lr", "status"],
        ["2", "0.125", "3", "RUNNING"],
        ["0", "0.25", "0.75", "warm", "[1,", "2]", "1", "SUCCEEDED"],
        ["1", "0.5", "0.5", "2", "EARLY_STOPPED"],
    ]


@pytest.mark.usefixtures("reporting")
@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("train_loss", "201"),
        ("-train_loss", "102"),
        ("metrics.train_loss", "201"),
        ("-final.train_loss", "012"),
        ("eval.acc", "102"),
        ("-lr", "210"),
        ("-Trial", "210"),
        ("status", "120"),
        ("value", "012"),
        ("-value", "021"),  # without results by the last ones
        ("best", "021"),
    ],
)
def test_trials_are_sorted_by_the_headings_of_columns(call: Call, sort: str, expected: str) -> None:
    assert [line[0] for line in lines_of(call, "--sort", sort)[1:]] == list(expected)


@pytest.mark.usefixtures("reporting")
def test_conditions_take_the_headings_of_columns(call: Call) -> None:
    for condition, expected in {
        "train_loss < 0.3": "02",
        "eval.acc = 0.5 and lr > 1": "1",
        "metrics.status = warm": "0",
        "status = RUNNING": "2",
        "b = null": "12",
        "Took >= 10 and result = 0.5": "0",
    }.items():
        assert [line[0] for line in lines_of(call, "--where", condition)[1:]] == list(expected)


@pytest.mark.usefixtures("reporting")
@pytest.mark.parametrize(
    "words",
    [
        ("--sort", "train_los"),
        ("--sort", "-final.train_los"),
        ("--sort", "value.train_loss"),
        ("--where", "train_los < 1"),
        ("--columns", "status,train_los"),
    ],
)
def test_wrong_name_is_refused_with_the_near_one(call: Call, words: tuple[str, ...]) -> None:
    refused = call("trials", "e", *words)
    assert (refused.code, refused.out) == (2, "")
    assert f"{words[0]}: " in refused.err
    assert "train_loss" in refused.err.replace("'value.train_loss'", "").replace("'train_loss'", "")


@pytest.mark.usefixtures("reporting")
def test_metrics_are_in_json_and_csv(call: Call) -> None:
    listed = json.loads(call("trials", "e", "--json").out)
    assert [trial["metrics"].get("train_loss") for trial in listed] == [0.25, 0.5, 0.125]
    assert listed[1]["metrics"] == {"default": 0.2, "train_loss": 0.5, "eval.acc": 0.5}
    assert json.loads(call("trial", "show", "e", "1", "--json").out)["metrics"] == listed[1]["metrics"]
    head, _, stopped, _ = call("export", "e", "--format", "csv").out.splitlines()
    row = dict(zip(head.split(","), stopped.split(","), strict=False))
    assert (row["final.train_loss"], row["metrics.train_loss"], row["metrics.eval.acc"]) == ("", "0.5", "0.5")


@pytest.mark.usefixtures("reporting")
@pytest.mark.parametrize("words", [("--columns", ""), ("--columns", ","), ("--columns", "status", "--json")])
def test_columns_that_cannot_be_shown_are_refused(call: Call, words: tuple[str, ...]) -> None:
    assert call("trials", "e", *words).code == 2


def test_columns_are_as_wide_as_asked_with_any_name(stored: Storing, call: Call) -> None:
    names = {"a,b": 1, "x=y": 2, "select": 3, "acc@5": 4, "val loss": 5}
    stored().write("e", [make_trial(0, "SUCCEEDED", None, {"default": 0.5, **names}, values=(0.5,))])
    columns = 'metrics["a,b"],metrics["x=y"],select,acc@5,val loss,parameters,Took'
    head, line = call("trials", "e", "--columns", columns).out.splitlines()
    assert head == '#  metrics["a,b"]  metrics["x=y"]  select  acc@5  val loss  parameters  took'
    assert line.split() == ["0", "1", "2", "3", "4", "5", "x=0", "10", "s"]
    for heading, value in {'metrics["x=y"]': 2, "select": 3, "acc@5": 4, "val loss": 5}.items():
        assert len(lines_of(call, "--where", f"{heading} = {value}")) == 2


def test_trial_that_violates_a_limit_is_marked(front: None, call: Call) -> None:
    lines = [line.split() for line in call("trials", "front").out.splitlines()]
    assert lines[0][6:8] == ["front", "limits"]
    assert ["violated" in line for line in lines[1:]] == [False, True, False, False]


@pytest.mark.parametrize("where", ["front != null", "limits = violated", "# >= 0"])
def test_headings_of_the_table_are_names(front: None, call: Call, where: str) -> None:
    shown = call("trials", "front", "--where", where, "--columns", "front,limits,#").out
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["#", "front", "limits", "#"]
    marked = {"front": {"yes", "knee"}, "limits": {"violated"}}.get(where.partition(" ")[0])
    assert marked is None or all(marked & {*line} for line in lines[1:])
    whole = call("trials", "front", "--columns", "front,limits").out.splitlines()[1:]
    wanted = [line for line in whole if marked is None or marked & {*line.split()}]
    assert len(lines) - 1 == len(wanted) > 0


def test_trials_are_sorted_by_their_marks(front: None, call: Call) -> None:
    for mark in ("front", "limits"):
        lines = call("trials", "front", "--columns", mark, "--sort", mark).out.splitlines()[1:]
        texts = [line.split()[1:] for line in lines]
        assert texts == sorted(texts, key=lambda text: (not text, text))


def test_mark_that_the_table_does_not_have_is_refused(reporting: None, call: Call) -> None:
    for word in ("front", "limits"):
        assert call("trials", "e", "--columns", word).code == 2


def test_text_compared_with_a_parameter_of_numbers_is_refused(reporting: None, call: Call) -> None:
    assert call("trials", "e", "--where", 'lr < "2)"').code == 2
