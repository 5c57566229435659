"""What a suggestion of Optuna's TPE costs after many results, ten parameters, stored in memory."""

import random
import time

import optuna
from harness import answer, options, ten_parameters, ten_parameters_value
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

SPACE = {
    **{f"u{i}": FloatDistribution(0, 1) for i in range(4)},
    **{f"l{i}": FloatDistribution(1e-5, 1, log=True) for i in range(3)},
    **{f"r{i}": IntDistribution(0, 99) for i in range(2)},
    "c": CategoricalDistribution(["a", "b", "c"]),
}
MEASURED = {1_000: 40, 10_000: 10, 50_000: 3}

optuna.logging.set_verbosity(optuna.logging.WARNING)
chosen = options()
rng = random.Random(0)


def fill(results: int) -> None:
    points = [ten_parameters(rng) for _ in range(results)]
    study.add_trials(
        [
            optuna.create_trial(params=each, distributions=SPACE, value=ten_parameters_value(each))
            for each in points
        ]
    )


def suggestion(number: int) -> float:
    """Return the mean seconds of a suggestion and of learning its result."""
    began = time.perf_counter()
    for _ in range(number):
        trial = study.ask(SPACE)
        study.tell(trial, ten_parameters_value(trial.params))
    return (time.perf_counter() - began) / number


study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
known, found = 0, {}
for results, most in MEASURED.items():
    if results > chosen.size:
        break
    number = min(most, chosen.size // 40)
    fill(results - known)
    suggestion(1)
    found[f"after_{results}"] = suggestion(number)
    known = results + number + 1
answer(**found)
