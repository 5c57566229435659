"""What tuners and assessors share: the registry in which a name becomes a class, and where they keep checkpoints."""

from __future__ import annotations

from .algorithms import Registry, UnknownAlgorithm, check, signature_problems
from .checkpoint_folder import CheckpointFolder

__all__ = [
    "CheckpointFolder",
    "Registry",
    "UnknownAlgorithm",
    "check",
    "signature_problems",
]
