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
    __package__,
    {
        "ASHA": ".asha:ASHAAssessor",
        "Auto": ".auto:AutoAssessor",
        "Curvefitting": ".curvefitting:CurvefittingAssessor",
        "Hyperband": ".hyperband:HyperbandAssessor",
        "Medianstop": ".medianstop:MedianstopAssessor",
        "Patient": ".patient:PatientAssessor",
        "Plateau": ".plateau:PlateauAssessor",
        "Threshold": ".threshold:ThresholdAssessor",
    },
)
names, find, create = REGISTRY.names, REGISTRY.find, REGISTRY.create
