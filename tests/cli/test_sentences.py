"""What users read of stored experiments: each input is a command line, its answer what it prints.

A line of stderr begins with `!`; the first one has the exit code, unless that is 0.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from pitchpipe.cli.app import LazyGroup, pitchpipe
from pitchpipe.cli.failures import Failure
from pitchpipe.cli.new_experiment import check_startable
from pitchpipe.cli.script_facts import read_script
from pitchpipe.cli.script_facts.guessed_ranges import guessed_spec
from pitchpipe.cli.verbs.ray import staying_line
from pitchpipe.cli.verbs.trial_rerun import changed_parameters
from pitchpipe.compat.nni.nnictl_words import translated
from pitchpipe.config import ExperimentConfig, load_config
from pitchpipe.protocol import added_record, repeated, with_family_end
from pitchpipe.runner.effects import AttemptRow
from pitchpipe.runner.trial import FailureKind, Trial
from pitchpipe.telling import BestSoFar, progress_line
from pitchpipe.telling.failed_trials import FailedTrial

from ..sentences import SentencesFile, answered
from ..stored import results
from .conftest import Called, Stored, call_nnictl, make_trial
from .init_scripts import SCRIPTS
from .results import FRONT, NESTED, RAY_RUNS, write_output
from .screens import HALF, drawn

Write = Callable[..., Any]
MAXIMIZE_A = [{"name": "a", "direction": "maximize"}, {"name": "ms", "direction": "minimize"}]
LIMITED = [FRONT[0], FRONT[2]]
ONE_LIMITED = [{"name": "default", "direction": "maximize"}, FRONT[2]]
TWICE, THRICE = ({"trialCommand": "true", "repeats": {"count": count}} for count in (2, 3))
UNKNOWN_TO_NNI = "ModuleNotFoundError: No module named 'nni.retiarii'"
MANY_FAILURES = [f"no {letter}" for letter in "abcdefgg"]


def succeeded(names: str, *rows: Iterable[float]) -> list[Trial]:
    """Return trials with values of several metrics."""
    finals = [dict(zip(names.split(), map(float, row), strict=True)) for row in rows]
    return [make_trial(number, "SUCCEEDED", None, final) for number, final in enumerate(finals)]


def failed(*reasons: str, **fields: Any) -> list[Trial]:
    given = {"kind": FailureKind.USER_ERROR, **fields}
    return [make_trial(number, "FAILED", reason=reason, **given) for number, reason in enumerate(reasons)]


def in_families(trials: list[Trial], *plan: tuple[int, int, str]) -> list[Trial]:
    """Return the trials as repeats: family, repeat, and how the family ended, if it did."""
    for trial, (family, repeat, end) in zip(trials, plan, strict=True):
        trial.record = repeated(trial.record, family, repeat, 40 + repeat)
        trial.record = with_family_end(trial.record, end) if end else trial.record
    return trials


def store_all(directory: Path) -> None:
    """Store the experiments; each is named by what the lines are about."""
    stored = partial(Stored, directory)
    _store_states(stored)
    _store_ended(stored)
    _store_failures(stored)
    _store_fronts(stored)
    _store_families(stored)
    _store_why(stored)


def _store_states(stored: Write) -> None:
    for status in ("STOPPED", "ERROR", "VIEWED", "RUNNING", "DONE"):
        stored(status=status, created=100.0).write(status.lower(), [])
    stored(status="STOPPED", more={}, created=100.0).write("search", [])
    raised = {"reason": "the tuner raised", "error": "Traceback\nKeyError: 3"}
    stored(status="ERROR", created=100.0, **raised).write("raised", [])
    of_nni = {"status": "VIEWED", "reason": "an experiment of NNI, in /old/e"}
    stored(created=100.0, **of_nni).write("nni", [make_trial(0, "SUCCEEDED", {"x": 1}, 0.5)])
    sources: list[Any] = ["defaults", "initial", "warm_start", "customized"]
    trials = [make_trial(number, "SUCCEEDED", None, 0.5) for number in range(5)]
    for trial, source in zip(trials, sources, strict=False):
        trial.record = added_record({"x": 0.5}, source)
    stored(created=100.0).write("sources", trials)


def _store_ended(stored: Write) -> None:
    """By the number of its trials, by its time, and because no gain is expected."""
    rule = {"stop_when": {"expected_gain_below": 1e9, "min_trials": 4}, "tuner": {"name": "TPE"}}
    given: dict[str, dict[str, Any]] = {
        "ended": {"max_trial_number": 4},
        "timeover": {"max_experiment_duration": "10s", "max_trial_number": 100_000},
        "gainless": {**rule, "max_trial_number": 90},
    }
    trials = [make_trial(number, "SUCCEEDED", None, 0.5) for number in range(4)]
    for name, fields in given.items():
        space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        config = ExperimentConfig.from_dict({"search_space": space, "trial_command": "true", **fields})
        reason = "expected gain 0.5 is below 1e+09" if name == "gainless" else ""
        stored(more=config.canonical(), reason=reason).write(name, trials)


def _store_failures(stored: Write) -> None:
    more = {"exit_code": 1, "failed": {"USER_ERROR": 2}, "attempt": 2}
    error = "Traceback\n  File ...\nValueError: too big"
    (bad,) = failed("ValueError: too big", error=error, **more)
    best = make_trial(1, "SUCCEEDED", NESTED, 0.75, next_sequence=3)
    rows = results(best, [0.5, math.nan, 0.7])
    folder = stored(name="mine").write("first", [bad, best, make_trial(2, "SUCCEEDED", NESTED, 0.5)], rows)
    write_output(folder.trial(0), "Epoch 1\n")
    stored().write("letters", failed(*MANY_FAILURES))
    oom = ["CUDA out of memory at width 55", "CUDA out of memory at width 302"]
    stored().write("oom", failed(*oom, kind="OOM"))
    stored().write("alike", failed("exit code 3", "exit code 3", kind="OOM", exit_code=3))
    stored().write("hint", failed(UNKNOWN_TO_NNI, kind=FailureKind.IMPORT, error=UNKNOWN_TO_NNI))
    killed = failed(*["killed by SIGSEGV"] * 2, kind=FailureKind.KILLED, exit_code=-11, failed={"KILLED": 1})
    for number, trial in enumerate(killed):
        trial.error = f"at 0x{number:x}"
    gone = {"kind": FailureKind.INFRA, "failed": {"INFRA": 4}, "attempt": 4}
    agentless = make_trial(2, "FAILED", reason="its agent is gone", **gone)
    write_output(stored().write("segv", [*killed, agentless]).trial(0), "Epoch 1\n")
    (again,) = failed("killed by SIGKILL", exit_code=-9, kind=FailureKind.KILLED, attempt=2)
    lost = {"outcome": "retried", "reason": "its agent is gone", "kind": FailureKind.INFRA}
    attempt = AttemptRow(sequence_id=0, attempt=1, agent="0-0", start_time=1.0, end_time=2.0, **lost)
    stored().write("retried", [again], attempts=[attempt])
    good = [make_trial(number, "SUCCEEDED", final=0.5) for number in range(8)]
    region = [make_trial(n, "FAILED", reason="no memory", kind=FailureKind.OOM) for n in range(8, 14)]
    stored(more={"trialCommand": "true", "tuner": {"name": "TPE"}}).write("region", [*good, *region])


def _store_fronts(stored: Write) -> None:
    front = succeeded("loss f1 ms", (4, 0.9, 5), (0, 1, 21), (2, 0.8, 20), (1, 0.1, 1))
    stored(objectives=FRONT).write("front", front)
    pairs = [(n, 0.9 * (n >= 11) + 0.001 * n) for n in range(14)]
    stored(objectives=FRONT[:2]).write("knee", succeeded("loss f1", *pairs))
    stored(objectives=FRONT[:2]).write("single", succeeded("loss f1", (1, 0.5)))
    stored(objectives=LIMITED).write("ranked", succeeded("loss ms", (0.1, 30), (0.3, 12), (0.2, 10)))
    stored(objectives=LIMITED).write("far", succeeded("loss ms", (0.1, 30), (0.2, 25)))
    kept = succeeded("default ms", (0.3, 20), (0.9, 30), (0.5, 3), (0.8, 21))
    stored(objectives=ONE_LIMITED).write("limited", [*kept, make_trial(4, "FAILED", reason="no good")])
    stored(objectives=FRONT[:2]).write(
        "dominated", succeeded("loss f1", (4, 0.9), (1, 0.5), (1.5, 0.4), (2, 0.8))
    )


def _store_families(stored: Write) -> None:
    values = [0.9, 0.1, 0.6, 0.7]
    trials = [make_trial(n, "SUCCEEDED", {"lr": n // 2 / 5}, value) for n, value in enumerate(values)]
    trials.append(make_trial(4, "FAILED", {"lr": 0.2}, reason="no good"))
    plan = [(0, 0, "raced"), (0, 1, ""), (2, 0, "complete"), (2, 1, ""), (2, 2, "")]
    stored(more=THRICE).write("repeating", in_families(trials, *plan))
    alone = [make_trial(0, "SUCCEEDED", None, 0.5)]
    stored(more=THRICE).write("cut", in_families(alone, (0, 0, "")))
    pairs = succeeded("a ms", (0.9, 9), (0.7, 7), (0.6, 8), (0.6, 8))
    ended = [(n // 2 * 2, n % 2, "complete") for n in range(4)]
    stored(objectives=MAXIMIZE_A, more=TWICE).write("families", in_families(pairs, *ended))
    far = [
        make_trial(0, "FAILED", reason="no good"),
        make_trial(1, "SUCCEEDED", None, {"loss": 0.2, "ms": 25.0}),
    ]
    near = in_families(far, (0, 0, "complete"), (0, 1, "complete"))
    stored(objectives=LIMITED, more=TWICE).write("farfamily", near)
    late = succeeded("loss ms", (0.1, 600), (0.2, 40), (0.3, 5), (0.4, 10), (0.5, 30))
    ends = ["", "raced", "", "complete", "complete"]
    late = in_families(late, *((number, 0, end) for number, end in enumerate(ends)))
    stored(objectives=LIMITED, more=TWICE).write("late", late)
    order = [make_trial(n, "SUCCEEDED", None, value) for n, value in enumerate((0.9, 0.8, 0.7, 0.1, 0.2))]
    ends = ["complete", "raced", "", "complete", "complete"]
    order = in_families(order, *((number, 0, end) for number, end in enumerate(ends)))
    stored(more=THRICE).write("order", order)
    best = succeeded("loss f1", (4, 0.9), (1.5, 0.4), (1, 0.5))
    best = in_families(best, *((number, 0, "complete") for number in range(3)))
    stored(objectives=FRONT[:2], more=TWICE).write("bestfamilies", best)
    # Two limits: the excesses are relative to each, and added.
    beyond = succeeded("loss ms mb", (0.1, 40, 1), (0.2, 5, 0.5), (0.3, 24, 0.9), (0.4, 22, 0.5))
    beyond = in_families(beyond, *((number, 0, "complete") for number in range(4)))
    limits = [*LIMITED, {"name": "mb", "constraint": ">= 1"}]
    stored(objectives=limits, more=TWICE).write("limits", beyond)


def _store_why(stored: Write) -> None:
    reason = "0.3 is below the median 0.7 of 2 trials after 2 results"
    trials = [
        *(make_trial(n, "SUCCEEDED", None, value, next_sequence=2) for n, value in enumerate((0.9, 0.5))),
        make_trial(2, "EARLY_STOPPED", reason=reason, next_sequence=2),
        *(make_trial(n, "FAILED", reason="exit code 3", exit_code=3, kind="USER_ERROR") for n in (3, 4)),
        make_trial(5, "FAILED", reason="ran longer than max_trial_duration (3 s)", kind="TIMEOUT"),
        make_trial(6, "SUCCEEDED", None, 0.5),
    ]
    for trial in trials[3:5]:
        trial.error = f"ValueError: {trial.sequence_id}"
    values: list[list[Any]] = [[0.6, 0.8], [0.7, {"default": 0.25}], [0.2, 0.3]]
    rows = [row for trial, found in zip(trials, values, strict=False) for row in results(trial, found)]
    stored().write("explained", trials, rows)
    (silent,) = failed("exit code 3", exit_code=3)
    files = stored().write("silent", [silent]).trial(0)
    write_output(files, "".join(f"line {number}\n" for number in range(9)))
    (files / "stderr").touch()
    front = succeeded("a ms", (0.9, 10), (0.8, 5), (0.8, 7), (0.6, 11))
    stored(objectives=MAXIMIZE_A).write("places", front)


def answer_of(call: Callable[..., Called], line: str) -> Iterator[str]:
    called = call(*shlex.split(line))
    yield from (text.rstrip() for text in called.out.splitlines() if text)
    code = str(called.code or "")
    for text in called.err.splitlines() or [""] * bool(code):
        yield f"!{code} {text}".rstrip()
        code = ""


def translation(line: str) -> Iterator[str]:
    """Return what a line of nnictl means; our own lines stay, and all are ones that the command line takes."""
    try:
        words = translated(line.split())
    except Failure as refused:
        yield f"!{refused.exit_code} {refused}"
        return
    yield " ".join(words)
    if words[0].startswith("-"):
        return
    group: Any = pitchpipe
    while isinstance(group, LazyGroup):
        group = group.get_command(click.Context(group), words.pop(0))
    group.make_context("it", words)


def answer_of_nnictl(capsys: pytest.CaptureFixture[str], line: str) -> Iterator[str]:
    called = call_nnictl(capsys, *line.split())
    yield from answer_of(lambda *_: called, line)


def faults_of_machine(line: str) -> Iterator[str]:
    """Return why this machine, which has no GPU, cannot run a trial of a config with a line of its own."""
    others = {"trial_command": "echo", "search_space": {}, "trial_code_directory": "code"}
    Path("e.yml").write_text("\n".join([line, *(f"{k}: {v}" for k, v in others.items() if k not in line)]))
    try:
        check_startable(load_config(Path("e.yml"), check_plugins=False), Path("e.yml"))
    except Failure as failure:
        yield f"!{failure.exit_code} " + re.sub(r"only \d+", "only N", str(failure))
    finally:
        Path("e.yml").unlink()


def progress_of(line: str) -> Iterator[str]:
    """Return the line, and the screen, of a run that is half done, with other fields."""
    given = json.loads(line)
    given |= {"best": tuple(BestSoFar(*one) for one in given["best"])} if "best" in given else {}
    given |= {"failures": (FailedTrial(**given["failure"]),)} if "failure" in given else {}
    given.pop("failure", None)
    shown = replace(HALF, **given)
    yield progress_line(shown)
    yield from drawn(shown)


def status_of_ray(call: Callable[..., Called], line: str) -> Iterator[str]:
    """Return what is said of a private Ray, with other fields; `null`: there is none."""
    given = json.loads(line)
    answer = given if given is None or "starting" in given else {**RAY_RUNS, **given}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pitchpipe.executors.private_ray.ray_status", lambda: answer)
        yield from answer_of(call, "ray status")
        yield staying_line({"trainingService": {"platform": "ray"}}) or "(no run announces that it stays)"
        for others in ({"platform": "ray", "address": "auto"}, {"platform": "local"}):
            assert staying_line({"trainingService": others}) == ""


def answer_to_results(call: Callable[..., Called], line: str) -> Iterator[str]:
    """Return what `import` says of a file, which it reads before it looks for the experiment's manager."""
    Path("results.json").write_text(line)
    yield from answer_of(call, "import done --file results.json")


