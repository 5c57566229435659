"""How a name in a config becomes a class, and the checks of the class's arguments; tuners and assessors share both."""

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
    shown,
    synonym,
    taken,
)
from .checkpoint_folder import CheckpointFolder
from .user_registry import Registered, register, registered, registry_file, unregister
