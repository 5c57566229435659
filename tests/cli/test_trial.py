"""`pitchpipe trial`: one trial, its failure, and what it printed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.protocol import added_record
from pitchpipe.runner.changes import AttemptRow, MetricRow
from pitchpipe.runner.trial import FailureKind


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


def test_trial_kill_of_an_ended_trial_is_refused(three: list[Any], call: Callable[..., Any]) -> None:
    called = call("trial", "kill", "first", "1")
    assert (called.code, called.err) == (1, "error: trial 1 (T0001) has ended already: FAILED\n")


def test_trial_log_of_an_imported_trial_names_the_folder_that_has_it(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trial = trial_of(0, "SUCCEEDED", {"x": 1}, 0.5)
    stored(status="VIEWED", reason="an experiment of NNI, in /old/e").write("old", [trial])
    assert call("trial", "log", "old", "0").err.endswith("; this is an experiment of NNI, in /old/e\n")
