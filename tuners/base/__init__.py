"""What tuners share: the base classes, the history of results, layouts of search spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import integer, merged, one_of, positive, seed_of
    from .embedding import Embedding, active_dimension
    from .explored import Explored, key_of, measurements, ready
    from .history import History
    from .layout import Bools, Floats, Ints, Layout
    from .learning_tuner import LearningTuner, latin_hypercube
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
    "ScheduledTuner": ".scheduled_tuner",
    "Suggestion": ".trial_control",
    "TrialControl": ".trial_control",
    "Tuner": ".tuner",
    "active_dimension": ".embedding",
    "integer": ".arguments",
    "key_of": ".explored",
    "latin_hypercube": ".learning_tuner",
    "measurements": ".explored",
    "merged": ".arguments",
    "one_of": ".arguments",
    "positive": ".arguments",
    "ready": ".explored",
    "seed_of": ".arguments",
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
    "ScheduledTuner",
    "Suggestion",
    "TrialControl",
    "Tuner",
    "active_dimension",
    "integer",
    "key_of",
    "latin_hypercube",
    "measurements",
    "merged",
    "one_of",
    "positive",
    "ready",
    "seed_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name], __name__), name)
