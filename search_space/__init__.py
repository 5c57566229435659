"""The search-space model: NNI's JSON to parameters, sampling, the unit cube, constraints.

Pure: no I/O, no clock, and every random number comes from a generator that the caller passes in.
"""

from __future__ import annotations

from ..protocol import JsonPath, format_path
from .json_checks import Problem, SearchSpaceError, identity, non_finite, plain_copy
from .parameter import TYPES, Parameter, separators
from .reading import MAX_INTEGER, MAX_STEPS, with_constants
from .sampling import (
    choice,
    lognormal,
    lograndint,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
)
from .space import SearchSpace, check, impossible
from .units import UnitMap, ends_of, finite_exp, unit_map

__all__ = [
    "MAX_INTEGER",
    "MAX_STEPS",
    "TYPES",
    "JsonPath",
    "Parameter",
    "Problem",
    "SearchSpace",
    "SearchSpaceError",
    "UnitMap",
    "check",
    "choice",
    "ends_of",
    "finite_exp",
    "format_path",
    "identity",
    "impossible",
    "lognormal",
    "lograndint",
    "loguniform",
    "non_finite",
    "normal",
    "plain_copy",
    "qlognormal",
    "qloguniform",
    "qnormal",
    "quniform",
    "randint",
    "separators",
    "uniform",
    "unit_map",
    "with_constants",
]
