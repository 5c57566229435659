"""How a name in a config becomes a class, and the checks of the class's arguments; tuners and assessors share both."""

from __future__ import annotations

from .algorithms import (
    CheckpointFolder,
    Registered,
    Registry,
    UnknownAlgorithm,
    check,
    register,
    registered,
    registry_file,
    signature_problems,
    unregister,
)
from .arguments import (
    as_json,
    integer,
    loss_sign,
    merged,
    number,
    one_of,
    optional_mapping,
    positive,
    seed_of,
    synonym,
    taken,
)
