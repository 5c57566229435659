"""The verbs that read: they need a database and nothing that runs."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe import Search, uniform
from pitchpipe.protocol import added_record, repeated, with_family_end
from pitchpipe.runner.changes import AttemptRow, MetricRow
from pitchpipe.runner.trial import FailureKind

from ..server.made_stores import MadeExperiment, a_config, a_trial

NESTED = {"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}}


@pytest.fixture
def three(stored: Callable[..., Any], trial_of: Callable[..., Any]) -> list[Any]:
    """Three trials: one that is best, one that failed, one without any end."""
    failed = {
        "error": "Traceback\n  File ...\nValueError: too big",
        "reason": "ValueError: too big",
        "exit_code": 1,
        "kind": FailureKind.USER_ERROR,
        "failed": {"USER_ERROR": 2},
        "attempt": 2,
    }
    trials = [
        trial_of(0, "SUCCEEDED", NESTED, 0.75),
        trial_of(1, "FAILED", NESTED, **failed),
        trial_of(2, "SUCCEEDED", NESTED, 0.5),
    ]
    metrics = [
        MetricRow(trial=trials[0], attempt=1, kind="PERIODICAL", sequence=n, value=text, time=0.0)
        for n, text in enumerate(["0.5", "NaN", "0.7"])
    ]
    metrics.append(MetricRow(trial=trials[0], attempt=1, kind="FINAL", sequence=0, value="0.75", time=0.0))
    write_output(stored(name="mine").write("first", trials, metrics).trial(1), "Epoch 1\n")
    return trials


def write_output(files: Path, text: str) -> None:
    """Write what a trial printed."""
    files.mkdir(parents=True)
    (files / "stdout").write_text(text)


def test_list_shows_the_newest_first_with_the_best(
    stored: Callable[..., Any], three: list[Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(created=2000.0, status="STOPPED").write("second", [trial_of(0, "SYS_CANCELED")])
    lines = call("list").out.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["second", "STOPPED", "1", "12"],
        ["first", "DONE", "3", "0.75"],
    ]
    assert lines[2].endswith("mine")


def test_list_shows_a_copy_by_the_name_of_its_folder(
    directory: Path, three: list[Any], call: Callable[..., Any]
) -> None:
    shutil.copytree(directory / "first", directory / "copied")
    assert {found["id"] for found in json.loads(call("list", "--json").out)} == {"first", "copied"}
    assert call("status", "copied").code == 0


def test_list_as_json_has_numbers(three: list[Any], call: Callable[..., Any]) -> None:
    (found,) = json.loads(call("list", "--json").out)
    assert (found["id"], found["best"], found["counts"]) == ("first", 0.75, {"SUCCEEDED": 2, "FAILED": 1})
    assert found["running"] is False


def test_list_continues_over_a_database_that_cannot_be_read(
    directory: Path, three: list[Any], call: Callable[..., Any]
) -> None:
    (directory / "broken").mkdir()
    (directory / "broken" / "experiment.db").write_bytes(b"rubbish" * 1000)
    called = call("list")
    assert called.code == 0
    assert "UNREADABLE" in called.out
    assert "first" in called.out


def test_list_of_an_empty_directory_is_a_sentence(directory: Path, call: Callable[..., Any]) -> None:
    called = call("list")
    assert (called.code, called.out) == (0, f"there are no experiments in {directory}\n")


def test_status_tells_best_failures_and_folder(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
    called = call("status")
    lines = called.out.splitlines()
    assert called.err == f"experiment first (the newest in {directory})\n"
    assert lines[0] == "experiment first (mine): DONE"
    assert "trials: 3 of 10 (2 succeeded, 1 failed)" in lines
    assert "best: 0.75 (trial 0, T0000)" in lines
    assert [line for line in lines if "momentum" in line] == ["  solver.momentum  0.9"]
    failure = "trial 1 failed (USER_ERROR, exit code 1, 2 attempts): ValueError: too big (pitchpipe trial log first 1)"
    at = lines.index(failure)
    assert lines[at - 1 : at + 3] == [
        "run again: 1 USER_ERROR attempt",
        failure,
        "  Traceback",
        "    File ...",
    ]
    assert lines[-1] == f"everything is in {directory / 'first'}"


def test_status_as_json_is_the_object_of_run(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
    assert json.loads(call("status", "first", "--json").out) == {
        "id": "first",
        "status": "DONE",
        "folder": str(directory / "first"),
        "counts": {"SUCCEEDED": 2, "FAILED": 1},
        "best": {"trial_id": "T0000", "sequence_id": 0, "value": 0.75, "parameters": NESTED},
        "failures": [
            {"trials": 1, "kind": "USER_ERROR", "reason": "ValueError: too big", "first_sequence_id": 1}
        ],
        "retries": {"USER_ERROR": 1},
        "running": False,
    }


def test_status_shows_what_is_closest_to_the_defaults(directory: Path, call: Callable[..., Any]) -> None:
    defaults = {"lr": 0.5, "units": 16}
    experiment = MadeExperiment(directory / "near", a_config(defaults=defaults, keep_close=True), "DONE")
    experiment.commit(
        a_trial(0, value=1.0, parameters=defaults, source="defaults"),
        a_trial(1, value=0.01, parameters={"lr": 0.6, "units": 16}),
        a_trial(2, value=0.0, parameters={"lr": 0.1, "units": 32}),
    )
    lines = call("status", "near").out.splitlines()
    assert "closest to your defaults: trial 1, 0.01 (best: 0, trial 2); changes: lr 0.5 -> 0.6" in lines
    found = json.loads(call("status", "near", "--json").out)["closest_to_defaults"]
    assert (found["trial"]["trial_id"], found["trial"]["value"]) == ("T0001", 0.01)
    assert found["changes"] == [{"parameter": "lr", "default": 0.5, "value": 0.6}]
    assert [change["parameter"] for change in found["best_changes"]] == ["lr", "units"]


def test_best_of_several_objectives_is_a_list(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "size", "direction": "minimize"}]
    finals = [{"default": 0.9, "size": 10.0}, {"default": 0.8, "size": 5.0}, {"default": 0.7, "size": 7.0}]
    stored(objectives=objectives).write(
        "two", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    best = json.loads(call("status", "two", "--json").out)["best"]
    assert [(one["sequence_id"], one["value"]) for one in best] == [(0, finals[0]), (1, finals[1])]


FRONT = [
    {"name": "loss", "direction": "minimize", "reference": 5.0},
    {"name": "f1", "direction": "maximize", "reference": 0.0},
    {"name": "ms", "constraint": "<= 20"},
]


@pytest.fixture
def front(stored: Callable[..., Any], trial_of: Callable[..., Any]) -> None:
    """Three trials on a front, one that violates a limit."""
    values = [(4.0, 0.9, 5.0), (0.0, 1.0, 21.0), (2.0, 0.8, 20.0), (1.0, 0.1, 1.0)]
    finals = [dict(zip(("loss", "f1", "ms"), each, strict=True)) for each in values]
    stored(objectives=FRONT).write("front", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)])


def test_end_of_a_long_front_names_the_command_for_the_rest(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": float(n), "f1": 0.05 * n, "ms": 1.0} for n in range(12)]
    stored(objectives=FRONT).write("long", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)])
    (line,) = (line for line in call("status", "long").out.splitlines() if " more: " in line)
    head, _, command = line.partition(": pitchpipe ")
    assert head == "  and 2 more"
    shown = call(*shlex.split(command)).out.splitlines()
    assert len(shown) == 1 + 12


def test_status_shows_the_front_its_volume_its_knee_and_the_limits(
    front: None, call: Callable[..., Any]
) -> None:
    lines = call("status", "front").out.splitlines()
    first = lines.index("best: 3 trials on the Pareto front") + 1
    assert [line.split()[:4] for line in lines[first : first + 4]] == [
        ["trial", "loss", "f1", "ms"],
        ["3", "1", "0.1", "1"],
        ["2", "2", "0.8", "20"],
        ["0", "4", "0.9", "5"],
    ]
    assert (
        "front: 3 trials, hypervolume 2.6 (from the reference point loss 5, f1 0); the knee is trial 2"
        in lines
    )
    assert "limits: ms <= 20; 1 trial violates them" in lines
    found = json.loads(call("status", "front", "--json").out)
    assert found["front"] == {
        "trials": [0, 2, 3],
        "knee": 2,
        "hypervolume": pytest.approx(2.6),
        "reference": {"loss": 5.0, "f1": 0.0},
        "infeasible": [1],
        "limits": {"ms": "<= 20"},
        "closest": None,
    }
    assert [one["value"] for one in found["best"]] == [
        {"loss": 1.0, "f1": 0.1},
        {"loss": 2.0, "f1": 0.8},
        {"loss": 4.0, "f1": 0.9},
    ]
    assert json.loads(call("export", "front").out)["experiment"]["front"]["knee"] == 2


def test_list_has_the_results_of_one_trial_of_the_front(front: None, call: Callable[..., Any]) -> None:
    assert "loss 2, f1 0.8 (one of 3 on the front)" in call("list").out
    assert json.loads(call("list", "--json").out)[0]["best"] == {"loss": 2.0, "f1": 0.8}


def test_table_of_trials_has_the_limited_metrics(front: None, call: Callable[..., Any]) -> None:
    assert any("0 1 21" in " ".join(line.split()) for line in call("trials", "front").out.splitlines())


@pytest.mark.parametrize(("by", "number"), [("knee", 2), ("loss", 3), ("f1", 0)])
def test_best_by_chooses_one_trial_of_the_front(
    front: None, call: Callable[..., Any], by: str, number: int
) -> None:
    lines = call("status", "front", "--best-by", by).out.splitlines()
    (best,) = [line for line in lines if line.startswith("best:")]
    assert f"(trial {number}, " in best


def test_front_without_a_knee_is_not_taken_for_failure(directory: Path, call: Callable[..., Any]) -> None:
    made = MadeExperiment(directory / "single", a_config(objectives=FRONT[:2]), "DONE")
    made.commit(a_trial(0, final="{}", values=(1.0, 0.5)))
    made.store.close()
    lines = call("status", "single", "--best-by", "knee").out.splitlines()
    assert "best: none, the front has no knee" in lines
    assert any(line.startswith("front: 1 trial, ") for line in lines)


def test_best_by_has_the_gain_of_the_whole_front(directory: Path, call: Callable[..., Any]) -> None:
    made = MadeExperiment(
        directory / "gains", a_config(objectives=FRONT[:2], defaults={"lr": 0, "units": 16}), "DONE"
    )
    finals = [(4.0, 0.5), (2.0, 0.8), (1.0, 0.7)]
    sources = ("defaults", "algorithm", "algorithm")
    made.commit(*(a_trial(n, final="{}", values=finals[n], source=sources[n]) for n in range(3)))
    made.store.close()
    gain = "2 of the 2 best trials beat the defaults (loss 4, f1 0.5, trial 0) in every objective"
    for words in ((), ("--best-by", "loss")):
        assert gain in call("status", "gains", *words).out.splitlines()


def test_further_kinds_of_failures_are_counted_with_the_command_that_lists_them(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    letters = "abcdefgg"
    failed = [
        trial_of(n, "FAILED", reason=f"no {letter}", kind=FailureKind.USER_ERROR)
        for n, letter in enumerate(letters)
    ]
    stored().write("many", failed)
    lines = call("status", "many").out.splitlines()
    assert "2 more trials failed in 2 other ways (pitchpipe trials many --status FAILED)" in lines
    assert call("trials", "many", "--status", "FAILED").code == 0


def test_best_by_refuses_what_is_not_optimised(front: None, call: Callable[..., Any]) -> None:
    called = call("status", "front", "--best-by", "ms")
    assert called.code == 2
    assert "--best-by: 'ms' is not an objective to choose the best by: use loss or f1 or knee" in called.err


def test_trial_that_violates_a_limit_has_no_rank(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": 0.1, "ms": 30.0}, {"loss": 0.3, "ms": 12.0}, {"loss": 0.2, "ms": 10.0}]
    stored(objectives=[FRONT[0], FRONT[2]]).write(
        "ranked", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    said = [
        [line.strip() for line in call("trial", "show", "ranked", n, "--why").out.splitlines()[1:]]
        for n in range(3)
    ]
    assert said == [
        ["Its results are loss 0.1, ms 30.", "It violates the limits ms <= 20, and is never the best."],
        ["Its results are loss 0.3, ms 12: rank 2 of 2 that keep the limits."],
        ["Its results are loss 0.2, ms 10: the best of 2 that keep the limits."],
    ]


def test_trial_closest_to_the_limits_is_not_called_best(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": 0.1, "ms": 30.0}, {"loss": 0.2, "ms": 25.0}]
    stored(objectives=[FRONT[0], FRONT[2]]).write(
        "far", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    lines = call("status", "far").out.splitlines()
    at = lines.index("best: none, no trial keeps the limits (closest: trial 1)")
    assert lines[at + 1] == "  trial 1 has loss 0.2, ms 25"
    assert "limits: ms <= 20; 2 trials violate them" in lines
    found = json.loads(call("status", "far", "--json").out)
    assert (found["best"], found["front"]["closest"]) == (None, 1)
    assert (
        "It violates the limits ms <= 20, and is never the best."
        in call("trial", "show", "far", "0", "--why").out
    )


def test_status_of_an_experiment_without_its_manager_says_how_to_continue(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(status="RUNNING").write("gone", [trial_of(0, "RUNNING", end_time=None)])
    assert call("status", "gone").out.splitlines()[0] == (
        "experiment gone: RUNNING, but its manager is gone: pitchpipe resume gone"
    )
    assert "RUNNING (manager gone)" in call("list").out


def test_status_of_an_experiment_with_a_manager_is_running(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    folder = stored(status="RUNNING").write("alive", [])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "create_time": psutil.Process().create_time()}
    (folder.path / "manager.json").write_text(json.dumps(me))
    assert call("status", "alive").out.splitlines()[0] == "experiment alive: RUNNING"
    found = json.loads(call("status", "alive", "--json").out)
    assert (found["running"], found["pid"]) == (True, os.getpid())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"status": "STOPPED"}, "to continue: pitchpipe resume e"),
        (
            {"status": "ERROR"},
            "to continue after fixing the code (a changed config needs a new run): pitchpipe resume e",
        ),
        ({"status": "DONE"}, None),
        ({"status": "VIEWED"}, None),
        ({"status": "RUNNING"}, None),  # the manager is gone: the first line says it
        ({"status": "STOPPED", "more": {}}, None),  # a search, which its own program continues
    ],
)
def test_status_says_how_to_continue_what_can_be_continued(
    stored: Callable[..., Any], call: Callable[..., Any], fields: dict[str, Any], told: str | None
) -> None:
    folder = stored(**fields).write("e", [])
    assert call("status", "e").out.splitlines()[-1] == (told or f"everything is in {folder.path}")


def test_status_of_a_stopped_experiment_whose_manager_still_ends_does_not_say_how_to_continue(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    folder = stored(status="STOPPED").write("e", [])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "create_time": psutil.Process().create_time()}
    (folder.path / "manager.json").write_text(json.dumps(me))
    assert "to continue" not in call("status", "e").out


def test_status_of_a_failed_experiment_shows_reason_and_traceback(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(status="ERROR", reason="the tuner raised", error="Traceback\nKeyError: 3").write("bad", [])
    out = call("status", "bad").out
    assert "reason: the tuner raised\n  Traceback\n  KeyError: 3\n" in out
    assert "best: none, there are no trials" in out


def test_trials_are_sorted_filtered_and_limited(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    values = [0.3, 0.9, 0.1, 0.5]
    trials = [trial_of(n, "SUCCEEDED", None, value) for n, value in enumerate(values)]
    trials.append(trial_of(4, "FAILED", None, reason="no good", end_time=2000.0))
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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--where", "lr"], "--where: 'lr' is not a condition: write FIELD < VALUE"),
        (["--where", "lr < 1"], "--where: "),
        (["--where", "parameters.width < 1"], "no trial has a parameter 'width': there are "),
        (["--limit", "-1"], "'-1' is not a whole number of at least 0"),
        (["--limit", "many"], "'many' is not a whole number of at least 0"),
        (["--families", "--json"], "--families lists configurations: give it without --where and --json"),
    ],
)
@pytest.mark.usefixtures("three")
def test_trials_refuses_what_it_cannot_select(words: list[str], why: str, call: Callable[..., Any]) -> None:
    called = call("trials", "first", *words)
    assert (called.code, why in called.err) == (2, True), called.err


@pytest.mark.usefixtures("three")
def test_filter_without_a_hit_says_of_how_many(call: Callable[..., Any]) -> None:
    assert call("trials", "first", "--where", "value > 1e9").out == "none of 3 trials matches\n"
    assert json.loads(call("trials", "first", "--where", "value > 1e9", "--json").out) == []


def test_list_of_a_folder_that_does_not_exist_says_so(tmp_path: Path, call: Callable[..., Any]) -> None:
    called = call("list", "--dir", tmp_path / "none", "--json")
    assert (called.code, json.loads(called.out)) == (0, [])
    assert called.err == f"there is no folder {tmp_path / 'none'}\n"
    assert call("list", "--dir", tmp_path, "--json").err == ""


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (
            ["CUDA out of memory at width 55", "CUDA out of memory at width 302"],
            ", such as: CUDA out of memory at width 55",
        ),
        (["exit code 3", "exit code 3"], ": exit code 3"),
    ],
)
def test_reason_with_its_own_numbers_is_one_of_several(
    reasons: list[str],
    said: str,
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    trials = [
        trial_of(n, "FAILED", reason=reason, kind="OOM", exit_code=3) for n, reason in enumerate(reasons)
    ]
    stored().write("e", trials)
    assert "2 trials failed (OOM" in (out := call("status", "e").out)
    assert f"){said} (" in out


def test_trial_log_names_the_ranks_that_there_are(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    folder = stored().write("e", [trial_of(0, "SUCCEEDED", final=0.5)])
    folder.trial(0).mkdir(parents=True)
    for name in ("stdout", "stderr", "stdout-rank1", "reports-1-ab.jsonl"):
        (folder.trial(0) / name).touch()
    refused = call("trial", "log", "e", 0, "--rank", 5)
    assert (refused.code, refused.err) == (
        1,
        "error: trial 0 (T0000) has no output of rank 5: it has ranks 0 and 1\n",
    )


def test_best_trials_keep_the_limits(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    pairs = [(0.3, 20.0), (0.9, 30.0), (0.5, 3.0), (0.8, 21.0)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("default", "ms"), pair, strict=True)))
        for n, pair in enumerate(pairs)
    ]
    trials.append(trial_of(4, "FAILED", None))
    limited = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
    stored(objectives=limited).write("e", trials)
    lines = call("trials", "e", "--sort", "best").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["2", "0", "3", "1", "4"]


def test_best_trials_of_several_objectives_are_the_front_and_have_named_columns(
    front: None, call: Callable[..., Any], stored: Callable[..., Any], trial_of: Callable[..., Any]
) -> None:
    values = [(4.0, 0.9), (1.0, 0.5), (1.5, 0.4), (2.0, 0.8)]  # trial 2 is dominated by trial 1
    finals = [dict(zip(("loss", "f1"), each, strict=True)) for each in values]
    stored(objectives=FRONT[:2]).write("e", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)])
    head, *lines = call("trials", "e", "--sort", "best").out.splitlines()
    assert head.split() == ["#", "id", "status", "loss", "f1", "front", "took", "parameters", "reason"]
    assert [line.split()[0] for line in lines] == ["1", "3", "0", "2"]
    assert [line.split()[5] for line in lines[:3]] == ["yes", "knee", "yes"]
    assert lines[3].split()[5:7] == ["10", "s"]  # how long the one that is not on the front took
    assert lines[0].split()[3:5] == ["1", "0.5"]

    def numbers(order: str) -> list[str]:
        return [line.split()[0] for line in call("trials", "e", "--sort", order).out.splitlines()[1:]]

    assert numbers("value.f1") == ["2", "1", "3", "0"]
    assert numbers("-value.loss") == ["0", "3", "2", "1"]
    wrong = call("trials", "e", "--sort", "value.ms")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--sort: there is no objective 'ms': write value.loss or value.f1" in wrong.err
    assert "'value' is not one of" in call("trials", "e", "--sort", "value").err
    for metric in ("f1", "-f1"):
        said = call("trials", "e", "--sort", metric).err
        assert "To sort by a metric, write value.f1 or -value.f1." in said
    assert "write value.f1 for a metric, " in call("trials", "e", "--where", "f1 < 3").err


def test_best_families_of_several_objectives_are_the_front(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    values = [(4.0, 0.9), (1.5, 0.4), (1.0, 0.5)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("loss", "f1"), each, strict=True)))
        for n, each in enumerate(values)
    ]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, number, 0, 40), "complete")
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=FRONT[:2], more=repeats).write("e", trials)
    for words in (["--families"], []):
        lines = call("trials", "e", "--sort", "best", *words).out.splitlines()[1:]
        assert [line.split()[0] for line in lines] == ["2", "0", "1"]


def test_family_closest_to_the_limits_has_its_mean_though_its_first_trial_failed(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    far = {"loss": 0.2, "ms": 25.0}
    trials = [trial_of(0, "FAILED", kind=FailureKind.USER_ERROR), trial_of(1, "SUCCEEDED", None, far)]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, 0, number, 40 + number), "complete")
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=[FRONT[0], FRONT[2]], more=repeats).write("e", trials)
    lines = call("status", "e").out.splitlines()
    at = lines.index("best: none, no family keeps the limits (closest: family 0)")
    assert lines[at + 1] == "  family 0 has loss 0.2, ms 25"


@pytest.mark.parametrize("words", [[], ["--families"]])
def test_best_of_those_that_violate_limits_is_the_closest_to_them(
    words: list[str], stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    # Two limits: the excesses are relative to each, and added.
    values = [(0.1, 40.0, 1.0), (0.2, 5.0, 0.5), (0.3, 24.0, 0.9), (0.4, 22.0, 0.5)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("loss", "ms", "mb"), each, strict=True)))
        for n, each in enumerate(values)
    ]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, number, 0, 40), "complete")
    objectives = [FRONT[0], FRONT[2], {"name": "mb", "constraint": ">= 1"}]
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=objectives, more=repeats).write("e", trials)
    lines = call("trials", "e", "--sort", "best", *words).out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["2", "1", "3", "0"]


def test_region_where_most_trials_fail_is_named(directory: Path, call: Callable[..., Any]) -> None:
    experiment = MadeExperiment(directory / "oom", status="DONE")
    good = [a_trial(n, value=0.5) for n in range(8)]
    experiment.commit(*good, *(a_trial(n, "FAILED", kind=FailureKind.OOM) for n in range(8, 14)))
    lines = call("status", "oom").out.splitlines()
    assert "most trials with lr above 0.7 fail (out of memory); the search avoids them" in lines


@pytest.mark.parametrize("word", ["1", "T0001"])
def test_trial_show_tells_a_trial_by_number_or_id(
    word: str, three: list[Any], call: Callable[..., Any]
) -> None:
    lines = call("trial", "show", "first", word).out.splitlines()
    assert lines[0] == "trial         1 (T0001) of experiment first"
    assert "reason        ValueError: too big" in lines
    assert "exit code     1" in lines
    assert "  ValueError: too big" in lines


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("defaults", ["from          your defaults"]),
        ("initial", ["from          your initial_points"]),
        ("warm_start", ["from          the warm start: among the best of an earlier search"]),
        ("customized", ["from          a user: added to the search"]),
    ],
)
def test_trial_show_tells_who_chose_the_parameters(
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
    source: Any,
    told: list[str],
) -> None:
    own, proposed = trial_of(0, "SUCCEEDED", None, 0.5), trial_of(1, "SUCCEEDED", None, 0.5)
    own.record = added_record({"x": 0.5}, source)
    stored().write("e", [own, proposed])
    shown = [call("trial", "show", "e", number).out.splitlines() for number in (0, 1)]
    assert [[line for line in lines if line.startswith("from ")] for lines in shown] == [told, []]


def test_trial_show_as_json_is_as_in_the_export(three: list[Any], call: Callable[..., Any]) -> None:
    shown = json.loads(call("trial", "show", "0", "--json").out)
    assert shown == json.loads(call("export").out)["trials"][0]


def test_failures_that_differ_in_numbers_only_are_summed_up(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    killed = [
        trial_of(
            n,
            "FAILED",
            reason="killed by SIGSEGV",
            exit_code=-11,
            kind=FailureKind.KILLED,
            error=f"at 0x{n:x}",
            failed={"KILLED": 1},
        )
        for n in range(2)
    ]
    lost = trial_of(
        2, "FAILED", reason="its agent is gone", kind=FailureKind.INFRA, failed={"INFRA": 4}, attempt=4
    )
    write_output(stored().write("first", [*killed, lost]).trial(0), "Epoch 1\n")
    lines = call("status", "first").out.splitlines()
    assert [line for line in lines if "failed" in line or "again" in line] == [
        "trials: 3 of 10 (3 failed)",
        "run again: 3 INFRA attempts",
        "2 trials failed (KILLED), such as: killed by SIGSEGV: at 0x0 (pitchpipe trial log first 0)",
        "trial 2 failed (INFRA, 4 attempts): its agent is gone (pitchpipe trial show first 2)",
    ]


@pytest.mark.parametrize(
    ("printed", "failed", "verb"),
    [
        ("Epoch 1\n", {"error": "ValueError: 1", "kind": FailureKind.USER_ERROR}, "log"),
        (None, {"error": "Traceback\nValueError: 1", "kind": FailureKind.USER_ERROR}, "show"),
        ("Epoch 1\n", {"reason": "reported NaN", "kind": FailureKind.NAN}, "show"),
        ("Epoch 1\n", {"reason": "no final result", "kind": FailureKind.USER_ERROR}, "log"),
        ("", {"reason": "no final result", "kind": FailureKind.USER_ERROR}, "show"),
        ("Epoch 1\n", {"error": "its agent is gone", "kind": FailureKind.INFRA}, "show"),
    ],
)
def test_a_failure_is_followed_by_the_command_that_explains_it(
    printed: str | None,
    failed: dict[str, Any],
    verb: str,
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    files = stored().write("e1", [trial_of(3, "FAILED", **failed)]).trial(3)
    if printed is not None:
        write_output(files, printed)
    assert f"(pitchpipe trial {verb} e1 3)" in call("status", "e1").out


def test_trial_show_tells_kind_and_earlier_attempts(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    reason = "killed by SIGKILL"
    trial = trial_of(0, "FAILED", reason=reason, exit_code=-9, kind=FailureKind.KILLED, attempt=2)
    lost = AttemptRow(
        sequence_id=0,
        attempt=1,
        outcome="retried",
        agent="0-0",
        start_time=1.0,
        end_time=2.0,
        reason="its agent is gone",
        kind=FailureKind.INFRA,
    )
    stored().write("first", [trial], attempts=[lost])
    lines = call("trial", "show", "first", "0").out.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines if len(line.split(maxsplit=1)) == 2)
    assert (shown["kind"], shown["reason"], shown["attempt"]) == ("KILLED", reason, "2")
    assert lines[-2:] == ["earlier attempts", "  1: retried (INFRA, agent 0-0): its agent is gone"]
    (earlier,) = json.loads(call("trial", "show", "first", "0", "--json").out)["earlier_attempts"]
    assert (earlier["outcome"], earlier["kind"], earlier["reason"]) == (
        "retried",
        "INFRA",
        "its agent is gone",
    )


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("9", "there is no trial '9'"),
        ("nope", "there is no trial 'nope'"),
        ("T", "may be any of T0000, T0001, T0002"),
    ],
)
def test_wrong_trial_is_a_sentence(
    word: str, sentence: str, three: list[Any], call: Callable[..., Any]
) -> None:
    called = call("trial", "show", "first", word)
    assert called.code == 2
    assert sentence in called.err
    assert called.out == ""


def test_trial_log_copies_stdout_to_stdout_and_stderr_to_stderr(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
    folder = directory / "first" / "trials" / "2"
    folder.mkdir(parents=True)
    (folder / "stdout").write_bytes(b"epoch 1\n")
    (folder / "stderr").write_bytes(b"oh\n")
    called = call("trial", "log", "first", "2")
    assert (called.code, called.out, called.err) == (0, "epoch 1\n", "oh\n")
    assert call("trial", "log", "first", "2", "--stdout").err == ""
    assert call("trial", "log", "first", "2", "--follow").out == "epoch 1\n"  # it has ended already
    assert call("trial", "log", "first", "0").code == 1


def test_trial_log_of_a_trial_that_printed_nothing_says_so(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
    folder = directory / "first" / "trials" / "2"
    folder.mkdir(parents=True)
    for name in ("stdout", "stderr"):
        (folder / name).touch()
    called = call("trial", "log", "first", "2")
    assert (called.code, called.out, called.err) == (0, "", "trial 2 (T0002) has printed nothing\n")
    (folder / "stdout").write_bytes(b"x\n")
    assert (
        call("trial", "log", "first", "2", "--stderr").err
        == "trial 2 (T0002) has printed nothing to stderr\n"
    )
    assert call("trial", "log", "first", "2").err == ""


def test_trial_show_tells_results_as_json_with_rounded_numbers(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    final = {"default": 2 / 3, "note": "it's ok"}
    trial = trial_of(0, "SUCCEEDED", None, final, values=(2 / 3,), agent="1-0", exit_code=0)
    metrics = [
        MetricRow(trial=trial, attempt=1, kind="PERIODICAL", sequence=n, value=f"0.{n}12345678", time=0.0)
        for n in range(12)
    ]
    metrics.append(
        MetricRow(
            trial=trial,
            attempt=1,
            kind="PERIODICAL",
            sequence=12,
            value='{"default": 1, "loss": null}',
            time=0.0,
        )
    )
    stored().write("first", [trial], metrics)
    out = call("trial", "show", "first", "0").out
    assert 'result        {"default": 0.666667, "note": "it\'s ok"}\n' in out
    assert "intermediate  13 results: … 0.312346, " in out
    assert out.split("intermediate")[1].splitlines()[0].endswith(', {"default": 1, "loss": null}')
    assert "agent" not in out
    assert "exit code" not in out


def test_a_script_that_imports_what_nni_alone_has_gets_a_hint(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    reason = "ModuleNotFoundError: No module named 'nni.retiarii'"
    stored().write("first", [trial_of(0, "FAILED", reason=reason, error=reason, kind=FailureKind.IMPORT)])
    hint = "docs/nni.md lists the names of NNI that have a counterpart"
    assert f"  hint: {hint}\n" in call("status", "first").out
    assert f"hint          {hint}\n" in call("trial", "show", "first", "0").out


def test_trial_kill_of_an_ended_trial_is_refused(three: list[Any], call: Callable[..., Any]) -> None:
    called = call("trial", "kill", "first", "1")
    assert (called.code, called.err) == (1, "error: trial 1 (T0001) has ended already: FAILED\n")


def test_json_export_has_numbers_and_no_nan(three: list[Any], call: Callable[..., Any]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    exported = json.loads(call("export", "first", "--format", "json").out, parse_constant=refuse)
    assert exported["experiment"]["id"] == "first"
    assert exported["trials"][0] == {
        "id": "T0000",
        "sequence_id": 0,
        "status": "SUCCEEDED",
        "parameters": NESTED,
        "intermediate": [0.5, None, 0.7],
        "final": 0.75,
        "start_time": 1000.0,
        "end_time": 1010.0,
        "reason": "",
        "kind": None,
        "exit_code": None,
        "attempts": 1,
    }
    assert exported["trials"][1]["final"] is None
    assert [trial["sequence_id"] for trial in exported["trials"]] == [0, 1, 2]


def test_help_and_page_list_the_fields_of_the_export(
    three: list[Any], call: Callable[..., Any], tree: Path
) -> None:
    page = (tree / "docs" / "cli.md").read_text().split("\n## export\n")[1].split("\n## ")[0]
    shown = call("export", "--help").out
    fields = [*json.loads(call("export").out)["trials"][0]]
    assert [*json.loads(page.split('"trials": ')[1].split("}\n\n")[0])[0]] == fields
    assert re.findall(r'"(\w+)"', shown.split('"trials":')[1].split("]}")[0]) == fields
    header = call("export", "--format", "csv").out.splitlines()[0].split(",")
    columns = [*dict.fromkeys(name if name in fields else "parameters" for name in header)]
    for text in (page.split("CSV has one row")[1], shown.split("CSV:")[1]):
        assert re.findall(rf"\b({'|'.join(fields)})\b", re.split(r"[.;]\s", text)[0]) == columns


def test_export_counts_a_later_attempt_instead_of_what_it_repeats(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trial = trial_of(0, "SUCCEEDED", None, 1.0)
    rows = [(1, 0, "10"), (1, 1, "11"), (1, 2, "12"), (2, 1, "21")]
    metrics = [
        MetricRow(trial=trial, attempt=a, kind="PERIODICAL", sequence=n, value=value, time=0.0)
        for a, n, value in rows
    ]
    stored().write("e", [trial], metrics, superseded=[(0, 1, 1)])
    assert json.loads(call("export").out)["trials"][0]["intermediate"] == [10, 21]


def test_csv_export_flattens_parameters_and_results(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trials = [
        trial_of(0, "SUCCEEDED", {**NESTED, "status": "a, b"}, {"default": 0.5, "size": 3}, values=(0.5,)),
        trial_of(1, "FAILED", {"lr": 1}, reason='he said "no"'),
    ]
    stored().write("e", trials)
    one, other = csv.DictReader(io.StringIO(call("export", "--format", "csv").out))
    assert (one["lr"], one["solver._name"], one["solver.momentum"]) == ("0.1", "sgd", "0.9")
    assert (one["status"], one["parameters.status"]) == ("SUCCEEDED", "a, b")
    assert (one["final.default"], one["final.size"]) == ("0.5", "3")
    assert (other["sequence_id"], other["solver.momentum"], other["final.size"]) == ("1", "", "")
    assert other["reason"] == 'he said "no"'


def test_export_to_a_file_leaves_nothing_else(
    three: list[Any], tmp_path: Path, call: Callable[..., Any]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    called = call("export", "first", "--format", "csv", "-o", folder / "trials.csv")
    assert (called.code, called.out) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["trials.csv"]
    assert len((folder / "trials.csv").read_text().splitlines()) == 4


def test_a_file_that_is_named_csv_gets_csv(
    three: list[Any], call: Callable[..., Any], tmp_path: Path
) -> None:
    assert call("export", "-o", tmp_path / "t.csv").code == 0
    assert (tmp_path / "t.csv").read_text().startswith("sequence_id,id,status,")
    assert call("export", "-o", tmp_path / "u.csv", "--format", "json").code == 0
    assert "experiment" in json.loads((tmp_path / "u.csv").read_text())
    refused = call("export", "-o", tmp_path / "t.xlsx")
    assert (refused.code, "unknown file ending .xlsx: add --format" in refused.err) == (2, True)
    assert not (tmp_path / "t.xlsx").exists()


def test_export_to_a_folder_that_is_not_there_is_a_sentence(
    three: list[Any], call: Callable[..., Any]
) -> None:
    called = call("export", "first", "-o", "nowhere/trials.json")
    assert called.code == 1
    assert called.err == "error: nowhere/trials.json cannot be written: No such file or directory\n"
    assert "Traceback" not in called.err


def test_reading_changes_nothing(three: list[Any], directory: Path, call: Callable[..., Any]) -> None:
    database = directory / "first" / "experiment.db"
    before = database.read_bytes()
    for words in [("list",), ("status", "first"), ("trials", "first"), ("export", "first")]:
        assert call(*words).code == 0
    assert database.read_bytes() == before


HALF = "\ud800"  # half a character: JSON can hold it, UTF-8 cannot


@pytest.mark.parametrize(
    "words",
    [
        ("export", "exp"),
        ("export", "exp", "--format", "csv"),
        ("trials", "exp"),
        ("trial", "show", "0", "--experiment-id", "exp"),
        ("trial", "show", "0", "--experiment-id", "exp", "--json"),
        ("status", "exp"),
    ],
    ids=" ".join,
)
def test_half_a_character_is_shown_by_its_escape(
    words: tuple[str, ...],
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    start: Callable[..., Any],
) -> None:
    final = {"default": 0.5, "note": HALF}
    trial = trial_of(0, "SUCCEEDED", {"x": HALF}, final, values=(0.5,))
    stored().write("exp", [trial])
    called = start(*words).finish()
    assert (called.code, called.err) == (0, "")
    assert "\\ud800" in called.out


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_half_a_character_is_exported_into_a_file(
    ending: str,
    tmp_path: Path,
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    stored().write("exp", [trial_of(0, "SUCCEEDED", {"x": HALF}, 0.5)])
    file = tmp_path / f"trials.{ending}"
    assert call("export", "exp", "-o", file).code == 0
    if ending == "json":
        assert json.loads(file.read_text())["trials"][0]["parameters"] == {"x": "\\ud800"}
    else:
        assert "\\ud800" in file.read_text()


def test_trials_of_a_search_have_no_process_to_speak_of(directory: Path, call: Callable[..., Any]) -> None:
    with Search({"x": uniform(0, 1)}, folder=directory / "own", tuner="Random") as search:
        search.fail(search.ask(), "diverged")
        search.fail(search.ask(), "")
        search.give_back(search.ask())
        search.tell(search.ask(), 1)
    lines = call("status", "own").out.splitlines()
    assert [line for line in lines if "failed" in line or "again" in line] == [
        "trials: 3 (1 succeeded, 2 failed)",
        "begun again: 1 attempt, given back or reclaimed",
        "trial 0 failed (USER_ERROR): diverged (pitchpipe trial show own 0)",
        "trial 1 failed (USER_ERROR): failed (pitchpipe trial show own 1)",
    ]
    assert "exit code" not in call("trial", "show", "own", "2").out


def test_trial_log_of_an_imported_trial_names_the_folder_that_has_it(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trial = trial_of(0, "SUCCEEDED", {"x": 1}, 0.5)
    stored(status="VIEWED", reason="an experiment of NNI, in /old/e").write("old", [trial])
    assert call("trial", "log", "old", "0").err.endswith("; this is an experiment of NNI, in /old/e\n")
