"""Early-stopping rules: one file each, pure; created by name through :func:`create`."""

from typing import TYPE_CHECKING, Any

from .base import Assessor, AssessResult
from .registry import UnknownAlgorithm, check, create, find, names

if TYPE_CHECKING:
    from .asha import ASHAAssessor
    from .curvefitting import CurvefittingAssessor
    from .hyperband import HyperbandAssessor
    from .medianstop import MedianstopAssessor
    from .patient import PatientAssessor
    from .plateau import PlateauAssessor
    from .threshold import ThresholdAssessor

__all__ = [
    "ASHAAssessor",
    "AssessResult",
    "Assessor",
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


_LAZY = {
    "ASHAAssessor": "asha",
    "CurvefittingAssessor": "curvefitting",
    "HyperbandAssessor": "hyperband",
    "MedianstopAssessor": "medianstop",
    "PatientAssessor": "patient",
    "PlateauAssessor": "plateau",
    "ThresholdAssessor": "threshold",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
