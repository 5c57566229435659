"""Hyperband and population-based training, run by a test that plays manager and trials."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import HyperbandTuner, NoMoreTrialError, PBTTuner, Suggestion, TrialControl

from ..searches import started

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}


class Trial:
    """A trial as the game has it: it makes a result a turn, `length` in all or as many as its budget says."""

    def __init__(self, parameter_id: int, suggestion: Suggestion, start: int) -> None:
        self.parameter_id = parameter_id
        self.id = f"t{parameter_id}"
        self.parameters = suggestion.parameters
        self.budgets: list[Any] = [suggestion.budget]
        self.pauses = suggestion.pauses_at_budget
        self.source = suggestion.checkpoint_of
        self.count = self.start = self.saved = start
        self.status = "runs"
        self.sources: list[str | None] = []


class Game(TrialControl):
    """Manager and trials in one: `slots` trials run at once, each makes a result in its turn."""

    def __init__(
        self,
        tuner: Any,
        slots: int = 4,
        most: int = 60,
        length: int = 27,
        obeys: bool = False,
        value: Callable[[Trial], float] | None = None,
        dies: Callable[[Trial], bool] = lambda trial: False,
    ) -> None:
        self.tuner, self.slots, self.most, self.length, self.obeys = tuner, slots, most, length, obeys
        self.value = value or (lambda trial: abs(trial.parameters["x"] - 0.3) + 1 / max(1, trial.count))
        self.dies = dies
        self.trials: dict[str, Trial] = {}
        self.queue: deque[Trial] = deque()
        self.reasons: dict[str, str] = {}
        tuner.connect_trials(self)

    def pause(self, trial_job_id: str, reason: str) -> None:
        trial = self.trials[trial_job_id]
        assert trial.status == "runs"
        trial.status, trial.saved = "paused", trial.count

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Any] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        trial = self.trials[trial_job_id]
        assert trial.status == "paused", trial.status
        trial.status = "waits"
        trial.parameters = dict(parameters) if parameters is not None else trial.parameters
        trial.sources.append(checkpoint_of)
        trial.budgets.append(budget)
        trial.pauses = pauses_at_budget
        self.queue.append(trial)

    def stop(self, trial_job_id: str, reason: str) -> None:
        trial = self.trials[trial_job_id]
        assert trial.status == "paused"
        self.reasons[trial_job_id] = reason
        self._end(trial, "stopped")

    def play(self, turns: int = 10_000) -> None:
        """Let the trials run until nothing more happens."""
        stalled = False
        for _ in range(turns):
            running = self.turn()
            paused = any(trial.status == "paused" for trial in self.trials.values())
            if not running and not self.queue:
                if stalled or not paused:
                    return
                self.tuner.trials_stalled()
                stalled = True
            else:
                stalled = False
        raise AssertionError("it never ends")

    def turn(self) -> list[Trial]:
        """Let each trial that runs make a result, and return these trials."""
        self._fill()
        running = [trial for trial in self.trials.values() if trial.status == "runs"]
        for trial in running:
            self._turn(trial)
        return running

    def _fill(self) -> None:
        while sum(trial.status == "runs" for trial in self.trials.values()) < self.slots:
            if self.queue:
                self.queue.popleft().status = "runs"
            elif not self._add():
                return

    def _add(self) -> bool:
        number = len(self.trials)
        if number >= self.most:
            return False
        try:
            suggestion = self.tuner.generate_parameters(number)
        except NoMoreTrialError:
            return False
        source = self.trials.get(suggestion.checkpoint_of or "")
        trial = Trial(number, suggestion, source.saved if source else 0)
        self.trials[trial.id] = trial
        return True

    def _turn(self, trial: Trial) -> None:
        if self.dies(trial):
            self._end(trial, "failed")
            return
        budget, pauses = trial.budgets[-1], trial.pauses
        end = min(self.length, budget) if self.obeys and budget is not None else self.length
        if trial.count < end:
            trial.count += 1
            self.tuner.receive_intermediate_result(
                trial.parameter_id,
                trial.parameters,
                self.value(trial),
                trial_job_id=trial.id,
                sequence=trial.count - 1,
            )
        spent = pauses and trial.count >= (budget or math.inf)
        if trial.count >= end and not spent and (self.obeys or trial.status == "runs"):
            self.tuner.receive_trial_result(
                trial.parameter_id, trial.parameters, self.value(trial), trial_job_id=trial.id
            )
            self._end(trial, "succeeded")

    def _end(self, trial: Trial, status: str) -> None:
        trial.status = status
        if trial in self.queue:
            self.queue.remove(trial)
        self.tuner.trial_end(trial.parameter_id, status == "succeeded")

    def ended(self, status: str) -> list[Trial]:
        return [trial for trial in self.trials.values() if trial.status == status]

    def counts(self, status: str) -> list[int]:
        return sorted(trial.count for trial in self.ended(status))


def played(tuner: Any, **arguments: Any) -> Game:
    game = Game(tuner, **arguments)
    game.play()
    return game


def hyperband(**arguments: Any) -> Any:
    return started(HyperbandTuner(**{"optimize_mode": "minimize", "R": 27, "seed": 1, **arguments}), SPACE)


@pytest.mark.parametrize("obeys", [False, True])
def test_bracket_lets_a_third_continue_from_rung_to_rung(obeys: bool) -> None:
    game = played(hyperband(), most=27, obeys=obeys)
    assert game.counts("stopped") == [1] * 18 + [3] * 6 + [9] * 2
    (winner,) = game.ended("succeeded")
    assert (winner.count, winner.budgets, winner.pauses) == (27, [1, 3, 9, 27], False)
    others = [abs(trial.parameters["x"] - 0.3) for trial in game.trials.values()]
    assert abs(winner.parameters["x"] - 0.3) == min(others)
    assert "is not among the best 9 of 27 with a budget of " in "; ".join(game.reasons.values())


def test_brackets_have_the_sizes_of_the_paper() -> None:
    tuner = hyperband(R=81, eta=3)
    budgets = [tuner.generate_parameters(i).budget for i in range(81 + 34 + 15 + 8 + 5 + 1)]
    runs = [(budget, len(list(group))) for budget, group in itertools.groupby(budgets)]
    assert runs == [(1, 81), (3, 34), (9, 15), (27, 8), (81, 5), (1, 1)]


def test_maximize_prefers_the_largest() -> None:
    game = played(hyperband(optimize_mode="maximize"), most=27, value=lambda trial: trial.parameters["x"])
    (winner,) = game.ended("succeeded")
    assert winner.parameters["x"] == max(trial.parameters["x"] for trial in game.trials.values())


def test_short_scripts_are_not_run_again_when_they_are_done() -> None:
    game = played(hyperband(), length=5, most=27)
    assert game.counts("succeeded") == [5, 5, 5]  # the three that came to the rung of 9
    assert len(game.trials) == 27


def test_failed_trials_leave_their_rung_to_the_others() -> None:
    game = played(hyperband(), most=27, dies=lambda trial: trial.parameter_id % 3 == 0)
    assert game.counts("succeeded") == [27]
    assert len(game.counts("failed")) == 9


def test_all_failing_is_survived() -> None:
    game = played(hyperband(), most=60, dies=lambda trial: True)
    assert len(game.counts("failed")) == 60


def test_nan_is_the_worst_result() -> None:
    game = played(
        hyperband(), most=27, value=lambda t: math.nan if t.parameters["x"] < 0.5 else t.parameters["x"]
    )
    assert min(t.parameters["x"] for t in game.trials.values() if t.status == "succeeded") >= 0.5


def test_rung_that_gets_no_more_trials_is_compared_as_it_is() -> None:
    game = played(hyperband(), most=10)
    assert game.counts("succeeded") == [27]
    assert game.counts("stopped") == [1] * 7 + [3] * 2


def test_serial_brackets_wait_for_each_other() -> None:
    tuner = hyperband(exec_mode="serial")
    for i in range(27):
        tuner.generate_parameters(i)
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(27)
    game = played(hyperband(exec_mode="serial"), most=30)
    assert game.trials["t27"].budgets[0] == 3


def test_finite_space_ends_the_search() -> None:
    tuner = started(HyperbandTuner(R=9, seed=1), {"x": {"_type": "randint", "_value": [0, 4]}})
    game = played(tuner, value=lambda trial: trial.parameters["x"], length=9)
    assert len(game.trials) == 4
    assert [t.parameters["x"] for t in game.trials.values() if t.status == "succeeded"] == [3]


def pbt(**arguments: Any) -> Any:
    chosen = {"optimize_mode": "minimize", "population_size": 6, "interval": 5, "seed": 1, **arguments}
    return started(PBTTuner(**chosen), SPACE)


def test_worst_take_over_checkpoints_of_the_best_and_vary_their_parameters() -> None:
    game = played(pbt(), length=11, slots=2)
    assert game.counts("succeeded") == [11] * 6
    for round_ in range(2):
        heirs = [trial for trial in game.trials.values() if trial.sources[round_] is not None]
        assert len(heirs) == 2  # a fifth of six, rounded up
    assert all(trial.budgets == [5, 10, 15] for trial in game.trials.values())


def test_exploited_are_the_worst_and_models_the_best() -> None:
    tuner = pbt(fraction=0.34)
    seen: dict[str, float] = {}

    def value(trial: Trial) -> float:
        return seen.setdefault(trial.id, trial.parameter_id)

    game = played(tuner, length=6, value=value)
    assert {t.id for t in game.trials.values() if t.sources[0]} == {"t3", "t4", "t5"}
    assert {t.sources[0] for t in game.trials.values() if t.sources[0]} <= {"t0", "t1", "t2"}


@pytest.mark.parametrize(("resample", "all_moved"), [(0.0, True), (1.0, False)])
def test_variation_moves_each_parameter_a_little_or_draws_it_again(resample: float, all_moved: bool) -> None:
    tuner = pbt(resample_probability=resample, factor=0.1)
    space = SearchSpace.parse(SPACE)
    old = {"x": 0.5, "lr": 0.01, "kind": "b"}
    distances = []
    for _ in range(50):
        new = tuner._vary(space, old)
        assert space.validate(new) == []
        distances.append(abs(space.encode(new) - space.encode(old))[:2])
    small = [all(abs(distance - 0.1) < 1e-9) for distance in distances]
    assert all(small) == all_moved
    assert any(small) == all_moved


def test_variation_meets_constraints_and_nested_branches() -> None:
    space = {
        "net": {
            "_type": "choice",
            "_value": [{"_name": "a"}, {"_name": "b", "n": {"_type": "randint", "_value": [1, 9]}}],
        },
        "x": {"_type": "uniform", "_value": [0, 1]},
        "y": {"_type": "uniform", "_value": [0, 1]},
    }
    tuner = PBTTuner(population_size=4, interval=1, fraction=0.5, optimize_mode="minimize", seed=2)
    started(tuner, space, constraints=["x < y"])
    game = played(tuner, length=8, value=lambda trial: trial.parameters["x"])
    parsed = SearchSpace.parse(space, ["x < y"])
    for trial in game.trials.values():
        assert parsed.validate(trial.parameters) == []
        assert parsed.violations(trial.parameters) == []


def test_scripts_that_obey_their_budgets_stay_one_trial_through_all_generations() -> None:
    game = played(pbt(generations=3), obeys=True, length=100, most=100)
    assert game.counts("succeeded") == [15] * 6
    assert all(trial.budgets == [5, 10, 15] for trial in game.trials.values())


def test_population_that_is_done_ends_the_search() -> None:
    game = played(pbt(), length=12, most=100)
    assert game.counts("succeeded") == [12] * 6
    with pytest.raises(NoMoreTrialError):
        game.tuner.generate_parameters(100)


def test_smaller_population_than_asked_for_continues() -> None:
    game = played(pbt(), length=11, most=4)
    assert game.counts("succeeded") == [11] * 4


def test_dead_member_is_replaced_from_the_best() -> None:
    dead = []

    def dies(trial: Trial) -> bool:
        if trial.parameter_id == 2 and trial.count == 3:
            dead.append(trial)
            return True
        return False

    game = played(pbt(), slots=6, length=11, most=100, dies=dies)
    assert len(dead) == 1
    (heir,) = [trial for trial in game.trials.values() if trial.source is not None]
    assert (heir.start, heir.budgets[0]) == (5, 10)
    assert game.counts("succeeded") == [11] * 6


def test_tuner_without_a_manager_says_so() -> None:
    tuner = hyperband()
    suggestion = tuner.generate_parameters(0)
    with pytest.raises(RuntimeError, match="cannot pause trials"):
        tuner.receive_intermediate_result(0, suggestion.parameters, 0.5, trial_job_id="t", sequence=0)
