"""`pitchpipe trial`: one trial, its failure, and what it printed."""

import json
from pathlib import Path
from typing import Any

from pitchpipe.runner.effects import AttemptRow
from pitchpipe.runner.trial import FailureKind

from ..stored import results
from .conftest import Call, Storing, make_trial


def test_trial_log_names_the_ranks_that_there_are(stored: Storing, call: Call) -> None:
    folder = stored().write("e", [make_trial(0, "SUCCEEDED", final=0.5)])
    folder.trial(0).mkdir(parents=True)
    for name in ("stdout", "stderr", "stdout-rank1", "reports-1-ab.jsonl"):
        (folder.trial(0) / name).touch()
    refused = call("trial", "log", "e", 0, "--rank", 5)
    assert (refused.code, refused.err) == (
        1,
        "error: trial 0 (T0000) has no output of rank 5: it has ranks 0 and 1\n",
    )


def test_trial_show_as_json_is_as_in_the_export(three: list[Any], call: Call) -> None:
    shown = json.loads(call("trial", "show", "0", "--json").out)
    assert shown == json.loads(call("export").out)["trials"][0]


def test_trial_show_has_the_earlier_attempts(stored: Storing, call: Call) -> None:
    again = {"outcome": "retried", "reason": "its agent is gone", "kind": FailureKind.INFRA}
    lost = AttemptRow(sequence_id=0, attempt=1, agent="0-0", start_time=1.0, end_time=2.0, **again)
    stored().write("first", [make_trial(0, "FAILED", attempt=2)], attempts=[lost])
    (earlier,) = json.loads(call("trial", "show", "first", "0", "--json").out)["earlier_attempts"]
    assert {name: earlier[name] for name in again} == again


def test_why_with_json_is_a_text_in_the_object_of_the_trial(three: list[Any], call: Call) -> None:
    shown = json.loads(call("trial", "show", "first", 1, "--why", "--json").out)
    assert shown.pop("why") + "\n" == call("trial", "show", "first", 1, "--why").out
    assert shown == json.loads(call("trial", "show", "first", 1, "--json").out)


def test_trial_log_copies_stdout_to_stdout_and_stderr_to_stderr(
    three: list[Any], directory: Path, call: Call
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
    three: list[Any], directory: Path, call: Call
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


def test_trial_log_is_that_of_the_last_attempt(stored: Storing, call: Call) -> None:
    folder = stored().write("e", [make_trial(0, "SUCCEEDED", final=0.5, attempt=2)])
    folder.trial(0).mkdir(parents=True)
    for name in ("stdout", "stderr", "stdout-2", "stderr-2"):
        (folder.trial(0) / name).write_text(name)
    last, first = call("trial", "log", "e", 0), call("trial", "log", "e", 0, "--attempt", 1)
    assert (last.out, last.err) == ("stdout-2", "stderr-2")
    assert (first.out, first.err) == ("stdout", "stderr")
    refused = call("trial", "log", "e", 0, "--attempt", 3)
    assert (refused.code, refused.err) == (1, "error: trial 0 (T0000) has 2 attempts, not 3\n")


def test_trial_log_of_a_function_and_of_a_search(stored: Storing, call: Call) -> None:
    folder = stored(more={}).write("e", [make_trial(0, "SUCCEEDED", final=0.5)])
    refused = call("trial", "log", "e", "0")
    assert (refused.code, refused.err.partition("; ")[2]) == (
        1,
        "the program that runs the search prints it\n",
    )
    folder.function_file.touch()  # a function that prints nothing leaves no file
    called = call("trial", "log", "e", "0")
    assert (called.code, called.out, called.err) == (0, "", "trial 0 (T0000) has printed nothing\n")
    folder.trial(0).mkdir(parents=True)
    (folder.trial(0) / "stderr").write_bytes(b"lr is high\n")
    called = call("trial", "log", "e", "0")
    assert (called.code, called.out, called.err) == (0, "", "lr is high\n")


def test_trial_show_tells_results_as_json_with_rounded_numbers(stored: Storing, call: Call) -> None:
    final = {"default": 2 / 3, "note": "it's ok"}
    trial = make_trial(0, "SUCCEEDED", None, final, values=(2 / 3,), agent="1-0", exit_code=0)
    values = [float(f"0.{n}12345678") for n in range(12)]
    stored().write("first", [trial], results(trial, [*values, {"default": 1, "loss": None}]))
    out = call("trial", "show", "first", "0").out
    assert 'result        0.666667\nnote          "it\'s ok"\n' in out
    assert "intermediate  13 results: … 0.312346, " in out
    assert out.split("intermediate")[1].splitlines()[0].endswith(', {"default": 1, "loss": null}')
    assert "agent         1-0\n" in out
    assert "exit code" not in out
