"""What tuners share.

tuner                `Tuner`, with NNI's method names, and `NoMoreTrialError`
non_repeating_tuner  base class of tuners that only remember points: Random, GridSearch, QMC
learning_tuner       base class of tuners that learn from results
scheduled_tuner      base class of schedulers, which train in stages
trial_control        budgets, checkpoints, pause, resume and stop, for schedulers
history              points and their losses, ranked
explored             points suggested or measured before
grid                 a lazy walk over all points
layout               columns of the unit cube: numbers, choices, branches
embedding            the unit cube as features for distance-based models
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embedding import Embedding, active_dimension
    from .explored import Explored, key_of, measurements, ready
    from .history import History
    from .layout import Bools, Floats, Ints, Layout
    from .learning_tuner import LearningTuner, latin_hypercube
    from .non_repeating_tuner import NonRepeatingTuner
    from .scheduled_tuner import Member, ScheduledTuner
    from .trial_control import Suggestion, TrialControl
    from .tuner import NoMoreTrialError, Tuner

_HOMES = {
    "Bools": ".layout",
    "Embedding": ".embedding",
    "Explored": ".explored",
    "Floats": ".layout",
    "History": ".history",
    "Ints": ".layout",
    "Layout": ".layout",
    "LearningTuner": ".learning_tuner",
    "Member": ".scheduled_tuner",
    "NoMoreTrialError": ".tuner",
    "NonRepeatingTuner": ".non_repeating_tuner",
    "ScheduledTuner": ".scheduled_tuner",
    "Suggestion": ".trial_control",
    "TrialControl": ".trial_control",
    "Tuner": ".tuner",
    "active_dimension": ".embedding",
    "key_of": ".explored",
    "latin_hypercube": ".learning_tuner",
    "measurements": ".explored",
    "ready": ".explored",
}

__all__ = [
    "Bools",
    "Embedding",
    "Explored",
    "Floats",
    "History",
    "Ints",
    "Layout",
    "LearningTuner",
    "Member",
    "NoMoreTrialError",
    "NonRepeatingTuner",
    "ScheduledTuner",
    "Suggestion",
    "TrialControl",
    "Tuner",
    "active_dimension",
    "key_of",
    "latin_hypercube",
    "measurements",
    "ready",
]


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
