"""Stoppers: users' rules that end trials which have done enough, or the whole experiment.

A stopper judges every result that comes in. A trial that it ends has succeeded: its last result is its final result.
An assessor, in contrast, compares trials and stops the bad ones. House rules: a stopper gets plain data, keeps its own
state, and decides by the results alone, so that the results in the store restore its state when an experiment is
resumed. A value that cannot be compared ends nothing: scripts report a metric late, or as None until it is known.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from reprlib import repr as short_repr
from typing import Any, Literal, TypeGuard

from ...protocol import Json, names_of, number_in

# What users' code may raise and the experiment outlives: also the second Ctrl-C, which may come while it runs.
RAISED_BY_USERS = (Exception, SystemExit, KeyboardInterrupt)
Result = Mapping[str, Json]
Mode = Literal["min", "max"]

_log = logging.getLogger(__name__)


class StopperError(ValueError):
    """An object is not a stopper, or its arguments make no sense."""


class Stopper:
    """Base of all stoppers: it ends nothing.

    A result is a dict with what the trial reported (a bare number as `default`) and `trial_id`, `training_iteration`
    (1 for the first result), `done` (is it the final result, or did the trial report a true `done`?), `time_total_s`
    and `parameters`.
    """

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return whether the trial shall end here; after a final result it ends anyway."""
        return False

    def stop_all(self) -> bool:
        """Return whether the experiment shall end here."""
        return False

    def begin(self, elapsed: Callable[[], float]) -> None:
        """Begin, or continue; `elapsed` returns the seconds for which the experiment has run, over all its managers."""

    def time_left(self) -> float | None:
        """Return in how many seconds `stop_all` must be called at the latest, results or not; None: never."""
        return None

    def reason(self) -> str:
        """Say why the last trial, or the experiment, was ended."""
        return f"{type(self).__name__} ended it"


class MaximumIterationStopper(Stopper):
    """Ends each trial after `max_iter` results.

    >>> stopper = MaximumIterationStopper(3)
    >>> [stopper("a", {"training_iteration": number}) for number in (1, 2, 3)]
    [False, False, True]
    """

    def __init__(self, max_iter: int) -> None:
        if _given("max_iter", max_iter) < 1:
            raise StopperError(f"max_iter is {max_iter}: a trial cannot end before its first result")
        self.max_iter = max_iter

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return whether the trial has reported often enough."""
        return result["training_iteration"] >= self.max_iter

    def reason(self) -> str:
        """Say how many results are enough."""
        return f"{self.max_iter} results are enough"


class TrialPlateauStopper(Stopper):
    """Ends a trial when its last `num_results` values of `metric` differ too little: standard deviation <= `std`.

    A trial is left alone for its first `grace_period` results and, with `metric_threshold` and `mode`, until the
    metric is at least that good. Missing values and values that are not numbers make no plateau.

    >>> stopper = TrialPlateauStopper(std=0.01, num_results=2, grace_period=2)
    >>> [stopper("a", {"default": value}) for value in (0.5, 0.9, 0.9)]
    [False, False, True]
    """

    def __init__(
        self,
        metric: str = "default",
        std: float = 0.01,
        num_results: int = 4,
        grace_period: int = 4,
        metric_threshold: float | None = None,
        mode: Mode | None = None,
    ) -> None:
        if metric_threshold is not None and mode not in ("min", "max"):
            raise StopperError("with a metric_threshold, mode must be 'min' or 'max'")
        if _given("num_results", num_results) < 1:
            raise StopperError(f"num_results is {num_results}: a plateau needs results")
        _given("grace_period", grace_period)
        if metric_threshold is not None:
            _given("metric_threshold", metric_threshold)
        _check_spread(std)
        self.metric = metric
        self.std = std
        self.num_results = num_results
        self.grace_period = grace_period
        self.metric_threshold = metric_threshold
        self.mode = mode
        self._seen: dict[str, int] = {}
        self._last: dict[str, deque[float]] = {}

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return whether the trial is at a standstill."""
        seen = self._seen[trial_id] = self._seen.get(trial_id, 0) + 1
        value = number_in({**result}, self.metric)
        last = self._last.setdefault(trial_id, deque(maxlen=self.num_results))
        last.append(value)
        if result.get("done"):
            self._seen.pop(trial_id)
            self._last.pop(trial_id)
        if seen < self.grace_period or len(last) < self.num_results or not self._is_good_enough(value):
            return False
        return _spread(last) <= self.std

    def _is_good_enough(self, value: float) -> bool:
        if self.metric_threshold is None:
            return True
        return value <= self.metric_threshold if self.mode == "min" else value >= self.metric_threshold

    def reason(self) -> str:
        """Say what is at a standstill."""
        return f"{self.metric} has changed by no more than {self.std:g} over {self.num_results} results"


