"""Early-stopping rules: one file each, pure; created by name through :func:`create`."""

from typing import TYPE_CHECKING, Any

from .base import Assessor, AssessResult
from .registry import UnknownAlgorithm, check, create, find, names

if TYPE_CHECKING:
    from .medianstop import MedianstopAssessor

__all__ = [
    "AssessResult",
    "Assessor",
    "MedianstopAssessor",
    "UnknownAlgorithm",
    "check",
    "create",
    "find",
    "names",
]


def __getattr__(name: str) -> Any:
    if name != "MedianstopAssessor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .medianstop import MedianstopAssessor

    return MedianstopAssessor
