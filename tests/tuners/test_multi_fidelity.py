"""ASHA, BOHB, DEHB, PB2 and NNI's kind of PBT, run by a test that plays manager and trials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import ASHATuner, BOHBTuner, DEHBTuner, PB2Tuner, PBTTuner, RandomTuner
from pitchpipe.tuners.pb2 import _TimeVarying

from .base.test_scheduled_tuner import SPACE, Game, Trial, hyperband, pbt, played
from .searches import LINE, started


def asha(space: Any = SPACE, **arguments: Any) -> Any:
    chosen = {"optimize_mode": "minimize", "R": 27, "tuner": "Random", "seed": 1, **arguments}
    return started(ASHATuner(**chosen), space)


def bohb(space: Any = SPACE, **arguments: Any) -> Any:
    chosen = {"optimize_mode": "minimize", "max_budget": 9, "seed": 1, **arguments}
    return started(BOHBTuner(**chosen), space)


def dehb(space: Any = SPACE, **arguments: Any) -> Any:
    chosen = {"optimize_mode": "minimize", "max_budget": 9, "seed": 1, **arguments}
    return started(DEHBTuner(**chosen), space)


def pb2(space: Any = SPACE, **arguments: Any) -> Any:
    chosen = {"optimize_mode": "minimize", "population_size": 6, "interval": 5, "seed": 1, **arguments}
    return started(PB2Tuner(**chosen), space)


def by_number(trial: Trial) -> float:
    """Return a result by which the first trials are the worst and every tenth is better than all before."""
    return float(trial.parameter_id * 7 % 10) - trial.parameter_id // 10


# --------------------------------------------------------------------------------------------- ASHA


class Rungs:
    """Algorithm 2 of the paper, the slow way: what is promoted when a result arrives at a rung."""

    def __init__(self, eta: int, rungs: int) -> None:
        self.eta, self.results = eta, [dict[str, float]() for _ in range(rungs)]
        self.promoted = [set[str]() for _ in range(rungs)]

    def arrive(self, rung: int, trial: str, loss: float) -> list[str]:
        results = self.results[rung]
        results[trial] = loss
        best = sorted(results, key=results.__getitem__)[: len(results) // self.eta]
        new = [each for each in best if each not in self.promoted[rung]]
        self.promoted[rung].update(new)
        return new


@pytest.mark.parametrize(("slots", "eta"), [(1, 3), (4, 3), (7, 2)])
def test_asha_promotes_every_trial_in_the_best_of_its_rung_when_the_rung_grows(slots: int, eta: int) -> None:
    tuner = asha(eta=eta, R=eta**3)
    reference = Rungs(eta, 3)
    due: list[str] = []

    class Watching(Game):
        def pause(self, trial_job_id: str, reason: str) -> None:
            super().pause(trial_job_id, reason)
            trial = self.trials[trial_job_id]
            due.extend(reference.arrive(round(math.log(trial.count, eta)), trial_job_id, self.value(trial)))

        def resume(
            self, trial_job_id: str, parameters: Any, checkpoint_of: Any, budget: Any, pauses: bool = False
        ) -> None:
            super().resume(trial_job_id, parameters, checkpoint_of, budget, pauses)
            assert due.pop(0) == trial_job_id

    game = Watching(tuner, slots=slots, most=40, length=eta**3, value=by_number)
    for _ in range(60):
        game.turn()
        assert due == []
    assert len(reference.promoted[0]) >= len(reference.results[0]) // eta > 5


def test_asha_waits_for_no_trial() -> None:
    slow: set[str] = set()
    game = Game(asha(), slots=4, most=30)
    game._fill()
    slow.add("t0")
    for _ in range(40):
        for trial in [each for each in game.trials.values() if each.status == "runs" and each.id not in slow]:
            game._turn(trial)
        game._fill()
    assert game.trials["t0"].count == 0
    assert 27 in game.counts("succeeded")


def test_asha_budgets_end_at_the_full_one() -> None:
    game = played(asha(R=20, grace_period=2), most=12, length=20)
    budgets = [2, 6, 18, 20]
    assert all(trial.budgets == budgets[: len(trial.budgets)] for trial in game.trials.values())
    assert game.counts("succeeded") == [20]


def test_asha_brings_a_trial_to_the_end_however_few_there_are() -> None:
    for most in (1, 2, 4):
        game = played(asha(), most=most)
        assert game.counts("succeeded") == [27]


def test_asha_prefers_the_largest_when_maximising() -> None:
    game = played(asha(optimize_mode="maximize"), slots=1, most=30, value=lambda trial: trial.parameters["x"])
    best = max(game.trials.values(), key=lambda trial: trial.parameters["x"])
    assert best.status == "succeeded"


class Heard(RandomTuner):
    """A tuner that proposes, and the calls it receives."""

    wants_periodical = True

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self.calls: list[tuple[Any, ...]] = []

    def receive_intermediate_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.calls.append(("on the way", parameter_id, kwargs["sequence"]))

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.calls.append(("final", parameter_id))

    def trial_stopped(self, parameter_id: int) -> None:
        self.calls.append(("stopped", parameter_id))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.calls.append(("end", parameter_id, success))


def heard_of(**arguments: Any) -> tuple[Any, Heard]:
    tuner = asha(**arguments)
    tuner._source = started(Heard(1), SPACE)
    return tuner, tuner._source


@pytest.mark.parametrize("obeys", [False, True])
def test_asha_tells_the_tuner_that_proposes_what_becomes_of_each_proposal(obeys: bool) -> None:
    tuner, heard = heard_of(R=9)
    played(tuner, slots=1, most=12, length=9, obeys=obeys)
    full = [call[1] for call in heard.calls if call[0] == "final"]
    assert len(full) >= 1
    for proposal in range(1, 5 if obeys else 13):
        stages = [call[2] + 1 for call in heard.calls if call[:2] == ("on the way", proposal)]
        assert stages == sorted(set(stages))
        assert stages[-1] in (1, 3, 9)
        assert (("end", proposal, True) in heard.calls) == (proposal in full) == (stages[-1] == 9)


def test_asha_tells_stopped_proposals_from_failed_ones() -> None:
    tuner, heard = heard_of()
    for parameter_id in (7, 8):
        tuner.generate_parameters(parameter_id)
    tuner.trial_stopped(7)
    tuner.trial_end(7, False)
    tuner.trial_end(8, False)
    assert heard.calls == [("stopped", 1), ("end", 1, False), ("end", 2, False)]


def test_asha_with_a_tuner_that_learns_finds_more() -> None:
    found = {}
    for name in ("Random", "TPE"):
        losses = []
        for seed in range(5):
            tuner = asha(R=9, tuner=name, seed=seed)
            game = played(tuner, slots=2, most=40, length=9, value=distance)
            losses.append(min(distance(trial) for trial in game.trials.values() if trial.count == 9))
        found[name] = float(np.mean(losses))
    assert found["TPE"] < found["Random"] / 2


def distance(trial: Trial) -> float:
    lr = math.log10(trial.parameters["lr"]) + 2
    return (
        (trial.parameters["x"] - 0.3) ** 2
        + lr * lr / 4
        + (trial.parameters["kind"] != "b")
        + 0.1 / trial.count
    )


# --------------------------------------------------------------------------------------------- BOHB


def drawn(*known: tuple[int, int, float], count: int = 30, random_fraction: float = 0.0) -> np.ndarray:
    """Draw where results are known: budget, how many, and the x that is best; the nearer, the better."""
    tuner = bohb(LINE, random_fraction=random_fraction)
    for budget, points, best in known:
        for x in np.linspace(0, 1, points):
            tuner._note(budget, abs(float(x) - best), {"x": float(x)})
    return np.array([tuner.generate_parameters(i).parameters["x"] for i in range(count)])


def test_bohb_draws_where_good_results_are_dense() -> None:
    found = drawn((9, 40, 0.3))
    assert abs(np.median(found) - 0.3) < 0.1
    assert np.mean(np.abs(found - 0.3) < 0.2) > 0.9


def test_bohb_models_the_largest_budget_that_has_enough_results() -> None:
    found = drawn((1, 40, 0.1), (3, 20, 0.9), (9, 3, 0.5))  # N_min + 2 are 4
    assert abs(np.median(found) - 0.9) < 0.1


def test_bohb_draws_at_random_as_often_as_configured() -> None:
    found = drawn((9, 40, 0.3), count=60, random_fraction=1.0)
    assert np.mean(np.abs(found - 0.3) < 0.2) < 0.6


@pytest.mark.parametrize(
    ("count", "dimension", "least", "split"),
    [(4, 2, None, None), (5, 2, None, (3, 5)), (40, 2, None, (6, 34)), (9, 1, 4, (4, 8))],
)
def test_bohb_splits_as_the_paper_has_it(count: int, dimension: int, least: int | None, split: Any) -> None:
    assert BOHBTuner(min_points_in_model=least)._model.split(count, dimension) == split


def test_bohb_starts_at_its_least_budget() -> None:
    tuner = bohb(min_budget=3, max_budget=27)
    assert [tuner.generate_parameters(i).budget for i in range(10)] == [3] * 9 + [9]


def test_bohb_learns_from_its_own_trials() -> None:
    game = played(bohb(random_fraction=0.2), most=80, length=9)
    early, late = (
        [abs(game.trials[f"t{i}"].parameters["x"] - 0.3) for i in part] for part in (range(9), range(60, 80))
    )
    assert np.median(late) < np.median(early)
    assert 9 in game.counts("succeeded")


# --------------------------------------------------------------------------------------------- DEHB


def test_dehb_begins_with_a_hyperband_bracket_that_continues_from_checkpoints() -> None:
    game = played(dehb(), slots=9, most=9, length=9)
    assert game.counts("stopped") == [1] * 6 + [3] * 2
    assert game.counts("succeeded") == [9]
    assert game.ended("succeeded")[0].budgets == [1, 3, 9]


def test_dehb_measures_new_configurations_on_every_rung_of_later_brackets() -> None:
    game = played(dehb(), most=60, length=9)
    later = [trial for trial in game.trials.values() if trial.parameter_id >= 9]
    assert all(len(trial.budgets) == 1 for trial in later)
    assert {trial.budgets[0] for trial in later} == {1, 3, 9}
    assert all(trial.count == trial.budgets[0] for trial in later)
    assert len({repr(trial.parameters) for trial in game.trials.values()}) == 60


def test_dehb_keeps_the_better_of_target_and_challenger() -> None:
    tuner = dehb()
    game = Game(tuner, most=120, length=9)
    worst = []
    for _ in range(60):
        game.turn()
        worst.append([float(np.sort(each.losses)[0]) for each in tuner._populations])
    assert all(
        later <= earlier for a, b in itertools.pairwise(worst) for earlier, later in zip(a, b, strict=True)
    )
    seen = [
        min(
            abs(trial.parameters["x"] - 0.3) + 1 / budget
            for trial in game.trials.values()
            if budget in trial.budgets and trial.count >= budget
        )
        for budget in (1, 3)
    ]
    assert [float(each.losses.min()) for each in tuner._populations[:2]] == pytest.approx(seen)
    assert all(each.losses.shape == (size,) for each, size in zip(tuner._populations, (9, 5, 3), strict=True))


def test_dehb_breeds_from_the_best_of_the_budget_below() -> None:
    tuner = dehb(LINE, crossover_prob=1.0)
    low = tuner._populations[1]
    low.vectors[:, 0], low.losses[:] = np.linspace(0.4, 0.48, 5), np.arange(5.0)
    tuner._opened = 1  # the next one begins on the budget 3
    member: Any = tuner._new_member()
    bracket = member.bracket
    assert bracket.levels == [1, 2]
    bracket.rung = 1
    for _ in range(10):
        parents = tuner._parents(bracket, bracket.levels[1])
        assert len(parents) == 3
        assert ((parents >= 0.4) & (parents <= 0.48)).sum() >= bracket.sizes[1]


def test_offspring_stay_in_the_cube_and_differ_from_their_target() -> None:
    tuner = dehb(crossover_prob=0.0)
    target = np.array([0.5, 0.5, 0.5])
    for _ in range(100):
        child = tuner._offspring(tuner._rng.random((4, 3)), target)
        assert ((child >= 0) & (child <= 1)).all()
        assert (child != target).sum() == 1  # the one parameter that always crosses


# ---------------------------------------------------------------------------------------------- PB2


def test_pb2_goes_where_members_improved_most() -> None:
    totals: dict[str, float] = {}

    def value(trial: Trial) -> float:
        totals[trial.id] = totals.get(trial.id, 100.0) - (1 - abs(trial.parameters["x"] - 0.7))
        return totals[trial.id]

    tuner = pb2(LINE, population_size=8, interval=1, fraction=0.25, seed=2)
    game = played(tuner, slots=8, most=8, length=12, value=value)
    chosen = [trial.parameters["x"] for trial in game.trials.values() if any(trial.sources)]
    assert abs(float(np.median(chosen)) - 0.7) < 0.15


def test_pb2_learns_from_improvements_and_not_from_what_members_have() -> None:
    tuner = pb2(LINE, population_size=4, interval=1, fraction=0.0, seed=2)
    # The higher the number, the worse a member begins, and the more it improves.
    played(tuner, most=4, length=4, value=lambda t: 100.0 * t.parameter_id - t.parameter_id * t.count)
    gains = [gain for _, generation, gain in tuner._measured if generation > 1]
    assert len(gains) >= 8
    for start in range(0, len(gains), 4):
        assert gains[start : start + 4] == sorted(gains[start : start + 4])
        assert sum(gains[start : start + 4]) == pytest.approx(0)


def test_what_was_learned_is_forgotten_with_time() -> None:
    features, times = np.array([[0.1], [0.9], [0.1], [0.9]]), np.array([1.0, 1.0, 9.0, 9.0])
    changed = _TimeVarying(features, times, np.array([1.0, -1.0, -1.0, 1.0]))
    assert changed._settings[1] > 0
    mean, deviation = changed.predict(features[:2], 9.0)
    assert mean[0] < 0 < mean[1]
    assert (changed.predict(features[:2], 30.0)[1] > deviation).all()


def test_choices_of_one_generation_keep_apart() -> None:
    features = np.linspace(0, 1, 6)[:, None]
    model = _TimeVarying(features, np.ones(6), -np.abs(features[:, 0] - 0.5) * 2)
    before = model.predict(np.array([[0.52]]), 2.0)[1]
    model.believe(np.array([[0.5]]), 2.0)
    assert model.predict(np.array([[0.52]]), 2.0)[1] < before


def left_after(tuner: Any) -> float:
    """Return the log of the best loss after 12 generations of a training whose best learning rate falls with time."""
    losses: dict[str, float] = {}
    saved: dict[str, float] = {}

    class Training(Game):
        def resume(
            self, trial_job_id: str, parameters: Any, checkpoint_of: Any, budget: Any, pauses: bool = False
        ) -> None:
            super().resume(trial_job_id, parameters, checkpoint_of, budget, pauses)
            losses[trial_job_id] = saved[checkpoint_of or trial_job_id]

        def pause(self, trial_job_id: str, reason: str) -> None:
            super().pause(trial_job_id, reason)
            saved[trial_job_id] = losses[trial_job_id]

    def value(trial: Trial) -> float:
        distance = math.log10(trial.parameters["lr"]) + 0.5 + 2.5 * trial.count / 36
        rate = math.exp(-(distance**2) - 10 * (trial.parameters["x"] - 0.8) ** 2)
        losses[trial.id] = losses.get(trial.id, 1.0) * (1 - 0.15 * rate)
        return losses[trial.id]

    game = Training(tuner, slots=4, most=4, length=36, value=value)
    game.play()
    return math.log(min(losses.values()))


def test_populations_beat_members_that_train_alone() -> None:
    shared: dict[str, Any] = {
        "optimize_mode": "minimize",
        "population_size": 4,
        "interval": 3,
        "fraction": 0.25,
    }
    lost: dict[str, list[float]] = {"alone": [], "PBT": [], "PB2": []}
    for seed in range(10):
        lost["alone"].append(left_after(started(PBTTuner(**{**shared, "fraction": 0.0}, seed=seed), SPACE)))
        lost["PBT"].append(left_after(started(PBTTuner(**shared, seed=seed), SPACE)))
        lost["PB2"].append(left_after(started(PB2Tuner(**shared, seed=seed), SPACE)))
    for name in ("PBT", "PB2"):
        gains = np.array(lost["alone"]) - np.array(lost[name])
        assert gains.mean() > 2.262 * gains.std(ddof=1) / math.sqrt(10)  # the 95 % interval is above 0
    assert np.mean(lost["PB2"]) < np.mean(lost["PBT"])


def test_pb2_meets_constraints() -> None:
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}
    tuner = PB2Tuner("minimize", population_size=4, interval=1, fraction=0.5, seed=2)
    started(tuner, space, constraints=["x < y"])
    game = played(tuner, length=6, most=4, value=lambda trial: trial.parameters["x"] * trial.count)
    assert all(trial.parameters["x"] < trial.parameters["y"] for trial in game.trials.values())


# ---------------------------------------------------------------------------------------- NNI's PBT


def test_pbt_with_folders_makes_a_trial_of_each_generation() -> None:
    tuner = started(
        PBTTuner("minimize", population_size=4, fraction=0.25, all_checkpoint_dir="/all", seed=1), SPACE
    )
    game = played(tuner, slots=4, most=12, length=3, obeys=True, value=lambda trial: trial.parameters["x"])
    assert game.counts("succeeded") == [3] * 12
    saved = [trial.parameters["save_checkpoint_dir"] for trial in game.trials.values()]
    assert sorted(saved) == sorted(
        f"/all/{member}/{generation}" for generation in (1, 2, 3) for member in range(4)
    )
    loaded = [trial.parameters["load_checkpoint_dir"] for trial in game.trials.values()]
    assert set(loaded[:4]) == {f"/all/{member}/0" for member in range(4)}
    assert set(loaded[4:8]) < set(saved[:4])  # one is loaded twice, and that of the worst not at all
    worst = max(list(game.trials.values())[:4], key=lambda trial: trial.parameters["x"])
    assert worst.parameters["save_checkpoint_dir"] not in loaded


# ------------------------------------------------------------------------------------------ all of them


@pytest.mark.parametrize("make", [asha, bohb, dehb, hyperband, pb2, pbt])
def test_pickled_on_the_way_it_continues_alike(make: Callable[[], Any]) -> None:
    games = [Game(make(), most=30, length=12) for _ in range(2)]
    for game in games:
        for _ in range(9):
            game.turn()
    games[1].tuner = cloudpickle.loads(cloudpickle.dumps(games[1].tuner))
    games[1].tuner.connect_trials(games[1])
    stories = []
    for game in games:
        game.play()
        stories.append([(t.id, t.parameters, t.budgets, t.status, t.count) for t in game.trials.values()])
    assert stories[0] == stories[1]


@pytest.mark.parametrize("obeys", [False, True])
@pytest.mark.parametrize("make", [asha, bohb, dehb, hyperband, pb2, pbt])
def test_failures_nan_and_early_ends_are_survived(make: Callable[[], Any], obeys: bool) -> None:
    def dies(trial: Trial) -> bool:
        return trial.parameter_id % 5 == 2 and trial.count == 2

    def value(trial: Trial) -> float:
        return math.nan if trial.parameter_id % 4 == 1 else abs(trial.parameters["x"] - 0.3)

    game = played(make(), most=40, length=7, obeys=obeys, dies=dies, value=value)
    space = SearchSpace.parse(SPACE)
    assert not game.ended("runs") + game.ended("waits")
    assert all(space.validate(trial.parameters) == [] for trial in game.trials.values())
    assert game.counts("succeeded")
