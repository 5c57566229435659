"""Any sampler of Optuna as a tuner: for methods that are not here, and for comparisons.

Akiba et al., Optuna: A Next-generation Hyperparameter Optimization Framework, KDD 2019. Optuna comes with the extra
`optuna`.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..numerics import Floats
from ..plugins import one_of, optional_mapping
from ..protocol import Json, MissingExtraError, require_extra
from ..search_space import Parameter
from .base import LearningTuner, ready

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import Trial

_PROPOSALS = 10
# What a sampler imports when it first makes a suggestion that is not random.
_LATE_LIBRARIES: Mapping[str, str] = MappingProxyType({"GPSampler": "torch"})


class OptunaTuner(LearningTuner):
    """Gets every point from a sampler of Optuna, and passes every result to it.

    `sampler` is the name of a class of `optuna.samplers`, `sampler_args` are its arguments; `seed` (an integer
    of at least 0) is passed to a sampler that takes one. `optimize_mode` is `minimize` or `maximize`. The sampler sees
    the places of numbers in the unit interval, integers as steps of it, and choices as the indices of their options. It
    is asked only for active parameters. Points that it repeats are replaced. Raises
    MissingExtraError without Optuna, ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = OptunaTuner("RandomSampler", seed=1)
    >>> tuner.update_search_space({"layers": {"_type": "randint", "_value": [1, 4]}})
    >>> sorted(tuner.generate_parameters(i)["layers"] for i in range(3))
    [1, 2, 3]
    """

    def __init__(
        self,
        sampler: str = "TPESampler",
        sampler_args: Mapping[str, Json] | None = None,
        optimize_mode: str = "minimize",
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._sampler, self._arguments = sampler, optional_mapping("sampler_args", sampler_args)
        self._seed = int(self._rng.integers(2**32)) if seed is None else seed
        _sampler(self._sampler, self._arguments, self._seed)  # refuses wrong arguments at once

    def _begin(self) -> None:
        self._names = _names(ready(self._explored).space.parameters)
        self._study = _study(_sampler(self._sampler, self._arguments, self._seed))
        self._asked: Trial | None = None
        self._numbers: dict[int, int] = {}  # of the trials of the study that run, by row
        self._reported: set[int] = set()  # rows whose result the study has; it takes no second one

    def _proposals(self) -> Iterator[Floats]:
        """Yield the points of the sampler, until one is new."""
        from optuna.trial import TrialState

        for _ in range(_PROPOSALS):
            self._asked = self._study.ask()
            yield self._vector(self._asked)
            self._study.tell(self._asked, state=TrialState.FAIL)
        self._asked = None

    def _vector(self, trial: Trial) -> Floats:
        """Ask the sampler about every active parameter, parents first; return the units, shape (d,)."""
        units = np.full(self._layout.dimension, np.nan)
        parents = {column: (parent, option) for column, parent, option in self._layout.children}
        codes: dict[int, int] = {}
        for column, (name, distribution) in enumerate(self._names):
            parent, option = parents.get(column, (-1, -1))
            if parent < 0 or codes.get(parent) == option:
                value = _suggest(trial, name, distribution)
                units[column] = _unit(distribution, value)
                if column in self._layout.choices:
                    codes[column] = int(value)
        return units

    def _suggested(self, parameter_id: int, row: int) -> None:
        """Start a trial of the study: the one asked for, or one with the point that replaced it."""
        trial = self._asked
        if trial is None:
            self._study.enqueue_trial(self._values(row))
            trial = self._study.ask()
            self._vector(trial)
        self._numbers[row] = trial.number
        self._asked = None

    def _settled(self, row: int) -> None:
        from optuna.trial import TrialState, create_trial

        if row in self._reported:
            return
        self._reported.add(row)
        loss = self._history.loss(row)
        number = self._numbers.pop(row, None)
        if not math.isfinite(loss):
            if number is not None:
                self._study.tell(number, state=TrialState.FAIL)
        elif number is not None:
            self._study.tell(number, loss)
        else:
            values = self._values(row)
            known = {name: distribution for name, distribution in self._names if name in values}
            self._study.add_trial(create_trial(params=values, distributions=known, value=loss))

    def _values(self, row: int) -> dict[str, float]:
        """Return the point of a row as the study has it."""
        units = self._history.units(np.array([row]))[0]
        return {
            name: _value(distribution, unit)
            for (name, distribution), unit in zip(self._names, units.tolist(), strict=True)
            if unit == unit
        }


def _names(parameters: Sequence[Parameter]) -> list[tuple[str, BaseDistribution]]:
    """Return the name and the distribution of each column in the study."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    names: list[tuple[str, BaseDistribution]] = []
    for parameter in parameters:
        distribution: BaseDistribution = FloatDistribution(0.0, 1.0)
        if parameter.categorical:
            distribution = CategoricalDistribution(range(len(parameter.options)))
        elif parameter.integer and not parameter.log and parameter.size is not None:
            distribution = IntDistribution(0, parameter.size - 1)
        names.append((".".join(map(str, parameter.key)), distribution))
    return names


def _suggest(trial: Trial, name: str, distribution: Any) -> float:
    if hasattr(distribution, "choices"):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution.high, int):
        return trial.suggest_int(name, distribution.low, distribution.high)
    return trial.suggest_float(name, distribution.low, distribution.high)


def _size(distribution: Any) -> int | None:
    """Return how many values there are, None for a float."""
    if hasattr(distribution, "choices"):
        return len(distribution.choices)
    return distribution.high + 1 if isinstance(distribution.high, int) else None


def _unit(distribution: BaseDistribution, value: float) -> float:
    size = _size(distribution)
    return value if size is None else (value + 0.5) / size


def _value(distribution: BaseDistribution, unit: float) -> float:
    size = _size(distribution)
    return unit if size is None else min(int(unit * size), size - 1)


def _sampler(name: Any, arguments: Mapping[str, Json], seed: int) -> BaseSampler:
    """Return a new sampler; raises MissingExtraError, or ValueError naming the argument that is wrong."""
    require_extra("the tuner Optuna needs", "optuna")
    import optuna

    known = [each for each in optuna.samplers.__all__ if each.endswith("Sampler") and each != "BaseSampler"]
    cls = getattr(optuna.samplers, str(one_of("sampler", name, sorted(known))))
    library = _LATE_LIBRARIES.get(cls.__name__)
    if library is not None and find_spec(library) is None:
        raise MissingExtraError(f"Optuna's {cls.__name__} needs {library}: pip install {library}")
    if "seed" in inspect.signature(cls).parameters:
        arguments = {"seed": seed, **arguments}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            return cls(**arguments)
        except (TypeError, ImportError) as error:
            raise ValueError(f"sampler_args: {name} refuses them: {error}") from error


def _study(sampler: BaseSampler) -> Study:
    """Return a new study in memory, without a line in the log."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
