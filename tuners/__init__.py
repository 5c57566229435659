"""Search algorithms: one file each, pure, seeded; created by name through :func:`create`.

Importing this package imports neither numpy nor an algorithm; the classes are loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

from .base import NoMoreTrialError, Tuner
from .registry import UnknownAlgorithm, check, create, find, names
from .requests import Suggestion, TrialControl

if TYPE_CHECKING:
    from .anneal import AnnealTuner
    from .auto import AutoTuner
    from .batch import BatchTuner
    from .cma_es import CMAESTuner
    from .evolution import EvolutionTuner
    from .grid_search import GridSearchTuner
    from .hyperband import HyperbandTuner
    from .optuna_sampler import OptunaTuner
    from .pbt import PBTTuner
    from .qmc import QMCTuner
    from .random import RandomTuner
    from .tpe import TPETuner, TpeTuner

__all__ = [
    "AnnealTuner",
    "AutoTuner",
    "BatchTuner",
    "CMAESTuner",
    "EvolutionTuner",
    "GridSearchTuner",
    "HyperbandTuner",
    "NoMoreTrialError",
    "OptunaTuner",
    "PBTTuner",
    "QMCTuner",
    "RandomTuner",
    "Suggestion",
    "TPETuner",
    "TpeTuner",
    "TrialControl",
    "Tuner",
    "UnknownAlgorithm",
    "check",
    "create",
    "find",
    "names",
]

_LAZY = {
    "AnnealTuner": "anneal",
    "AutoTuner": "auto",
    "BatchTuner": "batch",
    "CMAESTuner": "cma_es",
    "EvolutionTuner": "evolution",
    "GridSearchTuner": "grid_search",
    "HyperbandTuner": "hyperband",
    "OptunaTuner": "optuna_sampler",
    "PBTTuner": "pbt",
    "QMCTuner": "qmc",
    "RandomTuner": "random",
    "TPETuner": "tpe",
    "TpeTuner": "tpe",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
