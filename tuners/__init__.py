"""Search algorithms: one file each, pure, seeded; created by name through `create`.

Importing this package imports neither numpy nor an algorithm: a class is loaded on first use.

Arguments are checked before a class is made:

>>> from pitchpipe.tuners import check, find
>>> [problem.path for problem in check(find("Random"), {"seed": "x"})]
[('seed',)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from ..plugins import UnknownAlgorithm, check
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
    from .nsga import NSGATuner
    from .optuna_sampler import OptunaTuner
    from .pb2 import PB2Tuner
    from .pbt import PBTTuner
    from .qmc import QMCTuner
    from .random import RandomTuner
    from .registry import REGISTRY, create, find, names
    from .smac import SMACTuner
    from .tpe import TPETuner, TpeTuner
    from .tuner import NoMoreTrialError, Suggestion, TrialControl, Tuner
else:
    __getattr__ = lazy_names(__name__, __file__)

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
    "NSGATuner",
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