class ExperimentPlateauStopper(Stopper):
    """Ends the experiment when its `top` best trials are as good as each other: standard deviation <= `std`.

    `patience` is for how many more results that must last. Each trial counts with its best value of `metric`: the
    results of one good trial alone make no plateau.

    >>> stopper = ExperimentPlateauStopper(std=0.01, top=2)
    >>> for trial_id, value in (("a", 0.5), ("b", 0.2), ("b", 0.2), ("c", 0.2)):
    ...     _ = stopper(trial_id, {"default": value})
    ...     print(stopper.stop_all())
    False
    False
    False
    True
    """

    def __init__(
        self,
        metric: str = "default",
        std: float = 0.001,
        top: int = 10,
        mode: Mode = "min",
        patience: int = 0,
    ) -> None:
        if mode not in ("min", "max"):
            raise StopperError(f"mode is {mode!r}, and must be 'min' or 'max'")
        _check_spread(std)
        if _given("patience", patience) < 0:
            raise StopperError(f"patience is {patience}: it cannot be negative")
        if _given("top", top) < 2:
            raise StopperError(f"top is {top}: it takes two trials to be as good as each other")
        self.metric = metric
        self.std = std
        self.top = top
        self.mode = mode
        self.patience = patience
        self._sign = 1.0 if mode == "min" else -1.0
        self._best: dict[str, float] = {}
        self._lasted = -1

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Note a result; return whether the experiment is over."""
        value = self._sign * number_in({**result}, self.metric)
        if not math.isnan(value):
            self._best[trial_id] = min(value, self._best.get(trial_id, math.inf))
            self._forget_the_rest()
        flat = len(self._best) == self.top and _spread(list(self._best.values())) <= self.std
        self._lasted = self._lasted + 1 if flat else -1
        return self.stop_all()

    def _forget_the_rest(self) -> None:
        """Drop the worst: a trial that is not among the best now does not count."""
        if len(self._best) > self.top:
            del self._best[max(self._best, key=self._best.__getitem__)]

    def stop_all(self) -> bool:
        """Return whether the plateau has lasted long enough."""
        return self._lasted >= self.patience

    def reason(self) -> str:
        """Say what is at a standstill."""
        return f"{self.metric} of the {self.top} best trials differs by no more than {self.std:g}"


class TimeoutStopper(Stopper):
    """Ends the experiment when it has run for `timeout` seconds, breaks between its managers not counted."""

    def __init__(self, timeout: float) -> None:
        if _given("timeout", timeout) <= 0:
            raise StopperError(f"timeout is {timeout}: it is a number of seconds above 0")
        self.timeout = timeout
        self._elapsed = _stopwatch()

    def begin(self, elapsed: Callable[[], float]) -> None:
        """Take the experiment's own clock."""
        self._elapsed = elapsed

    def stop_all(self) -> bool:
        """Return whether the time is over."""
        return self._elapsed() >= self.timeout

    def time_left(self) -> float:
        """Return the seconds until then."""
        return max(0.0, self.timeout - self._elapsed())

    def reason(self) -> str:
        """Say how long it had."""
        return f"its {self.timeout:g} s are over"

    def __getstate__(self) -> dict[str, float]:
        """Keep only the timeout: the experiment has the time that is used up."""
        return {"timeout": self.timeout}

    def __setstate__(self, state: dict[str, float]) -> None:
        self.timeout = state["timeout"]
        self._elapsed = _stopwatch()


