"""How a name in a config becomes a class, and the checks of the class's arguments; tuners and assessors share both.

`fronts` is how both rank trials with several objectives.
"""

from __future__ import annotations

from .algorithms import Registry, UnknownAlgorithm, check, signature_problems
from .arguments import (
    integer,
    loss_sign,
    merged,
    number,
    one_of,
    optional_mapping,
    positive,
    seed_of,
    synonym,
)
from .checkpoint_folder import CheckpointFolder
from .fronts import Fronts, crowding_distances

__all__ = [
    "CheckpointFolder",
    "Fronts",
    "Registry",
    "UnknownAlgorithm",
    "check",
    "crowding_distances",
    "integer",
    "loss_sign",
    "merged",
    "number",
    "one_of",
    "optional_mapping",
    "positive",
    "seed_of",
    "signature_problems",
    "synonym",
]
