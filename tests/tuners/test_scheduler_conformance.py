"""The schedulers pass the conformance suite of tuners, as far as it applies to those that run trials in stages.

The suite knows no budgets: each trial ends with a final result, as that of a script that obeys its budget does, and the
scheduler continues it as a new trial from its checkpoint. So configurations do come twice here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.testing import DIFFERENT, SPACES, TunerConformance
from pitchpipe.tuners import (
    ASHATuner,
    BOHBTuner,
    DEHBTuner,
    HyperbandTuner,
    PB2Tuner,
    PBTTuner,
    Suggestion,
    TrialControl,
    Tuner,
)


class Obeys(TrialControl):
    """Trials that end at their budget are never paused, so there is nothing to do."""

    def pause(self, trial_job_id: str, reason: str) -> None:
        raise AssertionError("nothing was reported on the way")

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Any] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        raise AssertionError("nothing was paused")

    def stop(self, trial_job_id: str, reason: str) -> None:
        raise AssertionError("everything has ended")


class Unwrapped(Tuner):
    """A scheduler as the suite sees it: plain parameters without budget."""

    def __init__(self, inner: Tuner) -> None:
        self.inner = inner

    def update_constraints(self, constraints: Sequence[str]) -> None:
        self.inner.update_constraints(constraints)

    def update_search_space(self, search_space: Any) -> None:
        self.inner.connect_trials(Obeys())
        self.inner.update_search_space(search_space)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        suggestion = self.inner.generate_parameters(parameter_id)
        assert isinstance(suggestion, Suggestion)
        return dict(suggestion.parameters)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.inner.receive_trial_result(parameter_id, parameters, value, trial_job_id=f"t{parameter_id}")

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.inner.trial_end(parameter_id, success)

    def import_data(self, data: list[Any]) -> None:
        self.inner.import_data(data)


MAKERS: dict[str, Any] = {
    "ASHA": lambda seed: ASHATuner(R=9, tuner="Random", seed=seed),
    "ASHA with Auto": lambda seed: ASHATuner(R=9, seed=seed),
    "Hyperband": lambda seed: HyperbandTuner(R=9, seed=seed),
    "BOHB": lambda seed: BOHBTuner(max_budget=9, min_points_in_model=3, random_fraction=0.1, seed=seed),
    "DEHB": lambda seed: DEHBTuner(max_budget=9, seed=seed),
    "PBT": lambda seed: PBTTuner(population_size=6, seed=seed),
    "PB2": lambda seed: PB2Tuner(population_size=6, seed=seed),
}


class Schedulers(TunerConformance):
    trials: ClassVar[int] = 18
    exhausts: ClassVar[bool] = False  # a configuration is run once for every budget it comes to
    many_results: ClassVar[int] = 300
    spaces: ClassVar[dict[str, Any]] = {name: SPACES[name] for name in DIFFERENT}
    name: ClassVar[str]

    def make(self, seed: int) -> Tuner:
        return Unwrapped(MAKERS[self.name](seed))

    def test_a_batch_is_a_list_of_points(self, space: Any) -> None:
        points = self.started(space).generate_multiple_parameters(list(range(5)))
        assert len(points) >= 1
        parsed = SearchSpace.parse(space)
        assert [point for point in points if parsed.validate(point)] == []


def suite(name: str, **attributes: Any) -> type[Schedulers]:
    return type("Suite", (Schedulers,), {"name": name, **attributes})


TestASHA = suite("ASHA")
TestASHAWithAuto = suite("ASHA with Auto", trials=12, many_results=50)
TestHyperband = suite("Hyperband")
TestBOHB = suite("BOHB")
TestDEHB = suite("DEHB")
TestPBT = suite("PBT")
TestPB2 = suite("PB2", many_results=120)


@pytest.mark.parametrize("name", ["ASHA", "BOHB", "DEHB", "Hyperband"])
def test_points_are_new_as_long_as_there_are_any(name: str) -> None:
    """Among those that run for the first time; the suite's own tests cannot distinguish the two kinds."""
    tuner = MAKERS[name](1)
    tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 8]}})
    points = [tuner.generate_parameters(i).parameters["x"] for i in range(8)]
    assert sorted(points) == list(range(8))
