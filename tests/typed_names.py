"""The types of the public names, as a user's checker sees them: `make types` checks this file, and no test runs it.

`strict` refuses a name whose type is not known; tests/test_face.py sees that all names are here.
"""

# pyright: strict
from argparse import ArgumentParser, Namespace
from typing import Any, assert_type

from pitchpipe import (
    Assessor,
    AssessResult,
    Callback,
    Checkpoint,
    CombinedStopper,
    CriteriaStopper,
    Experiment,
    ExperimentPlateauStopper,
    ExperimentResult,
    FunctionStopper,
    FunctionTrainable,
    Interrupted,
    MaximumIterationStopper,
    NoMoreTrialError,
    NoRunningTrial,
    OtherSearchError,
    PausesError,
    Search,
    Stopper,
    TimeoutStopper,
    Trainable,
    TrialOverError,
    TrialPlateauStopper,
    TrialStopped,
    TuneClient,
    Tuner,
    TuneServer,
    UnknownTrialError,
    __version__,
    choice,
    get_budget,
    get_checkpoint,
    get_current_parameter,
    get_experiment_id,
    get_next_parameter,
    get_next_parameters,
    get_seed,
    get_sequence_id,
    get_trial_id,
    lognormal,
    lograndint,
    loguniform,
    make_env,
    maximize,
    minimize,
    normal,
    parse_args,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    register_env,
    register_trainable,
    replay_schedule,
    report_final_result,
    report_intermediate_result,
    save_checkpoint,
    uniform,
    wrap_function,
)

classes: list[type] = [Assessor, AssessResult, Callback, Experiment, FunctionTrainable, Trainable, Tuner]
classes += [CombinedStopper, CriteriaStopper, ExperimentPlateauStopper, FunctionStopper, Stopper]
classes += [MaximumIterationStopper, TimeoutStopper, TrialPlateauStopper, TuneClient, TuneServer]
errors: list[type[BaseException]] = [Interrupted, NoMoreTrialError, NoRunningTrial, OtherSearchError]
errors += [PausesError, TrialOverError, TrialStopped, UnknownTrialError]
others = [
    get_current_parameter,
    get_next_parameters,
    make_env,
    register_env,
    register_trainable,
    wrap_function,
]
space = {"a": choice(["p", "q"]), "b": randint(0, 3), "c": lograndint(1, 9), "d": uniform(0, 1)}
space |= {"e": quniform(0, 1, 0.1), "f": loguniform(1, 2), "g": qloguniform(1, 2, 1), "h": normal(0, 1)}
space |= {"i": qnormal(0, 1, 1), "j": lognormal(0, 1), "k": qlognormal(0, 1, 1)}


def train(parameters: dict[str, Any]) -> float:
    """Call what a trial calls."""
    assert_type(get_next_parameter(), dict[str, Any])
    assert_type(parse_args(ArgumentParser()), Namespace)
    assert_type(get_checkpoint(), Checkpoint | None)
    assert_type(get_budget(), float | None)
    assert_type(get_seed(), int | None)
    assert_type(get_sequence_id(), int)
    assert_type(get_trial_id() + get_experiment_id() + __version__, str)
    report_intermediate_result(0.5)
    save_checkpoint({"epoch": 1})
    report_final_result({"default": 0.5})
    return float(parameters["d"])


assert_type(minimize(train, space, 3), ExperimentResult)
assert_type(maximize(train, space, 3), ExperimentResult)
with Search(space) as search:
    trial = search.ask()
    assert_type(trial.parameters, dict[str, Any])
    assert_type(search.tell(trial, 0.5), str)
schedule = replay_schedule("schedule.json")
assert_type(schedule.parameters_at(schedule.results), dict[str, Any])
