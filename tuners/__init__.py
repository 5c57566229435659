"""Search algorithms: one file each, pure, seeded; created by name through :func:`create`.

Importing this package imports neither numpy nor an algorithm; the classes are loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

from .base.requests import Suggestion, TrialControl
from .base.tuner import NoMoreTrialError, Tuner
from .registry import UnknownAlgorithm, check, create, find, names

if TYPE_CHECKING:
    from .anneal import AnnealTuner
    from .asha import ASHATuner
    from .auto import AutoTuner
    from .batch import BatchTuner
    from .bohb import BOHBTuner
    from .cma_es import CMAESTuner
    from .dehb import DEHBTuner
    from .dngo import DNGOTuner
    from .evolution import EvolutionTuner
    from .gp import GPTuner
    from .grid_search import GridSearchTuner
    from .hyperband import HyperbandTuner
    from .metis import MetisTuner
    from .optuna_sampler import OptunaTuner
    from .pb2 import PB2Tuner
    from .pbt import PBTTuner
    from .qmc import QMCTuner
    from .random import RandomTuner
    from .smac import SMACTuner
    from .tpe import TPETuner, TpeTuner

__all__ = [
    "ASHATuner",
    "AnnealTuner",
    "AutoTuner",
    "BOHBTuner",
    "BatchTuner",
    "CMAESTuner",
    "DEHBTuner",
    "DNGOTuner",
    "EvolutionTuner",
    "GPTuner",
    "GridSearchTuner",
    "HyperbandTuner",
    "MetisTuner",
    "NoMoreTrialError",
    "OptunaTuner",
    "PB2Tuner",
    "PBTTuner",
    "QMCTuner",
    "RandomTuner",
    "SMACTuner",
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
    "ASHATuner": "asha",
    "AnnealTuner": "anneal",
    "AutoTuner": "auto",
    "BOHBTuner": "bohb",
    "BatchTuner": "batch",
    "CMAESTuner": "cma_es",
    "DEHBTuner": "dehb",
    "DNGOTuner": "dngo",
    "EvolutionTuner": "evolution",
    "GPTuner": "gp",
    "GridSearchTuner": "grid_search",
    "HyperbandTuner": "hyperband",
    "MetisTuner": "metis",
    "OptunaTuner": "optuna_sampler",
    "PB2Tuner": "pb2",
    "PBTTuner": "pbt",
    "QMCTuner": "qmc",
    "RandomTuner": "random",
    "SMACTuner": "smac",
    "TPETuner": "tpe",
    "TpeTuner": "tpe",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
