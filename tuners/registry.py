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
    __name__.rpartition(".")[0],
    [
        *(
            "Anneal",
            "ASHA",
            "Auto",
            "Batch",
            "BOHB",
            "CMAES",
            "DEHB",
            "DNGO",
            "Evolution",
            "GP",
            "GridSearch",
        ),
        *("Hyperband", "Metis", "NSGA", "Optuna", "PB2", "PBT", "QMC", "Random", "SMAC", "TPE"),
    ],
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
