"""Scripts of another kind: the ways in which people write trials, each with the status and the results that count.

Each script is a trial of one experiment. A script that never asks for its parameters is in `test_unasked.py`, one that
closes descriptors in `sdk/test_current_trial.py`, one that runs in a zygote in `trial_agent/test_warm_starts.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle
import pytest

import pitchpipe

from .other_scripts import ARGUMENTS, HANGS, PYTHON, SHELL, START_METHODS, Kind, X
from .running import Lab


def outcome(trial: Mapping[str, Any]) -> Kind:
    final = X if trial["final"] == trial["parameters"]["x"] else trial["final"]
    intermediate = tuple(sorted(trial["intermediate"]))
    return Kind(final=final, intermediate=intermediate, status=trial["status"], reason=trial["reason"])


def outcomes(lab: Lab, names: Any, scripts: Any, command: str) -> dict[str, Kind]:
    """Run each script as one trial, whose number is its name."""
    for number, script in enumerate(scripts):
        (lab.folder / str(number)).mkdir()
        (lab.folder / str(number) / "script").write_text(script)
    command = f"cd $PITCHPIPE_SEQUENCE_ID; {command}"
    config = lab.write("", trial_command=command, max_trial_number=len(names), max_identical_failures=0)
    assert lab.run_json(config)["status"] == "DONE"
    return dict(zip(names, map(outcome, lab.trials()), strict=True))


@pytest.mark.parametrize(("command", "kinds"), [("exec python script", PYTHON), ("exec bash script", SHELL)])
def test_kinds_of_scripts(lab: Lab, command: str, kinds: Mapping[str, tuple[str, Kind]]) -> None:
    scripts = [script for script, _ in kinds.values()]
    assert outcomes(lab, kinds, scripts, command) == {name: kind for name, (_, kind) in kinds.items()}


def test_kinds_of_command_lines(lab: Lab) -> None:
    cases = [f"{number}) {line.replace('SCRIPT', 'script')};;" for number, line in enumerate(ARGUMENTS)]
    command = f"case $PITCHPIPE_SEQUENCE_ID in {' '.join(cases)} esac"
    assert outcomes(lab, ARGUMENTS, ARGUMENTS.values(), command) == dict.fromkeys(ARGUMENTS, Kind())


def test_final_results_of_scripts_that_hang_at_their_exit_count_when_they_are_stopped(lab: Lab) -> None:
    for number, script in enumerate(HANGS):
        (lab.folder / f"{number}.py").write_text(script)
    limits: dict[str, Any] = {"max_trial_number": len(HANGS), "trial_concurrency": len(HANGS)}
    running = lab.start_run(lab.write("", trial_command="exec python $PITCHPIPE_SEQUENCE_ID.py", **limits))
    lab.until_reports(len(HANGS), running)
    assert lab.run("stop", "exp").code == 0
    assert running.wait(60) == 130
    expected = Kind(reason="it had reported its final result (stopped by the user)")
    assert list(map(outcome, lab.trials())) == [expected] * len(HANGS)


# --------------------------------------------------------------------------- functions


@pytest.fixture
def _by_value() -> Iterator[None]:
    """Agents cannot import this file: what is in it travels whole."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def trials_of(lab: Lab, function: Any, *values: str) -> list[tuple[Any, ...]]:
    """Call a function with each value; return status, final result and number of results of each call."""
    result = pitchpipe.Experiment(
        function,
        {"how": {"_type": "choice", "_value": list(values)}},
        platform="local",
        tuner={"name": "GridSearch"},
        direction="minimize",
        max_trial_number=len(values),
        max_identical_failures=0,
        directory=lab.directory,
    ).run(progress=False)
    return [(trial["status"], trial["final"], trial["intermediate_results"]) for trial in result.trials]


def computes_in_children(parameters: dict[str, Any]) -> dict[str, Any]:
    """Compute in processes; what these report is refused, and they know the trial if they are forks."""
    import math
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import pitchpipe

    start = multiprocessing.get_context(parameters["how"])
    with ProcessPoolExecutor(2, start) as executor:
        roots = list(executor.map(math.sqrt, [1, 4, 9]))
    with start.Pool(2) as pool:
        roots += pool.map(math.sqrt, [16])
    calls: list[tuple[Any, ...]] = [(pitchpipe.report_final_result, 7), (pitchpipe.get_next_parameter,)]
    children = [start.Process(target=call, args=arguments) for call, *arguments in calls]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return {"default": sum(roots), "codes": [child.exitcode for child in children]}


@pytest.mark.usefixtures("_by_value")
def test_functions_compute_in_children_of_all_kinds(lab: Lab) -> None:
    codes = [[1, 0], [1, 1], [1, 1]]
    assert trials_of(lab, computes_in_children, *START_METHODS) == [
        ("SUCCEEDED", {"default": 10.0, "codes": each}, 0) for each in codes
    ]


def reports_and(parameters: dict[str, Any]) -> int:
    """Report the final result 1, and then do something else."""
    import os
    import sys

    import pitchpipe

    pitchpipe.report_final_result(1)
    match parameters["how"]:
        case "returns another":
            return 2
        case "reports another":
            pitchpipe.report_final_result(2)
        case "reports an intermediate one":
            pitchpipe.report_intermediate_result(2)
        case "exits":
            sys.exit(0)
        case "exits with an error":
            sys.exit(3)
        case "raises":
            raise MemoryError
        case "crashes":
            os.abort()
    return 3


@pytest.mark.usefixtures("_by_value")
def test_first_final_result_of_a_function_counts_unless_it_says_that_it_failed(lab: Lab) -> None:
    ways = {
        "returns another": ("SUCCEEDED", 1, 0),
        "reports another": ("SUCCEEDED", 1, 0),
        "reports an intermediate one": ("SUCCEEDED", 1, 1),
        "exits": ("SUCCEEDED", 1, 0),
        "exits with an error": ("FAILED", 1, 0),
        "raises": ("FAILED", 1, 0),
        "crashes": ("SUCCEEDED", 1, 0),
    }
    assert dict(zip(ways, trials_of(lab, reports_and, *ways), strict=True)) == ways
