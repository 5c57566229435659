"""What tuners share: the base classes, the history of results, layouts of search spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import integer, merged, one_of, positive, seed_of
    from .embedding import Embedding, active_dimension
    from .explored import Explored, key_of, measurements, ready
    from .history import History
    from .layout import Bools, Floats, Ints, Layout
    from .learner import LearningTuner, latin_hypercube
    from .requests import Suggestion, TrialControl
    from .scheduled import Member, ScheduledTuner
    from .tuner import NoMoreTrialError, Tuner

_HOMES = {
    "Bools": ".layout",
    "Embedding": ".embedding",
    "Explored": ".explored",
    "Floats": ".layout",
    "History": ".history",
    "Ints": ".layout",
    "Layout": ".layout",
    "LearningTuner": ".learner",
    "Member": ".scheduled",
    "NoMoreTrialError": ".tuner",
    "ScheduledTuner": ".scheduled",
    "Suggestion": ".requests",
    "TrialControl": ".requests",
    "Tuner": ".tuner",
    "active_dimension": ".embedding",
    "integer": ".arguments",
    "key_of": ".explored",
    "latin_hypercube": ".learner",
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


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
