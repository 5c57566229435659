"""Early-stopping rules: one file each, pure; created by name through `create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asha import ASHAAssessor
    from .base import Assessor, AssessResult
    from .curvefitting import CurvefittingAssessor
    from .hyperband import HyperbandAssessor
    from .medianstop import MedianstopAssessor
    from .patient import PatientAssessor
    from .plateau import PlateauAssessor
    from .registry import REGISTRY, UnknownAlgorithm, check, create, find, names
    from .threshold import ThresholdAssessor

_HOMES = {
    "ASHAAssessor": ".asha",
    "AssessResult": ".base",
    "Assessor": ".base",
    "CurvefittingAssessor": ".curvefitting",
    "HyperbandAssessor": ".hyperband",
    "MedianstopAssessor": ".medianstop",
    "PatientAssessor": ".patient",
    "PlateauAssessor": ".plateau",
    "REGISTRY": ".registry",
    "ThresholdAssessor": ".threshold",
    "UnknownAlgorithm": ".registry",
    "check": ".registry",
    "create": ".registry",
    "find": ".registry",
    "names": ".registry",
}

__all__ = [
    "REGISTRY",
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


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