def changed(line: str) -> Iterator[str]:
    """Return the parameters with which `trial rerun` would run a trial, or why it refuses a change."""
    try:
        yield json.dumps(changed_parameters({"x": 0.5, "solver": {"_name": "sgd", "momentum": 0.9}}, [line]))
    except Failure as refused:
        yield f"!{refused.exit_code} {refused}"


def parameters_of(script: str) -> Iterator[str]:
    yield json.dumps(read_script(script).parameters)


def range_of(line: str) -> Iterator[str]:
    """Return the range that `init` guesses from the name and the default of a parameter."""
    name, default = line.split(" ")
    yield guessed_spec(json.loads(default), name=name)


def config_of_init(call: Callable[..., Called], line: str) -> Iterator[str]:
    """Return what `init` prints, and what its file says."""
    yield from answer_of(call, f"init {line} --yes -o e.yml")
    file = Path("e.yml")
    if not file.exists():
        return
    found = load_config(file, check_plugins=False)
    (goal,) = found.objectives
    yield f"= {found.trial_command}; {found.max_trial_number} trials of {found.experiment_name}"
    yield f"= {goal.direction} {goal.name}; defaults {json.dumps(found.defaults)}"
    yield f"= {json.dumps(found.search_space)}"
    yield from (f"={line}" for line in file.read_text().splitlines() if " is not tuned" in line)
    file.unlink()


