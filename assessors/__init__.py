"""Early-stopping rules: one file each, pure; created by name through `create`.

Importing this package imports neither numpy nor a rule: a class is loaded on first use.

Arguments are checked before a class is made:

>>> [problem.path for problem in check(find("Medianstop"), {"optimize_mode": "best"})]
[('optimize_mode',)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plugins import UnknownAlgorithm, check
from .base import Assessor, AssessResult
from .registry import REGISTRY, create, find, names

if TYPE_CHECKING:
    from .asha import ASHAAssessor
    from .auto import AutoAssessor
    from .curvefitting import CurvefittingAssessor
    from .hyperband import HyperbandAssessor
    from .medianstop import MedianstopAssessor
    from .patient import PatientAssessor
    from .plateau import PlateauAssessor
    from .threshold import ThresholdAssessor
else:  # a type checker must see which names there are
    __getattr__ = REGISTRY.class_called

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
