"""How a name in a config becomes a class: the registry that tuners and assessors share."""

from .algorithms import Registry, UnknownAlgorithm, check, signature_problems

__all__ = [
    "Registry",
    "UnknownAlgorithm",
    "check",
    "signature_problems",
]
