"""The tuners by name: `create`, `find`, `names`.

>>> "Random" in names()
True
>>> type(create("random")).__name__
'RandomTuner'
>>> create("Random", sead=1)
Traceback (most recent call last):
TypeError: RandomTuner: unknown argument 'sead'; did you mean 'seed'?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plugins import Registry

if TYPE_CHECKING:
    from .tuner import Tuner

REGISTRY: Registry[Tuner] = Registry(
    "tuner",
    __package__,
    {
        "Anneal": ".anneal:AnnealTuner",
        "ASHA": ".asha:ASHATuner",
        "Auto": ".auto:AutoTuner",
        "Batch": ".batch:BatchTuner",
        "BOHB": ".bohb:BOHBTuner",
        "CMAES": ".cma_es:CMAESTuner",
        "DEHB": ".dehb:DEHBTuner",
        "DNGO": ".dngo:DNGOTuner",
        "Evolution": ".evolution:EvolutionTuner",
        "GP": ".gp:GPTuner",
        "GridSearch": ".grid_search:GridSearchTuner",
        "Hyperband": ".hyperband:HyperbandTuner",
        "Metis": ".metis:MetisTuner",
        "NSGA": ".nsga:NSGATuner",
        "Optuna": ".optuna_sampler:OptunaTuner",
        "PB2": ".pb2:PB2Tuner",
        "PBT": ".pbt:PBTTuner",
        "QMC": ".qmc:QMCTuner",
        "Random": ".random:RandomTuner",
        "SMAC": ".smac:SMACTuner",
        "TPE": ".tpe:TPETuner",
    },
    # NNI's other names.
    aliases={
        "batchtuner": "batch",
        "dngotuner": "dngo",
        "gptuner": "gp",
        "metistuner": "metis",
        "pbttuner": "pbt",
        "tpe_legacy": "tpe",
    },
)
names, find, create = REGISTRY.names, REGISTRY.find, REGISTRY.create