def answer_of_init(call: Callable[..., Called], line: str) -> Iterator[str]:
    before = sorted(os.listdir())
    yield from answer_of(call, f"init {line} --yes")
    assert sorted(os.listdir()) == before, line
    assert Path("there.yml").read_text() == SCRIPTS["there.yml"]


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_sentences(
    call: Callable[..., Called],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("PITCHPIPE_DIR", str(Path("experiments").absolute()))
    monkeypatch.setenv("PITCHPIPE_GPUS", "")
    monkeypatch.setenv("TERM", "xterm")
    store_all(Path("experiments"))
    Path("code").mkdir()
    for name, text in SCRIPTS.items():
        Path(name).write_text(text)
    sections = {
        "verbs over stored experiments": partial(answer_of, call),
        "files of results": partial(answer_to_results, call),
        "changes of a trial that is run again": changed,
        "parameters of a script": parameters_of,
        "range of a parameter": range_of,
        "init": partial(config_of_init, call),
        "init that writes nothing": partial(answer_of_init, call),
        "meaning of lines of nnictl": translation,
        "nnictl": partial(answer_of_nnictl, capsys),
        "what this machine cannot run": faults_of_machine,
        "ray status": partial(status_of_ray, call),
        "a run that is half done": progress_of,
    }
    assert answered(Path(__file__).parent, sections) == snapshot(extension_class=SentencesFile)
