"""The assessors by name: `create`, `find`, `names`.

>>> "Medianstop" in names()
True
>>> create("Medianstop", start_stop=1)
Traceback (most recent call last):
TypeError: MedianstopAssessor: unknown argument 'start_stop'; did you mean 'start_step'?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plugins import Registry

if TYPE_CHECKING:
    from .base import Assessor

REGISTRY: Registry[Assessor] = Registry(
    "assessor",
    __name__.rpartition(".")[0],
    ["ASHA", "Auto", "Curvefitting", "Hyperband", "Medianstop", "Patient", "Plateau", "Threshold"],
)
names, find, create = REGISTRY.names, REGISTRY.find, REGISTRY.create
