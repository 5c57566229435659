"""The notes on how a search went, read from the store of an experiment."""

from __future__ import annotations

from ..store.reading import ExperimentView

__all__ = ["read_health"]

_FEWEST = 40  # trials that succeeded
_MOST = 2_000  # reading more would delay `pitchpipe status`
# Tuners that do not learn from results where to search: that random search does as well is no news.
_MODEL_FREE = ("random", "gridsearch", "batch", "qmc", "hyperband", "asha", "pbt", "pb2")


def read_health(view: ExperimentView) -> list[str]:
    """Return the notes on an experiment; raise `StoreError` if it cannot be read."""
    if not _FEWEST <= view.summary()["counts"].get("SUCCEEDED", 0) <= _MOST:
        return []  # without an import of numpy
    from .experiment_table import read_table
    from .figures import health_notes

    config = view.config()
    tuner = str((config.get("tuner") or {}).get("name") or "").replace("_", "").lower().removesuffix("tuner")
    # Where the search starts from what users know, its first trials are not random.
    starts_at_random = not config.get("priors") and not config.get("warmStart")
    learns = starts_at_random and tuner not in _MODEL_FREE
    return health_notes(read_table(view, curves=0), learns=learns, fewest=_FEWEST)
