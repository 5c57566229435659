"""What several fields say together."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig

SMALLEST = {"search_space": {}, "trial_command": "x"}


def problems_of(data: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict(data)
    return [str(problem) for problem in caught.value.problems]


def algorithm(mode: str | None, name: str = "X") -> dict[str, Any]:
    return {"name": name, "class_args": {} if mode is None else {"optimize_mode": mode}}


@pytest.mark.parametrize(
    ("tuner", "assessor", "direction"),
    [
        ("maximize", None, "maximize"),
        (None, "maximize", "maximize"),
        ("maximize", "maximize", "maximize"),
        (None, None, "minimize"),
    ],
)
def test_direction_comes_from_the_algorithms(tuner: str | None, assessor: str | None, direction: str) -> None:
    data = {**SMALLEST, "tuner": algorithm(tuner), "assessor": algorithm(assessor)}
    (objective,) = ExperimentConfig.from_dict(data).objectives
    assert (objective.name, objective.direction) == ("default", direction)


def test_tuner_and_assessor_that_disagree_are_a_problem() -> None:
    problems = problems_of({**SMALLEST, "tuner": algorithm("maximize"), "assessor": algorithm("minimize")})
    assert problems == [
        "assessor.class_args.optimize_mode: minimize contradicts maximize of tuner.class_args.optimize_mode"
    ]


def test_objectives_that_disagree_with_both_algorithms_are_two_problems() -> None:
    data = {**SMALLEST, "tuner": algorithm("maximize"), "assessor": algorithm("maximize")}
    problems = problems_of({**data, "objectives": [{"direction": "minimize"}]})
    assert problems == [
        f"{name}.class_args.optimize_mode: maximize contradicts minimize of objectives[0].direction"
        for name in ("tuner", "assessor")
    ]


def test_optimize_mode_is_about_the_default_objective() -> None:
    objectives = [{"name": "cost", "direction": "minimize"}, {"name": "default", "direction": "maximize"}]
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "tuner": algorithm("maximize"), "objectives": objectives}
    )
    assert len(config.objectives) == 2


def test_wrong_optimize_mode_of_a_known_algorithm_is_a_problem() -> None:
    (problem,) = problems_of({**SMALLEST, "assessor": algorithm("minimise")})
    assert problem == (
        'assessor.class_args.optimize_mode: must be minimize or maximize, not "minimise" '
        "(did you mean minimize?)"
    )


def test_optimize_mode_of_a_class_of_the_user_s_is_its_own_affair() -> None:
    tuner = {"class_name": "m.C", "code_directory": ".", "class_args": {"optimize_mode": "pareto"}}
    assert ExperimentConfig.from_dict({**SMALLEST, "tuner": tuner}).objectives[0].direction == "minimize"


def test_objectives_with_one_name_twice_are_a_problem_beside_others() -> None:
    problems = problems_of({**SMALLEST, "objectives": [{"direction": "minimize"}, {"direction": "down"}]})
    assert [problem.split(":")[0] for problem in problems] == [
        "objectives[1].direction",
        "objectives[1].name",
    ]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({}, "tuner: needs a name, or class_name and code_directory"),
        (
            {"name": "X", "class_name": "a.B", "code_directory": "."},
            "tuner.class_name: name and class_name exclude",
        ),
        ({"class_name": "a.B"}, "tuner: class_name needs a code_directory"),
        ({"name": "X", "code_directory": "."}, "tuner.code_directory: belongs to class_name"),
        ({"class_name": "a.B", "code_directory": "nowhere"}, "tuner.code_directory: no such directory"),
    ],
)
def test_algorithm_that_names_no_class_is_a_problem(section: dict[str, Any], expected: str) -> None:
    (problem,) = problems_of({**SMALLEST, "tuner": section})
    assert problem.startswith(expected)


def test_trials_that_share_a_gpu_need_a_gpu_number() -> None:
    data = {**SMALLEST, "training_service": {"platform": "local", "max_trial_number_per_gpu": 2}}
    (problem,) = problems_of(data)
    assert (
        problem == "training_service.max_trial_number_per_gpu: needs trial_gpu_number (trial_gpu_number: 1)"
    )
    ExperimentConfig.from_dict({**data, "trial_gpu_number": 1})


def test_parameter_named_constraints_is_not_mistaken_for_the_constraints() -> None:
    (problem,) = problems_of(
        {**SMALLEST, "search_space": {"constraints": {"_type": "uniform", "_value": [1]}}}
    )
    assert problem.startswith("search_space.constraints._value")


def test_limit_that_users_lower_later_does_not_make_a_stop_rule_invalid() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "stop_when": {"expected_gain_below": 0.1}})
    lowered = {**config.canonical(), "maxTrialNumber": 3}
    assert ExperimentConfig.from_canonical(lowered).max_trial_number == 3


LOSS = {"name": "loss", "direction": "minimize"}


@pytest.mark.parametrize(
    ("objectives", "problem"),
    [
        (
            [{"name": "ms", "constraint": "<= 2"}],
            "objectives: nothing is optimised: all of these are only limited (give one of them a direction)",
        ),
        (
            [LOSS, {"name": "ms"}],
            'objectives[1].direction: required field is missing (or a constraint, such as constraint: "<= 20")',
        ),
        (
            [LOSS, {"name": "ms", "constraint": "<= 2", "reference": 3}],
            "objectives[1].reference: belongs to an objective with a direction; this one is only limited",
        ),
        (
            [LOSS, {**LOSS, "constraint": "<= 2"}],
            'objectives[1].name: there is another objective named "loss"',
        ),
        (
            [LOSS, {"name": "f1", "direction": "maximize", "constraint": "<= 0.5", "reference": 0.5}],
            "objectives[1].reference: no value keeps <= 0.5 and is better than the reference"
            " (the reference is worse than every good value)",
        ),
        (
            [LOSS, {"name": "ms", "direction": "minimize", "constraint": ">= 2, <= 9", "reference": 1}],
            "objectives[1].reference: no value keeps >= 2, <= 9 and is better than the reference"
            " (the reference is worse than every good value)",
        ),
    ],
)
def test_bad_objective_is_a_problem_with_a_place(objectives: list[Any], problem: str) -> None:
    assert problems_of({**SMALLEST, "objectives": objectives}) == [problem]


@pytest.mark.parametrize("constraint", ["<= 9", ">= 0.5", ">= 0.5, <= 9"])
def test_reference_may_lie_within_the_limits_or_beyond(constraint: str) -> None:
    limited = {"name": "ms", "direction": "minimize", "constraint": constraint, "reference": 3}
    data = {**SMALLEST, "objectives": [LOSS, limited], "max_trial_number": 9}
    assert ExperimentConfig.from_dict(data).warnings == []


@pytest.mark.parametrize("tuner", [{"name": "TPE"}, {"class_name": "m.C", "code_directory": "."}])
def test_optimize_mode_must_be_the_direction_of_the_main_objective(tuner: dict[str, Any]) -> None:
    objectives = [
        {"name": "ms", "constraint": "<= 2"},
        {"name": "f1", "direction": "maximize"},
        {"name": "cost", "direction": "minimize"},
    ]
    data = {**SMALLEST, "objectives": objectives}
    assert problems_of({**data, "tuner": {**tuner, "class_args": {"optimize_mode": "minimize"}}}) == [
        "tuner.class_args.optimize_mode: minimize contradicts maximize of objectives[1].direction"
    ]
    assert ExperimentConfig.from_dict(
        {**data, "tuner": {**tuner, "class_args": {"optimize_mode": "maximize"}}}
    )


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({}, "stop_when.expected_gain_below: required field is missing"),
        ({"expected_gain_below": -1}, "must be greater than 0, not -1 (a number in units of the objective,"),
        ({"expected_gain_below": 0}, "must be greater than 0, not 0"),
        ({"expected_gain_below": "small"}, 'must be a number or noise, not "small"'),
        ({"expected_gain_below": "nois"}, "(did you mean noise?)"),
        ({"expected_gain_below": True}, "must be a number or noise, not true"),
        ({"expected_gain_below": float("nan")}, "must be a number or noise, not NaN"),
        (
            {"expected_gain_below": "noise", "min_trials": 0},
            "stop_when.min_trials: must be greater than 0, not 0",
        ),
        ({"expected_gain_below": "noise", "min_trials": 2.5}, "stop_when.min_trials: must be an integer"),
        ({"expected_gain_below": "noise", "mintrial": 9}, "stop_when.mintrial: unknown field (did you mean"),
        (0.001, "stop_when: must be a mapping, not 0.001"),
        (
            {"expected_gain_below": "noise", "min_trials": 31},
            "stop_when.min_trials: is 31, more than max_trial_number (30): the search would never end early",
        ),
    ],
)
def test_bad_stop_rule_is_a_problem_with_a_place(rule: Any, problem: str) -> None:
    (found,) = problems_of({**SMALLEST, "max_trial_number": 30, "stop_when": rule})
    assert problem in found


def test_default_of_the_stop_rule_that_is_too_high_is_said_to_be_one() -> None:
    (found,) = problems_of({**SMALLEST, "max_trial_number": 6, "stop_when": {"expected_gain_below": "noise"}})
    assert found.startswith("stop_when.min_trials: is 20 by default, more than max_trial_number (6): ")


@pytest.mark.parametrize(("repeats", "trials", "most"), [(5, 20, 10), ({"count": 3, "race": False}, 59, 19)])
def test_stop_rule_counts_configurations_where_they_are_repeated(
    repeats: Any, trials: int, most: int
) -> None:
    rule = {"expected_gain_below": "noise"}
    (found,) = problems_of({**SMALLEST, "max_trial_number": trials, "repeats": repeats, "stop_when": rule})
    what = (
        f"is 20 by default, more than the {most} configurations of max_trial_number ({trials}) with repeats"
    )
    assert found == f"stop_when.min_trials: {what}: the search would never end early (at most {most})"


def test_stop_rule_needs_one_objective() -> None:
    objectives = [{"name": "a", "direction": "minimize"}, {"name": "b", "direction": "maximize"}]
    rule = {"expected_gain_below": "noise"}
    assert problems_of({**SMALLEST, "objectives": objectives, "stop_when": rule}) == [
        "stop_when: needs a single objective with a direction, and there are 2: a, b"
        " (limit the others instead: constraint without direction)"
    ]
    limited = [objectives[0], {"name": "b", "constraint": "<= 3"}]
    ExperimentConfig.from_dict({**SMALLEST, "objectives": limited, "stop_when": rule})


def test_stop_rule_may_be_spelled_like_any_field_and_is_kept() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "stopWhen": {"expectedGainBelow": 1, "MIN_TRIALS": 9}})
    assert config.canonical()["stopWhen"] == {"expectedGainBelow": 1.0, "minTrials": 9}
    assert ExperimentConfig.from_canonical(config.canonical()) == config


MINE = {"class_name": "mine.Tuner", "code_directory": "."}
FREE = {"x": [1, 100], "route": {"_type": "factor", "_value": 3}}


def test_search_space_in_any_form_goes_unread_to_a_tuner_of_the_users() -> None:
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "search_space": FREE, "tuner": MINE, "max_trial_number": 3}
    )
    assert config.search_space == FREE
    (warning,) = config.warnings
    assert warning.startswith(
        "the search space is passed to mine.Tuner unread, because it is not in the usual form ("
    )
    assert ExperimentConfig.from_canonical(config.canonical()) == config


@pytest.mark.parametrize(
    "more",
    [
        {"tuner": "TPE"},
        {"tuner": MINE, "constraints": ["x < 3"]},
        {"tuner": MINE, "initial_points": [{"x": 1}]},
        {"tuner": MINE, "priors": {"x": 1}},
        {"tuner": MINE, "defaults": {"x": 1}},
    ],
)
def test_search_space_that_others_read_has_the_usual_form(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="search_space"):
        ExperimentConfig.from_dict({**SMALLEST, "search_space": FREE, **more})


def test_search_space_in_the_usual_form_is_no_warning_for_a_tuner_of_the_users() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "search_space": space, "tuner": MINE, "max_trial_number": 3}
    )
    assert config.warnings == []


@pytest.mark.parametrize(
    ("command", "warnings"),
    [
        ("python t.py {args} -l {lr}", []),
        ("awk '{print}' ${arg} {} {o,p} [a-z]{3}", []),
        ("./t {kernel} {model}", []),
        (
            "./t -y {depth} {depth}",
            [
                "{depth} in trial_command is no parameter and stays as it is: there are args, lr, model, kernel"
            ],
        ),
        ("./t '{lrr}'", ["{lrr} in trial_command is no parameter and stays as it is: did you mean lr?"]),
        (
            "python t.py {agrs}",
            ["{agrs} in trial_command is no parameter and stays as it is: did you mean args?"],
        ),
        ("./t {lrr}", ["{lrr} in trial_command is no parameter and stays as it is: did you mean lr?"]),
    ],
)
def test_placeholder_that_is_no_parameter_is_a_warning(command: str, warnings: list[str]) -> None:
    conv = {"_name": "conv", "kernel": {"_type": "randint", "_value": [1, 5]}}
    space = {
        "lr": {"_type": "uniform", "_value": [0, 1]},
        "model": {"_type": "choice", "_value": [conv, {"_name": "none"}]},
    }
    data = {"search_space": space, "trial_command": command, "max_trial_number": 3}
    assert ExperimentConfig.from_dict(data).warnings == warnings


def test_tuner_of_the_users_may_add_the_parameters_of_placeholders() -> None:
    tuner = {"class_name": "mine.Tuner", "code_directory": "."}
    data = {"search_space": {}, "trial_command": "./t {depth}", "tuner": tuner, "max_trial_number": 3}
    assert ExperimentConfig.from_dict(data).warnings == []
