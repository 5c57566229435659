"""Early-stopping rules: pure, and created by name through `create`.

Importing this package imports neither numpy nor a rule: a class is loaded on first use.

Arguments are checked before a class is made:

>>> from pitchpipe.assessors import check, find
>>> [problem.path for problem in check(find("Medianstop"), {"optimize_mode": "best"})]
[('optimize_mode',)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from ..plugins import UnknownAlgorithm, check
    from .auto import AutoAssessor
    from .base import Assessor, AssessResult
    from .curvefitting import CurvefittingAssessor
    from .halving import ASHAAssessor, HyperbandAssessor
    from .medianstop import MedianstopAssessor
    from .plateau import PatientAssessor, PlateauAssessor
    from .registry import REGISTRY, create, find, names
    from .threshold import ThresholdAssessor
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "REGISTRY",
    "ASHAAssessor",
    "AssessResult",
    "Assessor",
    "AutoAssessor",
    "CurvefittingAssessor",
    "HyperbandAssessor",
    "MedianstopAssessor",
    "PatientAssessor",
    "PlateauAssessor",
    "ThresholdAssessor",
    "UnknownAlgorithm",
    "check",
    "create",
    "find",
    "names",
]