class FunctionStopper(Stopper):
    """Ends the trials for which a function of (trial_id, result) is true.

    >>> FunctionStopper(lambda trial_id, result: result["default"] < 0.1)("a", {"default": 0.05})
    True
    """

    def __init__(self, function: Callable[[str, Result], object]) -> None:
        if not callable(function) or isinstance(function, type):
            raise StopperError(f"{function!r} is not a function of a trial's id and a result")
        self.function = function

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return what the function says."""
        return bool(self.function(trial_id, result))

    def reason(self) -> str:
        """Say which function it was."""
        return f"{getattr(self.function, '__name__', 'a function')} ended it"


class CriteriaStopper(Stopper):
    """Ends a trial as soon as one of some numbers in its result is reached.

    A criterion is not met while its number is missing in the result, or is not a number; the first time is logged.

    >>> CriteriaStopper({"training_iteration": 10, "accuracy": 0.9})("a", {"training_iteration": 4, "accuracy": 0.95})
    True
    """

    # Of the class: stoppers that earlier versions pickled do not have it.
    _noted: frozenset[str] = frozenset()

    def __init__(self, criteria: Mapping[str, float]) -> None:
        self.criteria = {name: _given(repr(name), bound) for name, bound in criteria.items()}
        self._met = ""

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return whether one of the criteria is met."""
        for name, bound in self.criteria.items():
            value = result.get(name)
            if _is_number(value):
                if value >= bound:
                    self._met = f"{name} has reached {bound:g}"
                    return True
            elif not result.get("done"):  # a final result need not have what is counted along the way
                self._note(name, trial_id, result)
        return False

    def _note(self, name: str, trial_id: str, result: Result) -> None:
        if name in self._noted:
            return
        self._noted |= {name}
        what = (
            f"is {short_repr(result[name])}"
            if name in result
            else f"is missing (it has {names_of({**result})})"
        )
        _log.warning(
            "'%s' %s in a result of trial %s: no trial ends by it until it is a number", name, what, trial_id
        )

    def reason(self) -> str:
        """Say which criterion was met."""
        return self._met


class CombinedStopper(Stopper):
    """Ends what any of several stoppers ends; each of them gets every result."""

    def __init__(self, *stoppers: Stopper) -> None:
        self.stoppers = stoppers
        self._who: Stopper | None = None

    def __call__(self, trial_id: str, result: Result) -> bool:
        """Return whether any of them ends the trial."""
        return self._is_ended(lambda stopper: stopper(trial_id, result))

    def stop_all(self) -> bool:
        """Return whether any of them ends the experiment."""
        return self._is_ended(lambda stopper: stopper.stop_all())

    def _is_ended(self, ask: Callable[[Stopper], object]) -> bool:
        """Ask all of them, even if one raises; its error counts only if no other one ends it."""
        ending, raised = list[Stopper](), list[BaseException]()
        for stopper in self.stoppers:
            try:
                ending += [stopper] * bool(ask(stopper))
            except RAISED_BY_USERS as error:
                raised.append(error)
        if raised and not ending:
            raise raised[0]
        self._who = ending[0] if ending else self._who
        return bool(ending)

    def begin(self, elapsed: Callable[[], float]) -> None:
        """Begin all of them."""
        for stopper in self.stoppers:
            stopper.begin(elapsed)

    def time_left(self) -> float | None:
        """Return the shortest time left of all."""
        left = [stopper.time_left() for stopper in self.stoppers]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def reason(self) -> str:
        """Return the reason of the one that ended it."""
        return super().reason() if self._who is None else self._who.reason()


def as_stopper(given: Any) -> Stopper | None:
    """Return a stopper from what users give: one, a function, a dict of criteria, or a sequence of those.

    >>> type(as_stopper({"training_iteration": 5})).__name__
    'CriteriaStopper'
    """
    if given is None or isinstance(given, Stopper):
        return given
    if isinstance(given, Mapping):
        return CriteriaStopper(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return CombinedStopper(*(stopper for each in given if (stopper := as_stopper(each)) is not None))
    if callable(given):
        return FunctionStopper(given)
    raise StopperError(f"{given!r} is not a stopper, a function, or a dict of criteria")


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value can be compared with a number; true is 1, so `{"done": True}` is a criterion."""
    return isinstance(value, Real) and value == value


def _given(name: str, value: Any) -> float:
    """Return an argument as a float; raise `StopperError` if it is not a number that a float can hold."""
    try:
        if _is_number(value):
            return float(value)
    except OverflowError:
        pass
    raise StopperError(f"{name} is {short_repr(value)}, which is not a number")


def _check_spread(std: Any) -> None:
    if _given("std", std) < 0:
        raise StopperError(f"std is {std}: a standard deviation cannot be negative")


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation of the population; infinite where it is not defined."""
    return statistics.pstdev(values) if all(map(math.isfinite, values)) else math.inf


def _stopwatch() -> Callable[[], float]:
    began = time.monotonic()
    return lambda: time.monotonic() - began
