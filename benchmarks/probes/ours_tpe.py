"""What a TPE suggestion costs after many results, in a space of ten parameters."""

import random
import time

from harness import answer, options, ten_parameters, ten_parameters_value

from pitchpipe.tuners import create

SPACE = {
    **{f"u{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(4)},
    **{f"l{i}": {"_type": "loguniform", "_value": [1e-5, 1]} for i in range(3)},
    **{f"r{i}": {"_type": "randint", "_value": [0, 100]} for i in range(2)},
    "c": {"_type": "choice", "_value": ["a", "b", "c"]},
}
MEASURED = {1_000: 300, 10_000: 200, 50_000: 60}

chosen = options()
rng = random.Random(0)


def fill(results: int) -> None:
    points = [ten_parameters(rng) for _ in range(results)]
    tuner.import_data([{"parameter": each, "value": ten_parameters_value(each)} for each in points])


def suggestion(number: int, first: int) -> float:
    """Return the mean seconds of a suggestion and of learning its result."""
    spent = 0.0
    for parameter_id in range(first, first + number):
        began = time.perf_counter()
        parameters = tuner.generate_parameters(parameter_id)
        tuner.receive_trial_result(parameter_id, parameters, ten_parameters_value(parameters))
        spent += time.perf_counter() - began
    return spent / number


tuner = create("TPE", optimize_mode="minimize", seed=0)
tuner.update_search_space(SPACE)
known, found, given = 0, {}, 0
for results, most in MEASURED.items():
    if results > chosen.size:
        break
    number = min(most, chosen.size // 40)
    fill(results - known)
    suggestion(5, given)
    found[f"after_{results}"] = suggestion(number, given + 5)
    given += number + 5
    known = results + number + 5
answer(**found)
