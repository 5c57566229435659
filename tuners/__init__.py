"""Search algorithms: one file each, pure, seeded; created by name through `create`.

Importing this package imports neither numpy nor an algorithm; the classes are loaded when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .anneal import AnnealTuner
    from .asha import ASHATuner
    from .auto import AutoTuner
    from .base import NoMoreTrialError, Suggestion, TrialControl, Tuner
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
    from .registry import REGISTRY, UnknownAlgorithm, check, create, find, names
    from .smac import SMACTuner
    from .tpe import TPETuner, TpeTuner

_HOMES = {
    "ASHATuner": ".asha",
    "AnnealTuner": ".anneal",
    "AutoTuner": ".auto",
    "BOHBTuner": ".bohb",
    "BatchTuner": ".batch",
    "CMAESTuner": ".cma_es",
    "DEHBTuner": ".dehb",
    "DNGOTuner": ".dngo",
    "EvolutionTuner": ".evolution",
    "GPTuner": ".gp",
    "GridSearchTuner": ".grid_search",
    "HyperbandTuner": ".hyperband",
    "MetisTuner": ".metis",
    "NoMoreTrialError": ".base",
    "OptunaTuner": ".optuna_sampler",
    "PB2Tuner": ".pb2",
    "PBTTuner": ".pbt",
    "QMCTuner": ".qmc",
    "REGISTRY": ".registry",
    "RandomTuner": ".random",
    "SMACTuner": ".smac",
    "Suggestion": ".base",
    "TPETuner": ".tpe",
    "TpeTuner": ".tpe",
    "TrialControl": ".base",
    "Tuner": ".base",
    "UnknownAlgorithm": ".registry",
    "check": ".registry",
    "create": ".registry",
    "find": ".registry",
    "names": ".registry",
}

__all__ = [
    "REGISTRY",
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


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
